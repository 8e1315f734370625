"""What the project's configuration of other linters ignores is not looked for, in the files that it means."""

from pathlib import Path

import pytest

from localagent.domain.paths import RepoPath
from localagent.precommit.tool_config import ignored_rules

NONE = {"none-comparison"}


@pytest.mark.parametrize(
    ("name", "text", "at_root", "in_tests"),
    [
        ("pyproject.toml", "[tool.ruff]\nignore = ['E711']\n", NONE, NONE),
        ("pyproject.toml", "[tool.ruff.lint]\nextend-ignore = ['E711']\n", NONE, NONE),
        ("pyproject.toml", "[tool.ruff.lint.per-file-ignores]\n'tests/**' = ['E711']\n", set(), NONE),
        ("pyproject.toml", "[tool.ruff.lint.per-file-ignores]\n'!tests/*' = ['E711']\n", NONE, set()),
        ("ruff.toml", "[lint]\nper-file-ignores = {'test_*.py' = ['E711']}\n", set(), NONE),
        ("setup.cfg", "[flake8]\nignore = E711, W503  # why\n", NONE, NONE),
        ("tox.ini", "[flake8]\nextend_ignore =\n    E711\n    W503\n", NONE, NONE),
        (".flake8", "[flake8]\nper-file-ignores =\n    tests/*: E711\n    docs/*: E7\n", set(), NONE),
        (".pylintrc", "[MESSAGES CONTROL]\ndisable=singleton-comparison,\n    line-too-long\n", None, None),
        ("pyproject.toml", "[tool.pylint.'messages control']\ndisable = ['C0121']\n", None, None),
        ("pyproject.toml", "[tool.ruff]\nignore = ['E501']\n[tool.other]\nignore = ['E711']\n", set(), set()),
        ("pyproject.toml", "[tool]\nruff = 3\n", set(), set()),
    ],
)
def test_ignored(tmp_path: Path, name: str, text: str, at_root: set[str] | None, in_tests: set[str] | None) -> None:
    (tmp_path / name).write_text(text)
    found = ignored_rules(tmp_path)
    both = {"none-comparison", "true-comparison"}
    assert found.at(RepoPath("a.py")) == (both if at_root is None else at_root)
    assert found.at(RepoPath("tests/test_a.py")) == (both if in_tests is None else in_tests)
    assert not found.faults


def test_everything_ignored_but_nothing_empty(tmp_path: Path) -> None:
    (tmp_path / ".flake8").write_text("[flake8]\nignore =\nextend-ignore = ,\n")
    assert ignored_rules(tmp_path).at(RepoPath("a.py")) == frozenset()


@pytest.mark.parametrize(("name", "text"), [("pyproject.toml", b"[tool"), (".flake8", b"ignore"), ("tox.ini", b"\xff")])
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text)
    found = ignored_rules(tmp_path)
    assert len(found.faults) == 1
    assert found.faults[0].startswith(f"{name} cannot be read")
