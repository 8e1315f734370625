"""Whether a repair that passes every check is accepted: its confidence against what the policy asks for.

Below it the repair becomes a proposal beside its rivals, with an input on which they differ: whoever knows what that
input should give knows which of them is right. A confidence that was not calibrated for the language model of the
search (another model than those it was fitted with) decides too, and is marked as that.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate
from localagent.domain.outcome import FullResult
from localagent.domain.policy import Policy
from localagent.domain.task import Choosing, Event, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo
from localagent.repair.acceptance.acceptance import Accepted
from localagent.repair.acceptance.confidence_model import (
    ConfidenceModel,
    guard_signals,
    progress_signals,
    with_strength,
)
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.state import Parts
from localagent.report.confidence_text import shown_probability

_TAKEN = {
    Choosing.ASSUME: "taken with {} because of --assume, where {} asks for {:.2f}",
    Choosing.FIRST: "taken with {} because of --first, where {} asks for {:.2f}",
}


def judged(
    task: Task, result: TaskResult, repair: Repair, parts: Parts, policy: Policy, *, at_seconds: float
) -> TaskResult:
    """The result with the confidence of what was found; `low-confidence` where that does not do for the policy.

    `at_seconds`: since the task began, for the event.
    """
    chosen = result.chosen
    if chosen is None:
        checked = itertools.chain(result.proposed, itertools.repeat(None))
        pairs = zip(result.proposals, checked, strict=False)
        told = [_confidence(result, repair, parts.confidence, c, f) for c, f in pairs]
        return replace(result, confidences=tuple(told))
    confidence = _confidence(result, repair, parts.confidence, chosen, result.full)
    bar, who = asked = _threshold(task, policy)
    others: Sequence[Accepted] = ()
    if task.choosing not in _TAKEN and (confidence.probability if confidence is not None else 0.0) < bar:
        others = repair.rivals(chosen)  # one that fails a check is none
        confidence = _confidence(result, repair, parts.confidence, chosen, result.full)
    result = replace(result, confidence=confidence)
    enough = confidence is not None and confidence.probability >= bar
    parts.sink.emit(
        Event(
            kind="confidence",
            at_seconds=round(at_seconds, 3),
            data={"probability": None if confidence is None else round(confidence.probability, 4), "enough": enough},
        )
    )
    if enough or (confidence is None and not bar):
        return result
    if task.choosing in _TAKEN:
        known = "a confidence that is not known"
        if confidence is not None:
            known = f"confidence {shown_probability(confidence.probability)}"
        said = _TAKEN[task.choosing].format(known, who, bar)
        return replace(result, warnings=(*result.warnings, said))
    return _proposed(result, repair, parts, asked, confidence, others)


def _threshold(task: Task, policy: Policy) -> tuple[float, str]:
    """The least confidence that does, and who asks for it."""
    if task.min_confidence > policy.accept_at:
        return task.min_confidence, "--min-confidence"
    return policy.accept_at, f"the policy {policy.name!r}"


def _confidence(
    result: TaskResult, repair: Repair, model: ConfidenceModel, candidate: Candidate, full: FullResult | None
) -> Confidence | None:
    """None where the candidates were not compared."""
    known = repair.signals(candidate)
    if not known:
        return None
    mine = result.chosen is not None and candidate.number == result.chosen.number
    guard = guard_signals(full.guard if full is not None else None)
    ordered = result.model_digest if result.model_tokens else None  # a model that never answered ordered nothing
    measured = with_strength(known, result.assessment if mine else None)
    told = {**measured, **guard, **progress_signals(full)}
    return model.judge(told, language_model=ordered or "")


def _proposed(
    result: TaskResult,
    repair: Repair,
    parts: Parts,
    asked: tuple[float, str],
    confidence: Confidence | None,
    others: Sequence[Accepted],
) -> TaskResult:
    """The repair and its rivals, for a person to choose from."""
    assert result.chosen is not None
    proposals = (result.chosen, *(candidate for candidate, _ in others))
    checked = (() if result.full is None else (result.full,)) + tuple(full for _, full in others)
    confidences = (confidence, *(_confidence(result, repair, parts.confidence, c, f) for c, f in others))
    return replace(
        result,
        verdict=Verdict.LOW_CONFIDENCE,
        reason=_reason(confidence, len(others), asked),
        exit=AnswerIsNo.exit_code,
        patch=None,
        chosen=None,
        confidence=None,
        proposals=proposals,
        proposed=checked,
        confidences=confidences,
        ambiguity=repair.ambiguity(proposals) if others else None,
    )


def _reason(confidence: Confidence | None, others: int, asked: tuple[float, str]) -> str:
    bar, who = asked
    found = "a repair passes every check" if not others else f"{1 + others} repairs pass every check"
    if confidence is None:
        return f"{found}, but how likely it is right could not be told, and {who} asks for it"
    best = "it" if not others else "the best of them"
    why = f": {confidence.opposing[0]}" if confidence.opposing else ""
    figure = shown_probability(confidence.probability)
    return f"{found}, but {best} is right with confidence {figure}, where {who} asks for {bar:.2f}{why}"
