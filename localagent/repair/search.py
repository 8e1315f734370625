"""The loop of one task: baseline, localize, order, verify, feed back, choose.

One best-first search over sequences of edits. The root is the snapshot; a candidate that made progress without being
plausible joins the beam (at most three per round), its own edits enter the same queue, so faults at several places are
found. The model's scores arrive beside the search and reorder what is still open; without them the prior decides.

Not promised: equal wall times. With one job, the same seed, sources, weights and model scores in time, the order in
which candidates run is the same; with several jobs answers arrive in another order and the beam may differ.
"""

import concurrent.futures as cf
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline, Ending, Failure, FullResult, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Event, NearMiss, Stage, Suspicion, Task, TaskResult, Verdict
from localagent.ports import QuickCheck
from localagent.repair.choice import ranked, undecided
from localagent.repair.control import breaking, no_op
from localagent.repair.diagnosis import diagnose
from localagent.repair.frontier import Frontier
from localagent.repair.identity import behaviour_key, scope_of
from localagent.repair.lineage import Lineage, Step, shifted_lines
from localagent.repair.order import Order, crash_line, reaches
from localagent.repair.progress import baseline_failures, progress_of, stage_of
from localagent.repair.state import Parts, State

TRANCHE_STATEMENTS = 80
EDITS_PER_GROUP = 6_000
EDITS_PER_CHILD = 2_500
EDITS_PER_PATH = 300
SCORED_PER_GROUP = 6_000
BEAM = 3
MAX_ROUNDS = 5
MAX_EXPANSIONS = 12
FULL_CHECKS = 8
MORE_AFTER_FIRST = 60
PART_CHECKS = 5
PATIENT = 10  # times the small limit, for candidates that were only slow
HEAD_START = 25  # one in so many of the budget may run in the prior order before the model has spoken


class Repair:
    """Runs one task. `run` never raises for what the repository did; jail and usage faults propagate."""

    def __init__(self, task: Task, parts: Parts, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.task, self.parts, self.clock = task, parts, clock
        self.start = clock()
        self.state = State()
        self.frontier = Frontier()
        self.order = Order(parts.weights)
        self.baseline: Baseline | None = None
        self.suspicions: tuple[Suspicion, ...] = ()
        self._tranche = 0
        self._scoring: list[tuple[cf.Future[list[Step]], list[Step]]] = []
        self._awaited: list[cf.Future[list[Step]]] = []
        self._hold_until = 0.0
        self._open_paths: dict[RepoPath, bool] = {}
        self._model_pool = cf.ThreadPoolExecutor(1, thread_name_prefix="order")

    # ---- stages -------------------------------------------------------------------------------------------------

    def run(self) -> TaskResult:
        """The whole task."""
        try:
            result = self._run()
            return replace(result, seconds={k: round(v, 3) for k, v in self.state.seconds.items()})
        finally:
            self._model_pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> TaskResult:
        with _Timed(self, Stage.BASELINE):
            baseline = self.baseline = self.parts.verifier.baseline()
        self._emit(
            "baseline", failing=list(baseline.failing), flaky=list(baseline.flaky), passing=len(baseline.passing)
        )
        if not baseline.failing:
            return self._result(Verdict.NOTHING_TO_FIX, "nothing to fix: every test and check passes", 0)
        with _Timed(self, Stage.LOCALIZE):
            found = self.parts.localizer.localize(baseline, self.parts.sources)
            self.suspicions = tuple(s for s in found if self._editable(s.path, baseline))
        self._emit("localized", top=[f"{s.path}:{s.line}" for s in self.suspicions[:10]])
        if not self.suspicions:
            return self._result(
                Verdict.GAVE_UP, "no source line of this repository could be linked to the failing tests", 1
            )
        quick = self.parts.verifier.quick(baseline, jobs=self.task.budget.jobs)
        try:
            with _Timed(self, Stage.SEARCH):
                return self._search(baseline, quick)
        finally:
            quick.close()

    def _editable(self, path: RepoPath, baseline: Baseline) -> bool:
        """Whether the policy lets anybody edit a file: asked once a file, with an edit that changes nothing."""
        if path not in self._open_paths:
            source = self.parts.sources[path]
            edit = no_op(path, source)
            change = FileChange(path=path, before=source, after=edit.apply(source))
            probe = Candidate(number=0, patch=Patch(changes=(change,)), edits=(edit,), cost=0.0)
            decisions = self.parts.gates.review(probe, baseline, self.parts.sources)
            self._open_paths[path] = not any(f.rule.startswith("path-") for d in decisions for f in d.findings)
        return self._open_paths[path]

    def _search(self, baseline: Baseline, quick: QuickCheck) -> TaskResult:
        root = self._root(baseline)
        self._open_tranche(root, first=True)
        with cf.ThreadPoolExecutor(self.task.budget.jobs, thread_name_prefix="verify") as pool:
            distrust = self._controls(baseline, quick, pool)
            if distrust:
                return self._result(Verdict.UNTRUSTED_TESTS, distrust, 1)
            self._hold()
            accepted = self._loop(root, baseline, quick, pool)
        if accepted is not None:
            candidate, full = accepted
            return self._result(
                Verdict.ACCEPTED,
                f"accepted: {'; '.join(e.note or e.operator for e in candidate.edits)}",
                0,
                chosen=candidate,
                full=full,
            )
        return self._gave_up()

    def _gave_up(self) -> TaskResult:
        s = self.state
        if s.undecided:
            each = ["; ".join(f"{e.path}:{e.line} {e.note}" for e in c.edits) for c in s.undecided[:4]]
            shown = " | ".join(each)
            return self._result(
                Verdict.NEEDS_PERSON,
                f"{len(s.undecided)} patches pass the few tests, behave differently, and nothing tells which is right: "
                f"{shown}; add a test that tells them apart, or choose",
                1,
            )
        if not s.verified and s.denied:
            return self._result(Verdict.ALL_DENIED, "every candidate was refused by a gate", 1)
        why = (
            "the budget of candidates"
            if s.verified >= self.task.budget.max_candidates
            else ("the time" if self._left() <= 0 else "the edit space")
        )
        tail = f"; {len(s.rejected)} plausible ones failed the full check" if s.rejected else ""
        return self._result(Verdict.GAVE_UP, f"gave up: {why} is used up after {s.verified} candidates{tail}", 1)

    # ---- enumeration and order ----------------------------------------------------------------------------------

    def _root(self, baseline: Baseline) -> Lineage:
        return Lineage(
            number=None,
            edits=(),
            changed={},
            identity=frozenset(),
            cost=0.0,
            round=0,
            failures=baseline_failures(baseline),
            lines={},
        )

    def _open_tranche(self, root: Lineage, *, first: bool = False) -> bool:
        """Enumerate the edits of the next most suspicious statements; False when there are none left."""
        part = self.suspicions[self._tranche : self._tranche + TRANCHE_STATEMENTS]
        self._tranche += len(part)
        if not part:
            return False
        lines: dict[RepoPath, dict[int, float]] = {}
        for s in part:
            scores = lines.setdefault(s.path, {})
            for k in range(s.line, s.end_line + 1):
                scores[k] = max(scores.get(k, 0.0), s.score)
        self._expand(root, lines, score_model=first or self._left() > 10)
        return True

    def _expand(self, parent: Lineage, lines: Mapping[RepoPath, Mapping[int, float]], *, score_model: bool) -> None:
        sources = parent.sources(self.parts.sources)
        best = self.suspicions[0].score or 1.0
        share = max(EDITS_PER_PATH, (EDITS_PER_CHILD if parent.round else EDITS_PER_GROUP) // max(1, len(lines)))
        for path, scores in lines.items():
            found = list(
                islice(
                    self.parts.space.edits(path, sources, lines=frozenset(scores), failures=parent.failures),
                    share,
                )
            )
            self.state.enumerated += len(found)
            crash = crash_line(parent, path)
            steps = [
                Step(parent=parent, edit=e, cost=self.order.cost(parent, e, scores, best, crash, None)) for e in found
            ]
            self.frontier.push(steps)
            scorer = self.parts.scorer
            if scorer is not None and not scorer.warning and score_model and steps:
                job = self._model_pool.submit(self._score, parent, path, steps, dict(scores), best, crash)
                self._scoring.append((job, steps))

    def _score(
        self,
        parent: Lineage,
        path: RepoPath,
        steps: list[Step],
        scores: Mapping[int, float],
        best: float,
        crash: int | None,
    ) -> list[Step]:
        """Runs on the model's thread: the same steps with the model's part in their cost."""
        scorer, baseline = self.parts.scorer, self.baseline
        assert scorer is not None
        assert baseline is not None
        source = parent.sources(self.parts.sources)[path]
        head = sorted(steps, key=lambda s: s.cost)[:SCORED_PER_GROUP]
        timeout = max(2.0, min(30.0, 0.3 * self.task.budget.max_seconds))
        got = scorer.score(source, self.parts.context(path, baseline), [s.edit for s in head], timeout_seconds=timeout)
        if all(v is None for v in got):
            return []
        model = {id(s): v for s, v in zip(head, got, strict=True)}
        out = []
        for s in steps:
            value = model.get(id(s))
            used = self.parts.weights.unscored if value is None else value
            cost = self.order.cost(parent, s.edit, scores, best, crash, used)
            out.append(Step(parent=parent, edit=s.edit, cost=cost, model_score=value))
        return out

    def _hold(self) -> None:
        """From now on, let only the likeliest candidates run until the model has ordered the open ones, or a while."""
        self._awaited = [job for job, _ in self._scoring]
        self._hold_until = self.clock() + min(15.0, 0.2 * self.task.budget.max_seconds)
        cf.wait(self._awaited, timeout=0.05)
        self._take_scores()

    def _held(self) -> bool:
        """True while waiting for the model is worth more than running the next candidate."""
        if not self._awaited or self.state.verified < max(2, self.task.budget.max_candidates // HEAD_START):
            return False
        if self.clock() > self._hold_until or all(job.done() for job in self._awaited):
            self._awaited = []
        return bool(self._awaited)

    def _take_scores(self) -> None:
        waiting = []
        for job, steps in self._scoring:
            if not job.done():
                waiting.append((job, steps))
                continue
            fresh = job.result()
            if fresh:
                by_edit = {id(s.edit): s for s in fresh}
                self.frontier.reorder(list(by_edit.values()))
                self._emit("ordered", edits=len(fresh))
        self._scoring = waiting

    # ---- controls -----------------------------------------------------------------------------------------------

    def _controls(self, baseline: Baseline, quick: QuickCheck, pool: cf.Executor) -> str:
        """The reason not to believe the tests, or ""."""
        top = self.suspicions[0]
        source = self.parts.sources[top.path]
        scope = self.frontier.scope_at(top.path, top.line)
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
        self._emit("controls", plausible=[a.plausible for a in answers])
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

    def _loop(
        self, root: Lineage, baseline: Baseline, quick: QuickCheck, pool: cf.Executor
    ) -> tuple[Candidate, FullResult] | None:
        s, budget = self.state, self.task.budget
        cpu = self._cpu_seconds(baseline)
        early = self._stop_early(baseline)
        flying: dict[cf.Future[QuickResult], tuple[Step, Candidate]] = {}
        stop_at: int | None = None
        shown = self.clock()
        try:
            while True:
                limit = min(budget.max_candidates, stop_at if stop_at is not None else budget.max_candidates)
                while len(flying) < budget.jobs + 1 and s.verified < limit and self._left() > 0 and not self._held():
                    built = self._next(root, baseline)
                    if built is None:
                        break
                    s.verified += 1
                    s.ranks[built[1].number] = s.verified
                    flying[pool.submit(quick.check, built[1], cpu_seconds=cpu, stop_early=early)] = built
                if not flying and self._held():
                    cf.wait(self._awaited, timeout=0.05)
                    self._take_scores()
                    continue
                if not flying:
                    if s.plausible:
                        accepted = self._choose(baseline)
                        if accepted is not None or s.undecided:
                            return accepted
                        stop_at = None
                        if s.verified < budget.max_candidates and self._left() > 0 and len(self.frontier):
                            continue
                    elif stop_at is None and self._retry_slow(quick, pool, flying, cpu):
                        continue
                    return self._part(baseline) if not s.undecided else None
                done, _ = cf.wait(flying, timeout=0.2, return_when=cf.FIRST_COMPLETED)
                for job in done:
                    step, candidate = flying.pop(job)
                    if self._only_slow(candidate, self._answer(job)):
                        again = pool.submit(quick.check, candidate, cpu_seconds=PATIENT * cpu, stop_early=early)
                        flying[again] = (step, candidate)
                        continue
                    if self._judge(step, candidate, self._answer(job), baseline) and stop_at is None:
                        stop_at = s.verified + self._more_after_first()
                if self._scoring:
                    self._take_scores()
                if self.clock() - shown > 0.5:
                    shown = self.clock()
                    self._emit("progress", verified=s.verified, open=len(self.frontier), plausible=len(s.plausible))
                if s.plausible and self._left() < 0.25 * budget.max_seconds:
                    stop_at = s.verified
        finally:
            for job in flying:
                job.cancel()

    def _next(self, root: Lineage, baseline: Baseline) -> tuple[Step, Candidate] | None:
        """The next candidate that is new, compiles and passes the gates."""
        while True:
            if len(self.frontier) < 50 and self._open_tranche(root):
                continue
            step = self.frontier.pop()
            if step is None or self._left() <= 0:
                return None
            if isinstance(step, Lineage):
                self._build_upon(step)
                continue
            if step.parent.progress and not self._in_beam(step.parent):
                continue
            identity = self._identity(step)
            if not identity or identity in self.state.seen:
                continue
            self.state.seen.add(identity)
            self.state.numbers += 1
            candidate = Candidate(
                number=self.state.numbers,
                patch=step.patch(self.parts.sources),
                edits=(*step.parent.edits, step.edit),
                cost=step.cost,
                round=step.parent.round + 1,
                parent=step.parent.number,
                model_score=step.model_score,
            )
            refusal = self._refused(candidate, baseline)
            if refusal:
                self.state.denied[refusal] += 1
                continue
            return step, candidate

    def _build_upon(self, kept: Lineage) -> None:
        """Enumerate the edits on top of a kept candidate, if it still has its place in the beam."""
        s = self.state
        if self._in_beam(kept) and s.expansions < MAX_EXPANSIONS:
            s.expansions += 1
            s.rounds = max(s.rounds, kept.round + 1)
            self._expand(kept, kept.lines, score_model=True)

    def _identity(self, step: Step) -> object | None:
        """What the program after this step behaves like; None if it does not compile or equals the snapshot."""
        edit = step.edit
        before = step.parent.sources(self.parts.sources)[edit.path]
        after = edit.apply(before)
        key = behaviour_key(after, edit.scope, len(after) - len(before))
        if key is None:
            return None
        where = scope_of(edit)
        if not step.parent.edits and where not in self.state.keys:
            self.state.keys[where] = behaviour_key(before, edit.scope, 0)
        identity = step.identity(key, self.state.keys.get(where))
        return identity or None

    def _refused(self, candidate: Candidate, baseline: Baseline) -> str:
        for decision in self.parts.gates.review(candidate, baseline, self.parts.sources):
            if decision.answer is not Allow.ALLOW:
                rule = decision.findings[0].rule if decision.findings else decision.gate
                self._emit("denied", number=candidate.number, rule=rule, edit=candidate.edits[-1].note)
                return rule
        return ""

    def _judge(self, step: Step, candidate: Candidate, result: QuickResult, baseline: Baseline) -> bool:
        """Book one answer; True when it is plausible."""
        s = self.state
        if result.ending is not Ending.EXITED:
            s.limits[result.ending.value] += 1
            if result.ending in (Ending.CPU, Ending.WALL) and candidate.number not in s.patient:
                s.slow.append((step, candidate))
        self._emit(
            "checked",
            number=candidate.number,
            edit=[f"{e.path}:{e.line} {e.operator} {e.note}" for e in candidate.edits],
            cost=round(candidate.cost, 3),
            route=result.route.value,
            plausible=result.plausible,
            turned=len(result.turned),
            broken=len(result.broken),
        )
        if result.plausible:
            s.plausible.append(candidate)
            if s.rank_of_first is None:
                s.rank_of_first = s.ranks[candidate.number]
            return True
        progress = progress_of(step.parent.failures, baseline, result, self._touched(step))
        moved_again = 0 < progress < 1 and 0 < step.parent.progress < 1
        if progress > step.parent.progress or moved_again:
            self._keep(step, candidate, result, progress)
        return False

    def _only_slow(self, candidate: Candidate, result: QuickResult) -> bool:
        """True once for a candidate that turned tests and did nothing wrong but run out of the small limit."""
        if candidate.number in self.state.patient or not result.turned or result.broken:
            return False
        late = result.ending in (Ending.CPU, Ending.WALL)
        if not late or any(not o.good and o is not Outcome.TIMED_OUT for o in result.outcomes.values()):
            return False
        self.state.patient.add(candidate.number)
        return True

    def _touched(self, step: Step) -> tuple[RepoPath, int, int]:
        """File and lines of the candidate that its last edit wrote."""
        edit = step.edit
        before = step.parent.sources(self.parts.sources)[edit.path]
        grown = edit.apply(before).count(b"\n") - before.count(b"\n")
        return edit.path, edit.line, max(edit.line, edit.end_line + grown)

    def _keep(self, step: Step, candidate: Candidate, result: QuickResult, progress: float) -> None:
        """A place in the beam for a candidate that got further, if there is one."""
        s = self.state
        if progress >= 1:
            s.parts = sorted([*s.parts, (candidate, result.turned)], key=lambda x: (-len(x[1]), x[0].cost))[:20]
            notes = tuple(f"{e.path}:{e.line} {e.note or e.operator}" for e in candidate.edits)
            miss = NearMiss(number=candidate.number, edits=notes, turned=result.turned, broken=result.broken)
            s.misses = sorted([*s.misses, (progress, miss)], key=lambda m: -m[0])[:5]
        kept = s.beam.setdefault(candidate.round, [])
        rank = (-progress, candidate.cost)
        if candidate.round >= MAX_ROUNDS:
            return
        if len(kept) >= BEAM and rank >= max(kept):
            return
        s.beam[candidate.round] = sorted([*kept, rank])[:BEAM]
        before = step.parent.sources(self.parts.sources)[step.edit.path]
        failures = tuple(result.failures.values()) or step.parent.failures
        lines = shifted_lines(step.parent.lines or self._root_lines(), step.edit, before)
        changed = {c.path: c.after for c in candidate.patch.changes}
        identity = self._identity(step)
        child = Lineage(
            number=candidate.number,
            edits=candidate.edits,
            changed=changed,
            identity=identity if isinstance(identity, frozenset) else frozenset(),
            cost=candidate.cost,
            round=candidate.round,
            failures=failures,
            lines=self._with_frames(lines, failures, changed),
            progress=progress,
        )
        self._emit("kept", number=candidate.number, progress=round(progress, 2), round=candidate.round)
        syntax = any(stage_of(f) == 0 for f in step.parent.failures)
        self.frontier.push_expansion(child, self.order.entry_cost(child, was_syntax=syntax))

    def _root_lines(self) -> dict[RepoPath, dict[int, float]]:
        lines: dict[RepoPath, dict[int, float]] = {}
        for x in self.suspicions[:TRANCHE_STATEMENTS]:
            scores = lines.setdefault(x.path, {})
            for k in range(x.line, x.end_line + 1):
                scores[k] = max(scores.get(k, 0.0), x.score)
        return lines

    def _with_frames(
        self, lines: dict[RepoPath, dict[int, float]], failures: Sequence[Failure], changed: Mapping[RepoPath, bytes]
    ) -> dict[RepoPath, dict[int, float]]:
        """Lines of the new failure's frames become as suspicious as the best; a file that did not parse opens whole."""
        best = self.suspicions[0].score or 1.0
        baseline = self.baseline
        assert baseline is not None
        for path, source in changed.items():
            if all(s.why == "does not parse" for s in self.suspicions if s.path == path):
                scores = lines.setdefault(path, {})
                for k in range(1, min(source.count(b"\n") + 2, 600)):
                    scores.setdefault(k, 0.6 * best)
        for failure in failures:
            for frame in failure.frames:
                place = frame.path
                if place is not None and place in self.parts.sources and self._editable(place, baseline):
                    lines.setdefault(place, {})[frame.line] = best
        return lines

    def _in_beam(self, parent: Lineage) -> bool:
        return (-parent.progress, parent.cost) in self.state.beam.get(parent.round, [])

    def _retry_slow(
        self,
        quick: QuickCheck,
        pool: cf.Executor,
        flying: dict[cf.Future[QuickResult], tuple[Step, Candidate]],
        cpu: float,
    ) -> bool:
        """Candidates that ran into the small limit get a second chance with a larger one, once, cheapest first."""
        slow, self.state.slow = self.state.slow, []
        if not slow or self._left() < 2:
            return False
        n = int(self._left() / (8 * cpu)) * self.task.budget.jobs
        for step, candidate in sorted(slow, key=lambda x: x[1].cost)[: min(n, 20)]:
            self.state.patient.add(candidate.number)
            flying[pool.submit(quick.check, candidate, cpu_seconds=5 * cpu, stop_early=True)] = (step, candidate)
        return bool(flying)

    # ---- the end ------------------------------------------------------------------------------------------------

    def _more_after_first(self) -> int:
        """How many more candidates to try once one is plausible, so that there is a choice."""
        return max(MORE_AFTER_FIRST, min(2 * MORE_AFTER_FIRST, self.state.verified // 2))

    def _choose(self, baseline: Baseline) -> tuple[Candidate, FullResult] | None:
        open_ones = [c for c in self.state.plausible if c.number not in self.state.rejected]
        rows: Mapping[int, tuple[str, ...]] = {}
        if len(open_ones) > 1:
            with _Timed(self, Stage.CHOOSE):
                rows = self.parts.verifier.behaviours(open_ones, baseline, seed=self.task.seed)
        order = ranked(open_ones, rows)
        self._emit(
            "ranked",
            order=[[x.candidate.number, round(x.cost, 2)] for x in order],
            behaviours={str(k): list(v) for k, v in rows.items()},
        )
        rivals = undecided(order, len(baseline.tests) + len(baseline.checks))
        if rivals:
            self._emit("undecided", numbers=[order[0].candidate.number, *(r.candidate.number for r in rivals)])
            self.state.undecided = tuple(x.candidate for x in (order[0], *rivals))
            return None
        for standing in order[:FULL_CHECKS]:
            candidate = standing.candidate
            with _Timed(self, Stage.FULL):
                full = self.parts.verifier.full(candidate, baseline, seed=self.task.seed)
            self._emit("full-check", number=candidate.number, accepted=full.accepted, reasons=list(full.reasons))
            if full.accepted:
                return candidate, full
            self.state.rejected[candidate.number] = full
        return None

    def _part(self, baseline: Baseline) -> tuple[Candidate, FullResult] | None:
        """A candidate that turned every failing test that reaches what it changes, if there is one.

        Failing tests that never run the patched lines have nothing to do with it: they stay as they are. A test whose
        lines are not known (it hung, or its file does not import) might reach them, so it must be turned. Tests and
        checks that the user named are all wanted.
        """
        if self.task.tests or self.task.checks:
            return None
        lines = {t.id: t.lines for t in baseline.tests}
        for candidate, turned in self.state.parts[:PART_CHECKS]:
            rest = [i for i in baseline.failing if i not in turned]
            if any(not lines.get(i) or reaches(lines[i] or {}, candidate) for i in rest):
                continue
            narrowed = replace(baseline, failing=turned)
            with _Timed(self, Stage.FULL):
                full = self.parts.verifier.full(candidate, narrowed, seed=self.task.seed)
            self._emit("full-check", number=candidate.number, accepted=full.accepted, reasons=list(full.reasons))
            if full.accepted:
                self.state.warnings.append(
                    f"{len(rest)} failing tests never run the patched lines and are left alone: {', '.join(rest[:5])}"
                )
                return candidate, full
        return None

    def _cpu_seconds(self, baseline: Baseline) -> float:
        """The small limit of one test in a quick check: a multiple of the slowest failing one, more if all hung.

        Programs that loop for ever are common among candidates; those that were only slow get a second chance.
        """
        wanted = set(baseline.failing)
        taken = [t.seconds for t in baseline.tests if t.id in wanted and t.outcome is not Outcome.TIMED_OUT]
        return max(0.2, min(20.0, 8 * max(taken))) if taken else 0.5

    @staticmethod
    def _stop_early(baseline: Baseline) -> bool:
        return len(baseline.failing) > 8

    @staticmethod
    def _answer(job: cf.Future[QuickResult]) -> QuickResult:
        return job.result()

    def _left(self) -> float:
        return self.task.budget.max_seconds - (self.clock() - self.start)

    def _emit(self, kind: str, **data: object) -> None:
        self.parts.sink.emit(Event(kind=kind, at_seconds=round(self.clock() - self.start, 4), data=data))

    def _result(
        self,
        verdict: Verdict,
        reason: str,
        code: int,
        *,
        chosen: Candidate | None = None,
        full: FullResult | None = None,
    ) -> TaskResult:
        s, scorer = self.state, self.parts.scorer
        warnings = [*s.warnings, *([scorer.warning] if scorer is not None and scorer.warning else [])]
        used = scorer is not None and not scorer.warning
        return TaskResult(
            verdict=verdict,
            reason=reason,
            exit=code,
            patch=chosen.patch if chosen else None,
            chosen=chosen,
            baseline=self.baseline,
            full=full,
            localization=self.suspicions[:10],
            diagnosis=diagnose(self.baseline, self.suspicions, chosen) if self.baseline else None,
            enumerated=s.enumerated,
            denied=dict(s.denied),
            verified=s.verified,
            rank_of_first_plausible=s.rank_of_first,
            plausible=len(s.plausible),
            rounds=s.rounds if s.verified else 0,
            near_misses=tuple(m for _, m in s.misses),
            model_name=scorer.name if used and scorer else None,
            model_digest=scorer.digest if used and scorer else None,
            model_tokens=scorer.tokens_used if scorer else 0,
            limits_hit=dict(s.limits),
            checks=dict(full.checks) if full else {},
            warnings=tuple(w for w in warnings if w),
        )


class _Timed:
    """Adds the time of a block to a stage and announces it."""

    def __init__(self, repair: Repair, stage: Stage) -> None:
        self.repair, self.stage = repair, stage

    def __enter__(self) -> None:
        self.at = self.repair.clock()
        self.repair._emit("stage", stage=self.stage.value)

    def __exit__(self, *_: object) -> None:
        seconds = self.repair.state.seconds
        seconds[self.stage.value] = seconds.get(self.stage.value, 0.0) + self.repair.clock() - self.at
