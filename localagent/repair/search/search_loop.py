"""The search itself: candidates in flight, their answers booked, until something is chosen or nothing is left."""

import concurrent.futures as cf
from collections.abc import Mapping, Sequence

from localagent.domain.edit import Candidate, Written
from localagent.domain.outcome import JailOutcome, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Stage
from localagent.ports import QuickCheck
from localagent.repair.acceptance.acceptance import Accepted, choose, more_after_first, parts_to_check, some_turned
from localagent.repair.acceptance.crash_hardening import Hardening
from localagent.repair.search.beam import Beam
from localagent.repair.search.candidate_timeouts import cpu_seconds, patient_seconds, stop_early
from localagent.repair.search.expansion import Expansion
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.syntax_only import unparsed

# Edits that the model writes, beside the enumerated ones: when to ask for more, and what they may cost the others.
#
# The writer works on a thread of its own. While cheap enumerated steps are open it gets at most a fifth of the
# seconds, and no turn before the likeliest of them had theirs unless it is cheaper; once they are used up, or the
# task's last candidates are kept for it (`loop`), it may go on alone for a while. As soon as a candidate is plausible
# nothing more is written.

SECONDS_SHARE = 0.2  # of the search's seconds while cheap enumerated steps are open (cheaper than a span's price),
DEAR_SHARE = 0.5  # and when they are not; the writer works beside the checks
STEP_SECONDS = 20.0
ALONE_SECONDS = 60.0  # at most, and at most half of what is left
WAITING = 8  # written steps not yet tried: then there is no need for more


class Writing:
    """The written part of one task's search. Close it with `close`."""

    def __init__(self, run: RunContext, lines: Mapping[RepoPath, Mapping[int, float]], root: Lineage) -> None:
        self._run, self._lines, self._root = run, lines, root
        self._pool = cf.ThreadPoolExecutor(1, thread_name_prefix="write")
        self._job: cf.Future[Sequence[Written]] | None = None
        self._began = run.clock()
        self._job_began = self._spent = 0.0
        self._alone_until: float | None = None
        self._planned = False
        self._broken = bool(unparsed(root.failures, run.parts.sources))

    def close(self) -> None:
        """Give up what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def turn(self) -> None:
        """Take what was written, and ask for more where that is worth it now. Costs no time."""
        run = self._run
        self._take()
        cheap = run.frontier.next_cost < run.parts.weights.written
        allowed = (SECONDS_SHARE if cheap else DEAR_SHARE) * (run.clock() - self._began)
        busy = run.state.awaits_order or run.state.reading_on
        if self._may_ask() and not busy and self._worth() and self._spent <= allowed:
            self._ask()

    def alone(self) -> bool:
        """Wait a moment for the writer when nothing else is left to do; False when that is not worth it (any more)."""
        run = self._run
        if self._alone_until is None:
            self._alone_until = run.clock() + min(ALONE_SECONDS, 0.5 * max(0.0, run.left()))
        self._take()
        if run.frontier.written:
            return True
        if run.clock() > self._alone_until or (self._job is None and not self._may_ask()):
            return False
        if self._job is None:
            self._ask()
        if self._job is not None:
            cf.wait([self._job], timeout=0.1)
            self._take()
        return True

    def _may_ask(self) -> bool:
        """Whether the writer is free, may be asked, and has something to go on with."""
        run, writer = self._run, self._run.parts.writer
        if writer is None or self._job is not None or run.left() <= 0 or settled(run):
            return False
        if self._broken:
            return False  # where a file does not parse there are no lines to write upon
        return not self._planned or writer.next_cost < float("inf")

    def _worth(self) -> bool:
        """Whether a written edit may be cheaper than the enumerated ones, or the likeliest of those are through."""
        run, writer = self._run, self._run.parts.writer
        assert writer is not None
        if run.frontier.written >= WAITING:
            return False
        next_written = writer.next_cost if self._planned else run.parts.weights.written
        return run.frontier.seasoned or next_written < run.frontier.next_cost

    def _ask(self) -> None:
        self._job_began = self._run.clock()
        self._job = self._pool.submit(self._more)

    def _more(self) -> Sequence[Written]:
        """Runs on the writer's thread."""
        run, writer = self._run, self._run.parts.writer
        assert writer is not None
        if not self._planned:
            writer.begin(run.parts.sources, run.suspicions, run.baseline)
            self._planned = True
        return writer.more(timeout_seconds=max(1.0, min(STEP_SECONDS, run.left())))

    def _take(self) -> None:
        if self._job is None or not self._job.done():
            return
        found, self._job = self._job.result(), None
        self._spent += self._run.clock() - self._job_began
        for written in found:
            self._push(written)
        self._run.emit("written", edits=len(found))

    def _push(self, written: Written) -> None:
        run, edit = self._run, written.edit
        best = run.suspicions[0].score or 1.0
        scores = self._lines.get(edit.path, {})
        cost = run.order.cost(self._root, edit, scores, best, None) - written.score
        run.state.written += 1
        run.frontier.push_written(SearchStep(parent=self._root, edit=edit, cost=cost, model_score=written.score))


def settled(run: RunContext) -> bool:
    """Whether a candidate is plausible and was not rejected: then there is no call for inventions."""
    return any(c.number not in run.state.rejected for c in run.state.plausible)


_TOLD_SECONDS = 0.5  # between two events that tell how far the search is
_KEPT_SHARE = 10  # one in so many candidates, the last ones, is kept for what the model writes,
_KEEPS_FROM = 200  # where a task has so many
_LEAST_RETRY_SECONDS = 2
MEASURE_SECONDS = 8.0  # measuring the strength of the evidence takes these; fewer say little
_EVIDENCE_SHARES = 0.25, 0.5  # of a task's seconds, at least and at most, for all that comes after the search
_JAIL_SECONDS = 2.0  # a new jail for the full check may take these
_WAIT_SECONDS = 0.2  # for an answer, before the model and the writer are looked after


def seconds_for_evidence(task_seconds: float, baseline_seconds: float) -> float:
    """What is kept of a task's time, once a candidate is plausible, for choosing, checking it in full and measuring.

    How long all tests take on this machine the baseline has shown. Evidence that there was no time for counts as none.
    """
    least, most = (share * task_seconds for share in _EVIDENCE_SHARES)
    return min(most, max(least, MEASURE_SECONDS + baseline_seconds))


def seconds_for_a_part(task_seconds: float, baseline_seconds: float) -> float:
    """What is kept of a task's time, while nothing is plausible, for the full check of what turned some tests."""
    return min(_EVIDENCE_SHARES[0] * task_seconds, _JAIL_SECONDS + baseline_seconds)


_Flying = dict[cf.Future[QuickResult], tuple[SearchStep, Candidate]]


class SearchLoop:
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
        lines = self._expansion.root_lines()
        best = run.suspicions[0].score if run.suspicions else 1.0
        for edit in (e for e in run.parts.given if e.path not in run.baseline.test_files):
            cost = run.order.cost(root, edit, lines.get(edit.path, {}), best or 1.0, None)
            step = SearchStep(parent=root, edit=edit, cost=cost)
            least = (edit.path, edit.apply(run.parts.sources[edit.path])) in run.parts.reverted
            push = run.frontier.push_first if least else run.frontier.push_written
            push(step)
        writing = Writing(run, lines, root)
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
                if self._is_late():
                    self._stop_at = s.verified
        finally:
            writing.close()
            for job in self._flying:
                job.cancel()

    def _is_late(self) -> bool:
        """Whether what is left of the time is needed for checking what was found in full; told by `s.ended_early`."""
        run, s, seconds = self._run, self._run.state, self._run.task.budget.max_seconds
        baseline_seconds = s.seconds.get(Stage.BASELINE.value, 0.0)
        if s.plausible:
            return run.left() < seconds_for_evidence(seconds, baseline_seconds)
        s.ended_early = run.left() < seconds_for_a_part(seconds, baseline_seconds) and any(parts_to_check(run))
        return s.ended_early

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
