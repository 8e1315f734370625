"""Filling the frontier: the edits of suspicious lines, their costs, and the model reordering them beside the search."""

import concurrent.futures as cf
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice

from localagent.domain.edit import Edit, Reading
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.repair.followed import PATIENCE
from localagent.repair.lineage import Lineage, Step
from localagent.repair.onward import ReadingOn
from localagent.repair.order import crash_line
from localagent.repair.progress import stage_of
from localagent.repair.run import Run
from localagent.repair.spending import worth_waiting
from localagent.repair.weights import mended_values

TRANCHE_STATEMENTS = 80
EDITS_PER_GROUP = 6_000
EDITS_PER_CHILD = 2_500
EDITS_PER_PATH = 300
SCORED_PER_GROUP = 6_000
USUAL_WAIT_SECONDS = 2.0  # until the model has spoken, before anything is measured
PROCESS_SECONDS = 0.02  # what a candidate costs beside its tests
ENOUGH_VERIFIED = 10  # candidates that tell what one costs
HEAD_START = 25  # one in so many of the budget may run in the prior order before the model has spoken


class Expansion:
    """Enumerates for one task. The model works on a thread of its own; close it with `close`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tranche = 0
        self._scoring: list[cf.Future[list[Step]]] = []
        self._before: dict[cf.Future[list[Step]], list[Step]] = {}  # the steps of a job without the model
        self._ordered: list[Step] = []  # those of the jobs whose scores were taken
        self._awaited: list[cf.Future[list[Step]]] = []
        self._held_from = self._hold_until = 0.0
        self._pool = cf.ThreadPoolExecutor(1, thread_name_prefix="order")
        self._onward = ReadingOn(run)

    def close(self) -> None:
        """Give up what the model has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._onward.close()

    def root_lines(self) -> dict[RepoPath, dict[int, float]]:
        """Suspicion by line of the first tranche of statements."""
        return self._lines(0, TRANCHE_STATEMENTS)

    def _lines(self, first: int, last: int) -> dict[RepoPath, dict[int, float]]:
        lines: dict[RepoPath, dict[int, float]] = {}
        for s in self._run.suspicions[first:last]:
            scores = lines.setdefault(s.path, {})
            for k in range(s.line, s.end_line + 1):
                scores[k] = max(scores.get(k, 0.0), s.score)
        return lines

    def next_tranche(self, root: Lineage) -> bool:
        """Enumerate the edits of the next most suspicious statements; False when there are none left."""
        first, self._tranche = self._tranche, self._tranche + TRANCHE_STATEMENTS
        if first >= len(self._run.suspicions):
            return False
        self.expand(root, self._lines(first, self._tranche), score_model=first == 0 or self._run.left() > 10)
        return True

    def expand(self, parent: Lineage, lines: Mapping[RepoPath, Mapping[int, float]], *, score_model: bool) -> None:
        """Push the edits of some lines of a program."""
        run = self._run
        sources = parent.sources(run.parts.sources)
        broken = unparsed(parent.failures)
        lines = {path: scores for path, scores in lines.items() if not broken or path in broken}
        best = run.suspicions[0].score or 1.0
        share = max(EDITS_PER_PATH, (EDITS_PER_CHILD if parent.round else EDITS_PER_GROUP) // max(1, len(lines)))
        for path, scores in lines.items():
            found = list(
                islice(
                    run.parts.space.edits(path, sources, lines=frozenset(scores), failures=parent.failures),
                    share,
                )
            )
            run.state.enumerated += len(found)
            crash = crash_line(parent, path)
            crowds = crowds_of(found)
            learned = self._learned(sources[path], found, crowds, None)
            steps = [
                Step(parent=parent, edit=e, cost=run.order.cost(parent, e, scores, best, crash, None, n) - gain)
                for e, n, gain in zip(found, crowds, learned, strict=True)
            ]
            run.frontier.push(steps)
            scorer = run.parts.scorer
            wanted = scorer is not None and not scorer.warning and score_model and bool(steps)
            asked = run.parts.pace.scores(wanted=wanted) and scorer is not None
            run.emit("expanded", path=path, edits=len(found), asked=asked)
            if asked:
                job = self._pool.submit(self._score, parent, path, steps, crowds, dict(scores), best, crash)
                self._scoring.append(job)
                self._before[job] = steps

    def _score(
        self,
        parent: Lineage,
        path: RepoPath,
        steps: list[Step],
        crowds: list[int],
        scores: Mapping[int, float],
        best: float,
        crash: int | None,
    ) -> list[Step]:
        """Runs on the model's thread: the same steps with the model's part in their cost; none of a model dropped."""
        run = self._run
        scorer = run.parts.scorer
        assert scorer is not None
        source = parent.sources(run.parts.sources)[path]
        head = sorted(steps, key=lambda s: s.cost)[:SCORED_PER_GROUP]
        timeout = max(2.0, min(30.0, 0.3 * run.task.budget.max_seconds))
        if run.parts.pace.following:  # what was scored in time then may take longer now
            timeout *= PATIENCE
        context = run.parts.context(path, run.baseline)
        ends = run.clock() + timeout
        edits = [s.edit for s in head]
        got = scorer.read(source, context, edits, timeout_seconds=timeout)
        mender = run.parts.mender
        nats: Sequence[float | None] = [None] * len(head)
        if mender is not None and mender.mends and run.parts.weights.mended:
            nats = mender.mend(source, context, edits, timeout_seconds=max(0.0, ends - run.clock()))
        if scorer.warning or all(v is None for v in got):
            return []
        model = {id(s): v for s, v in zip(head, got, strict=True)}
        mended = {id(s): v for s, v in zip(head, nats, strict=True)}
        readings = [model.get(id(s)) for s in steps]
        learned = self._learned(source, [s.edit for s in steps], crowds, readings)
        mends = mended_values([mended.get(id(s)) for s in steps], run.parts.weights)
        out = []
        for s, crowd, reading, mend, gain in zip(steps, crowds, readings, mends, learned, strict=True):
            value = None if reading is None else reading.score
            used = run.parts.weights.unscored if value is None else value
            cost = run.order.cost(parent, s.edit, scores, best, crash, used, crowd) - mend - gain
            out.append(Step(parent=parent, edit=s.edit, cost=cost, model_score=value, mended=mended.get(id(s))))
        return out

    def _learned(
        self, source: bytes, edits: Sequence[Edit], crowds: Sequence[int], readings: Sequence[Reading | None] | None
    ) -> list[float]:
        """What the learned order takes off the costs of edits of one file, where it is in use."""
        ranker, weights = self._run.parts.ranker, self._run.parts.weights
        if ranker is None or not weights.learned:
            return [0.0] * len(edits)
        return ranker.corrections(source, edits, crowds, readings, weights)

    def hold(self) -> None:
        """From now on, let only the likeliest candidates run until the model has ordered the open ones, or a while."""
        self._awaited = list(self._scoring)
        self._held_from = self._run.clock()
        self._hold_until = self._held_from + min(15.0, 0.2 * self._run.task.budget.max_seconds)
        self.wait()

    def held(self) -> bool:
        """True while waiting for the model is worth more than running the next candidate."""
        run = self._run
        if run.parts.pace.following:
            return run.parts.pace.awaits_scores(coming=bool(self._scoring), onward=self._onward.coming)
        if not self._awaited or self._ahead():
            return False
        ended = run.clock() > self._hold_until or all(job.done() for job in self._awaited)
        if ended or not self._worth_waiting():
            self._awaited = []
        return bool(self._awaited)

    def _ahead(self) -> bool:
        """Whether the likeliest candidates still have their head start; with slow tests there is none."""
        head = max(2, self._run.task.budget.max_candidates // HEAD_START)
        return self._each_seconds() < USUAL_WAIT_SECONDS and self._run.state.verified < head

    def _worth_waiting(self) -> bool:
        """Who has waited for long will wait for as long again."""
        run = self._run
        return worth_waiting(
            candidates=run.task.budget.max_candidates - run.state.verified,
            seconds=run.left(),
            each_seconds=self._each_seconds(),
            wait_seconds=max(USUAL_WAIT_SECONDS, run.clock() - self._held_from),
        )

    def _each_seconds(self) -> float:
        """What a candidate costs: its failing tests once more, and a process; several at once share it."""
        return (self._failing_seconds + PROCESS_SECONDS) / max(1, self._run.task.budget.jobs)

    @cached_property
    def _failing_seconds(self) -> float:
        """Of the failing tests together; asked for once the baseline is there."""
        wanted = set(self._run.baseline.failing)
        return sum(t.seconds for t in self._run.baseline.tests if t.id in wanted)

    def _taken_each(self) -> float:
        """What candidates of this search have cost so far, all told; 0 before there are enough."""
        verified = self._run.state.verified
        return (self._run.clock() - self._held_from) / verified if verified >= ENOUGH_VERIFIED else 0.0

    def wait(self) -> None:
        """Wait a moment for the model, then take what it has."""
        cf.wait(self._awaited, timeout=0.05)
        self.take_scores()

    def take_scores(self) -> None:
        """Reorder the frontier by what the model has finished; by nothing of it once the model was dropped."""
        waiting: list[cf.Future[list[Step]]] = []
        self._onward.take()
        for job in self._scoring:
            if waiting or not self._run.parts.pace.may_order(job):
                waiting.append(job)
            else:
                fresh, before = job.result(), self._before.pop(job)
                self._run.frontier.reorder(fresh)
                self._ordered += before if fresh else []
                scored = sum(step.model_score is not None for step in fresh)
                mended = sum(step.mended is not None for step in fresh)
                self._run.emit("ordered", edits=len(fresh), scored=scored, mended=mended)
        self._scoring = waiting
        self._fall_back()
        if self._ordered and not waiting:
            self._onward.consider(max(self._each_seconds(), self._taken_each()))

    def _fall_back(self) -> None:
        """What is open goes by the order without a model again, where the model was dropped."""
        run = self._run
        dropped = run.parts.scorer is not None and bool(run.parts.scorer.warning)
        if run.parts.pace.drops(wanted=dropped and bool(self._ordered)):
            run.frontier.reorder(self._ordered)
            run.emit("unordered", edits=len(self._ordered))
            self._ordered = []


def unparsed(failures: Sequence[Failure]) -> frozenset[RepoPath]:
    """The files that do not parse, when nothing else is the matter: no edit of another file can help."""
    places = set()
    for failure in failures:
        if stage_of(failure) != 0 or not failure.frames or failure.frames[-1].path is None:
            return frozenset()
        places.add(failure.frames[-1].path)
    return frozenset(places)


def crowds_of(edits: Sequence[Edit]) -> list[int]:
    """For each edit, how many likelier ones the same operator makes at the same line."""
    seen: Counter[tuple[str, int]] = Counter()
    out = [0] * len(edits)
    for at in sorted(range(len(edits)), key=lambda k: -edits[k].prior):
        where = (edits[at].operator, edits[at].line)
        out[at] = seen[where]
        seen[where] += 1
    return out
