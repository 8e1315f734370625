"""The guard: which tests beside the goal's must stay as they are, and what came of running them with a patch.

The goal (`--test`, `--check`) is what a patch is to turn; the guard is what it must not break. Limitations: a guard
proves nothing about tests that it did not run, and says how many those are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

DEFAULT_SECONDS = 120.0
VERIFY_SECONDS = 20.0  # of a patch that somebody made
MOST_SECONDS = 3600.0
MOST_CHECKS = 4  # all guard checks of a task together take at most so many times the seconds of one
NO_GUARD = "none"
MOST_NAMED = 50  # ids in a result
MOST_ID_CHARACTERS = 500


class GuardScope(StrEnum):
    """What the guard is: the whole suite that is found, what was named with `--guard`, or nothing."""

    SUITE = "suite"
    NAMED = "named"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """What was asked. `tests` are pytest arguments, empty unless `scope` is NAMED. `seconds`: for one candidate."""

    scope: GuardScope = GuardScope.SUITE
    tests: tuple[str, ...] = ()
    seconds: float = DEFAULT_SECONDS

    def __post_init__(self) -> None:
        if bool(self.tests) is not (self.scope is GuardScope.NAMED):
            raise ValueError(f"a guard of scope {self.scope.value} with tests {self.tests!r}")

    @property
    def specs(self) -> tuple[str, ...]:
        """As `--guard` says it: empty for the whole suite, `none`, or the arguments."""
        return (NO_GUARD,) if self.scope is GuardScope.NONE else self.tests

    @property
    def task_seconds(self) -> float:
        """What all guard checks of a task may take together."""
        return 0.0 if self.scope is GuardScope.NONE else MOST_CHECKS * self.seconds


def guard_of(specs: Sequence[str], seconds: float) -> Guard:
    """The guard of what `--guard` and `--guard-seconds` say; ask `guard_faults` first."""
    if tuple(specs) == (NO_GUARD,):
        return Guard(scope=GuardScope.NONE, seconds=seconds)
    scope = GuardScope.NAMED if specs else GuardScope.SUITE
    return Guard(scope=scope, tests=tuple(specs), seconds=seconds)


def guard_faults(specs: Sequence[str], seconds: float) -> list[str]:
    """Every fault of the two, as the options are called on the command line."""
    faults = []
    if NO_GUARD in specs and len(specs) > 1:
        faults.append("--guard: none stands alone (a folder of that name is ./none)")
    if any(not spec.strip() for spec in specs):
        faults.append("--guard: is empty")
    if any("\0" in spec for spec in specs):
        faults.append("--guard: holds NUL")
    if not math.isfinite(seconds) or not 0 < seconds <= MOST_SECONDS:
        faults.append(f"--guard-seconds: more than 0 and at most {MOST_SECONDS:.0f} (`--guard none` runs nothing)")
    return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardResult:
    """What running the guard with a patch showed.

    `found` tests outside the goal are collected without the patch; `ran` of them ran with it, `passed` are good
    (skipped ones and `flaky` ones included), `not_run` were not reached. `broken` pass without the patch and fail with
    it, files that only collect without it as `collect:<path>`; `flaky` failed once with it and passed when run again;
    `undecided` fail with it, and no time was left to see whether also without. Tests that fail without the patch, too,
    are the rest. `why`: "" or the reason why nothing, or less than everything, ran; `unknown`: there may be tests that
    could not be found or were not asked. Ids are bounded in number and length.
    """

    found: int = 0
    ran: int = 0
    passed: int = 0
    broken: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    not_run: int = 0
    seconds: float = 0.0
    why: str = ""
    unknown: bool = False

    @property
    def refusal(self) -> str:
        """Why a patch is refused by this, or ""."""
        if not self.broken:
            return ""
        more = f" and {len(self.broken) - 5} more" if len(self.broken) > 5 else ""
        told = f" ({self.why})" if self.why else ""
        return f"breaks tests outside --test: {', '.join(name[:200] for name in self.broken[:5])}{more}{told}"


def bounded_ids(names: Sequence[str]) -> tuple[str, ...]:
    """At most `MOST_NAMED` ids, each cut at `MOST_ID_CHARACTERS`."""
    return tuple(name[:MOST_ID_CHARACTERS] for name in names[:MOST_NAMED])
