"""The full check: everything in cold jails on writable copies, compared with the baseline id by id.

In the collected order and once more shuffled and with other hashes of texts, both as plain pytest would run them: an
order of a set that Python does not promise is no repair. Not promised: that what passes is right, or that tests outside
this repository would agree.
"""

import concurrent.futures as cf
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from localagent.code.set_order import set_order_may_show
from localagent.code.source_text import parse_or_none
from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, CheckResult, Failure, FullResult, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.checks import check_commands as checks
from localagent.verify.checks.new_findings import Delta
from localagent.verify.checks.outcomes import tests_in
from localagent.verify.checks.test_counts import compared
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX, Targets
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item
from localagent.verify.worker.worker_spec import WorkerUse

BUDGET_SECONDS = 280.0
LEAST_CPU_SECONDS = 10.0
NAMED = 5
_NOTHING: Mapping[str, TestResult] = {}
_NO_GROUPS: Mapping[str, str] = {}
USUAL_HASHES, OTHER_HASHES = 0, 1  # PYTHONHASHSEED; the other one is that of the shuffled run
MORE_HASHES = (2, 3)  # where the order of a set may show in the patched files
MORE_RUNS = 4  # a test that fails half the time is blamed on a patch once in sixteen


@dataclass(kw_only=True, slots=True)
class _Whole:
    """One run of everything. `lost` is empty unless the jail or the collection was."""

    results: Mapping[str, TestResult] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    items: tuple[Item, ...] = ()
    errors: Mapping[str, Failure] = field(default_factory=dict)
    checks: Mapping[str, CheckResult] = field(default_factory=dict)
    lost: str = ""


class FullChecker:
    """Keeps the shuffled outcomes of the unpatched tree once they were needed.

    Where `unpatched` is given, the store of `jails` holds the patched tree already and `unpatched` the one before.
    """

    def __init__(
        self, jails: JailPool, request: OpenRequest, delta: Delta, *, unpatched: JailPool | None = None
    ) -> None:
        self._jails = jails
        self._unpatched_jails = unpatched or jails
        self._laid_out = unpatched is not None
        self._request = request
        self._delta = delta
        self._unpatched: dict[int, _Whole] = {}

    def check(
        self,
        candidate: Candidate,
        baseline: Baseline,
        *,
        seed: int,
        may_fail: Collection[str] = (),
        untouched: Mapping[str, TestResult] = _NOTHING,
        groups: Mapping[str, str] = _NO_GROUPS,
    ) -> FullResult:
        """Judge one candidate. What `may_fail` of `baseline.failing` still fails is told, and no reason to refuse.

        Nor is what still fails as it did and for another reason than those of its group (`groups`, by id) that turn.
        `untouched`: what tests that need the patch to be collected said of the tree at the start, before they changed.
        """
        changes = {} if self._laid_out else {c.path: c.after for c in candidate.patch.changes}
        with_tests = bool(baseline.tests or baseline.collect_failures)
        with cf.ThreadPoolExecutor(2, thread_name_prefix="full") as pool:
            plain_job = pool.submit(self._whole, changes, baseline, None, with_tests=with_tests, with_checks=True)
            mixed_job = pool.submit(self._whole, changes, baseline, seed, with_tests=with_tests, with_checks=False)
            plain, mixed = plain_job.result(), mixed_job.result()
        verdict = _Verdict(baseline, plain, may_fail, untouched, groups)
        verdict.compare()
        said = {"tests": verdict.summary, **{name: ran.outcome.value for name, ran in plain.checks.items()}}
        if not verdict.reasons and with_tests:
            said["shuffled"] = self._judge_shuffled(verdict, mixed, baseline, seed)
        if not verdict.reasons and with_tests:
            self._judge_hashes(verdict, mixed, candidate, changes, baseline)
        remarks = []
        if not verdict.reasons:
            for answer in self._delta.review(candidate.patch):
                said[answer.tool] = answer.said
                if answer.refusal:
                    verdict.reasons.append(answer.refusal)
                remarks += [answer.remark] if answer.remark else []
        return FullResult(
            accepted=not verdict.reasons,
            reasons=tuple(verdict.reasons),
            fail_to_pass=tuple(verdict.turned),
            pass_to_pass=tuple(verdict.kept),
            pass_to_fail=tuple(verdict.broken),
            still_failing=tuple(verdict.still),
            checks=said,
            remarks=tuple(remarks),
            doubts=tuple(verdict.doubts),
            fails_otherwise=tuple(verdict.otherwise),
            fails_alike=tuple(verdict.alike),
            late=bool(verdict.reasons) and self._jails.late,
        )

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str]:
        """Which of some failing tests and checks pass with some changes, in a cold jail. WorkerLost where it ended."""
        wanted = replace(
            baseline,
            failing=tuple(name for name in baseline.failing if name in names),
            passing=(),
            checks=tuple(c for c in baseline.checks if f"{CHECK_PREFIX}{c.command}" in names),
        )
        targets = Targets.of(wanted)
        with self._jails.start(changes, WorkerUse.FULL) as worker:
            passed = {
                name
                for name, ran in (
                    (f"{CHECK_PREFIX}{c.command}", self._command(worker, c.command)) for c in wanted.checks
                )
                if ran.outcome is Outcome.PASSED
            }
            if targets.tests:
                suite = SuiteWorker(worker.client, self._request)
                answer = suite.open()
                items = (
                    [] if isinstance(answer, CollectionRefused) else [i for i in answer.items if i.id in targets.tests]
                )
                if items:
                    passed |= {i for i, r in suite.run(items, _limits(baseline)).results.items() if _passed(r)}
        return frozenset(passed)

    def _whole(
        self,
        changes: Mapping[RepoPath, bytes],
        baseline: Baseline,
        seed: int | None,
        *,
        with_tests: bool,
        with_checks: bool,
        unpatched: bool = False,
    ) -> _Whole:
        whole = _Whole()
        jails = self._unpatched_jails if unpatched else self._jails
        if not with_tests and not with_checks:
            return whole
        hashes = {} if seed is None else _hashes(OTHER_HASHES)
        try:
            with jails.start(changes, WorkerUse.FULL, hashes) as worker:
                if with_tests:
                    self._tests(worker, baseline, seed, whole)
                if with_checks:
                    whole.checks = {
                        f"{CHECK_PREFIX}{c.command}": self._command(worker, c.command) for c in baseline.checks
                    }
        except WorkerLost as lost:
            jails.check()
            whole.lost = str(lost)
        return whole

    def _tests(self, worker: JailWorker, baseline: Baseline, seed: int | None, whole: _Whole) -> None:
        suite = SuiteWorker(worker.client, self._request)
        answer = suite.open()
        if isinstance(answer, CollectionRefused):
            whole.errors = answer.errors
            whole.lost = "" if answer.errors else f"pytest did not collect: {answer.text[-300:]}"
            return
        whole.ids = frozenset(item.id for item in answer.items)
        whole.items, whole.errors = answer.items, answer.errors
        request = _limits(baseline)
        whole.results = suite.run(_ordered(answer, seed), request).results
        self._once_more(suite, answer, baseline, whole, request)

    @staticmethod
    def _once_more(
        suite: SuiteWorker, answer: Collected, baseline: Baseline, whole: _Whole, request: RunRequest
    ) -> None:
        """A test that passed before and is bad now gets some more runs, by itself, before the patch is blamed."""
        wanted = {*baseline.passing, *baseline.failing}
        bad = [
            i for i in answer.items if i.id in wanted and i.id in whole.results and not whole.results[i.id].outcome.good
        ]
        if not bad or len(bad) > 20:
            return
        results = dict(whole.results)
        for item in bad:
            if item.id in baseline.failing and whole.results[item.id].outcome is Outcome.TIMED_OUT:
                continue
            if item.id not in baseline.passing:
                continue
            for _ in range(MORE_RUNS):
                again = RunRequest(items=(), cpu_seconds=request.cpu_seconds, budget_seconds=60.0)
                good = {k: r for k, r in suite.run([item], again).results.items() if r.outcome.good}
                if good:
                    results.update(good)
                    break
        whole.results = results

    def _command(self, worker: JailWorker, command: str) -> CheckResult:
        place = self._jails.place
        return checks.run_check(
            worker.client,
            command,
            repo=place.repo,
            python=place.executable,
            trace=False,
            cpu_seconds=120.0,
            wall_seconds=240.0,
            pythonpath=self._request.pythonpath,
        )

    def _judge_shuffled(self, verdict: "_Verdict", mixed: _Whole, baseline: Baseline, seed: int) -> str:
        """Tests that are bad only when shuffled count if the unpatched tree, shuffled alike, has them good."""
        if mixed.lost:
            verdict.reasons.append(f"the shuffled run could not be made: {mixed.lost}")
            return "lost"
        bad = [i for i in (*verdict.turned, *verdict.kept) if i in mixed.ids and not _passed(mixed.results.get(i))]
        if not bad:
            return "as in order"
        turned = set(verdict.turned)
        if any(i not in turned for i in bad) and seed not in self._unpatched:
            self._unpatched[seed] = self._whole({}, baseline, seed, with_tests=True, with_checks=False, unpatched=True)
        unpatched = self._unpatched.get(seed, _Whole())
        mine = [i for i in bad if i not in turned and _passed(unpatched.results.get(i))]
        if mine:
            verdict.reasons.append(f"breaks tests when they run in another order: {_names(mine)}")
            return f"{len(mine)} broken"
        return f"{len(bad)} depend on their order, also without the patch"

    def _judge_hashes(
        self,
        verdict: "_Verdict",
        mixed: _Whole,
        candidate: Candidate,
        changes: Mapping[RepoPath, bytes],
        baseline: Baseline,
    ) -> None:
        """Turned tests that pass with one order of sets alone count: nobody's Python has to have that order.

        Those that fail by themselves also with the usual hashes need other tests before them, and are left.
        """
        turned = frozenset(verdict.turned) & mixed.ids
        bad = frozenset(i for i in turned if not _passed(mixed.results.get(i)))
        seeds, wanted = ((OTHER_HASHES,), bad) if bad else (MORE_HASHES, turned)
        if not bad and not _order_may_show(candidate):
            return
        with cf.ThreadPoolExecutor(len(seeds), thread_name_prefix="hashes") as pool:
            runs = {n: pool.submit(self._with_hashes, changes, baseline, wanted, n) for n in seeds}
        for seed, run in runs.items():
            try:
                lost = wanted - run.result()
                lost = self._with_hashes(changes, baseline, lost, USUAL_HASHES) if lost else lost
            except WorkerLost as ended:
                self._jails.check()
                verdict.reasons.append(f"the run with other hashes could not be made: {ended}")
                return
            if lost:
                verdict.reasons.append(
                    f"passes only with some orders of sets, which Python does not promise (with PYTHONHASHSEED={seed} "
                    f"it fails {_names(sorted(lost))})"
                )
                return

    def _with_hashes(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, wanted: frozenset[str], seed: int
    ) -> frozenset[str]:
        """Which of some tests pass, in their order, in a jail with these hashes of texts."""
        with self._jails.start(changes, WorkerUse.FULL, _hashes(seed)) as worker:
            suite = SuiteWorker(worker.client, self._request)
            answer = suite.open()
            items = [] if isinstance(answer, CollectionRefused) else [i for i in answer.items if i.id in wanted]
            results = suite.run(items, _limits(baseline)).results if items else {}
        return frozenset(i for i, r in results.items() if _passed(r))


class _Verdict:
    """Compares one run with the baseline."""

    def __init__(
        self,
        baseline: Baseline,
        now: _Whole,
        may_fail: Collection[str],
        untouched: Mapping[str, TestResult],
        groups: Mapping[str, str],
    ) -> None:
        self._baseline = baseline
        self._untouched = untouched
        self._may_fail = frozenset(may_fail)
        self._groups = groups
        self._now = now
        self._targets = Targets.of(baseline)
        self.reasons: list[str] = []
        self.doubts: list[str] = []
        self.turned: list[str] = []
        self.kept: list[str] = []
        self.broken: list[str] = []
        self.still: list[str] = []
        self.otherwise: list[str] = []
        self.alike: list[str] = []

    @property
    def summary(self) -> str:
        """In a line."""
        counts = {"turned": self.turned, "kept": self.kept, "broken": self.broken, "still failing": self.still}
        return ", ".join(f"{len(names)} {word}" for word, names in counts.items())

    def compare(self) -> None:
        """Fill the lists and the reasons."""
        if self._now.lost:
            self.reasons.append(f"the tests could not be run: {self._now.lost}")
            self.still.extend(self._baseline.failing)
            return
        self._collection()
        self._tests()
        self._checks()
        self.alike = [name for name in self.still if name not in self._may_fail and self._for_another_reason(name)]
        left = {*self._may_fail, *self.alike}
        for names, text in (
            ([name for name in self.still if name not in left], "still failing"),
            (self.broken, "breaks tests or checks that passed"),
        ):
            if names:
                self.reasons.append(f"{text}: {_names(names)}")

    def _for_another_reason(self, name: str) -> bool:
        """Whether a test fails as before, one of its group turned, and none of these failed in that way."""
        before = {t.id: t.failure for t in self._baseline.tests}
        now = self._now.results.get(name)
        turned = [t for t in self.turned if t in before and self._groups.get(t) == self._groups.get(name)]
        if name not in self._groups or not turned or now is None:
            return False
        way = _way_of(before.get(name))
        return way is not None and way == _way_of(now.failure) and all(way != _way_of(before[t]) for t in turned)

    def _collection(self) -> None:
        known = {name[len(COLLECT_PREFIX) :] for name in self._baseline.collect_failures}
        fresh = [path for path in self._now.errors if path not in known]
        if fresh:
            self.reasons.append(f"files that no longer collect: {_names(fresh)}")
        before = {t.id for t in self._baseline.tests}
        unsure = {*self._baseline.unstable, *self._baseline.flaky}
        lost = sorted(before - self._now.ids - unsure)
        if lost:
            self.reasons.append(f"tests that are no longer collected: {_names(lost)}")
        for name in self._targets.files:
            path = name[len(COLLECT_PREFIX) :]
            items = [] if path in self._now.errors else tests_in(path, self._now.items)
            good = items and all(_good(self._now.results.get(item.id)) for item in items)
            (self.turned if good else self.still).append(name)
        new_bad = [i for i in sorted(self._now.ids - before - unsure) if self._turned_bad(i)]
        if new_bad:
            self.reasons.append(f"tests that can only be collected with the patch, and do not pass: {_names(new_bad)}")

    def _turned_bad(self, test: str) -> bool:
        """Whether a test is bad that was not, or was in another way, on the tree at the start."""
        now, then = self._now.results.get(test), self._untouched.get(test)
        if then is None or _good(then) or _exception(then) != _exception(now):
            return not _good(now)
        return now is None

    def _tests(self) -> None:
        before = {t.id: t for t in self._baseline.tests}
        for name in self._targets.tests:
            result = self._now.results.get(name)
            (self.turned if _passed(result) else self.still).append(name)
            if not _passed(result) and _exception(result) != _exception(before.get(name)):
                self.otherwise.append(name)
        skipped = {t.id for t in self._baseline.tests if t.outcome is Outcome.SKIPPED}
        for name in self._baseline.passing:
            result = self._now.results.get(name)
            kept = _good(result) if name in skipped else _passed(result)
            (self.kept if kept else self.broken).append(name)

    def _checks(self) -> None:
        for check in self._baseline.checks:
            name = f"{CHECK_PREFIX}{check.command}"
            ran = self._now.checks.get(name)
            good = ran is not None and ran.outcome is Outcome.PASSED
            if ran is not None and good:
                counts = compared(check.counts, ran.counts)
                self.reasons += [f"the check {check.command!r} {counts.lost}"] if counts.lost else []
                self.doubts += [f"the check {check.command!r} {counts.odd}"] if counts.odd else []
            if name in self._baseline.failing:
                (self.turned if good else self.still).append(name)
            elif check.outcome.good:
                (self.kept if good else self.broken).append(name)


def _limits(baseline: Baseline) -> RunRequest:
    """What a run of many tests in a cold jail may take."""
    slowest = max((t.seconds for t in baseline.tests if t.outcome is not Outcome.TIMED_OUT), default=0.0)
    return RunRequest(
        items=(),
        inline=True,
        cpu_seconds=max(LEAST_CPU_SECONDS, 5 * slowest),
        wall_seconds=60.0 + 5 * slowest,
        budget_seconds=BUDGET_SECONDS,
    )


def _ordered(answer: Collected, seed: int | None) -> list[Item]:
    """As collected, or shuffled by ids alone, so that patched and unpatched trees get the same order."""
    if seed is None:
        return list(answer.items)
    items = sorted(answer.items, key=lambda item: item.id)
    random.Random(seed).shuffle(items)  # noqa: S311 - an order, not a secret
    return items


def _hashes(seed: int) -> Mapping[str, str]:
    """The variable that makes hashes of texts, and so the order of sets, others."""
    return {"PYTHONHASHSEED": str(seed)}


def _order_may_show(candidate: Candidate) -> bool:
    """Whether a changed file makes sets whose order may be what a repair rests on."""
    trees = (parse_or_none(c.after) for c in candidate.patch.changes if c.path.endswith(".py"))
    return any(tree is not None and set_order_may_show(tree) for tree in trees)


def _good(result: TestResult | None) -> bool:
    return result is not None and result.outcome.good


def _passed(result: TestResult | None) -> bool:
    return result is not None and result.outcome is Outcome.PASSED


def _exception(result: TestResult | None) -> str:
    return result.failure.exception if result is not None and result.failure is not None else ""


def _way_of(failure: Failure | None) -> tuple[str, str, str, str] | None:
    """What was raised, with which words, and in which function of the repository; lines may have moved."""
    if failure is None:
        return None
    place = next((f for f in reversed(failure.frames) if f.path is not None), None)
    return (failure.exception, failure.steady, *((str(place.path), place.function) if place else ("", "")))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name[:200] for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
