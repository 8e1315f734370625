"""What `localagent reproduce` answers: the smallest program that fails, how often it fails, why it is flaky."""

import math
from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.failure_signature import FailureSignature

_Z = 1.96  # 95 %


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRate:
    """How many of how many runs failed."""

    failed: int
    runs: int

    @property
    def always(self) -> bool:
        """Whether every run failed."""
        return self.failed == self.runs > 0

    @property
    def never(self) -> bool:
        """Whether no run failed."""
        return not self.failed

    @property
    def varies(self) -> bool:
        """Whether some failed and some did not."""
        return 0 < self.failed < self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval at 95 %; (0, 1) without runs."""
        if not self.runs:
            return 0.0, 1.0
        n, p = self.runs, self.failed / self.runs
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __add__(self, other: "FailureRate") -> "FailureRate":
        return FailureRate(failed=self.failed + other.failed, runs=self.runs + other.runs)

    def __str__(self) -> str:
        return f"{self.failed} of {self.runs}"


class FlakyCause(StrEnum):
    """What a test's outcome depends on beside the code."""

    ORDER = "order"
    HASH_SEED = "hash-seed"
    RANDOM = "random"
    TIME = "time"
    THREADS = "threads"
    SHARED_FILE = "shared-file"
    UNKNOWN = "unknown"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What was varied, and how often the test failed then."""

    condition: str
    rate: FailureRate


@dataclass(frozen=True, kw_only=True, slots=True)
class FlakyReport:
    """The cause with its evidence. `polluters` are the tests that have to run before; `show` is what shows it again."""

    cause: FlakyCause
    sentence: str
    rate: FailureRate
    trials: tuple[Trial, ...] = ()
    polluters: tuple[str, ...] = ()
    show: str = ""


class ReproductionStatus(StrEnum):
    """How it ended."""

    REPRODUCED = "reproduced"  # reduced, and seen to fail in the same way in a new jail
    FLAKY = "flaky"
    NOT_FLAKY = "not-flaky"  # the outcome never changed, whatever was varied
    PASSES = "passes"
    NOT_RUN = "not-run"  # nothing could be run, or what was asked for is of a kind that cannot be reduced
    UNCONFIRMED = "unconfirmed"  # smaller, but not seen to fail from nothing
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reproduction:
    """`file` is the reduced pytest file, to be put at `path` of the repository; b"" where there is none.

    `bytes_before` counts the test's file, what conftest files it had, and its data; `complete`: nothing more of it can
    be left out by the means there are.
    """

    status: ReproductionStatus
    test: str
    reason: str
    signature: FailureSignature | None = None
    message: str = ""
    file: bytes = b""
    path: str = ""
    command: str = ""
    rate: FailureRate | None = None
    bytes_before: int = 0
    bytes_after: int = 0
    runs: int = 0
    seconds: float = 0.0
    complete: bool = False
    flaky: FlakyReport | None = None
    remedy: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def exit(self) -> int:
        """0 where there is a reproduction or the cause of a flaky test, 1 for no, 130 interrupted."""
        if self.status is ReproductionStatus.INTERRUPTED:
            return 130
        known = self.flaky is not None and self.flaky.cause not in (FlakyCause.UNKNOWN, FlakyCause.NONE)
        return 0 if self.status is ReproductionStatus.REPRODUCED or known else 1
