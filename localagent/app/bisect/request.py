"""What a bisection is asked, and the record from which `--resume` asks it again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.jail.api import BackendKind


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectRequest:
    """What the user asked for, parsed. Revisions and dates as given; `seconds` bound one run of one commit.

    `log`: the text of `git bisect log`, "" for none.
    """

    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    bad: str = ""
    since: str = ""
    log: str = ""
    carry: tuple[RepoPath, ...] = ()
    jobs: int = 1
    first_parent: bool = False
    any_failure: bool = False
    hunks: bool = True
    python: str = ""
    seconds: float = 120.0
    policy: Path | None = None
    backend: BackendKind | None = None

    def recorded(self) -> dict[str, Any]:
        """What `--resume` needs."""
        return {
            "tests": self.tests,
            "checks": self.checks,
            "good": self.good,
            "bad": self.bad,
            "since": self.since,
            "log": self.log,
            "carry": self.carry,
            "first_parent": self.first_parent,
            "any_failure": self.any_failure,
            "hunks": self.hunks,
            "python": self.python,
            "seconds": self.seconds,
        }


def request_from(record: Any) -> BisectRequest:
    """A recorded request, the rest at its defaults. ValueError, KeyError or TypeError where it is none."""
    return BisectRequest(
        repo=Path(),
        tests=tuple(map(str, record["tests"])),
        checks=tuple(map(str, record["checks"])),
        good=tuple(map(str, record["good"])),
        bad=str(record["bad"]),
        since=str(record["since"]),
        log=str(record["log"]),
        carry=tuple(RepoPath(str(path)) for path in record["carry"]),
        first_parent=bool(record["first_parent"]),
        any_failure=bool(record["any_failure"]),
        hunks=bool(record["hunks"]),
        python=str(record["python"]),
        seconds=float(record["seconds"]),
    )
