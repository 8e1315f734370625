"""A warm worker with its read-only workspace, which the host patches from outside for one candidate after the other."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import JailOutcome, Outcome, QuickResult, QuickRoute, TestResult
from localagent.domain.paths import RepoPath
from localagent.text.visible_text import shortened
from localagent.verify.checks.outcomes import CandidateOutcomes, lost_result, quick_result
from localagent.verify.checks.quick_plan import MEMORY_BYTES, Ask, QuickPlan
from localagent.verify.checks.quick_run import QuickRun, opened, run_command
from localagent.verify.worker import function_regions, function_swaps
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.worker_client import RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item, RunEnd
from localagent.verify.worker.worker_spec import WorkerUse

# Kept programs as ground to stand on: hot sessions collected on a candidate, for the candidates built upon it.
#
# A program whose snapshot does not import (a syntax error, a missing name at module level) cannot be swapped into the
# snapshot's session, so each of its variants would be collected anew. Its parent does import: collected once with the
# parent's files in place, it takes the variants by swaps like any other.

OPEN_AT_ONCE = 3
WORTH_AFTER = 2  # candidates of one parent seen by a worker before it is worth a session


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentSession:
    """An open session, collected with a kept candidate's files in place."""

    session: str
    answer: Collected


Opener = Callable[[str, Sequence[FileChange]], Collected | CollectionRefused]


class Grounds:
    """The grounds of one worker. `opener` collects a session of a given name on some files; `closer` ends one."""

    def __init__(self, opener: Opener, closer: Callable[[str], None]) -> None:
        self._opener, self._closer = opener, closer
        self._seen: Counter[int] = Counter()
        self._grounds: OrderedDict[int, ParentSession] = OrderedDict()
        self._barren: set[int] = set()

    def below(self, candidate: Candidate) -> tuple[ParentSession, list[dict[str, Any]]] | None:
        """The ground of a candidate's parent and the swaps that lead from there to the candidate, if there are."""
        parent = candidate.parent
        if parent is None or parent in self._barren or len(candidate.edits) < 2:
            return None
        self._seen[parent] += 1
        if parent not in self._grounds and self._seen[parent] < WORTH_AFTER:
            return None
        files = _program(candidate)
        if files is None:
            return None
        parents = {c.path: c.after for c in files}
        before = {c.path: parents.get(c.path, c.before) for c in candidate.patch.changes}
        after = {c.path: c.after for c in candidate.patch.changes}
        ground = self._grounds.get(parent)
        if ground is None:
            if function_regions.changed(before, after, {}) is None:
                return None
            ground = self._open(parent, files)
            if ground is None:
                return None
        self._grounds.move_to_end(parent)
        orders = function_regions.changed(before, after, ground.answer.import_lines)
        return None if orders is None else (ground, orders)

    def drop(self, ground: ParentSession) -> None:
        """Forget a session that ended."""
        for parent in [p for p, g in self._grounds.items() if g is ground]:
            del self._grounds[parent]
            self._barren.add(parent)

    def _open(self, parent: int, files: Sequence[FileChange]) -> ParentSession | None:
        while len(self._grounds) >= OPEN_AT_ONCE:
            _, old = self._grounds.popitem(last=False)
            self._closer(old.session)
        name = f"ground-{parent}"
        answer = self._opener(name, files)
        if isinstance(answer, CollectionRefused) or answer.errors:
            if not isinstance(answer, CollectionRefused):
                self._closer(name)
            self._barren.add(parent)
            return None
        ground = ParentSession(session=name, answer=answer)
        self._grounds[parent] = ground
        return ground


def _program(candidate: Candidate) -> list[FileChange] | None:
    """The parent's files; None when the candidate takes one of them back to the snapshot."""
    before = {c.path: c.before for c in candidate.patch.changes}
    files: dict[RepoPath, bytes] = {}
    for edit in candidate.edits[:-1]:
        if edit.path not in before:
            return None
        files[edit.path] = edit.apply(files.get(edit.path, before[edit.path]))
    return [FileChange(path=p, before=before[p], after=text) for p, text in files.items()]


# Whether a warm worker can be believed: what failed and passed in the baseline must do so there, unpatched.

SELF_CHECK_PASSING = 30
SELF_CHECK_SECONDS = 1.0


def compare(plan: QuickPlan, worker: JailWorker, items: Mapping[str, Item]) -> None:
    """Tests of the unpatched tree must end here as they did in the baseline; else the plan turns cold."""
    steady = [plan.by_id[i] for i in plan.targets.tests if plan.by_id[i].outcome is not Outcome.TIMED_OUT][:20]
    passing, left = list[TestResult](), SELF_CHECK_SECONDS
    for test in sorted((plan.by_id[i] for i in plan.baseline.passing), key=lambda t: t.seconds):
        left -= test.seconds
        if left < 0 or len(passing) >= SELF_CHECK_PASSING:
            break
        passing.append(test)
    expected = [*steady, *passing]
    if any(t.id not in items for t in expected):
        plan.go_cold("a warm worker collects other tests")
        return
    for test, said in _disagreements(worker, items, steady):
        plan.go_cold(f"{shortened(test.id, 200)} is {test.outcome.value} when cold and {said} when warm")
        return
    for test, _ in _disagreements(worker, items, passing):
        plan.unsteady.add(test.id)


def vouch(plan: QuickPlan, worker: JailWorker, items: Mapping[str, Item], passing: Sequence[str]) -> bool:
    """Try passing tests on the unpatched tree, run together; True where some fail: unsteady from now on."""
    bad = {test.id for test, _ in _disagreements(worker, items, [plan.by_id[i] for i in passing])}
    plan.unsteady |= bad
    plan.vouched |= set(passing) - bad
    return bool(bad)


def compare_checks(plan: QuickPlan, worker: JailWorker) -> None:
    """The same for the commands that failed in the baseline."""
    for name in plan.targets.checks:
        known = plan.commands[name]
        got = run_command(plan, worker, known.command, 60.0)
        if got.outcome != known.outcome or (got.failure and got.failure.exception) != (
            known.failure and known.failure.exception
        ):
            plan.go_cold(f"{name} answers differently where it cannot write")


def _disagreements(
    worker: JailWorker, items: Mapping[str, Item], expected: Sequence[TestResult]
) -> list[tuple[TestResult, str]]:
    """Tests that answer otherwise here, run together in the order of collection, and what they said."""
    chosen = sorted((items[t.id] for t in expected), key=lambda i: i.index)
    if not chosen:
        return []
    limit = 2.0 + 4 * max((t.seconds for t in expected), default=0.0)
    ran = worker.client.run(
        RunRequest(session="hot", items=chosen, cpu_seconds=limit, budget_seconds=30.0, memory_bytes=MEMORY_BYTES)
    )
    by_id = {r.id: r for r in ran.results.values()}
    found = []
    for test in expected:
        got = by_id.get(test.id)
        if got is None or got.outcome.good != test.outcome.good or _kind(got) != _kind(test):
            said = "nothing" if got is None else f"{got.outcome.value} {_kind(got)}".strip()
            found.append((test, said))
    return found


def _kind(result: TestResult) -> str:
    return result.failure.exception if result.failure is not None else ""


RECYCLE_AFTER = 500
MOST_COLLECT_CPU_SECONDS = 10.0  # a candidate that hangs while importing costs this; less where collecting is quick


@dataclass(frozen=True, kw_only=True, slots=True)
class Warm:
    """A worker that was not needed any longer and is well: with the snapshot's files and its open session."""

    worker: JailWorker
    session: str
    items: Mapping[str, Item]


class WarmSlot:
    """One worker. Used by one thread at a time."""

    def __init__(self, plan: QuickPlan) -> None:
        self._plan = plan
        self._worker: JailWorker | None = None
        self._items: dict[str, Item] = {}
        self._rootdir = ""
        self._collect_cpu_seconds = MOST_COLLECT_CPU_SECONDS
        self._dirty: dict[RepoPath, bytes] = {}
        self._left = 0
        self._grounds: Grounds | None = None

    def ready(self) -> None:
        """Start and check the worker unless it is there; may turn the plan cold, but not for want of time."""
        if self._worker is not None and self._left > 0:
            return
        self.close()
        jails = self._plan.jails
        try:
            self._worker = jails.start({}, WorkerUse.QUICK)
            self._left = RECYCLE_AFTER
            self._dirty = {}
            self._grounds = self._new_grounds(self._worker)
            self._self_check(self._worker)
        except WorkerLost as lost:
            jails.check()
            self.close()
            if not jails.late:
                self._plan.go_cold(str(lost))

    def release(self) -> Warm | None:
        """Hand the worker over with the snapshot's files in place; None, and it is ended, where it is not well."""
        worker, items = self._worker, self._items
        if worker is None or not items or self._left <= 0 or self._plan.cold or not worker.client.usable:
            self.close()
            return None
        self._write(worker, ())
        self._worker = None
        return Warm(worker=worker, session="hot", items=items)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def check(self, ask: Ask) -> QuickResult:
        """One candidate. A passing test that it breaks has a say once it was seen to pass here unpatched.

        That is not asked of a candidate that turns none of the tests which should turn: it is out in any case.
        """
        targets = self._plan.targets
        result = self._checked(ask)
        while (
            (result.turned or not (targets.tests or targets.files or targets.checks))
            and not self._plan.vouched.issuperset(result.broken)
            and self._vouch(ask.passing)
        ):
            ask = replace(ask, passing=tuple(t for t in ask.passing if t not in self._plan.unsteady))
            result = self._checked(ask)
        return result

    def _checked(self, ask: Ask) -> QuickResult:
        self.ready()
        if self._plan.cold or self._worker is None:
            return self._cold(ask)
        self._left -= 1
        targets, run = self._plan.targets, QuickRun(self._plan, self._worker, ask, CandidateOutcomes())
        orders = None if targets.files else function_swaps.plan(ask.candidate, self._plan.baseline.import_lines)
        route = QuickRoute.FRESH if orders is None else QuickRoute.SWAP
        try:
            below = self._grounds.below(ask.candidate) if orders is None and self._grounds is not None else None
            self._write(self._worker, ask.candidate.patch.changes)
            if below is not None and self._in_parent_session(run, ask, *below):
                route = QuickRoute.SWAP
            elif orders is None or not self._swapped(run, orders):
                route, run = QuickRoute.FRESH, QuickRun(self._plan, self._worker, ask, CandidateOutcomes())
                self._fresh(self._worker, run, ask)
            run.checks()
        except WorkerLost as lost:
            self._plan.jails.check()
            self.close()
            return lost_result(run.seen, targets, route=route, ending=lost.ending, reason=str(lost))
        return quick_result(run.seen, targets, ask.passing, route=route)

    # -- start

    def _self_check(self, worker: JailWorker) -> None:
        """The unpatched tree must fail and pass here as it did in the baseline."""
        plan = self._plan
        if (plan.targets.tests or not plan.targets.checks or plan.by_id) and not self._open_hot(worker):
            return
        compare_checks(plan, worker)

    def _open_hot(self, worker: JailWorker) -> bool:
        """The session that candidates are swapped into; False where the worker is of no use."""
        plan, begin = self._plan, time.monotonic()
        answer = opened(worker, replace(plan.request, session="hot", swap=True))
        took = time.monotonic() - begin
        if isinstance(answer, CollectionRefused):
            self._items = {}
            if not plan.targets.files:
                plan.go_cold(f"a warm worker could not collect: {answer.text[-200:]}")
            return bool(plan.targets.files)
        self._collect_cpu_seconds = min(MOST_COLLECT_CPU_SECONDS, 1.0 + 4 * took)
        self._items = {item.id: item for item in answer.items}
        self._rootdir = answer.rootdir
        if answer.unforkable:
            plan.inline = True
            plan.go_cold(answer.unforkable)
            return False
        compare(plan, worker, self._items)
        return True

    # -- one candidate

    def _write(self, worker: JailWorker, changes: Sequence[FileChange]) -> None:
        """Bring the workspace to a program's bytes; files of the one before are put back."""
        changed = {c.path for c in changes}
        for path in [p for p in self._dirty if p not in changed]:
            worker.workspace.rewrite(path, self._dirty.pop(path))
        for change in changes:
            self._dirty.setdefault(change.path, change.before)
            worker.workspace.rewrite(change.path, change.after)

    def _vouch(self, passing: Sequence[str]) -> bool:
        """Try passing tests on the snapshot; True where one of them turned out to depend on what else runs."""
        if self._plan.cold or self._worker is None or any(i not in self._items for i in passing):
            return False
        try:
            self._write(self._worker, ())
            return vouch(self._plan, self._worker, self._items, passing)
        except WorkerLost:
            self._plan.jails.check()
            self.close()
            return False

    def _new_grounds(self, worker: JailWorker) -> Grounds:
        def opener(session: str, files: Sequence[FileChange]) -> Collected | CollectionRefused:
            self._write(worker, files)
            request = self._plan.narrowed((), self._rootdir)
            cpu = 3 * self._collect_cpu_seconds  # it is traced
            request = replace(
                request, session=session, swap=True, trace=True, cpu_seconds=cpu, wall_seconds=5 + 3 * cpu
            )
            return opened(worker, request)

        return Grounds(opener, worker.client.close_session)

    def _swapped(self, run: QuickRun, orders: list[dict[str, object]]) -> bool:
        """False when the worker says it cannot."""
        end = run.swapped(self._items, orders)
        if end is RunEnd.SESSION_ENDED:
            self._left = 0
        return end is not RunEnd.CANNOT_SWAP

    def _in_parent_session(
        self, run: QuickRun, ask: Ask, ground: ParentSession, orders: list[dict[str, object]]
    ) -> bool:
        """Run by swapping into the parent's session; False when that cannot tell, and nothing was seen."""
        offered = {item.id for item in ground.answer.items}
        if any(i not in offered for i in (*self._plan.targets.tests, *ask.passing)):
            return False
        end = run.judge(ground.answer, session=ground.session, orders=orders)
        if end is RunEnd.SESSION_ENDED and self._grounds is not None:
            self._grounds.drop(ground)
        return end is not RunEnd.CANNOT_SWAP

    def _fresh(self, worker: JailWorker, run: QuickRun, ask: Ask) -> None:
        plan = self._plan
        if not (plan.targets.tests or plan.targets.files or ask.passing):
            return
        request = plan.narrowed(ask.passing, self._rootdir)
        cpu = self._collect_cpu_seconds
        answer = opened(worker, replace(request, session="fresh", cpu_seconds=cpu, wall_seconds=5 + 3 * cpu))
        try:
            run.judge(answer)
        finally:
            if isinstance(answer, Collected) and worker.client.usable:
                worker.client.close_session("fresh")

    def _cold(self, ask: Ask) -> QuickResult:
        """A jail and a copy of its own."""
        plan, seen, ending, reason = self._plan, CandidateOutcomes(), JailOutcome.EXITED, ""
        try:
            changes = {c.path: c.after for c in ask.candidate.patch.changes}
            with plan.jails.start(changes, WorkerUse.FULL) as worker:
                run = QuickRun(plan, worker, ask, seen)
                self._fresh(worker, run, ask)
                run.checks()
        except WorkerLost as lost:
            plan.jails.check()
            ending, reason = lost.ending, str(lost)
        if reason:
            return lost_result(seen, plan.targets, route=QuickRoute.COLD, ending=ending, reason=reason)
        return quick_result(seen, plan.targets, ask.passing, route=QuickRoute.COLD)
