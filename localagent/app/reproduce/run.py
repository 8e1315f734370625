"""One `reproduce`: run what fails, see how often, reduce it in the jail, and see it fail once more from nothing.

The repository is only read; everything runs on private copies.
"""

import contextlib
import shlex
import time
from dataclasses import replace
from pathlib import Path

from localagent.app.cancellation import Stop
from localagent.app.policies import open_policy
from localagent.app.reproduce.reduction import Reduction
from localagent.app.reproduce.request import ReproduceRequest, path_of, test_in_trace
from localagent.app.review.patch_tests import ProofRequest, TestedSnapshot, open_tested_snapshot
from localagent.app.settings import Settings
from localagent.code.doctests import only_doctests
from localagent.domain.failure_signature import signature_of
from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.reproduction import FailureRate, FlakyCause, Reproduction, ReproductionStatus
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo, Interrupted
from localagent.ports import Sink
from localagent.reproduce.candidate_runs import COLLECTION, CandidateRuns, RunLimits, Variant
from localagent.reproduce.flakiness import FlakinessSearch
from localagent.reproduce.pytest_file import Program, Script
from localagent.reproduce.varied_runs import VariedRuns
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.worker.worker_client import RunRequest, WorkerLost
from localagent.verify.worker.worker_spec import WorkerUse

RUNS = 5  # of a failing test, before it is believed to fail always
FLAKY_RUNS = 24
MOST_TESTS = 2000
_ENDING = frozenset({"TimeLimit", "InterpreterExit", "Crash", "Garbage", "Exit"})  # no child tells of these itself


def run_reproduce(request: ReproduceRequest, settings: Settings, sink: Sink, stop: Stop | None = None) -> Reproduction:
    """The answer. UsageFault for a wrong argument, CannotEnforce without a sound jail."""
    policy = open_policy(settings, request.policy, request.repo).policy
    proof = ProofRequest(
        repo=request.repo, python=request.python, max_seconds=request.max_seconds, backend=request.backend
    )
    work: _Work | None = None
    try:
        with open_tested_snapshot(proof, settings, policy, sink, stop) as ground:
            work = _Work(request, ground, sink)
            with contextlib.closing(work):
                return work.answer()
    except (KeyboardInterrupt, Interrupted):
        return work.interrupted() if work is not None else _interrupted(request.target)
    except AnswerIsNo as no:
        return Reproduction(
            status=ReproductionStatus.NOT_RUN, test=request.target, reason=str(no), remedy=no.remedy or ""
        )


def _interrupted(test: str) -> Reproduction:
    return Reproduction(status=ReproductionStatus.INTERRUPTED, test=test, reason="interrupted; the tree is as it was")


class _Work:
    """One request on one snapshot."""

    def __init__(self, request: ReproduceRequest, ground: TestedSnapshot, sink: Sink) -> None:
        self._request, self._ground, self._sink = request, ground, sink
        self._pool = ground.verifier.worker_pool
        self._begin = time.monotonic()
        self._until = self._begin + request.max_seconds
        self._runs = CandidateRuns(self._pool)
        self._varied: VariedRuns | None = None
        self._reduction: Reduction | None = None
        self._test = request.target
        self._pythonpath: tuple[str, ...] = ()

    def close(self) -> None:
        """End every jail."""
        self._runs.close()
        if self._varied is not None:
            self._varied.close()

    def interrupted(self) -> Reproduction:
        """The smallest program so far, if there is one."""
        if self._reduction is None:
            return _interrupted(self._test)
        reason = "interrupted: the smallest so far, not run again from nothing"
        return self._reduction.answer(ReproductionStatus.INTERRUPTED, reason)

    def stage(self, name: str) -> None:
        """Tell the sink."""
        self._tell("stage", stage=name)

    def _tell(self, kind: str, **data: object) -> None:
        self._sink.emit(Event(kind=kind, at_seconds=round(time.monotonic() - self._begin, 3), data=data))

    def answer(self) -> Reproduction:
        """By what the request names."""
        request, target = self._request, self._request.target
        if request.trace:
            target = self._test = test_in_trace(request.trace, self._ground.sources)
        self.stage("original")
        if request.inputs:
            return self._script(target)
        result = self._failing_test(target)
        if result is None and target.endswith(".py") and not self._collects:
            return self._script(target)
        if result is None or result.failure is None:
            if not request.flaky:
                return self._passes(target)
            if len(self._ids) != 1:
                raise AnswerIsNo("--flaky needs the one test to run again and again", remedy="name it: FILE::TEST")
            return self._flaky(self._ids[0])
        return self._failing(result, result.failure)

    def _passes(self, target: str) -> Reproduction:
        what = target or "every test"
        return Reproduction(
            status=ReproductionStatus.PASSES,
            test=target,
            reason=f"nothing fails: {what} passed in the jail",
            remedy="a test that fails sometimes: --flaky; one that fails elsewhere may need that environment: --python",
            runs=1,
            seconds=time.monotonic() - self._begin,
        )

    # -- what fails

    def _failing_test(self, target: str) -> TestResult | None:
        """The first failing test that a pytest argument selects, or the first file that does not import."""
        if target:
            path_of(target, self._request.repo)
        task = replace(self._ground.task, tests=(target,) if target else ())
        collecting = Collecting(self._pool.place, task)
        self._collects, self._ids = False, list[str]()
        try:
            with self._pool.start({}, WorkerUse.FULL) as worker:
                suite, found = collecting.first(worker)
                self._pythonpath = collecting.request.pythonpath
                self._ids = [item.id for item in found.items]
                self._collects = bool(found.items or found.errors)
                for name, failure in found.errors.items():
                    return TestResult(id=f"{COLLECTION}{name}", outcome=Outcome.ERROR, failure=failure)
                budget = max(30.0, self._request.max_seconds / 3)
                limits = RunRequest(items=(), cpu_seconds=20.0, wall_seconds=30.0, budget_seconds=budget)
                ran = suite.run(found.items[:MOST_TESTS], limits)
        except WorkerLost as lost:
            self._pool.check()
            raise AnswerIsNo(f"the tests could not be run: {lost}") from None
        return next((r for i in self._ids if (r := ran.results.get(i)) and not r.outcome.good), None)

    def _failing(self, result: TestResult, failure: Failure) -> Reproduction:
        self._test = result.id.removeprefix(COLLECTION)
        path = path_of(self._test, self._request.repo)
        if not path.is_python or only_doctests(path, self._ground.sources.get(path, b""), {result.id}):
            raise AnswerIsNo(f"{self._test} is a doctest", remedy="copy it into a test function, and name that")
        spent = max(1.0, 4 * result.seconds)
        self._runs = CandidateRuns(self._pool, self._pythonpath)
        self._runs.limits = RunLimits(cpu_seconds=min(20.0, 1 + spent), wall_seconds=min(30.0, 5 + 2 * spent))
        self.stage("rate")
        rate, steady = self._rate(failure)
        if not steady or self._request.flaky:
            if result.id.startswith(COLLECTION):
                raise AnswerIsNo(f"{self._test} imports in some runs only ({rate} failed)")
            return self._flaky(result.id)
        self.stage("reduce")
        ended = failure.exception in _ENDING or result.id.startswith(COLLECTION)
        self._runs.hot = None if ended else Variant(files={}, spec=str(path))
        reduction = self._reducing(path, failure, rate)
        reduction.of_test()
        self.stage("confirm")
        return reduction.confirmed()

    def _reducing(self, path: RepoPath, failure: Failure | None = None, rate: FailureRate | None = None) -> Reduction:
        self._reduction = Reduction(
            request=self._request,
            sources=self._ground.sources,
            store=Path(self._pool.place.store),
            runs=self._runs,
            test=self._test,
            path=path,
            failure=failure,
            rate=rate,
            until=self._until,
            begin=self._begin,
            tell=self._progress,
        )
        return self._reduction

    def _rate(self, failure: Failure) -> tuple[FailureRate, bool]:
        """How often the test fails in runs of its own, in a warm worker if that agrees; and whether always alike."""
        variant = Variant(files={}, spec=self._test)
        wanted = signature_of(failure)
        self._runs.warm = any(_fails_so(r, wanted) for r in self._runs.results(variant))
        runs = self._request.runs or RUNS
        outcomes = [self._runs.results(variant) for _ in range(runs if self._in_time(0.25) else 2)]
        failed = sum(any(not r.outcome.good for r in results) for results in outcomes)
        alike = all(any(_fails_so(r, wanted) for r in results) for results in outcomes)
        return FailureRate(failed=failed, runs=len(outcomes)), alike

    def _in_time(self, share: float) -> bool:
        return time.monotonic() - self._begin < share * self._request.max_seconds

    def _progress(self, runs: int, size: int, before: int) -> None:
        self._tell("reducing", runs=runs, size=size, before=before)

    # -- scripts

    def _script(self, target: str) -> Reproduction:
        path = path_of(target, self._request.repo)
        self._test = str(path)
        source = self._ground.sources.get(path)
        if source is None:
            raise AnswerIsNo(f"{path} is not a Python source of the repository (ignored, or larger than 2 MB)")
        reduction = self._reducing(path)
        program = Program(source=source, inputs=dict(self._request.inputs))
        reduction.of_script(Script(path=path), program, self.stage)
        self.stage("confirm")
        return reduction.confirmed()

    # -- flaky tests

    def _flaky(self, test: str) -> Reproduction:
        self.stage("flaky")
        self._test = test
        self._varied = VariedRuns(self._pool, test, (), self._pythonpath)
        self._varied.limits = self._runs.limits
        self._varied.writable = not self._runs.warm or self._writes(test)
        search = FlakinessSearch(
            self._varied,
            test,
            self._request.runs or FLAKY_RUNS,
            self._until,
            lambda text: self._tell("trial", text=text),
        )
        report = search.report()
        return Reproduction(
            status=ReproductionStatus.NOT_FLAKY if report.cause is FlakyCause.NONE else ReproductionStatus.FLAKY,
            test=test,
            reason=report.sentence,
            command=report.show or f"python -m pytest {shlex.quote(test)}",
            rate=report.rate,
            flaky=report,
            runs=self._runs.runs + self._varied.runs,
            seconds=time.monotonic() - self._begin,
        )

    def _writes(self, test: str) -> bool:
        """Whether the test fails where it cannot write into the tree, by what it says then."""
        results = self._runs.results(Variant(files={}, spec=test))
        return any(r.failure is not None and "Read-only file system" in r.failure.message for r in results)


def _fails_so(result: TestResult, wanted: object) -> bool:
    return not result.outcome.good and result.failure is not None and signature_of(result.failure) == wanted
