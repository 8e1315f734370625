"""The first bad commit's hunks taken back in today's text."""

from collections.abc import Sequence

import pytest

from localagent.bisect.guilty_hunks import ChangedHunk, applied, hunks_of, minimal_hunks
from localagent.bisect.revert_edits import HunkLocalizer, RevertWriter, revert_edits
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


def reverts(needle: bytes) -> tuple[RevertedHunk, ...]:
    """Of the hunks without which the file does not hold `needle`."""
    hunks = hunks_of([change()])
    found = minimal_hunks(hunks, lambda part: any(needle in c.after for c in applied(part)))
    assert found.complete
    return found.reverts


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

    def fails(part: Sequence[ChangedHunk]) -> bool:
        asked.append(len(part))
        return {hunks[3], hunks[17]} <= set(part)

    found = minimal_hunks(hunks, fails, most)
    assert (found.complete, found.runs, len(asked)) == (False, most, most)
    assert {hunks[3].summary, hunks[17].summary} <= set(found.hunks)
    assert 0 not in asked  # the parent's own tree is known not to fail


def test_a_hunk_is_taken_back_where_its_lines_still_stand() -> None:
    (hunk,) = reverts(b"y - 1")
    today = b"import os\n\n\n" + AFTER + b"\n\ndef later():\n    return os.name\n"
    (edit,) = revert_edits([hunk], {M: today})
    assert edit.apply(today) == today.replace(b"y - 1", b"y + 1")
    assert edit.line == 6


def test_what_was_changed_since_is_left_alone() -> None:
    (hunk,) = reverts(b"y - 1")
    assert list(revert_edits([hunk], {M: AFTER.replace(b"y - 1", b"y - 2")})) == []
    assert list(revert_edits([hunk], {})) == []


def test_lines_that_the_commit_took_away_come_back_between_the_same_lines() -> None:
    shorter = BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n").replace(b"    y = x\n", b"")
    (hunk,) = [h.reverted for h in hunks_of([change(BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n"), shorter)])]
    (edit,) = revert_edits([hunk], {M: b"# today\n" + shorter})
    assert edit.apply(b"# today\n" + shorter) == b"# today\n" + BEFORE.replace(b"    y = x\n", b"    x\n    y = x\n")


def test_the_writer_offers_them_once_and_their_lines_come_first() -> None:
    hunks = reverts(b"y - 1")
    writer = RevertWriter(hunks)
    assert writer.next_cost < 0
    writer.begin({M: AFTER}, (), Baseline(tests=()))
    assert len(writer.more(timeout_seconds=1)) == 1
    assert (writer.more(timeout_seconds=1), writer.next_cost) == ([], float("inf"))

    class Ranked:
        def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
            return tuple(Suspicion(path=M, line=n, end_line=n, score=1 / n) for n in (1, 2, 3))

    lines = [(s.line, s.score) for s in HunkLocalizer(Ranked(), hunks).localize(Baseline(tests=()), {M: AFTER})]
    assert lines == [(3, 1.0), (1, 1.0), (2, 0.5)]
