"""`do` with a recipe and no model: from the words to a proven patch, in real jails."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.git_builder import Repo

from localagent.cli.main import main

FILES = {
    "shop/__init__.py": "from .io import load\n\n__all__ = ['load']\n",
    "shop/io.py": 'def load(path):\n    """Parts."""\n    return path.split(",")\n',
    "shop/cli.py": "from shop.io import load\n\n\ndef main(text):\n    return len(load(text))\n",
    "tests/test_io.py": (
        "from shop.cli import main\nfrom shop.io import load\n\n\ndef test_load(monkeypatch):\n"
        "    assert load('a,b') == ['a', 'b']\n    monkeypatch.setattr('shop.cli.load', lambda path: [1])\n"
        "    assert main('x,y') == 1\n\n\ndef test_main():\n    assert main('a,b,c') == 3\n"
    ),
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    for name, data in FILES.items():
        made.stage(name, data)
    made.commit()
    return made


def _do(repo: Repo, tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    report = tmp_path / "report.json"
    report.unlink(missing_ok=True)
    code = main(["do", *arguments, "--repo", str(repo.folder), "--report", str(report), "--quiet"])
    return code, json.loads(report.read_text()) if report.exists() else {}


@pytest.mark.long
def test_a_rename_is_proven_and_applied(repo: Repo, tmp_path: Path) -> None:
    code, told = _do(repo, tmp_path, "rename `load` in `shop.io` to `read_orders`", "--assume", "--apply")
    assert code == 0, told["outcome"]
    agent = told["agent"]
    assert agent["recipe"] == "understood as: rename function shop.io.load to read_orders, 8 places in 4 files"
    assert (agent["claim"], agent["replies"]) == ("adds", 0)  # its tests are renamed along
    assert (repo.folder / "tests/test_io.py").read_text() == FILES["tests/test_io.py"].replace(
        "load", "read_orders"
    ).replace("test_read_orders", "test_load")


@pytest.mark.long
def test_a_rename_that_no_test_runs_waits_for_a_person(repo: Repo, tmp_path: Path) -> None:
    """Nobody is there to add a test; the patch is kept, and does not pass for one that adds something."""
    (repo.folder / "tests/test_io.py").unlink()
    repo.commit()
    code, told = _do(repo, tmp_path, "rename `load` in `shop.io` to `read_orders`", "--assume", "--trust", "auto")
    assert (code, told["outcome"], told["agent"]["claim"]) == (1, "needs-person", "preserves"), told["reason"]
    assert "no test runs" in told["reason"]
    assert main(["apply", told["task"], "--choose", "1"]) == 0
    assert "def read_orders" in (repo.folder / "shop/io.py").read_text()


@pytest.mark.long
def test_a_red_test_in_a_renamed_file_stays_red_and_is_no_reason(repo: Repo, tmp_path: Path) -> None:
    """Its file can only be collected with the patch; that it was red is known from the tree at the start."""
    red = FILES["tests/test_io.py"] + "\n\ndef test_red():\n    assert load('a') == []\n"
    (repo.folder / "tests/test_io.py").write_text(red)
    code, told = _do(repo, tmp_path, "rename `load` in `shop.io` to `read_orders`", "--assume")
    assert code == 0, told["outcome"]


@pytest.mark.long
def test_a_parameter_is_added_and_left_to_a_person(
    repo: Repo, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    windows = FILES["shop/io.py"].replace("\n", "\r\n").encode()
    (repo.folder / "shop/io.py").write_bytes(windows)
    code, told = _do(repo, tmp_path, "add a parameter `sep=','` to shop.io.load")
    assert code == 1
    assert told["agent"]["claim"] == "adds"
    assert "add the parameter sep=','" in told["agent"]["recipe"].replace(" = ", "=")
    assert (repo.folder / "shop/io.py").read_bytes() == windows
    capfdbinary.readouterr()
    assert main(["session", "export", told["task"], "--format", "patch"]) == 0
    exported = tmp_path / "exported.patch"
    exported.write_bytes(capfdbinary.readouterr().out)
    repo.git("apply", "--check", str(exported))


def test_a_question_is_exit_1(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = _do(repo, tmp_path, "rename load in shop.io to class")
    assert code == 1
    assert "keyword" in json.dumps(told)
    assert "session resume" not in told["remedy"]  # nobody would read an answer
    for words in (["show", "--json"], ["resume", "--say", "to loads"], ["show", "--json"]):
        assert main(["session", *words]) == (words[0] == "resume")
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert lines[:2] == lines[2:]  # and so none is kept


@pytest.mark.parametrize(
    ("spec", "says"),
    [("tests//test_io.py", "tests/test_io.py is one of the tests"), ("link/test_io.py", "no Python file of the repo")],
)
def test_tests_that_are_the_specification_are_not_renamed_along(
    repo: Repo, tmp_path: Path, spec: str, says: str
) -> None:
    (repo.folder / "link").symlink_to("tests")
    code, told = _do(repo, tmp_path, "rename load in shop.io to read_orders", "--from-tests", spec, "--assume")
    assert (code, told["agent"]["changed"], told["outcome"]) == (1, [], "needs-person")
    assert says in told["reason"]


def test_a_name_that_nothing_has_is_told_with_the_names_like_it(repo: Repo, tmp_path: Path) -> None:
    code, told = _do(repo, tmp_path, "rename laod in shop.io to read_orders")
    assert (code, told["outcome"]) == (1, "needs-person")
    assert "named 'shop.io.laod'" in told["reason"]
    assert "rename NAME [in MODULE, CLASS or FUNCTION] to NEW" in told["reason"]
    assert told["remedy"].startswith("did you mean 'load'? else name it as `module.name`")


def test_without_model_the_recipes_are_named(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _do(repo, tmp_path, "make it faster")[0] == 1
    assert "rename NAME" in capsys.readouterr().err
