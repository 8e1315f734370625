"""The loop of one task: baseline, localize, order, verify, feed back, choose.

One best-first search over sequences of edits. The root is the snapshot; a candidate that made progress without being
plausible joins the beam (at most three per round), its own edits enter the same queue, so faults at several places are
found. The model's scores arrive beside the search and reorder what is still open; without them the prior decides.

Not promised: equal wall times, nor the same order in two runs: the search goes on from the answers and scores that are
there, and when they come is a matter of time. What came when is told as events.
"""

import concurrent.futures as cf
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import FullResult
from localagent.domain.task import Ambiguity, Stage, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo
from localagent.ports import QuickCheck
from localagent.repair.acceptance.acceptance import Accepted, ambiguity, rivals
from localagent.repair.acceptance.control_edits import breaking, no_op, only_flaky
from localagent.repair.acceptance.give_up import give_up_reason
from localagent.repair.acceptance.signals import Signals, hardened_signals, near_rival
from localagent.repair.search.candidate_timeouts import cpu_seconds
from localagent.repair.search.expansion import Expansion
from localagent.repair.search.partial_progress import baseline_failures, stage_of
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_loop import SearchLoop
from localagent.repair.search.search_node import Lineage
from localagent.repair.search.state import Parts
from localagent.report import repair_reasons
from localagent.report.diagnosis import diagnose

# The result of a task, as its run has it.

_KINDS = ("syntax", "runtime", "runtime", "logic")  # by the stage that the failures come from


def task_result(
    run: RunContext,
    verdict: Verdict,
    reason: str,
    code: int,
    *,
    chosen: Candidate | None = None,
    full: FullResult | None = None,
) -> TaskResult:
    """What a task came to; what the loop counted is in it."""
    s, scorer = run.state, run.parts.scorer
    warnings = [*s.warnings, *([scorer.warning] if scorer is not None and scorer.warning else [])]
    failures = baseline_failures(run.baseline)
    kind = _KINDS[min((stage_of(f) for f in failures), default=3)]
    used = scorer is not None and not scorer.warning
    return TaskResult(
        verdict=verdict,
        reason=reason,
        exit=code,
        patch=chosen.patch if chosen else None,
        chosen=chosen,
        proposals=s.proposals,
        proposed=s.proposed,
        ambiguity=s.ambiguity,
        baseline=run.baseline,
        full=full,
        localization=run.suspicions[:10],
        diagnosis=diagnose(run.baseline, failures, kind, run.suspicions, chosen),
        enumerated=s.enumerated,
        written=s.written,
        denied=dict(s.denied),
        verified=s.verified,
        rank_of_first_plausible=s.rank_of_first,
        plausible=len(s.plausible),
        plausible_candidates=tuple(s.plausible),
        others=s.others if chosen is not None else 0,
        rounds=s.rounds if s.verified else 0,
        near_misses=tuple(m for _, m in s.misses),
        model_name=scorer.name if used and scorer else None,
        model_digest=scorer.digest if used and scorer else None,
        model_weights=scorer.weights if used and scorer else None,
        model_tokens=scorer.tokens_used if scorer else 0,
        limits_hit=dict(s.limits),
        checks=dict(full.checks) if full else {},
        warnings=tuple(w for w in warnings if w),
    )


# Whether the tests can be believed: the controls are run before any candidate is.


def distrust(run: RunContext, quick: QuickCheck, pool: cf.Executor) -> str:
    """The reason not to believe the tests, or ""."""
    top = run.suspicions[0]
    source = run.parts.sources[top.path]
    scope = run.frontier.scope_at(top.path, top.line)
    edits = (no_op(top.path, source, scope), *breaking(top.path, source, top.line, scope))
    cpu = cpu_seconds(run.baseline)
    jobs = [
        pool.submit(
            quick.check,
            Candidate(
                number=0,
                patch=Patch(changes=(FileChange(path=top.path, before=source, after=e.apply(source)),)),
                edits=(e,),
                cost=0.0,
            ),
            cpu_seconds=cpu,
            stop_early=True,
        )
        for e in edits
    ]
    answers = [j.result() for j in jobs]
    run.emit("controls", plausible=[a.plausible for a in answers])
    if answers[0].plausible:
        return (
            "the failing tests pass after an edit that changes nothing: they depend on chance or on state, "
            "and no patch could be believed"
        )
    if all(a.plausible for a in answers[1:]):
        return (
            f"the failing tests pass even when {top.path}:{top.line} is broken on purpose: they do not check it, "
            "and no patch could be believed"
        )
    return ""


TURN_SECONDS = 0.0005


@contextmanager
def _quick_turns() -> Iterator[None]:
    """A thread that has a worker's answer need not wait for long until the one that thinks lets it run."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, TURN_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Repair:
    """Runs one task, of whose budget some seconds are `spent`.

    `run` never raises for what the repository did; jail and usage faults propagate.
    """

    def __init__(self, task: Task, parts: Parts, *, spent: float = 0.0) -> None:
        self._run = RunContext(task, parts, spent=spent)
        self._expansion = Expansion(self._run)

    def run(self) -> TaskResult:
        """The whole task."""
        try:
            result = self._stages()
            return replace(result, seconds={k: round(v, 3) for k, v in self._run.state.seconds.items()})
        finally:
            self._expansion.close()

    def signals(self, candidate: Candidate) -> Signals:
        """What is known of a plausible candidate; of one that was made sturdier, with what the one before does."""
        s = self._run.state
        found, choice = s.signals, s.choice
        before = found.get(candidate.parent) if candidate.parent is not None else None
        known, number = found.get(candidate.number, {}), candidate.number
        if not known and choice is not None and before is not None and candidate.parent is not None:
            known, number = hardened_signals(candidate, before, choice), candidate.parent
        open_ones = [x for x in s.order if x.candidate.number not in s.rejected]
        return {**known, **near_rival(number, open_ones)} if known else {}

    def rivals(self, chosen: Candidate) -> list[Accepted]:
        """Others that pass every check as well and are known to behave otherwise, best first, while there is time."""
        return rivals(self._run, chosen)

    def ambiguity(self, proposals: Sequence[Candidate]) -> Ambiguity | None:
        """An input on which they differ; None where none is known."""
        return ambiguity(self._run, proposals)

    def _stages(self) -> TaskResult:
        run = self._run
        with run.timed(Stage.BASELINE):
            baseline = run.baseline = run.parts.verifier.baseline()
        run.emit(
            "baseline",
            failing=list(baseline.failing),
            flaky=list(baseline.flaky),
            passing=len(baseline.passing),
            explained=[name for cause in baseline.causes for name in cause.failing],
        )
        if not baseline.failing and baseline.flaky:
            return task_result(run, Verdict.UNTRUSTED_TESTS, only_flaky(baseline.flaky), 1)
        if not baseline.failing and baseline.causes and baseline.checks and not run.task.tests:
            return task_result(run, Verdict.NOTHING_TO_FIX, repair_reasons.checks_pass(baseline.causes), 0)
        if not baseline.failing and baseline.causes:
            said = repair_reasons.not_searched(baseline.causes)
            result = task_result(run, Verdict.NEEDS_PERSON, said, AnswerIsNo.exit_code)
            return replace(result, remedy=repair_reasons.causes_remedy(baseline.causes))
        if not baseline.failing and baseline.not_run:
            said = repair_reasons.not_all_run(len(baseline.tests), baseline.not_run)
            return task_result(run, Verdict.GAVE_UP, said, 1)
        if not baseline.failing:
            return task_result(run, Verdict.NOTHING_TO_FIX, repair_reasons.NOTHING_TO_FIX, 0)
        if run.left() <= 0:
            return task_result(run, *give_up_reason(run), 1)
        with run.timed(Stage.LOCALIZE):
            found = run.parts.localizer.localize(baseline, run.parts.sources)
            run.suspicions = tuple(s for s in found if run.editable(s.path, s.line))
        order = run.parts.ranker.name if run.parts.ranker is not None and run.parts.weights.learned else "hand"
        run.emit("localized", top=[f"{s.path}:{s.line}" for s in run.suspicions[:10]], order=order)
        if run.state.protected:
            run.emit("protected", places=list(run.state.protected.values())[:10])
        if not run.suspicions:
            files = {t.path for t in baseline.tests if t.id in baseline.failing and t.path in baseline.test_files}
            reason = repair_reasons.nowhere(run.state.protected.values(), {path for path in files if path is not None})
            return task_result(run, Verdict.GAVE_UP, reason, 1)
        if run.left() <= 0:
            return task_result(run, *give_up_reason(run), 1)
        self._expansion.prepare()
        quick = run.parts.verifier.quick(baseline, jobs=run.task.budget.jobs)
        try:
            with run.timed(Stage.SEARCH):
                return self._search(quick)
        finally:
            quick.close()

    def _search(self, quick: QuickCheck) -> TaskResult:
        run = self._run
        root = Lineage(
            number=None,
            edits=(),
            changed={},
            identity=frozenset(),
            cost=0.0,
            round=0,
            failures=baseline_failures(run.baseline),
            lines={},
        )
        self._expansion.next_tranche(root)
        with _quick_turns(), cf.ThreadPoolExecutor(run.task.budget.jobs, thread_name_prefix="verify") as pool:
            doubt = distrust(run, quick, pool)
            if doubt:
                return task_result(run, Verdict.UNTRUSTED_TESTS, doubt, 1)
            self._expansion.hold()
            accepted = SearchLoop(run, self._expansion, quick, pool).run(root)
        if accepted is None:
            progress = run.state.progress
            return task_result(run, *give_up_reason(run), 1, full=None if progress is None else progress[1])
        candidate, full = accepted
        if left := tuple(name for cause in run.baseline.causes for name in cause.failing):
            full = replace(full, still_failing=(*full.still_failing, *left))
            run.state.progress = (candidate, full)
            run.state.proposals, run.state.proposed = (candidate,), (full,)
            return task_result(run, *give_up_reason(run), 1, full=full)
        return task_result(run, Verdict.ACCEPTED, repair_reasons.accepted(candidate), 0, chosen=candidate, full=full)
