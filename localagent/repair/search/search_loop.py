"""The search itself: candidates in flight, their answers booked, until something is chosen or nothing is left."""

import concurrent.futures as cf

from localagent.domain.edit import Candidate
from localagent.domain.outcome import JailOutcome, Outcome, QuickResult
from localagent.ports import QuickCheck
from localagent.repair.acceptance.acceptance import Accepted, choose, more_after_first, some_turned
from localagent.repair.acceptance.crash_hardening import Hardening
from localagent.repair.search.beam import Beam
from localagent.repair.search.candidate_timeouts import cpu_seconds, patient_seconds, stop_early
from localagent.repair.search.expansion import Expansion
from localagent.repair.search.generated_edits import Writing, settled
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep

_TOLD_SECONDS = 0.5  # between two events that tell how far the search is
_KEPT_SHARE = 10  # one in so many candidates, the last ones, is kept for what the model writes,
_KEEPS_FROM = 200  # where a task has so many
_LEAST_RETRY_SECONDS = 2
_WAIT_SECONDS = 0.2  # for an answer, before the model and the writer are looked after

_Flying = dict[cf.Future[QuickResult], tuple[SearchStep, Candidate]]


class Loop:
    """One task's search from the root. `pool` runs the quick checks; `run` is to be called once."""

    def __init__(self, run: RunContext, expansion: Expansion, quick: QuickCheck, pool: cf.Executor) -> None:
        self._run, self._expansion, self._quick, self._pool = run, expansion, quick, pool
        self._beam = Beam(run, expansion)
        self._cpu = cpu_seconds(run.baseline)
        self._patient = patient_seconds(run.baseline)
        self._early = stop_early(run.baseline)
        self._flying: _Flying = {}
        self._stop_at: int | None = None
        self._released = False  # what was kept for the writer, because it had its while
        self._told = run.clock()

    def run(self, root: Lineage) -> Accepted | None:
        """What was accepted, if anything."""
        run, s, budget = self._run, self._run.state, self._run.task.budget
        writing = Writing(run, self._expansion.root_lines(), root)
        try:
            while True:
                limit = budget.max_candidates if self._stop_at is None else min(budget.max_candidates, self._stop_at)
                writing.turn()
                self._start_more(root, limit)
                if not self._flying and self._expansion.waits_for_model():
                    self._expansion.wait()
                    continue
                if not self._flying:
                    if s.plausible:
                        accepted = choose(run, Hardening(run, self._quick, self._pool, cpu_seconds=self._cpu))
                        if accepted is not None or s.undecided:
                            return accepted
                        self._stop_at = None
                        if s.verified < budget.max_candidates and run.left() > 0 and len(run.frontier):
                            continue
                    elif self._stop_at is None and (
                        self._retry_slow() or (s.verified < limit and run.left() > 0 and writing.alone())
                    ):
                        continue
                    elif self._reserved_for_writer():
                        self._released = True
                        run.emit("released")
                        continue
                    return some_turned(run)
                self._book_answers()
                self._expansion.take_scores()
                self._tell()
                if s.plausible and run.left() < 0.25 * budget.max_seconds:
                    self._stop_at = s.verified
        finally:
            writing.close()
            for job in self._flying:
                job.cancel()

    def _start_more(self, root: Lineage, limit: int) -> None:
        """Candidates into flight while there is room."""
        run, s = self._run, self._run.state
        while (
            self._may_start(limit)
            and (built := self._next(root, written_alone=self._reserved_for_writer())) is not None
        ):
            s.verified += 1
            s.ranks[built[1].number] = s.verified
            job = self._pool.submit(self._quick.check, built[1], cpu_seconds=self._cpu, stop_early=self._early)
            self._flying[job] = built
            run.emit("started", number=built[1].number)

    def _book_answers(self) -> None:
        """What has answered by now, in the order of the numbers; whoever was only slow flies again."""
        done, _ = cf.wait(self._flying, timeout=_WAIT_SECONDS, return_when=cf.FIRST_COMPLETED)
        for job in sorted(done, key=lambda job: self._flying[job][1].number):
            step, candidate = self._flying.pop(job)
            result = job.result()
            if self._only_slow(candidate, result):
                again = self._pool.submit(
                    self._quick.check, candidate, cpu_seconds=self._patient, stop_early=self._early
                )
                self._flying[again] = (step, candidate)
            elif self._judge(step, candidate, result) and self._stop_at is None:
                self._stop_at = self._run.state.verified + more_after_first(self._run)

    def _tell(self) -> None:
        run, s = self._run, self._run.state
        if run.clock() - self._told > _TOLD_SECONDS:
            self._told = run.clock()
            run.emit("progress", verified=s.verified, open=len(run.frontier), plausible=len(s.plausible))

    def _may_start(self, limit: int) -> bool:
        """Whether another candidate may start now."""
        run = self._run
        free = len(self._flying) < run.task.budget.jobs + 1 and run.state.verified < limit
        return free and run.left() > 0 and not self._expansion.waits_for_model()

    def _reserved_for_writer(self) -> bool:
        """Whether the candidates that are left are for what the model writes: the last tenth of many, for a while.

        Where nothing that was enumerated helped by then, the next fifty of it seldom do (docs/adr/0021).
        """
        s, most = self._run.state, self._run.task.budget.max_candidates
        if self._run.parts.writer is None or self._released or s.plausible or most < _KEEPS_FROM:
            return False
        return s.verified >= most - most // _KEPT_SHARE

    def _next(self, root: Lineage, *, written_alone: bool) -> tuple[SearchStep, Candidate] | None:
        """The next candidate that is new, compiles and passes the gates; `written_alone`: of what the model wrote."""
        run, s = self._run, self._run.state
        while True:
            if not written_alone and len(run.frontier) < 50 and self._expansion.next_tranche(root):
                continue
            step = run.frontier.pop_written() if written_alone else run.frontier.pop(written=not settled(run))
            if step is None or run.left() <= 0:
                return None
            if isinstance(step, Lineage):
                self._beam.build_upon(step)
                continue
            if step.parent.progress and not step.joins and not self._beam.holds(step.parent):
                continue
            identity = self._beam.identity(step)
            if not identity or identity in s.seen:
                continue
            later = 0.0 if written_alone else run.rivals.later(step, run.parts.sources)
            if later:
                run.frontier.put_off(step, later)
                continue
            s.seen.add(identity)
            candidate = run.build(step)
            if candidate is not None:
                run.rivals.runs(step, run.parts.sources)
                return step, candidate

    def _judge(self, step: SearchStep, candidate: Candidate, result: QuickResult) -> bool:
        """Book one answer; True when it is plausible."""
        s = self._run.state
        if result.ending is not JailOutcome.EXITED:
            s.limits[result.ending.value] += 1
            if result.ending in (JailOutcome.CPU, JailOutcome.WALL) and candidate.number not in s.patient:
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
        late = result.ending in (JailOutcome.CPU, JailOutcome.WALL)
        if not late or any(not o.good and o is not Outcome.TIMED_OUT for o in result.outcomes.values()):
            return False
        self._run.state.patient.add(candidate.number)
        return True

    def _retry_slow(self) -> bool:
        """Candidates that ran into the small limit get a second chance with a larger one, once, cheapest first."""
        slow, self._run.state.slow = self._run.state.slow, []
        if not slow or self._run.left() < _LEAST_RETRY_SECONDS:
            return False
        n = int(self._run.left() / (8 * self._cpu)) * self._run.task.budget.jobs
        chosen = sorted(slow, key=lambda x: x[1].cost)[: min(n, 20)]
        if chosen:
            self._run.emit("retried", numbers=[candidate.number for _, candidate in chosen])
        for step, candidate in chosen:
            self._run.state.patient.add(candidate.number)
            again = self._pool.submit(self._quick.check, candidate, cpu_seconds=5 * self._cpu, stop_early=True)
            self._flying[again] = (step, candidate)
        return bool(self._flying)
