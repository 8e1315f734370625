"""A portable llama.cpp finds its kernels beside itself, before it would look in the current folder."""

import os
from types import SimpleNamespace

import pytest

from localagent.errors import CannotEnforce
from localagent.llm.process import llama_engine


class Function:
    def __init__(self, library: "Library", name: str) -> None:
        self._library, self._name = library, name
        self.restype: object = None

    def __call__(self, *args: object) -> int:
        return self._library.called(self._name, *args)


class Library:
    """Stands for a loaded libllama: how many backends it has, before and after it is told where to look."""

    _name = "/somewhere/llama_cpp/lib/libllama.so"

    def __init__(self, before: int, after: int) -> None:
        self.count, self._after = before, after
        self.asked: list[bytes] = []
        self.ggml_backend_reg_count = Function(self, "count")
        self.ggml_backend_load_all_from_path = Function(self, "load")

    def called(self, name: str, *args: object) -> int:
        if name == "load":
            assert isinstance(args[0], bytes)
            self.asked.append(args[0])
            self.count = self._after
        return self.count


def test_looks_beside_itself() -> None:
    library = Library(before=0, after=1)
    llama_engine._load_variants(SimpleNamespace(_lib=library))
    assert library.asked == [os.fsencode("/somewhere/llama_cpp/lib")]


def test_a_build_for_this_processor_has_them_already() -> None:
    library = Library(before=1, after=9)
    llama_engine._load_variants(SimpleNamespace(_lib=library))
    assert library.asked == []


def test_a_processor_without_kernels_is_told() -> None:
    with pytest.raises(CannotEnforce, match="no kernels for this processor"):
        llama_engine._load_variants(SimpleNamespace(_lib=Library(before=0, after=0)))
