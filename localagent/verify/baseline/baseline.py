"""The unpatched tree: outcomes (failing ones again), frames, lines per test, ids that differ between two collections.

Two cold jails on two copies: the first runs everything as plain pytest would; the second collects traced, runs the
failing tests again and then the passing ones while time is left. Not promised: lines for every passing test.
"""

import concurrent.futures as cf
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.domain.outcome import Baseline, CheckResult, JailOutcome, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.fs.processor_wait import slowdown
from localagent.runner.failures import WALL_TIME_IS_UP
from localagent.verify.baseline import test_discovery
from localagent.verify.baseline.collection_plan import Collecting, Collection
from localagent.verify.baseline.nondeterminism import one_sided
from localagent.verify.baseline.traced_run import SecondRun
from localagent.verify.checks import check_commands
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.suite_run import SuiteWorker, base_of
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Item
from localagent.verify.worker.worker_spec import WorkerUse

# The first run of an unpatched tree's tests: with a small limit, and a second chance for those that only were slow.

FIRST_CPU_SECONDS = 1.0
FIRST_WALL_SECONDS = 12.0  # of a test that waits
SECOND_CHANCE_WALL_SECONDS = 40.0
MOST_SLOWED = 8.0  # a busy machine keeps every test waiting: so many times longer at most,
WALL_SHARE = 0.5  # and no longer than this share of what all of them have
BUSY = 2.0  # times slower than on a free machine: the clock says nothing of a test any more
CPU_AFTER_HANG_SECONDS = 0.15
SMALL_SUITE = 30  # in a larger one every test that ran out of its time gets a second chance
SECOND_CHANCE_CPU_SECONDS = 8.0
SECOND_CHANCES_SHARE = 0.5  # of what is left of the first run's time, for all slow tests together
SECOND_CHANCE_SHARE = 0.04  # of the task's time, per test: a short task cannot wait for slow tests
FIRST_SHARE = 0.4  # of the task's time, for all tests together,
MORE_SHARE = 0.3  # and so much more while none of them fails
SLOW_SHARE = (
    0.1  # a file whose finished tests take more than this share of the limit may hold slow tests, not hung ones
)


def second_chance_of(max_seconds: float) -> float:
    """Processor seconds of a slow test in a task that may take so long."""
    return max(2 * FIRST_CPU_SECONDS, min(SECOND_CHANCE_CPU_SECONDS, SECOND_CHANCE_SHARE * max_seconds))


def first_run(
    suite: SuiteWorker, items: Sequence[Item], *, budget_seconds: float, second_chance: float
) -> tuple[dict[str, TestResult], int]:
    """What the tests say, and how many were not run in the time. `second_chance`: processor seconds of slow ones.

    A test that ran out of its first, small time and whose second chance was not begun in the budget counts as not run:
    nothing tells a slow one from one that hangs. Nor does the wall clock of a busy machine.
    """
    begin = time.monotonic()
    run = suite.run(
        items,
        RunRequest(
            items=(),
            inline=True,
            cpu_seconds=FIRST_CPU_SECONDS,
            cpu_after_hang_seconds=CPU_AFTER_HANG_SECONDS,
            wall_seconds=_wall_seconds(FIRST_WALL_SECONDS, budget_seconds),
            budget_seconds=budget_seconds,
        ),
    )
    results, missed = run.results, len(run.missed)
    slow = _maybe_slow(results)
    if slow:
        left = budget_seconds - (time.monotonic() - begin)
        again = suite.run(
            [item for item in items if item.id in slow],
            RunRequest(
                items=(),
                cpu_seconds=second_chance,
                wall_seconds=_wall_seconds(SECOND_CHANCE_WALL_SECONDS, left),
                budget_seconds=max(1.0, min(left, max(_waiting(3 * second_chance), SECOND_CHANCES_SHARE * left))),
            ),
        )
        results.update(again.results)
        _more_of_slow(suite, items, results, begin + budget_seconds, second_chance)
        waiting = [item.id for item in items if item.id in slow and item.id not in again.results]
        open_ = {base_of(name) for name in waiting[1:]}  # the first was begun
        for name in [r.id for r in results.values() if r.outcome is Outcome.TIMED_OUT and base_of(r.id) in open_]:
            del results[name]
            missed += 1
    if slowdown(MOST_SLOWED) > BUSY:
        for name in [name for name, result in results.items() if _late_by_the_clock(result)]:
            del results[name]
            missed += 1
    return results, missed


def _late_by_the_clock(result: TestResult) -> bool:
    failure = result.failure
    return result.outcome is Outcome.TIMED_OUT and failure is not None and failure.message == WALL_TIME_IS_UP


def _waiting(seconds: float) -> float:
    """How long something takes on this machine that takes so long on a free one."""
    return seconds * slowdown(MOST_SLOWED)


def _wall_seconds(usual: float, budget_seconds: float) -> float:
    """How long one test may take that uses no processor, or does not get one."""
    return max(usual, min(_waiting(usual), WALL_SHARE * budget_seconds))


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


def _more_of_slow(
    suite: SuiteWorker, items: Sequence[Item], results: dict[str, TestResult], until: float, second_chance: float
) -> None:
    """Siblings of tests that only were slow get the same chance."""
    finished = {base_of(r.id) for r in results.values() if r.outcome is not Outcome.TIMED_OUT}
    again = [
        item
        for item in items
        if base_of(item.id) in finished
        and (known := results.get(item.id)) is not None
        and known.outcome is Outcome.TIMED_OUT
        and _has_slow_sibling(item.id, results)
    ]
    left = until - time.monotonic()
    if again and left > 1:
        wall_seconds = _wall_seconds(SECOND_CHANCE_WALL_SECONDS, left)
        request = RunRequest(items=(), cpu_seconds=second_chance, wall_seconds=wall_seconds, budget_seconds=left)
        results.update(suite.run(again, request).results)


def _has_slow_sibling(test_id: str, results: Mapping[str, TestResult]) -> bool:
    base = base_of(test_id)
    return any(
        r.outcome is not Outcome.TIMED_OUT and r.seconds > SLOW_SHARE * FIRST_CPU_SECONDS
        for r in results.values()
        if base_of(r.id) == base
    )


CHECK_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ran:
    """What both jails said: the first, and the second as far as its collection. `suite` is the second's."""

    first: Collection
    again: Collection
    suite: SuiteWorker | None
    results: dict[str, TestResult]
    answers: tuple[CheckResult, ...]
    begin: float


class BaselineRunner:
    """Makes one baseline. `notes` and `request` are filled by `run`."""

    def __init__(self, jails: JailPool, task: Task) -> None:
        self._jails = jails
        self._task = task
        self._store = jails.place.store
        self._collecting = Collecting(jails.place, task)
        self.notes = self._collecting.notes
        self._not_run = 0

    @property
    def request(self) -> OpenRequest:
        """How the tests are collected; `run` may find a better way than the first."""
        return self._collecting.request

    def run(self) -> Baseline:
        """AnswerIsNo when there is nothing to run."""
        begin = time.monotonic()
        for command in self._task.checks:
            check_commands.split(command)
        try:
            with self._jails.start({}, WorkerUse.BASELINE) as worker:
                return self._in(worker, begin)
        except WorkerLost as lost:
            self._jails.check()
            raise AnswerIsNo(
                f"the tests could not be run: {lost}",
                remedy="give it more time (--max-seconds) or fewer tests (--test); on a busy machine all takes longer"
                if lost.ending is JailOutcome.WALL
                else "a test or a conftest.py may end the process that runs it: read these first; "
                f"then see whether {self._jails.place.executable} -m pytest works",
            ) from lost

    def _in(self, worker: JailWorker, begin: float) -> Baseline:
        client = worker.client
        if client.pytest is None and (self._task.tests or not self._task.checks):
            raise test_discovery.no_pytest(self._jails.place.executable, self._store)
        if client.lent and (self._task.tests or not self._task.checks):
            if test_discovery.asks_for_pytest(self._store):
                raise test_discovery.no_pytest(self._jails.place.executable, self._store)
            self.notes.append(f"the project's Python has no pytest: localagent's own, {client.pytest}, runs its tests")
        first = Collection()
        suite: SuiteWorker | None = None
        if client.pytest is not None:
            suite, first = self._collecting.first(worker)
        if not first.items and not first.errors and not self._task.checks:
            raise test_discovery.no_tests(self._store)
        with cf.ThreadPoolExecutor(1, thread_name_prefix="baseline") as pool:
            second = pool.submit(self._second, with_tests=suite is not None)
            try:
                results = self._run_all(suite, first.items) if suite is not None else {}
                answers = tuple(self._check(worker, command, trace=False) for command in self._task.checks)
            finally:
                opened = second.result()
        other, again, suite_again = opened
        with other:
            ran = _Ran(first=first, again=again, suite=suite_again, results=results, answers=answers, begin=begin)
            return self._judge(other, ran)

    def _left(self, begin: float) -> float:
        """Seconds of the task that are left for running tests again."""
        return self._task.budget.max_seconds - (time.monotonic() - begin)

    # -- first run

    def _run_all(self, suite: SuiteWorker, items: Sequence[Item]) -> dict[str, TestResult]:
        budget = self._task.budget
        results, missed = first_run(
            suite,
            items,
            budget_seconds=budget.max_seconds * FIRST_SHARE,
            second_chance=second_chance_of(budget.max_seconds),
        )
        if missed and all(r.outcome.good for r in results.values()):
            more, missed = first_run(
                suite,
                [item for item in items if item.id not in results],
                budget_seconds=budget.max_seconds * MORE_SHARE,
                second_chance=second_chance_of(budget.max_seconds),
            )
            results.update(more)
        if missed:
            self.notes.append(f"{missed} test{'s were' if missed > 1 else ' was'} not run in the time given")
        self._not_run = missed
        return results

    def _check(self, worker: JailWorker, command: str, *, trace: bool) -> CheckResult:
        return check_commands.run_check(
            worker.client,
            command,
            repo=self._jails.place.repo,
            python=self._jails.place.executable,
            trace=trace,
            cpu_seconds=CHECK_SECONDS,
            wall_seconds=2 * CHECK_SECONDS,
            pythonpath=self.request.pythonpath,
        )

    # -- second run

    def _second(self, *, with_tests: bool) -> tuple[JailWorker, Collection, SuiteWorker | None]:
        worker = self._jails.start({}, WorkerUse.BASELINE)
        try:
            if not with_tests:
                return worker, Collection(), None
            suite, again = self._collecting.traced(worker)
            return worker, again, suite
        except BaseException:
            worker.close()
            raise

    def _judge(self, worker: JailWorker, ran: _Ran) -> Baseline:
        first, again, results = ran.first, ran.again, ran.results
        ids_again = {item.id for item in again.items}
        unstable = tuple(
            sorted({i.id for i in first.items} ^ ids_again if set(first.errors) == set(again.errors) else ())
        )
        flaky = [f"collect:{path}" for path in sorted(set(first.errors) ^ set(again.errors))]
        failing: list[str] = []
        if ran.suite is not None:
            failing, odd = self._run_again(ran.suite, again.items, results, ran.begin)
            flaky += odd
        broken_files = [path for path in first.errors if path in again.errors]
        answers = tuple(self._traced(worker, answer, flaky) for answer in ran.answers)
        chased = [*(f"collect:{path}" for path in broken_files), *(i for i in failing if i not in unstable)]
        known_bad = {*failing, *flaky, *unstable}
        tests = tuple(results[item.id] for item in first.items if item.id in results)
        return Baseline(
            tests=tests,
            checks=answers,
            collect_failures={f"collect:{path}": failure for path, failure in first.errors.items()},
            failing=self._chased(chased, answers, flaky),
            passing=tuple(t.id for t in tests if t.outcome.good and t.id not in known_bad),
            flaky=tuple(dict.fromkeys(flaky)),
            unstable=unstable,
            import_lines=again.import_lines,
            test_files=test_discovery.test_files(self._store, (*first.items, *again.items))
            | {p for p in map(_repo_path, broken_files) if p is not None}
            | test_discovery.conftest_files(self._store),
            notes=tuple(self.notes),
            python=".".join(map(str, worker.client.python)),
            pytest=worker.client.pytest or "",
            not_run=self._not_run,
        )

    def _chased(self, tests: Sequence[str], answers: Sequence[CheckResult], flaky: Sequence[str]) -> tuple[str, ...]:
        """What is to be turned: failing tests and files, then commands; the commands alone where they were named."""
        checks_bad = [f"check:{a.command}" for a in answers if not a.outcome.good]
        checks_bad = [name for name in checks_bad if name not in flaky]
        if checks_bad and not self._task.tests:
            if tests:
                self.notes.append(f"{len(tests)} failing tests are left as they are: a failing --check was named")
            tests = ()
        return (*tests, *checks_bad)

    def _run_again(
        self, suite: SuiteWorker, items: Sequence[Item], results: dict[str, TestResult], begin: float
    ) -> tuple[list[str], list[str]]:
        """Failing and flaky ones; lines and better failures are put into `results`."""
        run = SecondRun(suite, items, results, left=lambda: self._left(begin))
        self.notes.extend(one_sided(self._jails, self.request, run.trace_failing()))
        budget = max(2.0, min(20.0, 0.08 * self._task.budget.max_seconds))
        run.trace_passing(budget_seconds=budget)
        return run.failing, run.flaky

    def _traced(self, worker: JailWorker, answer: CheckResult, flaky: list[str]) -> CheckResult:
        """A failing command once more, traced."""
        if answer.outcome.good:
            return answer
        other = self._check(worker, answer.command, trace=True)
        if other.outcome.good:
            flaky.append(f"check:{answer.command}")
        return replace(answer, lines=other.lines)


def _repo_path(text: str) -> RepoPath | None:
    return RepoPath(text) if text and not text.startswith("/") and "::" not in text and text != "." else None
