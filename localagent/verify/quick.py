"""The quick check: a pool of warm workers, each with its own read-only workspace that the host patches from outside.

Routes: SWAP (forked from the collected session, code replaced), FRESH (collected anew in the warm worker), COLD (a new
jail on a writable copy), the last when the repository's tests do not behave the same in a read-only warm worker.
"""

import concurrent.futures as cf
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline, CheckResult, Ending, Outcome, QuickResult, QuickRoute, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify import checks, swapping
from localagent.verify.answers import Collected, Item, Refused, RunEnd
from localagent.verify.client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.ground import Ground, Grounds
from localagent.verify.judging import Seen, file_outcomes, lost_result, quick_result
from localagent.verify.place import Use
from localagent.verify.rooms import Room, Rooms
from localagent.verify.selection import CHECK_PREFIX, COLLECT_PREFIX, Selector, Targets

RECYCLE_AFTER = 500
SELF_CHECK_PASSING = 30
SELF_CHECK_SECONDS = 1.0
GRACE_TESTS = 4  # after a bad one that ends a run: a number, for what fits into some time differs from run to run
MOST_COLLECT_CPU_SECONDS = 10.0  # a candidate that hangs while importing costs this; less where collecting is quick
MEMORY_BYTES = 768 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One candidate's run."""

    candidate: Candidate
    passing: tuple[str, ...]
    cpu_seconds: float
    stop_early: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Warm:
    """A worker that was not needed any longer and is well: its room with the snapshot's files, and its open session."""

    room: Room
    session: str
    items: Mapping[str, Item]


class Plan:
    """What is the same for all slots of a task."""

    def __init__(self, rooms: Rooms, baseline: Baseline, request: OpenRequest) -> None:
        self.rooms = rooms
        self.baseline = baseline
        self.request = replace(request, memory_bytes=MEMORY_BYTES)
        self.targets = Targets.of(baseline)
        self.by_id = {t.id: t for t in baseline.tests}
        self.commands = {f"{CHECK_PREFIX}{c.command}": c for c in baseline.checks}
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._cold = False
        self.inline = False  # a fork of the session would lack something: tests run in the session itself
        self.unsteady: set[str] = set()  # passing tests that depend on what runs before them: the full check's affair

    @property
    def cold(self) -> bool:
        """True once a warm worker was seen to disagree with the baseline."""
        return self._cold

    def go_cold(self, why: str) -> None:
        """All candidates from now on get a jail and a writable copy of their own."""
        with self._lock:
            if not self._cold:
                self._cold = True
                self.notes.append(f"each candidate runs in a jail of its own: {why}")

    def narrowed(self, passing: Sequence[str], rootdir: str) -> OpenRequest:
        """Collect only the files that matter, where the request allows it."""
        args = self.request.args
        paths: dict[str, None] = {}
        for name in self.targets.files:
            path = name[len(COLLECT_PREFIX) :]
            if not path.rsplit("/", 1)[-1].startswith("test") and not path.endswith(("_test.py", "_tests.py")):
                return self.request  # a conftest or something larger
            paths[path] = None
        for test in (*self.targets.tests, *passing):
            path_of_test = self.by_id[test].path
            if path_of_test is None:
                return self.request
            paths[str(path_of_test)] = None
        if any(arg.startswith("-") or "::" in arg for arg in args) or not paths or not rootdir:
            return self.request
        return replace(self.request, args=tuple(paths), options=(*self.request.options, f"--rootdir={rootdir}"))


class WarmSlot:
    """One worker. Used by one thread at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._room: Room | None = None
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
        self._room = self._plan.rooms.start({}, Use.QUICK)
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
        """One candidate."""
        begin = time.monotonic()
        seen = Seen()
        self.ready()
        if self._plan.cold or self._room is None:
            return self._cold(ask, seen, begin)
        self._left -= 1
        orders = None if self._plan.targets.files else swapping.plan(ask.candidate, self._plan.baseline.import_lines)
        route = QuickRoute.FRESH if orders is None else QuickRoute.SWAP
        try:
            below = self._grounds.below(ask.candidate) if orders is None and self._grounds is not None else None
            self._write(self._room, ask.candidate.patch.changes)
            if below is not None and self._on_ground(self._room, ask, *below, seen):
                route = QuickRoute.SWAP
            elif orders is None or not self._swapped(self._room, ask, orders, seen):
                route, seen = QuickRoute.FRESH, Seen()
                self._fresh(self._room, ask, seen)
            self._run_checks(self._room, ask, seen)
        except WorkerLost as lost:
            self._plan.rooms.check()
            self.close()
            return lost_result(
                seen,
                self._plan.targets,
                route=route,
                seconds=time.monotonic() - begin,
                ending=lost.ending,
                reason=str(lost),
            )
        return quick_result(seen, self._plan.targets, ask.passing, route=route, seconds=time.monotonic() - begin)

    # -- start

    def _self_check(self, room: Room) -> None:
        """The unpatched tree must fail and pass here as it did in the baseline."""
        plan = self._plan
        if plan.targets.tests or not plan.targets.checks or plan.by_id:
            begin = time.monotonic()
            answer = self._open(room, replace(plan.request, session="hot", swap=True))
            took = time.monotonic() - begin
            if isinstance(answer, Refused):
                self._items = {}
                if not plan.targets.files:
                    plan.go_cold(f"a warm worker could not collect: {answer.text[-200:]}")
                    return
            else:
                self._collect_cpu_seconds = min(MOST_COLLECT_CPU_SECONDS, 1.0 + 4 * took)
                self._items = {item.id: item for item in answer.items}
                self._rootdir = answer.rootdir
                if answer.unforkable:
                    plan.inline = True
                    plan.go_cold(answer.unforkable)
                    return
                self._compare(room)
        for name in plan.targets.checks:
            known = plan.commands[name]
            got = self._command(room, known.command, 60.0)
            if got.outcome != known.outcome or (got.failure and got.failure.exception) != (
                known.failure and known.failure.exception
            ):
                plan.go_cold(f"{name} answers differently where it cannot write")

    def _compare(self, room: Room) -> None:
        plan = self._plan
        steady = [plan.by_id[i] for i in plan.targets.tests if plan.by_id[i].outcome is not Outcome.TIMED_OUT][:20]
        passing, left = list[TestResult](), SELF_CHECK_SECONDS
        for test in sorted((plan.by_id[i] for i in plan.baseline.passing), key=lambda t: t.seconds):
            left -= test.seconds
            if left < 0 or len(passing) >= SELF_CHECK_PASSING:
                break
            passing.append(test)
        expected = [*steady, *passing]
        if any(t.id not in self._items for t in expected):
            plan.go_cold("a warm worker collects other tests")
            return
        for test, said in self._disagreements(room, steady):
            plan.go_cold(f"{test.id[:200]} is {test.outcome.value} when cold and {said} when warm")
            return
        for test, _ in self._disagreements(room, passing):
            plan.unsteady.add(test.id)

    def _disagreements(self, room: Room, expected: Sequence[TestResult]) -> list[tuple[TestResult, str]]:
        """Tests that answer otherwise here, run together in the order of collection, and what they said."""
        items = sorted((self._items[t.id] for t in expected), key=lambda i: i.index)
        if not items:
            return []
        limit = 2.0 + 4 * max((t.seconds for t in expected), default=0.0)
        ran = room.client.run(
            RunRequest(session="hot", items=items, cpu_seconds=limit, budget_seconds=30.0, memory_bytes=MEMORY_BYTES)
        )
        by_id = {r.id: r for r in ran.results.values()}
        found = []
        for test in expected:
            got = by_id.get(test.id)
            if got is None or got.outcome.good != test.outcome.good or _kind(got) != _kind(test):
                said = "nothing" if got is None else f"{got.outcome.value} {_kind(got)}".strip()
                found.append((test, said))
        return found

    def _open(self, room: Room, request: OpenRequest) -> Collected | Refused:
        answer = room.client.open(request)
        if isinstance(answer, Refused) and "unrecognized arguments" in answer.text:
            answer = room.client.open(replace(request, options=()))
        return answer

    # -- one candidate

    def _write(self, room: Room, changes: Sequence[FileChange]) -> None:
        """Bring the workspace to a program's bytes; files of the one before are put back."""
        changed = {c.path for c in changes}
        for path in [p for p in self._dirty if p not in changed]:
            room.workspace.rewrite(path, self._dirty.pop(path))
        for change in changes:
            self._dirty.setdefault(change.path, change.before)
            room.workspace.rewrite(change.path, change.after)

    def _swapped(self, room: Room, ask: Ask, orders: list[dict[str, object]], seen: Seen) -> bool:
        """Run by swapping; False when the worker says it cannot."""
        targets = self._plan.targets
        for names, stop in ((targets.tests, ask.stop_early), (ask.passing, True)):
            items = [self._items[i] for i in names if i in self._items]
            if names is ask.passing:
                items.sort(key=lambda i: i.index)
            if not items:
                continue
            request = self._request(ask, items, "hot", stop=stop, failing=names is targets.tests)
            ran = room.client.run(replace(request, swap=orders))
            if ran.end is RunEnd.CANNOT_SWAP:
                return False
            for result in ran.results.values():
                seen.add(result)
            if ran.end is RunEnd.SESSION_ENDED:
                self._left = 0
                return True
            if not self._go_on(seen, names):
                return True
        return True

    def _new_grounds(self, room: Room) -> Grounds:
        def opener(session: str, files: Sequence[FileChange]) -> Collected | Refused:
            self._write(room, files)
            request = self._plan.narrowed((), self._rootdir)
            cpu = 3 * self._collect_cpu_seconds  # it is traced
            request = replace(
                request, session=session, swap=True, trace=True, cpu_seconds=cpu, wall_seconds=5 + 3 * cpu
            )
            return self._open(room, request)

        return Grounds(opener, room.client.close_session)

    def _on_ground(self, room: Room, ask: Ask, ground: Ground, orders: list[dict[str, object]], seen: Seen) -> bool:
        """Run by swapping into the parent's session; False when that cannot tell, and nothing was seen."""
        offered = {item.id for item in ground.answer.items}
        if any(i not in offered for i in (*self._plan.targets.tests, *ask.passing)):
            return False
        end = self._judge(room, ask, ground.answer, seen, session=ground.session, orders=orders)
        if end is RunEnd.SESSION_ENDED and self._grounds is not None:
            self._grounds.drop(ground)
        return end is not RunEnd.CANNOT_SWAP

    def _go_on(self, seen: Seen, names: Sequence[str]) -> bool:
        """Passing tests tell something once a failing one has turned."""
        return not names or seen.any_good(names)

    def _fresh(self, room: Room, ask: Ask, seen: Seen) -> None:
        plan = self._plan
        if not (plan.targets.tests or plan.targets.files or ask.passing):
            return
        request = plan.narrowed(ask.passing, self._rootdir)
        cpu = self._collect_cpu_seconds
        answer = self._open(room, replace(request, session="fresh", cpu_seconds=cpu, wall_seconds=5 + 3 * cpu))
        try:
            self._judge(room, ask, answer, seen)
        finally:
            if isinstance(answer, Collected) and room.client.usable:
                room.client.close_session("fresh")

    def _judge(
        self,
        room: Room,
        ask: Ask,
        answer: Collected | Refused,
        seen: Seen,
        *,
        session: str = "fresh",
        orders: Sequence[dict[str, object]] = (),
    ) -> RunEnd:
        """Run what a session offers that is not the snapshot's own; how its last run ended."""
        targets = self._plan.targets
        if isinstance(answer, Refused):
            for test in targets.tests[:1]:
                seen.put(test, Outcome.ERROR, next(iter(answer.errors.values()), answer.failure))
            file_outcomes(targets.files, answer, seen)
            return RunEnd.DONE
        by_id = {item.id: item for item in answer.items}
        files = {name[len(COLLECT_PREFIX) :] for name in targets.files}
        whole = any(path not in {str(i.path) for i in answer.items} for path in files if path not in answer.errors)
        new = [i for i in answer.items if i.id not in self._plan.by_id and (whole or str(i.path) in files)]
        for name in targets.tests:
            if name not in by_id:
                path = str(self._plan.by_id[name].path)
                failure = answer.errors.get(path) or next(iter(answer.errors.values()), None)
                seen.put(name, Outcome.ERROR, failure)
        failing = [by_id[i] for i in targets.tests if i in by_id] + new
        passing = [by_id[i] for i in ask.passing if i in by_id]
        for name in ask.passing:
            if name not in by_id:
                seen.put(name, Outcome.ERROR, next(iter(answer.errors.values()), None))
        for items, is_failing in ((failing, True), (passing, False)):
            if not items or (ask.stop_early and seen.failures):
                continue
            stop = ask.stop_early and not new if is_failing else True
            request = self._request(ask, items, session, stop=stop, failing=is_failing)
            ran = room.client.run(replace(request, swap=orders))
            for result in ran.results.values():
                seen.add(result)
            if ran.end in (RunEnd.CANNOT_SWAP, RunEnd.SESSION_ENDED):
                return ran.end
            if is_failing and not seen.any_good([i.id for i in items]):
                break
        file_outcomes(targets.files, answer, seen)
        return RunEnd.DONE

    def _request(self, ask: Ask, items: list[Item], session: str, *, stop: bool, failing: bool) -> RunRequest:
        cpu = ask.cpu_seconds
        if not failing:
            known = [self._plan.by_id[i.id].seconds for i in items if i.id in self._plan.by_id]
            cpu = max(cpu, 0.5 + 5 * max(known, default=0.0))
        return RunRequest(
            items=items,
            session=session,
            inline=self._plan.inline,
            stop_on_bad=stop,
            grace_tests=GRACE_TESTS,
            cpu_seconds=cpu,
            cpu_after_hang_seconds=max(0.05, cpu / 8),
            wall_seconds=max(2.0, 4 * cpu),
            budget_seconds=max(4.0, 8 * cpu),
            memory_bytes=MEMORY_BYTES,
        )

    def _run_checks(self, room: Room, ask: Ask, seen: Seen) -> None:
        targets = self._plan.targets
        if not targets.checks or not seen.all_good((*targets.files, *targets.tests, *ask.passing)):
            return
        for name in targets.checks:
            known = self._plan.commands[name]
            limit = max(ask.cpu_seconds, 1.0 + 3 * (known.seconds if known.outcome is not Outcome.TIMED_OUT else 0.0))
            got = self._command(room, known.command, limit)
            seen.put(name, got.outcome, got.failure)
            if not got.outcome.good and ask.stop_early:
                return

    def _command(self, room: Room, command: str, cpu_seconds: float) -> CheckResult:
        place = self._plan.rooms.place
        return checks.run_check(
            room.client,
            command,
            repo=place.repo,
            python=place.executable,
            trace=False,
            cpu_seconds=cpu_seconds,
            wall_seconds=2 * cpu_seconds + 1,
            pythonpath=self._plan.request.pythonpath,
        )

    def _cold(self, ask: Ask, seen: Seen, begin: float) -> QuickResult:
        """A jail and a copy of its own."""
        plan, ending, reason = self._plan, Ending.EXITED, ""
        try:
            changes = {c.path: c.after for c in ask.candidate.patch.changes}
            with plan.rooms.start(changes, Use.FULL) as room:
                self._fresh(room, ask, seen)
                self._run_checks(room, ask, seen)
        except WorkerLost as lost:
            plan.rooms.check()
            ending, reason = lost.ending, str(lost)
        seconds = time.monotonic() - begin
        if reason:
            return lost_result(seen, plan.targets, route=QuickRoute.COLD, seconds=seconds, ending=ending, reason=reason)
        return quick_result(seen, plan.targets, ask.passing, route=QuickRoute.COLD, seconds=seconds)


class WarmQuickCheck:
    """ports.QuickCheck. Workers start in the background as soon as this is made."""

    def __init__(
        self, rooms: Rooms, baseline: Baseline, request: OpenRequest, *, jobs: int, keep: bool = False
    ) -> None:
        self._plan = Plan(rooms, baseline, request)
        self._keep = keep
        self.warm: Warm | None = None
        self._selector = Selector(baseline)
        self._slots = [WarmSlot(self._plan) for _ in range(max(1, jobs))]
        self._free: queue.LifoQueue[WarmSlot] = queue.LifoQueue()
        self._starter = cf.ThreadPoolExecutor(len(self._slots), thread_name_prefix="warm")
        for slot in self._slots:
            self._starter.submit(self._start, slot)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the report should know."""
        return tuple(self._plan.notes)

    def _start(self, slot: WarmSlot) -> None:
        try:
            slot.ready()
        finally:
            self._free.put(slot)  # what went wrong shows again, in the thread that asks

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
        """Run one candidate; waits for a free worker."""
        ask = Ask(
            candidate=candidate,
            passing=tuple(t for t in self._selector.passing_for(candidate) if t not in self._plan.unsteady),
            cpu_seconds=cpu_seconds,
            stop_early=stop_early,
        )
        slot = self._free.get()
        try:
            return slot.check(ask)
        finally:
            self._free.put(slot)

    def close(self) -> None:
        """End all workers; with `keep` all but one that is well, which is `warm` then and ends with its rooms."""
        self._starter.shutdown(wait=True)
        for slot in self._slots:
            if self.warm is None and self._keep:
                self.warm = slot.release()
            else:
                slot.close()


def _kind(result: TestResult) -> str:
    return result.failure.exception if result.failure is not None else ""
