"""The loop of one task: baseline, localize, order, verify, feed back, choose.

One best-first search over sequences of edits. The root is the snapshot; a candidate that made progress without being
plausible joins the beam (at most three per round), its own edits enter the same queue, so faults at several places are
found. The model's scores arrive beside the search and reorder what is still open; without them the prior decides.

Not promised: equal wall times, nor the same order in two runs: the search goes on from the answers and scores that are
there, and when they come is a matter of time. What came when is told as events, and `pace` can follow a record of them.
"""

import concurrent.futures as cf
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline, Ending, FullResult, Outcome, QuickResult
from localagent.domain.task import Stage, Task, TaskResult, Verdict
from localagent.ports import QuickCheck
from localagent.repair.beam import Beam
from localagent.repair.control import breaking, no_op, only_flaky
from localagent.repair.deciding import Accepted, choose, more_after_first, part, why_not
from localagent.repair.diagnosis import diagnose
from localagent.repair.expansion import Expansion
from localagent.repair.followed import PATIENCE
from localagent.repair.hardening import Hardening
from localagent.repair.lineage import Lineage, Step
from localagent.repair.pace import Flying, milliseconds, traced
from localagent.repair.progress import baseline_failures
from localagent.repair.run import Run
from localagent.repair.state import Parts
from localagent.repair.writing import Writing, settled

PATIENT = 10  # times the small limit, for candidates that were only slow
UNKNOWN_CPU_SECONDS = 0.3  # the small limit where no failing test ever ran to its end
TURN_SECONDS = 0.0005
FULL_SWEEP_TESTS = 60
FULL_SWEEP_SECONDS = 0.25


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
    """Runs one task. `run` never raises for what the repository did; jail and usage faults propagate."""

    def __init__(self, task: Task, parts: Parts, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = Run(task, parts, clock=clock)
        self._expansion = Expansion(self._run)
        self._beam = Beam(self._run, self._expansion)

    # ---- stages -------------------------------------------------------------------------------------------------

    def run(self) -> TaskResult:
        """The whole task."""
        try:
            result = self._stages()
            return replace(result, seconds={k: round(v, 3) for k, v in self._run.state.seconds.items()})
        finally:
            self._expansion.close()

    def _stages(self) -> TaskResult:
        run = self._run
        with run.timed(Stage.BASELINE):
            measured = run.parts.verifier.baseline(patience=PATIENCE if run.parts.pace.following else 1.0)
        run.emit("baseline", failing=list(measured.failing), flaky=list(measured.flaky), passing=len(measured.passing))
        baseline = run.baseline = run.parts.pace.times(measured)
        tests, checks = milliseconds(baseline)
        run.emit("timed", tests=tests, checks=checks, traced=traced(baseline))
        if not baseline.failing and baseline.flaky:
            return self._result(Verdict.UNTRUSTED_TESTS, only_flaky(baseline.flaky), 1)
        if not baseline.failing:
            return self._result(Verdict.NOTHING_TO_FIX, "nothing to fix: every test and check passes", 0)
        with run.timed(Stage.LOCALIZE):
            found = run.parts.localizer.localize(baseline, run.parts.sources)
            run.suspicions = tuple(s for s in found if run.editable(s.path))
        order = run.parts.ranker.name if run.parts.ranker is not None and run.parts.weights.learned else "hand"
        run.emit("localized", top=[f"{s.path}:{s.line}" for s in run.suspicions[:10]], order=order)
        if not run.suspicions:
            return self._result(
                Verdict.GAVE_UP, "no source line of this repository could be linked to the failing tests", 1
            )
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
            distrust = self._controls(run.baseline, quick, pool)
            if distrust:
                return self._result(Verdict.UNTRUSTED_TESTS, distrust, 1)
            self._expansion.hold()
            accepted = self._loop(root, quick, pool)
        if accepted is None:
            return self._result(*why_not(run), 1)
        candidate, full = accepted
        why = "; ".join(e.note or e.operator for e in candidate.edits)
        return self._result(Verdict.ACCEPTED, f"accepted: {why}", 0, chosen=candidate, full=full)

    # ---- controls -----------------------------------------------------------------------------------------------

    def _controls(self, baseline: Baseline, quick: QuickCheck, pool: cf.Executor) -> str:
        """The reason not to believe the tests, or ""."""
        top = self._run.suspicions[0]
        source = self._run.parts.sources[top.path]
        scope = self._run.frontier.scope_at(top.path, top.line)
        edits = (no_op(top.path, source, scope), *breaking(top.path, source, top.line, scope))
        cpu = self._cpu_seconds(baseline)
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
        answers = [self._answer(j) for j in jobs]
        self._run.emit("controls", plausible=[a.plausible for a in answers])
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

    # ---- the loop -----------------------------------------------------------------------------------------------

    def _loop(self, root: Lineage, quick: QuickCheck, pool: cf.Executor) -> Accepted | None:
        run, s, budget = self._run, self._run.state, self._run.task.budget
        pace = run.parts.pace
        cpu = self._cpu_seconds(run.baseline)
        early = self._stop_early(run.baseline)
        flying: Flying = {}
        writing = Writing(run, self._expansion.root_lines(), root)
        stop_at: int | None = None
        shown = run.clock()
        try:
            while True:
                limit = budget.max_candidates if stop_at is None else min(budget.max_candidates, stop_at)
                writing.turn()
                while self._room(flying, limit) and (built := self._next(root)) is not None:
                    s.verified += 1
                    s.ranks[built[1].number] = s.verified
                    limit_cpu = pace.cpu_seconds(built[1].number, cpu)
                    flying[pool.submit(quick.check, built[1], cpu_seconds=limit_cpu, stop_early=early)] = built
                    run.emit("started", number=built[1].number)
                if not flying and self._expansion.held():
                    self._expansion.wait()
                    continue
                if not flying:
                    if s.plausible:
                        accepted = choose(run, Hardening(run, quick, pool, cpu_seconds=cpu))
                        if accepted is not None or s.undecided:
                            return accepted
                        stop_at = None
                        if s.verified < budget.max_candidates and run.left() > 0 and len(run.frontier):
                            continue
                    elif stop_at is None and (
                        self._retry_slow(quick, pool, flying, cpu)
                        or (s.verified < limit and run.left() > 0 and writing.alone())
                    ):
                        continue
                    return part(run)
                for job in pace.answered(flying):
                    step, candidate = flying.pop(job)
                    if self._only_slow(candidate, self._answer(job)):
                        again = pool.submit(quick.check, candidate, cpu_seconds=PATIENT * cpu, stop_early=early)
                        flying[again] = (step, candidate)
                    elif self._judge(step, candidate, self._answer(job)) and stop_at is None:
                        stop_at = s.verified + more_after_first(run)
                self._expansion.take_scores()
                if run.clock() - shown > 0.5:
                    shown = run.clock()
                    run.emit("progress", verified=s.verified, open=len(run.frontier), plausible=len(s.plausible))
                if s.plausible and run.left() < 0.25 * budget.max_seconds:
                    stop_at = s.verified
        finally:
            writing.close()
            for job in flying:
                job.cancel()

    def _room(self, flying: Flying, limit: int) -> bool:
        """Whether another candidate may start now."""
        run = self._run
        free = len(flying) < run.task.budget.jobs + 1 and run.state.verified < limit
        return free and run.left() > 0 and run.parts.pace.may_start() and not self._expansion.held()

    def _next(self, root: Lineage) -> tuple[Step, Candidate] | None:
        """The next candidate that is new, compiles and passes the gates."""
        run, s, looked = self._run, self._run.state, False
        while True:
            if len(run.frontier) < 50 and self._expansion.next_tranche(root):
                looked = True
                continue
            step = run.frontier.pop(written=not settled(run))
            if step is None or run.parts.pace.stops(wanted=run.left() <= 0):
                if looked or step is not None:
                    run.emit("drained")
                return None
            looked = True
            if isinstance(step, Lineage):
                self._beam.build_upon(step)
                continue
            if step.parent.progress and not step.joins and not self._beam.holds(step.parent):
                continue
            identity = self._beam.identity(step)
            if not identity or identity in s.seen:
                continue
            s.seen.add(identity)
            candidate = run.build(step)
            if candidate is not None:
                return step, candidate

    def _judge(self, step: Step, candidate: Candidate, result: QuickResult) -> bool:
        """Book one answer; True when it is plausible."""
        s = self._run.state
        if result.ending is not Ending.EXITED:
            s.limits[result.ending.value] += 1
            if result.ending in (Ending.CPU, Ending.WALL) and candidate.number not in s.patient:
                s.slow.append((step, candidate))
        self._run.emit_checked(candidate, result)
        if result.plausible:
            s.plausible.append(candidate)
            if s.rank_of_first is None:
                s.rank_of_first = s.ranks[candidate.number]
            return True
        if self._run.parts.writer is not None:
            self._run.parts.writer.heard(step.edit, tuple(result.failures.values()))
        self._beam.take(step, candidate, result)
        return False

    def _only_slow(self, candidate: Candidate, result: QuickResult) -> bool:
        """True once for a candidate that turned tests and did nothing wrong but run out of the small limit."""
        if candidate.number in self._run.state.patient or not result.turned or result.broken:
            return False
        late = result.ending in (Ending.CPU, Ending.WALL)
        if not late or any(not o.good and o is not Outcome.TIMED_OUT for o in result.outcomes.values()):
            return False
        self._run.state.patient.add(candidate.number)
        return True

    def _retry_slow(
        self,
        quick: QuickCheck,
        pool: cf.Executor,
        flying: Flying,
        cpu: float,
    ) -> bool:
        """Candidates that ran into the small limit get a second chance with a larger one, once, cheapest first."""
        slow, self._run.state.slow = self._run.state.slow, []
        if not slow or (self._run.left() < 2 and not self._run.parts.pace.following):
            return False
        n = int(self._run.left() / (8 * cpu)) * self._run.task.budget.jobs
        slow = sorted(slow, key=lambda x: x[1].cost)
        chosen = self._run.parts.pace.retried([candidate.number for _, candidate in slow[: min(n, 20)]])
        if chosen:
            self._run.emit("retried", numbers=list(chosen))
        for step, candidate in slow:
            if candidate.number not in chosen:
                continue
            self._run.state.patient.add(candidate.number)
            flying[pool.submit(quick.check, candidate, cpu_seconds=5 * cpu, stop_early=True)] = (step, candidate)
        return bool(flying)

    # ---- the end ------------------------------------------------------------------------------------------------

    def _cpu_seconds(self, baseline: Baseline) -> float:
        """The small limit of one test in a quick check: a multiple of the slowest failing one, more if all hung.

        Programs that loop for ever are common among candidates; those that were only slow get a second chance.
        """
        wanted = set(baseline.failing)
        taken = [t.seconds for t in baseline.tests if t.id in wanted and t.outcome is not Outcome.TIMED_OUT]
        return max(0.2, min(20.0, 8 * max(taken))) if taken else UNKNOWN_CPU_SECONDS

    @staticmethod
    def _stop_early(baseline: Baseline) -> bool:
        """Whether a candidate's first failing test ends its check: only when running all of them costs much.

        Which tests a candidate turned is what the beam lives on.
        """
        wanted = set(baseline.failing)
        seconds = sum(t.seconds for t in baseline.tests if t.id in wanted)
        return len(wanted) > FULL_SWEEP_TESTS or (len(wanted) > 8 and seconds > FULL_SWEEP_SECONDS)

    @staticmethod
    def _answer(job: cf.Future[QuickResult]) -> QuickResult:
        return job.result()

    def _result(
        self,
        verdict: Verdict,
        reason: str,
        code: int,
        *,
        chosen: Candidate | None = None,
        full: FullResult | None = None,
    ) -> TaskResult:
        run = self._run
        s, scorer = run.state, run.parts.scorer
        warnings = [*s.warnings, *([scorer.warning] if scorer is not None and scorer.warning else [])]
        used = scorer is not None and not scorer.warning
        return TaskResult(
            verdict=verdict,
            reason=reason,
            exit=code,
            patch=chosen.patch if chosen else None,
            chosen=chosen,
            proposals=s.proposals,
            baseline=run.baseline,
            full=full,
            localization=run.suspicions[:10],
            diagnosis=diagnose(run.baseline, run.suspicions, chosen),
            enumerated=s.enumerated,
            written=s.written,
            denied=dict(s.denied),
            verified=s.verified,
            rank_of_first_plausible=s.rank_of_first,
            plausible=len(s.plausible),
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
