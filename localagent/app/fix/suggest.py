"""The repair loop in a small box: what `fix` does, on a snapshot that is there already, without a model.

Not promised: that a repair that `fix` would find is found; the time decides.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from localagent.app.fix.acceptance_threshold import judged
from localagent.app.fix.prior import load_prior
from localagent.app.review.patch_tests import TestedSnapshot
from localagent.app.settings import Settings
from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import Candidate
from localagent.domain.guard import GuardResult
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.suggestion import Suggestion, SuggestionOrigin
from localagent.domain.task import Budget
from localagent.edit.space import open_edit_space
from localagent.gate.repair_gates import open_gate_chain
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import QuickCheck, Sink, Verifier
from localagent.repair.acceptance.confidence_model import load_confidence
from localagent.repair.ordering.weights import load_weights
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.state import Parts

MOST_CANDIDATES = 200
SEARCH_SHARE = 0.6  # of the time that is left; the full check wants the rest
BEHAVIOUR_SECONDS = 5.0  # below that the evidence for the choice is not waited for: a person chooses


def search(
    ground: TestedSnapshot,
    baseline: Baseline,
    settings: Settings,
    policy: Policy,
    sink: Sink,
    left: Callable[[], float],
    most_candidates: int = MOST_CANDIDATES,
) -> Suggestion | None:
    """A patch that turns every failing test of the baseline and passes the full check."""
    parts = Parts(
        verifier=BegunVerifier(ground.verifier, baseline, left),
        localizer=SpectrumLocalizer(text=""),
        space=open_edit_space(load_prior(settings.models_dir / "prior.json")),
        gates=open_gate_chain(policy, ()),
        scorer=None,
        sink=sink,
        sources=ground.sources,
        weights=load_weights(settings.models_dir / "order.json"),
        confidence=load_confidence(settings.models_dir / "confidence.json"),
        context=lambda _path, _baseline: "",
    )
    budget = Budget(max_candidates=most_candidates, max_seconds=max(0.1, SEARCH_SHARE * left()), jobs=1)
    task = replace(ground.task, budget=budget)
    repair = Repair(task, parts)
    # asked for nothing: a person decides, and there is no time to check others beside it
    result = repair.run()
    spent = sum(result.seconds.values())
    result = judged(task, result, repair, parts, replace(policy, accept_at=0.0), at_seconds=spent)
    found = result.chosen or next(iter(result.proposals), None)
    if found is None:
        return None
    return Suggestion(
        origin=SuggestionOrigin.FAILING_TESTS,
        titles=tuple(e.summary for e in found.edits),
        patch=found.patch,
        tests=ground.task.tests,
        confidence=result.confidence or next(iter(result.confidences), None),
    )


class BegunVerifier:
    """A verifier whose baseline was made already."""

    def __init__(self, verifier: Verifier, baseline: Baseline, left: Callable[[], float]) -> None:
        self._verifier = verifier
        self._baseline = baseline
        self._left = left

    def baseline(self) -> Baseline:
        """What was made."""
        return self._baseline

    def quick(self, baseline: Baseline, *, jobs: int) -> QuickCheck:
        """As the verifier says."""
        return self._verifier.quick(baseline, jobs=jobs)

    def full(
        self, candidate: Candidate, baseline: Baseline, *, seed: int, may_fail: Collection[str] = ()
    ) -> FullResult:
        """As the verifier says."""
        return self._verifier.full(candidate, baseline, seed=seed, may_fail=may_fail)

    def guard(
        self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Callable[[int, int], None]
    ) -> GuardResult:
        """As the verifier says, within the time that is left."""
        return self._verifier.guard(candidate, baseline, seconds=min(seconds, max(0.0, self._left())), tell=tell)

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str] | None:
        """As the verifier says."""
        return self._verifier.still_pass(changes, baseline, names)

    def behaviours(self, candidates: Sequence[Candidate], baseline: Baseline, *, seed: int) -> Behaviours:
        """As the verifier says, or nothing where there is no time to ask."""
        if self._left() < BEHAVIOUR_SECONDS:
            return Behaviours()
        return self._verifier.behaviours(candidates, baseline, seed=seed)

    def cancel(self) -> None:
        """As the verifier says."""
        self._verifier.cancel()
