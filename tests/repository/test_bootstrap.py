"""Setting up: what decides that everything stands, and what names what is missing. No package is fetched here."""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import threading
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module, looking at an empty checkout with our locks."""
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", ROOT / "scripts" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOCKS", tmp_path / "requirements")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "stamp.json")
    monkeypatch.setattr(module, "UNFINISHED", tmp_path / ".venv" / "unfinished")
    return module


def test_only_what_is_installed_changes_the_digest(bootstrap: ModuleType, tmp_path: Path) -> None:
    before = bootstrap.locked_digest()
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text() + "\n[tool.other]\nx = 1\n")
    assert bootstrap.locked_digest() == before
    for name in ("dev.txt", "languages.txt"):
        lock = tmp_path / "requirements" / name
        lock.write_text(lock.read_text() + "\n")
        assert bootstrap.locked_digest() != before
        before = bootstrap.locked_digest()


def test_an_unfinished_environment_has_no_stamp(bootstrap: ModuleType) -> None:
    bootstrap.STAMP.write_text(json.dumps({"gpu": "cuda"}))
    assert bootstrap.stamp() == {"gpu": "cuda"}
    bootstrap.UNFINISHED.touch()
    assert bootstrap.stamp() == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"model": ""}', '{"model": "/nowhere/at/all.gguf"}'])
def test_no_model_without_its_file(bootstrap: ModuleType, text: str) -> None:
    bootstrap.STAMP.write_text(text)
    if text == "[]":
        assert bootstrap.stamp() == {}
    else:
        assert not bootstrap.model_present()


def test_an_altered_wheel_is_not_used(bootstrap: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "llama_cpp_python-1-py3-none-any.whl"
    wheel.write_bytes(b"as built")
    assert bootstrap.sealed_wheel(tmp_path) is None
    wheel.with_suffix(".sha256").write_text(hashlib.sha256(b"as built").hexdigest())
    assert bootstrap.sealed_wheel(tmp_path) == wheel
    wheel.write_bytes(b"as altered")
    assert bootstrap.sealed_wheel(tmp_path) is None


def test_progress_reads_the_compilers_steps(bootstrap: ModuleType) -> None:
    progress = bootstrap.Progress("compiling")
    progress.read("  [17/193] Building CXX object ggml.cpp.o\n")
    progress.read("a warning\n")
    assert progress.place == ", step 17 of 193"


def test_nothing_of_the_users_environment_leads_elsewhere(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "kept")
    found = bootstrap.environment({"CMAKE_ARGS": "-DX=on"})
    assert "/elsewhere" not in found.values()
    assert (found["PIP_INDEX_URL"], found["CMAKE_ARGS"]) == ("kept", "-DX=on")


def test_a_failed_step_shows_its_last_lines_and_the_remedy(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "LOG", tmp_path / "log")
    with pytest.raises(bootstrap.SetupError, match=r"(?s)trying failed.*out of cheese.*what to do: buy some"):
        bootstrap.need("trying", ["sh", "-c", "echo out of cheese; exit 3"], remedy="buy some")


def test_of_two_steps_at_once_each_goes_to_its_end_and_a_failure_is_told(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    failed, compiled = threading.Event(), []

    def install() -> None:
        failed.set()
        raise bootstrap.SetupError("no index answers")

    def compile_all() -> str:
        assert failed.wait(60)
        compiled.append("wheel")
        return "wheel"

    with pytest.raises(bootstrap.SetupError, match="no index answers"):
        bootstrap.at_once(compile_all, install)
    assert compiled == ["wheel"]
    assert "that failed; what runs beside it ends first" in capsys.readouterr().out
    assert bootstrap.at_once(compile_all, failed.set) == "wheel"


def prerequisites(path: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    argv: list[str | Path] = ["/bin/sh", ROOT / "scripts" / "prerequisites.sh", *args]
    return subprocess.run(argv, env={"PATH": str(path)}, capture_output=True, text=True, check=False)


def tools(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return folder


def test_everything_missing_is_named_at_once(tmp_path: Path) -> None:
    ended = prerequisites(tools(tmp_path / "bin", "apt-get"))
    assert ended.returncode == 1
    for name in ("Python 3.11", "git", "make", "a C++ compiler"):
        assert name in ended.stderr
    assert ended.stderr.count("install it with: sudo apt-get install ") == 4


def test_nothing_is_said_when_all_is_there(tmp_path: Path) -> None:
    ended = prerequisites(tools(tmp_path / "bin", "python3", "git", "make", "g++"))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_gpu_needs_its_compiler(tmp_path: Path) -> None:
    folder = tools(tmp_path / "bin", "python3", "git", "make", "g++", "dnf")
    assert "nvcc" in prerequisites(folder, "python3", "cuda").stderr
    assert "make setup GPU=cuda" in prerequisites(folder, "python3", "tpu").stderr


@pytest.mark.parametrize("script", [".ci/run", "scripts/demo.sh", "scripts/prerequisites.sh"])
def test_scripts_parse_and_are_executable(script: str) -> None:
    shell = "bash" if script == ".ci/run" else "sh"
    assert subprocess.run([shell, "-n", ROOT / script], check=False).returncode == 0
    assert (ROOT / script).stat().st_mode & 0o100


def test_a_compiler_gets_only_the_options_it_knows(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.write_text('#!/bin/sh\ncase "$*" in *-fno-dse*) exit 1;; esac\n')
    strange.chmod(0o755)
    monkeypatch.setenv("CXXFLAGS", "-g")
    monkeypatch.setenv("CXX", str(strange))
    assert bootstrap.cxx_flags() == "-g"
    strange.write_text("#!/bin/sh\n")
    assert bootstrap.cxx_flags() == f"-g {bootstrap.KEEPS_STORES}"
    monkeypatch.setenv("CXX", str(tmp_path / "nothing"))
    assert bootstrap.cxx_flags() == "-g"
