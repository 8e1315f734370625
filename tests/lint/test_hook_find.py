"""Suppressions, and files that are not looked at."""

import pytest

from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.lint.engine import choose, find
from localagent.lint.file_view import MAX_BYTES, CannotReadError, view_of
from localagent.precommit import fix_files

STANDARD = choose()


def rules_of(code: str) -> list[tuple[str, int]]:
    return [(f.rule, f.line) for f in find(view_of(code.encode()), STANDARD)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a = not x in y  # localagent: ignore[not-in] as the paper has it\n", []),
        ("# localagent: ignore[not-in] as the paper has it\na = not x in y\n", []),
        ("# localagent: ignore[not-in] why\n\na = not x in y\n", [("unused-suppression", 1), ("not-in", 3)]),
        ("a = not x in y  # localagent: ignore[not-in]\n", [("suppression-without-reason", 1), ("not-in", 1)]),
        ("a = not x in y  # localagent: ignore[nonsense] why\n", [("unknown-suppression", 1), ("not-in", 1)]),
        ("a = x  # localagent: ignore[not-in] why\n", [("unused-suppression", 1)]),
        ("a = x  # localagent: ignore[zip-strict] not asked for in this run\n", []),
        ("a = '''\n# localagent: ignore[not-in] in a text\n'''\nb = not x in y\n", [("not-in", 4)]),
        ("a = not x in y is z  # localagent: ignore[not-in, not-is] why\n", [("unused-suppression", 1)]),
        ("a = [not x in y, not x is y]  # localagent: ignore[not-in, not-is] why\n", []),
    ],
)
def test_suppression(code: str, expected: list[tuple[str, int]]) -> None:
    assert sorted(rules_of(code)) == sorted(expected)


def test_a_suppressed_finding_is_not_repaired() -> None:
    raw = b"a = not x in y  # localagent: ignore[not-in] why\n"

    def never() -> Policy:
        raise AssertionError("nothing to judge")

    report = fix_files.fix(RepoPath("a.py"), raw, STANDARD, fix_files.Gates(never), suggestions=True)
    assert report.after is None
    assert report.findings == ()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"x = (\n", "does not parse: '(' was never closed (line 1)"),
        (b"<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n", "does not parse: invalid syntax (line 1)"),
        (b"x = 1\n\ny = (\n", "does not parse: '(' was never closed (line 3)"),
        (b"x = 1\0\n", "holds NUL bytes"),
        (b"x = '\xff'\n", "not text in the encoding that it names"),
        (b"# coding: nonsense\nx = 1\n", "not text in the encoding that it names"),
        (b"x = 1\n" * (MAX_BYTES // 6 + 1), "larger than 2,000,000 bytes"),
        (b"x = '" + b"a" * 100_001 + b"'\n", "a line is longer than 100,000 bytes"),
        (b"x = " + b"(" * 300 + b")" * 300, "does not parse: too many nested parentheses (line 1)"),
        (b"x = " + b"-" * 90_000 + b"1\n", "nested too deeply to be parsed"),
        (b"x = a" + b".b" * 40_000 + b"\n", "nested too deeply to be parsed"),
    ],
)
def test_not_looked_at(raw: bytes, reason: str) -> None:
    with pytest.raises(CannotReadError) as caught:
        view_of(raw)
    assert str(caught.value) == reason
    report = fix_files.check(RepoPath("a.py"), raw, STANDARD)
    line = 3 if "line 3" in reason else 1
    assert [(f.rule, f.message, f.line) for f in report.findings] == [("unreadable", reason, line)]


def test_nothing_inside_fstrings() -> None:
    assert rules_of("a = f'{not x in y} {x == None}'\n") == []
