"""What a night makes of the report of `fix`: patch or proposals, each with how likely it is right."""

import pytest

from localagent.app.fix.request import FixOutcome
from localagent.batch.repair_tasks import _fix_step
from localagent.batch.task_result import RepositoryResult, RepositoryState, WorkStep, parse_answer
from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.task_report import report_json
from localagent.text.strict_json import dump, load

PATCHES = [
    Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=f"a = {n}\n".encode()),)) for n in (2, 3)
]
FOUND = tuple(Candidate(number=n, patch=patch, edits=(), cost=0.0) for n, patch in enumerate(PATCHES, 1))
LIKELY = Confidence(probability=0.6, calibrated=True, model="t", opposing=("two answers",), signals={"rivals": 1.0})


def step_of(result: TaskResult) -> WorkStep:
    diffs = [unified_diff(patch) for patch in PATCHES]
    report = report_json(Task(id="t", repo="/r"), result, diffs[0] if result.patch else None, diffs)
    outcome = FixOutcome(exit=result.exit, reason=result.reason, report=load(dump(report)))
    step = _fix_step(outcome, spent=1.0, by_clock=True)
    answer = RepositoryResult(number=0, name="r", state=step.state, reason="", steps=(step,))
    assert parse_answer(load(dump(answer.json()))) == answer
    return step


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.LOW_CONFIDENCE, RepositoryState.LOW_CONFIDENCE),
        (Verdict.AMBIGUOUS, RepositoryState.NEEDS_PERSON),
        (Verdict.PROGRESS, RepositoryState.NEEDS_PERSON),
    ],
)
def test_proposals_are_kept_with_what_is_known_of_each(verdict: Verdict, state: RepositoryState) -> None:
    step = step_of(TaskResult(verdict=verdict, reason="why", exit=1, proposals=FOUND, confidences=(LIKELY, None)))
    assert (step.state, step.outcome, step.patch) == (state, verdict.value, "")
    assert [("+a = 2" in one, "+a = 3" in one) for one in step.proposals] == [(True, False), (False, True)]
    told = {"probability": 0.6, "calibrated": True, "model": "t", "for": [], "against": ["two answers"]}
    assert step.confidences == (told, None)


def test_a_patch_has_the_confidence_of_what_was_accepted() -> None:
    accepted = TaskResult(verdict=Verdict.ACCEPTED, reason="", exit=0, patch=PATCHES[0], confidence=LIKELY)
    step = step_of(accepted)
    assert (step.state, [told and told["probability"] for told in step.confidences]) == (RepositoryState.FIXED, [0.6])
    assert "signals" not in (step.confidences[0] or {})


def test_who_gave_up_has_none() -> None:
    assert step_of(TaskResult(verdict=Verdict.GAVE_UP, reason="", exit=1)).confidences == ()
