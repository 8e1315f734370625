"""The reduction of one failing test or script, and its result: a pytest file that is run once more from nothing."""

import ast
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.app.reproduce.request import ReproduceRequest
from localagent.code.source_text import parse_or_none, read_source
from localagent.domain.failure_signature import FailureSignature, signature_of
from localagent.domain.outcome import Failure, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.reproduction import FailureRate, Reproduction, ReproductionStatus
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.bounded_read import read_below
from localagent.reproduce.candidate_runs import NO_CONFTEST, CandidateRuns, Variant
from localagent.reproduce.data_units import LARGEST_BYTES
from localagent.reproduce.pytest_file import Program, Script, slug, test_file
from localagent.reproduce.reducer import Reducer, Target
from localagent.reproduce.start_program import conftests_of, merged
from localagent.verify.worker.worker_client import WorkerLost

Tell = Callable[[int, int, int], None]  # runs, bytes now, bytes before
RESERVED_SHARE, MOST_RESERVED_SECONDS = 0.15, 30.0  # of the time: to run the result from nothing
TELL_SECONDS = 2.0


@dataclass(kw_only=True, slots=True)
class Reduction:
    """`until` and `begin` are moments of the monotonic clock; `failure` is the original one, as soon as it is known."""

    request: ReproduceRequest
    sources: Mapping[RepoPath, bytes]
    store: Path
    runs: CandidateRuns
    test: str
    path: RepoPath
    failure: Failure | None
    rate: FailureRate | None
    until: float
    begin: float
    tell: Tell
    _target: Target | None = None
    _reducer: Reducer | None = None
    _before: int = 0
    _told: float = 0.0
    _remarks: list[str] = field(default_factory=list)

    # -- reducing

    def of_test(self) -> None:
        """From a test of `path`. AnswerIsNo where its file fails in another way as soon as it has another name."""
        assert self.failure is not None
        conftests = conftests_of(self.path, self.sources)
        source = self.sources.get(self.path)
        if source is None:
            raise AnswerIsNo(f"{self.path} is not a Python source of the repository (ignored, or larger than 2 MB)")
        name = self.test.split("[", 1)[0].partition("::")[2]
        self._before = sum(len(self.sources[c]) for c in conftests) + len(source)
        place = self._new_path(name or self.path.name.removesuffix(".py"))
        test_code = frozenset({str(self.path), *map(str, conftests)})
        target = Target(
            signature=signature_of(self.failure, test_code),
            path=place,
            rendered=test_file,
            test_code=test_code,
            test=name,
        )
        text = read_source(source)
        starts = [Program(source=text.utf8 if text is not None else source)]
        whole = merged([self.sources[c] for c in conftests], source) if conftests else None
        tries = [(replace(target, options=(NO_CONFTEST,)), Program(source=whole))] if whole is not None else []
        for each, start in [*tries, *((target, s) for s in starts)]:
            if self._reduced(each, start):
                self._adopt_files()
                return
        raise AnswerIsNo(
            f"{self.test} fails, but not in this way from a file of another name",
            remedy="it may depend on its own file name or on the tests around it: --flaky",
        )

    def of_script(self, script: Script, start: Program, stage: Callable[[str], None]) -> None:
        """From a script, which is run once to see how it fails. AnswerIsNo where it does not."""
        self._before = start.size
        target = Target(
            signature=FailureSignature(exception="", pattern="", path="", function=""),
            path=self._new_path(script.path.name.removesuffix(".py")),
            rendered=script.test_file,
            test_code=frozenset({str(script.path)}),
        )
        results = [self.runs.results(target.variant(start)) for _ in range(3)]
        failures = [_failure(found) for found in results]
        if all(failure is None for failure in failures):
            raise AnswerIsNo(f"nothing fails: {script.path} ended without an exception in the jail")
        signatures = {signature_of(f, target.test_code | {str(target.path)}) for f in failures if f is not None}
        failed = sum(failure is not None for failure in failures)
        self.rate = FailureRate(failed=failed, runs=len(failures))
        if failed < len(failures) or len(signatures) > 1:
            raise AnswerIsNo(f"{script.path} does not fail alike in each run ({self.rate} failed)")
        self.failure = failures[0]
        stage("reduce")
        empty = self._new_path(f"session_of_{script.path.name}")
        self.runs.hot = Variant(files={empty: b""}, spec=str(empty))  # it imports nothing, and pytest is there already
        if not self._reduced(replace(target, signature=signatures.pop()), start):
            raise AnswerIsNo(f"{script.path} does not fail alike in each run")

    def _new_path(self, name: str) -> RepoPath:
        """A new name beside the original; where the user wants the result, if that is in the repository."""
        if self.request.place is not None:
            return self.request.place
        folder = self.path.rpartition("/")[0]
        stem = f"{folder}/test_reproduce_{slug(name)}" if folder else f"test_reproduce_{slug(name)}"
        number = ""
        while RepoPath(f"{stem}{number}.py") in self.sources:
            number = f"_{int(number[1:] or 1) + 1}"
        return RepoPath(f"{stem}{number}.py")

    def _reduced(self, target: Target, start: Program) -> bool:
        """False where the start does not fail in this way."""
        reserved = min(MOST_RESERVED_SECONDS, RESERVED_SHARE * self.request.max_seconds)
        reducer = Reducer(self.runs, target, start, self.until - reserved, self._progress)
        if not reducer.fails(start):
            return False
        self._target, self._reducer = target, reducer
        reducer.reduce()
        return True

    def _adopt_files(self) -> None:
        """Data files that the reduced test names go into it, and are reduced as well."""
        assert self._reducer is not None
        assert self._target is not None
        if self._target.keeps_data or not self._target.test:
            return
        for name, data in self._named_files(self._reducer.best.source).items():
            best = self._reducer.best
            if self._reducer.in_time and self._reducer.fails(replace(best, inputs={**best.inputs, name: data})):
                self._before += len(data)
        if self._reducer.best.inputs:
            self._reducer.reduce()

    def _named_files(self, source: bytes) -> dict[str, bytes]:
        """Files below the test's folder or the root whose path ends with a literal of the source."""
        tree = parse_or_none(source)
        found: dict[str, bytes] = {}
        if tree is None:
            return found
        folder = self.store / self.path.rpartition("/")[0]
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(value, str) or not 3 <= len(value) <= 200 or "." not in value or "\0" in value:
                continue
            for root in (self.store, folder):
                places = [value, *sorted(str(p.relative_to(root)) for p in root.glob(f"*/{value.rsplit('/', 1)[-1]}"))]
                for place in places if ".." not in value and not value.startswith("/") else []:
                    data = _read(root, place)
                    if data is not None and not place.endswith(".py"):
                        found.setdefault(value, data)
        return found

    def _progress(self, runs: int, size: int) -> None:
        now = time.monotonic()
        if now - self._told >= TELL_SECONDS:
            self._told = now
            self.tell(runs, size, self._before)

    # -- the result

    def confirmed(self) -> Reproduction:
        """The result, said to reproduce once it failed in the same way in a new jail, with nothing from before."""
        assert self._reducer is not None
        assert self._target is not None
        for options in dict.fromkeys(((), self._target.options)):
            variant = Variant(
                files={self._target.path: self._file(options)}, spec=str(self._target.path), options=options
            )
            self.runs.runs += 1
            try:
                again = self._target.same(self.runs.cold(variant))
            except WorkerLost:
                again = None
            if again is not None:
                self._target = replace(self._target, options=options)
                return self.answer(
                    ReproductionStatus.REPRODUCED, "fails in the same way, run from nothing in a new jail"
                )
        return self.answer(ReproductionStatus.UNCONFIRMED, "did not fail in the same way when run again from nothing")

    def answer(self, status: ReproductionStatus, reason: str) -> Reproduction:
        """With what there is by now."""
        assert self._reducer is not None
        assert self._target is not None
        best = self._reducer.best
        return Reproduction(
            status=status,
            test=self.test,
            reason=reason,
            signature=self._target.signature,
            message=self.failure.message if self.failure is not None else "",
            file=self._file(self._target.options),
            path=str(self._target.path),
            command=self._command(self._target.options),
            rate=self.rate,
            bytes_before=self._before,
            bytes_after=best.size,
            runs=self.runs.runs,
            seconds=time.monotonic() - self.begin,
            complete=self._reducer.in_time and status is not ReproductionStatus.INTERRUPTED,
            remarks=tuple(self._remarks),
        )

    def _command(self, options: tuple[str, ...]) -> str:
        assert self._target is not None
        return shlex.join(["python", "-m", "pytest", *options, str(self._target.path)])

    def _file(self, options: tuple[str, ...]) -> bytes:
        """The program with a remark on what it shows and how to run it."""
        assert self._reducer is not None
        assert self._target is not None
        first = str(self._target.signature).encode("ascii", "backslashreplace").decode()[:110]
        head = f"# Reproduces {self.test.encode('ascii', 'backslashreplace').decode()}:\n# {first}\n"
        head += f"# Run in the repository's root: {self._command(options)}\n"
        return head.encode() + self._target.rendered(self._reducer.best).lstrip()


def _failure(results: tuple[TestResult, ...]) -> Failure | None:
    return next((r.failure for r in results if not r.outcome.good and r.failure is not None), None)


def _read(root: Path, place: str) -> bytes | None:
    try:
        return read_below(root, RepoPath(place), LARGEST_BYTES)
    except (OSError, UsageFault):
        return None
