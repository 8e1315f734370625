"""Test outcomes, failures, coverage, and what the two checks answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.guard import GuardResult
from localagent.domain.paths import RepoPath

# an object's address, whole or with an end cut off by a report that puts "..." for the middle of a long text
_ADDRESS = re.compile(
    r"0x[0-9a-fA-F]{6,16}\b|(?<=at )0x[0-9a-fA-F]{1,16}\b|0x[0-9a-fA-F]*(?=\.\.\.)"
    r"|(?<=\.\.\.)x?[0-9a-fA-F]{1,16}(?=>|, file)"
)


def steady(text: str) -> str:
    """A report without addresses of objects: they say nothing, and differ from run to run."""
    return _ADDRESS.sub("0x0", text)


class Outcome(StrEnum):
    """What a test did."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMED_OUT = "timed-out"

    @property
    def good(self) -> bool:
        """Passed, or skipped (also expected failures)."""
        return self in (Outcome.PASSED, Outcome.SKIPPED)


class JailOutcome(StrEnum):
    """Why a jailed process ended; decided by the runner, never guessed from an exit code."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    PROCESSES = "processes"
    OUTPUT = "output"
    DISK = "disk"
    COULD_NOT_START = "could-not-start"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One traceback frame inside the repository, innermost last. `path` is None for frames outside it."""

    path: RepoPath | None
    line: int
    function: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a test (or the collection of a file) failed; text is sanitized and bounded.

    `exception` is the type's bare name (`NameError`, `AssertionError`); for a syntax error the last frame is its place.
    `left`/`right` are the reprs of the two sides of the failing comparison when pytest could tell, else "".
    """

    exception: str
    message: str
    frames: tuple[Frame, ...] = ()
    left: str = ""
    right: str = ""

    @property
    def steady(self) -> str:
        """The message without addresses of objects."""
        return steady(self.message)


@dataclass(frozen=True, kw_only=True, slots=True)
class TestResult:
    """One test's outcome. `lines` maps repository files to covered lines when the run was traced, else None."""

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float = 0.0
    failure: Failure | None = None
    lines: Mapping[RepoPath, frozenset[int]] | None = None
    path: RepoPath | None = None
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One `--check` command's answer. Same shape as a test: good means exit status 0.

    `counts`: how many tests each summary in its output claims to have run; untrusted, () where there is none.
    """

    command: str
    outcome: Outcome
    seconds: float
    failure: Failure | None = None
    lines: Mapping[RepoPath, frozenset[int]] | None = None
    counts: tuple[int, ...] = ()


class CauseOrigin(StrEnum):
    """Where the cause of a failure lies."""

    ENVIRONMENT = "environment"
    TEST = "test"
    CODE = "code"


class CauseKind(StrEnum):
    """Causes of failures that no edit of the sources could mend."""

    MISSING_MODULE = "missing-module"
    SIBLING_PACKAGE = "sibling-package"
    NOT_ON_PATH = "not-on-path"
    NOT_BUILT = "not-built"
    DEPENDENCY_VERSION = "dependency-version"
    PYTHON_VERSION = "python-version"
    MISSING_PLUGIN = "missing-plugin"
    UNKNOWN_FIXTURE = "unknown-fixture"
    UNMARKED_ASYNC = "unmarked-async-test"
    DJANGO_SETTINGS = "django-settings"
    MISSING_DATA = "missing-data"
    MISSING_VARIABLE = "missing-variable"
    SYSTEM = "system"  # a shared library, a locale, a display
    SERVICE = "service"
    NOT_WRITTEN = "not-written"
    BROKEN_TEST = "broken-test"  # a test file that does not parse, a conftest.py that refuses
    SAME_NAME = "same-name"  # two test files that pytest would import as one module
    LINTER_FINDING = "linter-finding"  # a linter that runs as a pytest plugin reports something

    @property
    def origin(self) -> CauseOrigin:
        """Where causes of this kind lie."""
        if self in _OF_THE_TESTS:
            return CauseOrigin.TEST
        return (
            CauseOrigin.CODE if self in (CauseKind.NOT_WRITTEN, CauseKind.LINTER_FINDING) else CauseOrigin.ENVIRONMENT
        )


_OF_THE_TESTS = frozenset(
    {CauseKind.UNKNOWN_FIXTURE, CauseKind.UNMARKED_ASYNC, CauseKind.BROKEN_TEST, CauseKind.SAME_NAME}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureCause:
    """Why `failing` ids fail although nothing is wrong with the statements of the code, and what to do about it."""

    kind: CauseKind
    subject: str
    sentence: str
    remedy: str
    failing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """Outcomes of the unpatched tree.

    `failing` are the ids to repair (failing twice; check commands as `check:<command>`; files that are not collected as
    `collect:<path>`). `flaky` changed between the runs; `unstable` are ids that did not exist in both collections.
    `import_lines` are lines executed while collecting (module level, import time). `causes`: why failures that are not
    in `failing` cannot be repaired. `not_run`: how many tests there was no time for.
    """

    tests: tuple[TestResult, ...]
    checks: tuple[CheckResult, ...] = ()
    collect_failures: Mapping[str, Failure] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    import_lines: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict)
    test_files: frozenset[RepoPath] = frozenset()
    notes: tuple[str, ...] = ()
    python: str = ""
    pytest: str = ""
    causes: tuple[FailureCause, ...] = ()
    not_run: int = 0


class QuickRoute(StrEnum):
    """How a quick check ran its candidate."""

    SWAP = "swap"  # forked from a collected session, the function's code object replaced
    FRESH = "fresh"  # forked before collection, everything of the repository imported anew
    COLD = "cold"  # a new jail


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickResult:
    """What the quick check saw. `outcomes` covers at least each failing id up to the first bad one when stopped early.

    `turned` are baseline-failing ids now good; `broken` are baseline-passing ids now bad (only those that were run).
    `complete` is True when every failing id and every selected passing id was run.
    """

    outcomes: Mapping[str, Outcome]
    turned: tuple[str, ...]
    broken: tuple[str, ...]
    complete: bool
    plausible: bool
    route: QuickRoute
    ending: JailOutcome = JailOutcome.EXITED
    failures: Mapping[str, Failure] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class FullResult:
    """The full check's answer: accepted only if `reasons` is empty. `remarks`: what was asked for and had no say.

    `guard`: what tests outside the goal said of it, None where the guard was not come to.
    `doubts`: why a person has to look at it although nothing was found against it.
    `fails_otherwise`: of `still_failing`, tests that end with another exception than before. `fails_alike`: tests that
    fail as before, for another reason than those that turn: nothing is refused because of them.
    `late`: the time of the task was used up first, so that its reasons may say no more than that.
    """

    accepted: bool
    reasons: tuple[str, ...]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    pass_to_fail: tuple[str, ...]
    still_failing: tuple[str, ...]
    checks: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    guard: GuardResult | None = None
    doubts: tuple[str, ...] = ()
    fails_otherwise: tuple[str, ...] = ()
    fails_alike: tuple[str, ...] = ()
    late: bool = False
