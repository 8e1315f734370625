"""What runs in the jail runs on Python 3.8: by its syntax everywhere, by that interpreter where there is one."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from localagent import runner

FOLDER = Path(runner.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
OLDEST = (3, 8)
IMPORT = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, {folder!r})
import importlib
for name in {names!r}:
    importlib.import_module("_la_worker." + name)
print(sys.version_info[:2])
"""
NEEDS_PYTEST = {"pytest_plugin", "variation_plugin", "pytest_session", "fork_runner", "test_runner", "probe_requests"}


def oldest() -> str:
    """An interpreter of that version: on the PATH, or among pyenv's."""
    found = shutil.which("python3.8")
    kept = sorted(Path.home().glob(".pyenv/versions/3.8.*/bin/python3.8"))
    for candidate in (found, *map(str, kept)):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip("no Python 3.8 on this machine")


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_its_syntax_is_that_of_the_oldest_python(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=OLDEST)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            assert not [k for k in node.keywords if k.arg == "strict"], f"{file.name}:{node.lineno}: zip(strict=)"
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"removeprefix", "removesuffix", "bit_count", "batched", "pairwise"}
    postponed = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)
    assert postponed or not any(isinstance(n, ast.FunctionDef) for n in ast.walk(tree)), "annotations are evaluated"


@pytest.mark.parametrize("text", ["match x:\n    case 1:\n        pass\n", "with (a as b, c as d):\n    pass\n"])
def test_newer_syntax_is_seen(text: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(text, feature_version=OLDEST)


@pytest.mark.long
def test_it_is_imported_by_that_python(tmp_path: Path) -> None:
    python = oldest()
    has = subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False).returncode == 0
    names = [
        f.stem
        for f in FILES
        if f.stem not in {"__init__", "__main__", "matplotlib_png"} | (set() if has else NEEDS_PYTEST)
    ]
    (tmp_path / "_la_worker").symlink_to(FOLDER)
    program = IMPORT.format(folder=str(tmp_path), names=names)
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("(3, 8)", "")
    for file in FILES:  # those that want pytest, too
        done = subprocess.run(
            [python, "-I", "-c", f"compile(open({str(file)!r}).read(), {file.name!r}, 'exec')"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
