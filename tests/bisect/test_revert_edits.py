"""The first bad commit's hunks taken back in today's text."""

from collections.abc import Sequence

import pytest

from localagent.bisect.guilty_hunks import applied, hunks_of, minimal_hunks
from localagent.bisect.revert_edits import HunkLocalizer, revert_edits, reverted_files
from localagent.domain.bisection import RevertedHunk
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.ports import Sources

M = RepoPath("m.py")
BEFORE = b"def f(x):\n    y = x\n    return y + 1\n\n\ndef g():\n    return 3\n"
AFTER = b"def f(x):\n    y = x\n    return y - 1\n\n\ndef g():\n    return 4\n\n\ndef new():\n    return 5\n"


def change(before: bytes = BEFORE, after: bytes = AFTER) -> TreeChange:
    mode = FileMode.REGULAR
    return TreeChange(
        path=M, source=M, kind=ChangeKind.MODIFIED, before=before, after=after, before_mode=mode, after_mode=mode
    )


def reverts(needle: bytes) -> tuple[tuple[RevertedHunk, ...], ...]:
    """Of the hunks without which the file does not hold `needle`."""
    hunks = hunks_of([change()])
    found = minimal_hunks(hunks, lambda changes: any(needle in c.after for c in changes))
    assert found.complete
    return found.reverts


def test_of_a_hunk_with_a_wanted_feature_the_part_that_matters_is_found_and_taken_back_alone() -> None:
    before = b"def total(prices, off):\n    whole = sum(prices)\n    return whole * (100 - off)\n"
    after = b"def total(prices, off, tax=0):\n    whole = sum(prices) + tax\n    return whole * (100 + off)\n"
    found = minimal_hunks(hunks_of([change(before, after)]), lambda made: any(b"100 + off" in c.after for c in made))
    assert [c.after for c in found.changes] == [before.replace(b"100 - off", b"100 + off")]
    assert [(h.line, h.before, h.after) for h in found.hunks] == [
        (3, "    return whole * (100 - off)\n", "    return whole * (100 + off)\n")
    ]
    assert (found.kept, found.total, found.complete) == (1, 1, True)
    today = b"# today\n" + after
    repaired = [edit.apply(today) for edit in revert_edits(found.reverts, {M: today})]
    assert repaired[0] == today.replace(b"100 + off", b"100 - off")  # with tax still there
    assert repaired[-1] == b"# today\n" + before  # the whole hunk is the last resort, and more than what matters
    assert reverted_files(found.reverts, {M: today}) == {(M, repaired[0])}


def test_a_part_without_which_the_commit_is_no_program_does_not_stand_for_the_whole() -> None:
    before = b"def label(a, home):\n    if is_abroad(a, home):\n        return a.country.upper()\n"
    after = (
        b"def label(a, home):\n    for hook in HOOKS:\n        hook(a)\n"
        b"    if a.country != home:\n        return a.country.upper()\n"
    )

    def fails(changes: Sequence[TreeChange]) -> bool:  # `is_abroad(a.country != home)` raises the same
        return any(b"a.country != home" in c.after for c in changes)

    found = minimal_hunks(hunks_of([change(before, after)]), fails)
    assert [(h.before, h.after) for h in found.hunks] == [
        ("    if is_abroad(a, home):\n", "    if a.country != home:\n")
    ]


def test_of_two_parts_that_each_fail_alone_both_are_taken_back() -> None:
    before = b"def column(grid, seat):\n    return [grid[row][seat] for row in range(len(grid))]\n"
    after = before.replace(b"[row][seat]", b"[seat][row]") + b"\n\ndef new():\n    return 5\n"

    def fails(changes: Sequence[TreeChange]) -> bool:
        return any(b"[row][seat]" not in c.after for c in changes)

    found = minimal_hunks(hunks_of([change(before, after)]), fails)
    (edit, *_) = revert_edits(found.reverts, {M: after})
    assert edit.apply(after) == before + b"\n\ndef new():\n    return 5\n"


def test_all_hunks_make_the_commit_and_none_changes_nothing() -> None:
    hunks = hunks_of([change()])
    assert [c.after for c in applied(hunks)] == [AFTER]
    assert applied(()) == ()
    assert len(hunks) == 2  # 4 and the new function stand together


@pytest.mark.parametrize("most", [0, 1, 5])
def test_the_reduction_ends_with_its_runs_and_says_so(most: int) -> None:
    hunks = hunks_of(
        [change(b"".join(b"%d\n-\n" % n for n in range(30)), b"".join(b"x%d\n-\n" % n for n in range(30)))]
    )
    asked: list[int] = []

    def fails(changes: Sequence[TreeChange]) -> bool:
        (made,) = changes
        asked.append(made.after.count(b"x"))
        return b"x3\n" in made.after and b"x17\n" in made.after

    found = minimal_hunks(hunks, fails, most)
    assert (found.complete, found.runs, len(asked)) == (False, most, most)
    assert {"x3\n", "x17\n"} <= {line + "\n" for hunk in found.hunks for line in hunk.after.splitlines()}
    assert 0 not in asked  # the parent's own tree is known not to fail


def test_a_hunk_is_taken_back_where_its_lines_still_stand() -> None:
    ways = reverts(b"y - 1")
    today = b"import os\n\n\n" + AFTER + b"\n\ndef later():\n    return os.name\n"
    (edit,) = revert_edits(ways, {M: today})
    assert edit.apply(today) == today.replace(b"y - 1", b"y + 1")
    assert edit.line == 6


def test_what_was_changed_since_is_left_alone() -> None:
    ways = reverts(b"y - 1")
    assert list(revert_edits(ways, {M: AFTER.replace(b"y - 1", b"y - 2")})) == []
    assert list(revert_edits(ways, {})) == []


def test_lines_that_the_commit_took_away_come_back_between_the_same_lines() -> None:
    shorter = BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n").replace(b"    y = x\n", b"")
    (hunk,) = [h.reverted for h in hunks_of([change(BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n"), shorter)])]
    (edit,) = revert_edits([[hunk]], {M: b"# today\n" + shorter})
    assert edit.apply(b"# today\n" + shorter) == b"# today\n" + BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n")


def test_the_lines_that_matter_come_first() -> None:
    ways = reverts(b"y - 1")

    class Ranked:
        def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
            return tuple(Suspicion(path=M, line=n, end_line=n, score=1 / n) for n in (1, 2, 3))

    lines = [(s.line, s.score) for s in HunkLocalizer(Ranked(), ways).localize(Baseline(tests=()), {M: AFTER})]
    assert lines == [(3, 1.0), (1, 1.0), (2, 0.5)]
