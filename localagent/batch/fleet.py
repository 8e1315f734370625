"""A fleet: which repositories, what to do in each, what it may cost. Values only; `parse` makes them of FLEET.toml."""

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from pathlib import Path


class WorkKind(StrEnum):
    """What can be done in a repository, in the order in which it is done."""

    FAILING_TESTS = "failing-tests"
    SARIF = "sarif"
    TYPE_ERRORS = "type-errors"
    CODEMODS = "codemods"
    INSTRUCTION = "instruction"


class DiskPriority(StrEnum):
    """The class in which the kernel orders what a worker reads and writes."""

    IDLE = "idle"
    BEST_EFFORT = "best-effort"
    NORMAL = "normal"


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeSource:
    """Where a tree comes from: a folder as it stands, or a revision out of an object store (`revision` is not "")."""

    folder: Path
    revision: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetMember:
    """One repository and its budget. `name` is unique in the fleet and fit to be a file's name.

    `guard`: as `fix --guard` says it, empty for the whole suite. `sarif` are other tools' logs, made where the
    repository stands or at `sarif_was_at`. `instruction` is what `do` carries out, by `chat_model` where it needs one;
    `assume` and `max_tokens` are as there.
    """

    name: str
    source: TreeSource
    work: tuple[WorkKind, ...]
    tests: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    python: str = ""
    rules: tuple[str, ...] = ()
    sarif: tuple[Path, ...] = ()
    sarif_was_at: str = ""
    seed: int = 0
    max_seconds: float = 600.0
    max_candidates: int = 500
    memory_bytes: int = 4 << 30
    use_model: bool = True
    policy: Path | None = None
    instruction: str = ""
    chat_model: str = ""
    assume: bool = False
    max_tokens: int = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeWindow:
    """The part of the day, in local time, in which work may run; it may pass midnight."""

    start: time
    end: time

    def closes(self, now: datetime) -> datetime | None:
        """When the window that is open at `now` closes; None where it is shut."""
        for day in (now.date() - timedelta(days=1), now.date()):
            opens = datetime.combine(day, self.start)
            shuts = datetime.combine(day + timedelta(days=self.end <= self.start), self.end)
            if opens <= now < shuts:
                return shuts
        return None

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A Dask cluster: its scheduler (`tls://…`), the folder of our certificates, and the least level of its jails."""

    scheduler: str
    certificates: Path
    level: str = "L1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """What FLEET.toml says. `max_seconds` bounds the sum over all repositories, None for no bound."""

    name: str
    members: tuple[FleetMember, ...]
    jobs: int = 1
    max_seconds: float | None = None
    window: TimeWindow | None = None
    nice: int = 10
    disk: DiskPriority = DiskPriority.IDLE
    cluster: Cluster | None = None
    digest: str = field(default="", compare=False)
