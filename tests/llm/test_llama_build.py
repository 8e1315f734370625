"""The backend's name comes from llama.cpp's own words, asked in a process of its own."""

import sys

import pytest

from localagent.llm.model.llama_build import backend_name, described


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("CPU : SSE3 = 1 | AVX2 = 1 | AMX = 0 | ", "CPU (SSE3, AVX2)"),
        ("CUDA : ARCHS = 900 | CPU : AVX2 = 1 | \nCUDA0 NVIDIA H100\nCPU AMD EPYC", "CUDA0 NVIDIA H100; CPU (AVX2)"),
        ("CPU : AVX2 = 1\nVulkan0 llvmpipe\nCPU x", "Vulkan0 llvmpipe; CPU (AVX2)"),
        ("", "CPU"),
        ("noise", "CPU"),
    ],
)
def test_words_become_one_line(words: str, name: str) -> None:
    assert described(words) == name


def test_llama_cpp_answers_and_is_not_loaded_here() -> None:
    assert "CPU" in backend_name()
    assert "llama_cpp" not in sys.modules
