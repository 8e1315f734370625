"""What the project's configuration of other linters ignores is not looked for, in the files that it means."""

from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.domain.paths import RepoPath
from localagent.lint.engine import choose
from localagent.lint.fixer import too_long
from localagent.policy.load import load_policy
from localagent.precommit.fix_files import Gates, fix
from localagent.precommit.suggest_fixes import _reported
from localagent.precommit.tool_config import tool_config

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
    found = tool_config(tmp_path)
    both = {"none-comparison", "true-comparison"}
    assert found.at(RepoPath("a.py")) == (both if at_root is None else at_root)
    assert found.at(RepoPath("tests/test_a.py")) == (both if in_tests is None else in_tests)
    assert not found.faults


def test_everything_ignored_but_nothing_empty(tmp_path: Path) -> None:
    (tmp_path / ".flake8").write_text("[flake8]\nignore =\nextend-ignore = ,\n")
    assert tool_config(tmp_path).at(RepoPath("a.py")) == frozenset()


@pytest.mark.parametrize(("name", "text"), [("pyproject.toml", b"[tool"), (".flake8", b"ignore"), ("tox.ini", b"\xff")])
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text)
    found = tool_config(tmp_path)
    assert len(found.faults) == 1
    assert found.faults[0].startswith(f"{name} cannot be read")


@pytest.mark.parametrize(
    ("files", "longest"),
    [
        ({"ruff.toml": "line-length = 100\n"}, 100),
        ({"pyproject.toml": "[tool.black]\nline-length = 88\n[tool.ruff]\nline-length = 120\n"}, 88),
        ({"tox.ini": "[flake8]\nmax-line-length = 79  # ours\n", "ruff.toml": "line-length = 99\n"}, 79),
        ({"setup.cfg": "[pycodestyle]\nmax_line_length = 140\n"}, 140),
        ({"pyproject.toml": "[tool.ruff]\nselect = ['E']\n"}, 0),
    ],
)
def test_no_line_becomes_longer_than_the_strictest_tool_allows(
    tmp_path: Path, files: dict[str, str], longest: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    config = tool_config(tmp_path)
    assert config.longest_line == longest
    name = "m" + "_" * (max(longest, 60) - len("    return m != None"))
    source = f"import re\ndef f(x):\n    {name} = re.match('a', x)\n    return {name} != None\n".encode()
    gates = Gates(lambda: load_policy(Settings.from_environ().policies_dir / "default.toml"))
    done = fix(RepoPath("a.py"), source, choose(), gates, suggestions=False, longest_line=config.longest_line)
    assert (done.after is None) == bool(longest)
    assert [why for _, why in done.withheld] == ([too_long(longest)] if longest else [])


def test_what_is_ignored_is_not_suggested(tmp_path: Path) -> None:
    changed = {RepoPath(name): b"def f(x=[]):\n    return x\n" for name in ("a.py", "tests/b.py")}
    (tmp_path / "ruff.toml").write_text("[lint.per-file-ignores]\n'tests/*' = ['B006']\n")
    assert [one.path for one in _reported(changed, tool_config(tmp_path))] == ["a.py"]
