"""The unpatched tree: outcomes (failing ones again), frames, lines per test, ids that differ between two collections.

Two cold jails on two copies: the first runs everything as plain pytest would; the second collects traced, runs the
failing tests again and then the passing ones while time is left. Not promised: lines for every passing test.
"""

import concurrent.futures as cf
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from localagent.domain.outcome import Baseline, CheckResult, Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.verify import checks, discovery
from localagent.verify.answers import Collected, Item, Refusal, Refused
from localagent.verify.client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.one_sided import one_sided
from localagent.verify.place import Use
from localagent.verify.rooms import Room, Rooms
from localagent.verify.selection import coarse
from localagent.verify.suite import Suite, base_of

OPTIONS = ("--tb=no", "-o", "cache_dir=/tmp/la-cache")
FIRST_CPU_SECONDS = 1.0
FIRST_WALL_SECONDS = 12.0
CPU_AFTER_HANG_SECONDS = 0.15
SMALL_SUITE = 30  # in a larger one every test that ran out of its time gets a second chance
SECOND_CHANCE_CPU_SECONDS = 8.0
SECOND_CHANCE_SHARE = 0.04  # of the task's time, per test: a short task cannot wait for slow tests
SLOW_SHARE = (
    0.1  # a file whose finished tests take more than this share of the limit may hold slow tests, not hung ones
)
HUNG_TRACED_CPU_SECONDS = 0.3
HUNG_TRACED_PER_FUNCTION = 2
RUNS_OF_FAILING = 2  # further ones, of few and quick tests that failed twice
RUNS_OF_CHANGING = 8  # where the two failures were different ones
RUNS_OF_ODD = 4  # of tests that passed, then failed when traced: once for slow ones
QUICK_TEST_SECONDS = 0.2
MOST_DOUBTED = 20
CHECK_SECONDS = 60.0
MEMORY_BYTES = 1 << 30


class NoTests(AnswerIsNo):
    """There is nothing to run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """How the tests of this task are collected, and what came of it. Handed on to the quick and the full check."""

    request: OpenRequest
    items: tuple[Item, ...] = ()
    errors: Mapping[str, Failure] = field(default_factory=dict)
    import_lines: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict)


class BaselineRunner:
    """Makes one baseline. `notes` and `request` are filled by `run`."""

    def __init__(self, rooms: Rooms, task: Task) -> None:
        self._patience = 1.0
        self._rooms = rooms
        self._task = task
        self._store = rooms.place.store
        self.request = OpenRequest(args=task.tests, options=OPTIONS, memory_bytes=MEMORY_BYTES)
        self.notes: list[str] = []
        share = SECOND_CHANCE_SHARE * task.budget.max_seconds
        self._second_chance = max(2 * FIRST_CPU_SECONDS, min(SECOND_CHANCE_CPU_SECONDS, share))

    def run(self, *, patience: float = 1.0) -> Baseline:
        """AnswerIsNo when there is nothing to run. `patience` as `ports.Verifier` has it."""
        begin = time.monotonic()
        self._patience = patience
        for command in self._task.checks:
            checks.split(command)
        try:
            with self._rooms.start({}, Use.BASELINE) as room:
                return self._in(room, begin)
        except WorkerLost as lost:
            self._rooms.check()
            raise AnswerIsNo(
                f"the tests could not be run: {lost}",
                remedy=f"see whether {self._rooms.place.executable} -m pytest works in a plain shell",
            ) from lost

    def _in(self, room: Room, begin: float) -> Baseline:
        client = room.client
        if client.pytest is None and (self._task.tests or not self._task.checks):
            raise discovery.no_pytest(self._rooms.place.executable)
        first = Collection(request=self.request)
        suite: Suite | None = None
        if client.pytest is not None:
            suite, first = self._collect(room)
        if not first.items and not first.errors and not self._task.checks:
            raise NoTests("no tests found", remedy="name them with --test, or a command with --check")
        with cf.ThreadPoolExecutor(1, thread_name_prefix="baseline") as pool:
            second = pool.submit(self._second, with_tests=suite is not None)
            try:
                results = self._run_all(suite, first) if suite is not None else {}
                answers = tuple(self._check(room, command, trace=False) for command in self._task.checks)
            finally:
                opened = second.result()
        other, again, suite_again = opened
        with other:
            return self._judge(other, first, again, suite_again, results, answers, begin)

    # -- collection

    def _collect(self, room: Room) -> tuple[Suite, Collection]:
        suite, answer = self._open(room, self.request)
        if isinstance(answer, Collected) and not answer.items and not answer.errors and not self._task.tests:
            found = discovery.test_like_files(self._store)
            if found:
                other = replace(self.request, args=found)
                suite_found, answer_found = self._open(room, other)
                if isinstance(answer_found, Refused) or answer_found.items or answer_found.errors:
                    suite, answer, self.request = suite_found, answer_found, other
                    self.notes.append("no tests where pytest looks; took files by their names: " + ", ".join(found[:5]))
        collection = self._collection(answer)
        places = dict.fromkeys(
            folder
            for failure in collection.errors.values()
            if (folder := discovery.source_folder_with(self._store, discovery.missing_module(failure)))
            and discovery.missing_module(failure)
        )
        if places:
            paths = tuple(f"{self._rooms.place.repo}/{folder}" for folder in places)
            other = replace(self.request, pythonpath=paths)
            suite_found, answer_found = self._open(room, other)
            if len(self._collection(answer_found).errors) < len(collection.errors):
                suite, collection, self.request = suite_found, self._collection(answer_found), other
                self.notes.append("not installed: put on PYTHONPATH: " + ", ".join(places))
            else:
                suite, _again = self._open(room, self.request)
        return suite, collection

    def _open(self, room: Room, request: OpenRequest) -> tuple[Suite, Collected | Refused]:
        suite = Suite(room.client, request)
        return suite, suite.open()

    def _collection(self, answer: Collected | Refused) -> Collection:
        """AnswerIsNo for a refusal that no edit of the sources could mend."""
        if isinstance(answer, Collected):
            return Collection(
                request=self.request, items=answer.items, errors=answer.errors, import_lines=answer.import_lines
            )
        errors = dict(answer.errors)
        if not errors and answer.why is Refusal.CONFTEST:
            errors[str(answer.path or "conftest.py")] = answer.failure
        if not errors and answer.why in (Refusal.HUNG, Refusal.DIED, Refusal.STOPPED) and answer.failure.frames:
            errors[str(answer.failure.frames[0].path or ".")] = answer.failure
        if not errors:
            raise discovery.refusal_answer(answer)
        return Collection(request=self.request, errors=errors, import_lines=answer.import_lines)

    # -- first run

    def _run_all(self, suite: Suite, first: Collection) -> dict[str, TestResult]:
        budget = self._task.budget.max_seconds * 0.4 * self._patience
        begin = time.monotonic()
        run = suite.run(
            first.items,
            RunRequest(
                items=(),
                inline=True,
                cpu_seconds=FIRST_CPU_SECONDS,
                cpu_after_hang_seconds=CPU_AFTER_HANG_SECONDS,
                wall_seconds=FIRST_WALL_SECONDS,
                budget_seconds=budget,
            ),
        )
        results = run.results
        slow = self._maybe_slow(results)
        if slow:
            left = budget - (time.monotonic() - begin)
            again = suite.run(
                [item for item in first.items if item.id in slow],
                RunRequest(
                    items=(),
                    cpu_seconds=self._second_chance,
                    wall_seconds=40.0,
                    budget_seconds=max(1.0, min(left, 3 * self._second_chance)),
                ),
            )
            results.update(again.results)
            self._more_of_slow(suite, first, results, begin + budget)
        if run.missed:
            self.notes.append(f"{len(run.missed)} tests were not run in the time given")
        return results

    @staticmethod
    def _maybe_slow(results: Mapping[str, TestResult]) -> set[str]:
        """One timed-out test of each function whose neighbours do not prove that it hangs."""
        found: dict[str, str] = {}
        for result in results.values():
            if result.outcome is not Outcome.TIMED_OUT:
                continue
            neighbours = [
                r.seconds for r in results.values() if r.path == result.path and r.outcome is not Outcome.TIMED_OUT
            ]
            if len(results) > SMALL_SUITE or not neighbours or max(neighbours) > SLOW_SHARE * FIRST_CPU_SECONDS:
                found.setdefault(base_of(result.id), result.id)
        return set(found.values())

    def _more_of_slow(self, suite: Suite, first: Collection, results: dict[str, TestResult], until: float) -> None:
        """Siblings of tests that only were slow get the same chance."""
        finished = {base_of(r.id) for r in results.values() if r.outcome is not Outcome.TIMED_OUT}
        again = [
            item
            for item in first.items
            if base_of(item.id) in finished
            and (known := results.get(item.id)) is not None
            and known.outcome is Outcome.TIMED_OUT
            and self._has_slow_sibling(item.id, results)
        ]
        left = until - time.monotonic()
        if again and left > 1:
            request = RunRequest(items=(), cpu_seconds=self._second_chance, wall_seconds=40.0, budget_seconds=left)
            results.update(suite.run(again, request).results)

    @staticmethod
    def _has_slow_sibling(test_id: str, results: Mapping[str, TestResult]) -> bool:
        base = base_of(test_id)
        return any(
            r.outcome is not Outcome.TIMED_OUT and r.seconds > SLOW_SHARE * FIRST_CPU_SECONDS
            for r in results.values()
            if base_of(r.id) == base
        )

    def _check(self, room: Room, command: str, *, trace: bool) -> CheckResult:
        return checks.run_check(
            room.client,
            command,
            repo=self._rooms.place.repo,
            python=self._rooms.place.executable,
            trace=trace,
            cpu_seconds=CHECK_SECONDS,
            wall_seconds=2 * CHECK_SECONDS,
            pythonpath=self.request.pythonpath,
        )

    # -- second run

    def _second(self, *, with_tests: bool) -> tuple[Room, Collection, Suite | None]:
        room = self._rooms.start({}, Use.BASELINE)
        try:
            if not with_tests:
                return room, Collection(request=self.request), None
            suite, answer = self._open(room, replace(self.request, trace=True))
            return room, self._collection(answer), suite
        except BaseException:
            room.close()
            raise

    def _judge(
        self,
        room: Room,
        first: Collection,
        again: Collection,
        suite: Suite | None,
        results: dict[str, TestResult],
        answers: tuple[CheckResult, ...],
        begin: float,
    ) -> Baseline:
        ids_again = {item.id for item in again.items}
        unstable = tuple(
            sorted({i.id for i in first.items} ^ ids_again if set(first.errors) == set(again.errors) else ())
        )
        flaky = [f"collect:{path}" for path in sorted(set(first.errors) ^ set(again.errors))]
        failing: list[str] = []
        if suite is not None:
            unsteady = self._trace_failing(suite, again, results, failing, flaky)
            self.notes.extend(one_sided(self._rooms, self.request, unsteady))
            self._trace_passing(suite, again, results, flaky)
        broken_files = self._chased_files(first, again)
        answers = tuple(self._traced(room, answer, flaky) for answer in answers)
        failing_checks = [f"check:{a.command}" for a in answers if not a.outcome.good]
        failing_checks = [name for name in failing_checks if name not in flaky]
        chased = [*(f"collect:{path}" for path in broken_files), *(i for i in failing if i not in unstable)]
        if failing_checks and not self._task.tests:
            if chased:
                self.notes.append(f"{len(chased)} failing tests are left as they are: a failing --check was named")
            chased = []
        known_bad = {*failing, *flaky, *unstable}
        tests = tuple(results[item.id] for item in first.items if item.id in results)
        return Baseline(
            tests=tests,
            checks=answers,
            collect_failures={f"collect:{path}": failure for path, failure in first.errors.items()},
            failing=(*chased, *failing_checks),
            passing=tuple(t.id for t in tests if t.outcome.good and t.id not in known_bad),
            flaky=tuple(dict.fromkeys(flaky)),
            unstable=unstable,
            import_lines=again.import_lines,
            test_files=frozenset(i.path for i in (*first.items, *again.items) if i.path is not None)
            | {p for p in map(_repo_path, broken_files) if p is not None}
            | discovery.conftest_files(self._store),
            seconds=time.monotonic() - begin,
            notes=tuple(self.notes),
            python=".".join(map(str, room.client.python)),
            pytest=room.client.pytest or "",
        )

    def _chased_files(self, first: Collection, again: Collection) -> list[str]:
        """Files that cannot be collected, without those that only miss a package that is not installed."""
        found = []
        for path, failure in first.errors.items():
            if path not in again.errors:
                continue
            module = discovery.missing_module(failure)
            place = failure.frames[-1].path if failure.frames else None
            if module and place in (None, path) and not discovery.in_repository(self._store, module):
                self.notes.append(f"{path}: module {module!r} is not installed; left as it is")
            else:
                found.append(path)
        if first.errors and not found and not first.items and not self._task.checks:
            missing = sorted({discovery.missing_module(f) for f in first.errors.values()})
            raise AnswerIsNo(
                f"no test can be imported: missing {', '.join(missing)}",
                remedy=f"install what the tests need for {self._rooms.place.executable}",
            )
        return found

    def _trace_failing(
        self, suite: Suite, again: Collection, results: dict[str, TestResult], failing: list[str], flaky: list[str]
    ) -> set[str]:
        """Run failing tests a second time, traced; a different verdict is flaky. Those that passed at a later run."""
        by_id = {item.id: item for item in again.items}
        bad = [r for r in results.values() if not r.outcome.good]
        hung: dict[str, list[Item]] = {}
        plain: list[Item] = []
        for result in bad:
            item = by_id.get(result.id)
            if item is None:
                continue
            if result.outcome is Outcome.TIMED_OUT:
                hung.setdefault(base_of(item.id), []).append(item)
            else:
                plain.append(item)
        slowest = max((r.seconds for r in bad if r.outcome is not Outcome.TIMED_OUT), default=0.0)
        second = suite.run(
            plain, RunRequest(items=(), trace=True, cpu_seconds=5.0 + 10 * slowest, budget_seconds=60.0)
        ).results
        chosen = [item for items in hung.values() for item in items[:HUNG_TRACED_PER_FUNCTION]]
        second |= suite.run(
            chosen,
            RunRequest(
                items=(),
                trace=True,
                cpu_seconds=HUNG_TRACED_CPU_SECONDS,
                wall_seconds=3.0,
                budget_seconds=5.0,
            ),
        ).results
        unsteady = self._unsteady(suite, plain, results, second)
        for result in bad:
            other = second.get(result.id)
            if other is None:
                failing.append(result.id)
            elif other.outcome.good or result.id in unsteady:
                flaky.append(result.id)
            else:
                failing.append(result.id)
                ended = result.failure is not None and result.failure.exception == "InterpreterExit"
                better = other.failure if result.outcome is Outcome.TIMED_OUT or ended else result.failure
                results[result.id] = replace(result, lines=other.lines, failure=better or other.failure)
        return unsteady

    @staticmethod
    def _unsteady(
        suite: Suite, plain: Sequence[Item], results: Mapping[str, TestResult], second: Mapping[str, TestResult]
    ) -> set[str]:
        """Tests that failed twice and pass at a further run; more runs for those whose failure was another one."""
        doubted = [
            item
            for item in plain
            if (known := second.get(item.id)) is not None
            and not known.outcome.good
            and results[item.id].seconds < QUICK_TEST_SECONDS
        ]
        other = {i.id for i in doubted if _said(results[i.id]) != _said(second[i.id])}
        doubted = [i for i in doubted if i.id in other or len(doubted) <= MOST_DOUBTED][: 2 * MOST_DOUBTED]
        found: set[str] = set()
        for at in range(RUNS_OF_CHANGING):
            again = [i for i in doubted if i.id not in found and (i.id in other or at < RUNS_OF_FAILING)]
            if again:
                ran = suite.run(again, RunRequest(items=(), cpu_seconds=5.0, budget_seconds=10.0)).results
                found |= {name for name, result in ran.items() if result.outcome.good}
        return found

    def _trace_passing(self, suite: Suite, again: Collection, results: dict[str, TestResult], flaky: list[str]) -> None:
        """Lines of passing tests, nearest to the failing ones first, while time is left."""
        near = [r.path for r in results.values() if not r.outcome.good and r.path is not None]
        good = [
            item
            for item in again.items
            if (known := results.get(item.id)) is not None and known.outcome is Outcome.PASSED
        ]
        seconds: dict[RepoPath | None, float] = {}
        for item in good:
            seconds[item.path] = seconds.get(item.path, 0.0) + results[item.id].seconds
        # tests of one file keep their order: some depend on it
        good.sort(key=lambda item: (_distance(item.path, near), coarse(seconds[item.path]), item.path or ""))
        budget = max(2.0, min(20.0, 0.08 * self._task.budget.max_seconds)) * self._patience
        run = suite.run(
            good, RunRequest(items=(), trace=True, cpu_seconds=20.0, wall_seconds=40.0, budget_seconds=budget)
        )
        odd: list[Item] = []
        for item in good:
            other = run.results.get(item.id)
            if other is None:
                continue
            if other.outcome.good:
                results[item.id] = replace(results[item.id], lines=other.lines)
            elif other.outcome is not Outcome.TIMED_OUT:
                odd.append(item)
        for at in range(RUNS_OF_ODD):
            request = RunRequest(items=(), trace=at == 0, cpu_seconds=20.0, budget_seconds=30.0)
            third = suite.run(odd, request).results if odd else {}
            if at == 0:  # they may have failed for what ran before them, so once more in order and by themselves
                results.update({i: replace(results[i], lines=r.lines) for i, r in third.items() if r.outcome.good})
                continue
            flaky.extend(i for i, r in third.items() if not r.outcome.good)
            odd = [i for i in odd if i.id not in flaky and results[i.id].seconds < QUICK_TEST_SECONDS]

    def _traced(self, room: Room, answer: CheckResult, flaky: list[str]) -> CheckResult:
        """A failing command once more, traced."""
        if answer.outcome.good:
            return answer
        other = self._check(room, answer.command, trace=True)
        if other.outcome.good:
            flaky.append(f"check:{answer.command}")
        return replace(answer, lines=other.lines)


def _said(result: TestResult) -> tuple[str, str]:
    """What a failure says, without addresses."""
    failure = result.failure
    return ("", "") if failure is None else (failure.exception, failure.steady)


def _repo_path(text: str) -> RepoPath | None:
    return RepoPath(text) if text and not text.startswith("/") and "::" not in text and text != "." else None


def _distance(path: RepoPath | None, near: Sequence[RepoPath]) -> int:
    """Folders between a file and the nearest of some others."""
    if path is None or not near:
        return 1 << 10
    return min(_apart(path, other) for other in set(near))


def _apart(one: RepoPath, other: RepoPath) -> int:
    if one == other:
        return 0
    a, b = one.parts[:-1], other.parts[:-1]
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return 1 + len(a) + len(b) - 2 * same
