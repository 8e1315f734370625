"""Expressions that say nothing: seen when a repair brings them in, not when they were there or mean something."""

import pytest

from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.ambiguity import unproven
from localagent.repair.acceptance.meaningless_expressions import degenerate
from localagent.repair.acceptance.ranking import RankedCandidate

M = RepoPath("m.py")


def candidate(before: str, after: str) -> Candidate:
    change = FileChange(path=M, before=before.encode(), after=after.encode())
    edit = Edit(
        path=M,
        splices=(Splice(start=0, end=1, text=b""),),
        operator="name-swap",
        line=1,
        end_line=1,
        prior=0.0,
        note="a -> b",
    )
    return Candidate(number=1, patch=Patch(changes=(change,)), edits=(edit,), cost=0.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a > b: pass\n", "if a > a: pass\n"),
        ("n += 1\n", "n += 0\n"),
        ("n *= 2\n", "n *= 1\n"),
        ("x = row[i] or col[i]\n", "x = row[i] or row[i]\n"),
        ("f(m, rows, cols)\n", "f(m, rows, rows)\n"),
        ("x = a.n - b\n", "x = a.n - a.n\n"),
        ("x = y\n", "x = x\n"),
        ("if a > b\n    pass\n", "if b > b:\n    pass\n"),
        ("if é > b\n    pass\n", "if é > é:\n    pass\n"),
        ("x = aa > aa_\n", "x = aa > aa\n"),
        ("# was a > a\nx = a > b\n", "# was a > a\nx = a > a\n"),
        ("\ufeffx = a > b\n", "\ufeffx = a > a\n"),
        ("x = min(a) == max(a)\n", "x = max(a) == max(a)\n"),
    ],
)
def test_what_says_nothing_is_seen_and_not_believed_under_few_tests(before: str, after: str) -> None:
    made = candidate(before, after)
    assert degenerate(made) == 1
    alone = [RankedCandidate(candidate=made, cost=0.0, row=())]
    assert unproven(alone, 1, 1)
    assert not unproven(alone, 9, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a > a: x = b\n", "if a > a: x = c\n"),
        ("x = 1 | 2\n", "x = 2 | 2\n"),
        ("x = next(i) - 1\n", "x = next(i) - next(i)\n"),
        ("x = a + b\n", "x = a + a\n"),
        ("x = a.pop() == b.pop()\n", "x = a.pop() == a.pop()\n"),
        ("f(1, 2)\n", "f(1, 1)\n"),
        ("x = a > b\n", "x = a > a.b\n"),
        ("n += 0\n", "n *= 0\n"),
        ("n //= 2\n", "n //= 1\n"),  # a float becomes a whole number
        ("x = 1\n", "x = (\n"),
        ("x = a  >  a; y = b\n", "x = a > a; y = c\n"),
        ("x = a>a\nif y\n    z()\n", "x = a>a\nif y:\n    z()\n"),
    ],
)
def test_what_was_there_or_may_mean_something_is_not(before: str, after: str) -> None:
    assert degenerate(candidate(before, after)) == 0
