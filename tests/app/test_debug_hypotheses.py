"""What experiments show: only what passed every check, alone, and is suspected first, is confirmed."""

from dataclasses import replace

import pytest

from localagent.app.debug.debug import hypotheses_of
from localagent.bisect.revert_edits import REVERT
from localagent.domain.edit import Candidate, Edit, Patch
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion, TaskResult, Verdict

BASELINE = Baseline(tests=(), failing=("a", "b"), passing=("c",))


def candidate(number: int, line: int) -> Candidate:
    edit = Edit(path=RepoPath("m.py"), splices=(), operator="x", line=line, end_line=line, prior=0.0, note="< -> <=")
    return Candidate(number=number, patch=Patch(changes=()), edits=(edit,), cost=0.0)


def test_what_takes_back_an_uncommitted_change_is_confirmed_whatever_else_passes() -> None:
    back = candidate(1, 5)
    back = replace(back, edits=(replace(back.edits[0], operator=REVERT),))
    suspects = [Suspicion(path=RepoPath("m.py"), line=n, end_line=n, score=1.0) for n in (9, 5)]
    result = TaskResult(
        verdict=Verdict.LOW_CONFIDENCE,
        reason="",
        exit=1,
        proposals=(candidate(2, 9), back),
        proposed=(full(), full()),
    )
    told = hypotheses_of(result, BASELINE, suspects)
    assert [(h.line, h.outcome.value) for h in told] == [(5, "confirmed"), (9, "possible")]
    assert told[1].shown.endswith("; taking back what is not committed does that, too")


def full(*still_failing: str) -> FullResult:
    return FullResult(
        accepted=True,
        reasons=(),
        fail_to_pass=("a",),
        pass_to_pass=("c",),
        pass_to_fail=(),
        still_failing=still_failing,
    )


@pytest.mark.parametrize(
    ("still", "others", "ranked", "wanted"),
    [
        ((), (), (1, 5), ["confirmed"]),
        ((), (), (1, 2, 3, 4, 6, 5), ["possible"]),  # the trace suspects five others first
        ((), (9,), (5,), ["possible", "possible"]),
        ((), (6,), (6, 5), ["confirmed", "possible"]),  # the line beside it: the more suspicious of the two
        (("b",), (), (5,), []),
    ],
)
def test_what_is_confirmed(
    still: tuple[str, ...], others: tuple[int, ...], ranked: tuple[int, ...], wanted: list[str]
) -> None:
    suspects = [Suspicion(path=RepoPath("m.py"), line=n, end_line=n, score=1.0) for n in ranked]
    found = candidate(1, 5)
    result = TaskResult(
        verdict=Verdict.PROGRESS if still else Verdict.LOW_CONFIDENCE,
        reason="",
        exit=1,
        proposals=(found,),
        proposed=(full(*still),),
        plausible_candidates=tuple(candidate(n, n) for n in others),
    )
    told = hypotheses_of(result, BASELINE, suspects)
    assert [h.outcome.value for h in told] == wanted
    if others == (6,):
        assert [h.line for h in told] == [6, 5]
