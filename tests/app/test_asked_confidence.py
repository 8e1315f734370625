"""Who asks for how much confidence: the policy or `--min-confidence`, the greater of both, and what is said of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.choice_builder import NO_OPINION, candidate

from localagent.app.fix.acceptance_threshold import judged
from localagent.app.fix.prior import load_prior
from localagent.app.fix.run import _proposed as left_to_a_person
from localagent.app.fix.run import unsure_remedy
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.policy import Policy
from localagent.domain.task import Choosing, Task, TaskResult, Verdict
from localagent.domain.verification import Assessment
from localagent.edit.space import open_edit_space
from localagent.gate.repair_gates import open_gate_chain
from localagent.localize.fuse import SpectrumLocalizer
from localagent.repair.acceptance.signals import Signal
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.event_fanout import combined
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.state import Parts

SETTINGS = Settings.from_environ()
FOUND = candidate(1, 0.0)
KNOWN = {1: {"any": Signal(value=0.0)}}
LIKELY = 0.924  # what NO_OPINION says of whatever was compared


@pytest.fixture(scope="module")
def policy() -> Policy:
    return open_policy(SETTINGS, None, Path("/")).policy


def answered(
    policy: Policy, *, accept_at: float, least: float = 0.0, calibrated: bool = True, known: bool = True, **more: Any
) -> TaskResult:
    """What becomes of a patch that was accepted, and is right with LIKELY where that is `known`."""
    task = Task(id="t", repo="/r", min_confidence=least, **more)
    parts = Parts(
        verifier=cast(Any, None),  # nothing is run: the search is over
        localizer=SpectrumLocalizer(),
        space=open_edit_space(load_prior(SETTINGS.models_dir / "prior.json")),
        gates=open_gate_chain(policy, ()),
        scorer=None,
        sink=combined(()),
        sources={},
        weights=Weights(),
        confidence=replace(NO_OPINION, models=frozenset({""} if calibrated else ())),
        context=lambda _path, _baseline: "",
    )
    repair = Repair(task, parts)
    if known:
        repair._run.state.signals = KNOWN
    result = TaskResult(verdict=Verdict.ACCEPTED, reason="", exit=0, chosen=FOUND, patch=FOUND.patch)
    return judged(task, result, repair, parts, replace(policy, accept_at=accept_at), at_seconds=1.0)


@pytest.mark.parametrize(
    ("accept_at", "least", "calibrated", "who"),
    [
        (0.9, 0.0, True, ""),
        (0.9, 0.5, True, ""),
        (0.9, 0.95, True, "--min-confidence asks for 0.95"),
        (0.95, 0.0, True, "the policy 'default' asks for 0.95"),
        (0.95, 0.5, True, "the policy 'default' asks for 0.95"),  # never less than the policy's
        (0.95, 0.95, True, "the policy 'default' asks for 0.95"),
        (0.95, 0.97, True, "--min-confidence asks for 0.97"),
        (0.0, 0.97, True, "--min-confidence asks for 0.97"),
        (0.95, 0.5, False, "the policy 'default' asks for 0.95"),
        (0.95, 0.97, False, "--min-confidence asks for 0.97"),
    ],
)
def test_the_greater_of_both_decides(
    policy: Policy, accept_at: float, least: float, calibrated: bool, who: str
) -> None:
    found = answered(policy, accept_at=accept_at, least=least, calibrated=calibrated)
    assert (found.verdict is Verdict.ACCEPTED) is (who == "")
    told = found.confidence or found.confidences[0]
    assert told is not None
    assert round(told.probability, 3) == LIKELY
    if who:
        assert found.reason == f"a repair passes every check, but it is right with confidence 0.92, where {who}"
        assert (found.verdict, found.exit, found.patch) == (Verdict.LOW_CONFIDENCE, 1, None)
        assert [p.number for p in found.proposals] == [1]


@pytest.mark.parametrize(
    ("accept_at", "least", "who"),
    [(0.95, 0.5, "the policy 'default' asks for 0.95"), (0.5, 0.95, "--min-confidence asks for 0.95")],
)
@pytest.mark.parametrize(("choosing", "option"), [(Choosing.ASSUME, "--assume"), (Choosing.FIRST, "--first")])
def test_what_is_taken_all_the_same_says_who_asked_for_more(
    policy: Policy, choosing: Choosing, option: str, accept_at: float, least: float, who: str
) -> None:
    found = answered(policy, accept_at=accept_at, least=least, choosing=choosing)
    assert found.verdict is Verdict.ACCEPTED
    assert found.warnings == (f"taken with confidence 0.92 because of {option}, where {who}",)
    unknown = answered(policy, accept_at=accept_at, least=least, choosing=choosing, known=False)
    assert unknown.warnings == (f"taken with a confidence that is not known because of {option}, where {who}",)


def test_what_is_not_known_is_not_enough_for_who_asks(policy: Policy) -> None:
    assert answered(policy, accept_at=0.0, known=False).verdict is Verdict.ACCEPTED
    asked = answered(policy, accept_at=0.0, least=0.1, known=False)
    assert asked.verdict is Verdict.LOW_CONFIDENCE
    assert asked.reason.endswith("how likely it is right could not be told, and --min-confidence asks for it")
    assert "the policy 'default' asks for it" in answered(policy, accept_at=0.1, known=False).reason


def test_what_is_left_to_a_person_is_no_accepted_patch_with_a_confidence(policy: Policy) -> None:
    accepted = answered(policy, accept_at=0.5)
    left = left_to_a_person(accepted, "a critical file")
    assert (left.confidence, left.confidences) == (None, (accepted.confidence,))
    assert accepted.confidence is not None


def test_more_time_is_asked_for_only_where_it_ran_out() -> None:
    result = TaskResult(verdict=Verdict.LOW_CONFIDENCE, reason="", exit=1)
    late = Assessment(strength=None, seconds=3.1, allowed_seconds=3.0, cut=("mutants: 7 of 7 were not run",))
    told = [unsure_remedy(replace(result, assessment=a), "t") for a in (None, late, replace(late, cut=()))]
    assert ["--max-seconds" in text for text in told] == [False, True, False]
