"""A warm worker with its read-only workspace, which the host patches from outside for one candidate after the other."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.domain.edit import FileChange
from localagent.domain.outcome import JailOutcome, QuickResult, QuickRoute
from localagent.domain.paths import RepoPath
from localagent.verify.baseline import self_check
from localagent.verify.checks.outcomes import CandidateOutcomes, lost_result, quick_result
from localagent.verify.checks.quick_plan import Ask, QuickPlan
from localagent.verify.checks.quick_run import QuickRun, opened
from localagent.verify.worker import function_swaps
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.parent_sessions import Grounds, ParentSession
from localagent.verify.worker.worker_client import WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item, RunEnd
from localagent.verify.worker.worker_spec import WorkerUse

RECYCLE_AFTER = 500
MOST_COLLECT_CPU_SECONDS = 10.0  # a candidate that hangs while importing costs this; less where collecting is quick


@dataclass(frozen=True, kw_only=True, slots=True)
class Warm:
    """A worker that was not needed any longer and is well: its room with the snapshot's files, and its open session."""

    room: JailWorker
    session: str
    items: Mapping[str, Item]


class WarmSlot:
    """One worker. Used by one thread at a time."""

    def __init__(self, plan: QuickPlan) -> None:
        self._plan = plan
        self._room: JailWorker | None = None
        self._items: dict[str, Item] = {}
        self._rootdir = ""
        self._collect_cpu_seconds = MOST_COLLECT_CPU_SECONDS
        self._dirty: dict[RepoPath, bytes] = {}
        self._left = 0
        self._grounds: Grounds | None = None

    def ready(self) -> None:
        """Start and check the worker unless it is there; may turn the plan cold."""
        if self._room is not None and self._left > 0:
            return
        self.close()
        self._room = self._plan.rooms.start({}, WorkerUse.QUICK)
        self._left = RECYCLE_AFTER
        self._dirty = {}
        self._grounds = self._new_grounds(self._room)
        try:
            self._self_check(self._room)
        except WorkerLost as lost:
            self._plan.rooms.check()
            self.close()
            self._plan.go_cold(str(lost))

    def release(self) -> Warm | None:
        """Hand the worker over with the snapshot's files in place; None, and it is ended, where it is not well."""
        room, items = self._room, self._items
        if room is None or not items or self._left <= 0 or self._plan.cold or not room.client.usable:
            self.close()
            return None
        self._write(room, ())
        self._room = None
        return Warm(room=room, session="hot", items=items)

    def close(self) -> None:
        """End the worker."""
        if self._room is not None:
            self._room.close()
            self._room = None

    def check(self, ask: Ask) -> QuickResult:
        """One candidate. A passing test that it breaks has a say once it was seen to pass here unpatched."""
        begin = time.monotonic()
        result = self._checked(ask)
        while result.turned and not self._plan.vouched.issuperset(result.broken) and self._vouch(ask.passing):
            ask = replace(ask, passing=tuple(t for t in ask.passing if t not in self._plan.unsteady))
            result = self._checked(ask)
        return replace(result, seconds=time.monotonic() - begin)

    def _checked(self, ask: Ask) -> QuickResult:
        begin = time.monotonic()
        self.ready()
        if self._plan.cold or self._room is None:
            return self._cold(ask, begin)
        self._left -= 1
        targets, run = self._plan.targets, QuickRun(self._plan, self._room, ask, CandidateOutcomes())
        orders = None if targets.files else function_swaps.plan(ask.candidate, self._plan.baseline.import_lines)
        route = QuickRoute.FRESH if orders is None else QuickRoute.SWAP
        try:
            below = self._grounds.below(ask.candidate) if orders is None and self._grounds is not None else None
            self._write(self._room, ask.candidate.patch.changes)
            if below is not None and self._in_parent_session(run, ask, *below):
                route = QuickRoute.SWAP
            elif orders is None or not self._swapped(run, orders):
                route, run = QuickRoute.FRESH, QuickRun(self._plan, self._room, ask, CandidateOutcomes())
                self._fresh(self._room, run, ask)
            run.checks()
        except WorkerLost as lost:
            self._plan.rooms.check()
            self.close()
            seconds = time.monotonic() - begin
            return lost_result(run.seen, targets, route=route, seconds=seconds, ending=lost.ending, reason=str(lost))
        return quick_result(run.seen, targets, ask.passing, route=route, seconds=time.monotonic() - begin)

    # -- start

    def _self_check(self, room: JailWorker) -> None:
        """The unpatched tree must fail and pass here as it did in the baseline."""
        plan = self._plan
        if (plan.targets.tests or not plan.targets.checks or plan.by_id) and not self._open_hot(room):
            return
        self_check.compare_checks(plan, room)

    def _open_hot(self, room: JailWorker) -> bool:
        """The session that candidates are swapped into; False where the worker is of no use."""
        plan, begin = self._plan, time.monotonic()
        answer = opened(room, replace(plan.request, session="hot", swap=True))
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
        self_check.compare(plan, room, self._items)
        return True

    # -- one candidate

    def _write(self, room: JailWorker, changes: Sequence[FileChange]) -> None:
        """Bring the workspace to a program's bytes; files of the one before are put back."""
        changed = {c.path for c in changes}
        for path in [p for p in self._dirty if p not in changed]:
            room.workspace.rewrite(path, self._dirty.pop(path))
        for change in changes:
            self._dirty.setdefault(change.path, change.before)
            room.workspace.rewrite(change.path, change.after)

    def _vouch(self, passing: Sequence[str]) -> bool:
        """Try passing tests on the snapshot; True where one of them turned out to depend on what else runs."""
        if self._plan.cold or self._room is None or any(i not in self._items for i in passing):
            return False
        try:
            self._write(self._room, ())
            return self_check.vouch(self._plan, self._room, self._items, passing)
        except WorkerLost:
            self._plan.rooms.check()
            self.close()
            return False

    def _new_grounds(self, room: JailWorker) -> Grounds:
        def opener(session: str, files: Sequence[FileChange]) -> Collected | CollectionRefused:
            self._write(room, files)
            request = self._plan.narrowed((), self._rootdir)
            cpu = 3 * self._collect_cpu_seconds  # it is traced
            request = replace(
                request, session=session, swap=True, trace=True, cpu_seconds=cpu, wall_seconds=5 + 3 * cpu
            )
            return opened(room, request)

        return Grounds(opener, room.client.close_session)

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

    def _fresh(self, room: JailWorker, run: QuickRun, ask: Ask) -> None:
        plan = self._plan
        if not (plan.targets.tests or plan.targets.files or ask.passing):
            return
        request = plan.narrowed(ask.passing, self._rootdir)
        cpu = self._collect_cpu_seconds
        answer = opened(room, replace(request, session="fresh", cpu_seconds=cpu, wall_seconds=5 + 3 * cpu))
        try:
            run.judge(answer)
        finally:
            if isinstance(answer, Collected) and room.client.usable:
                room.client.close_session("fresh")

    def _cold(self, ask: Ask, begin: float) -> QuickResult:
        """A jail and a copy of its own."""
        plan, seen, ending, reason = self._plan, CandidateOutcomes(), JailOutcome.EXITED, ""
        try:
            changes = {c.path: c.after for c in ask.candidate.patch.changes}
            with plan.rooms.start(changes, WorkerUse.FULL) as room:
                run = QuickRun(plan, room, ask, seen)
                self._fresh(room, run, ask)
                run.checks()
        except WorkerLost as lost:
            plan.rooms.check()
            ending, reason = lost.ending, str(lost)
        seconds = time.monotonic() - begin
        if reason:
            return lost_result(seen, plan.targets, route=QuickRoute.COLD, seconds=seconds, ending=ending, reason=reason)
        return quick_result(seen, plan.targets, ask.passing, route=QuickRoute.COLD, seconds=seconds)
