"""What the batch is handed by whoever starts it: the hook's rules, which are a sibling's."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from localagent.app.review.patch_tests import Vouching
from localagent.batch.pool import WorkerEnded
from localagent.domain.edit import Patch
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.report.sarif_input import Reported

HELD = 75  # a worker's exit status: a twin of its repository is being worked on, ask again


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairedFile:
    """One file after its repairs. `after` is None where nothing changed; `refused` says why repairs were not made.

    `repaired` are (line, rule, message); `left` the rules of the findings that stay.
    """

    after: bytes | None
    repaired: tuple[tuple[int, str, str], ...] = ()
    left: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingOutcome:
    """What became of one finding, in the words of `localagent remediate`. `settled`: nothing was to be done."""

    reported: Reported
    state: str
    why: str
    proof: str = ""
    settled: bool = False

    @property
    def fixed(self) -> bool:
        """Whether its repair is in the patch."""
        return self.state == "fixed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What there is to repair: `read` gives a file, `vouching` is opened if there is something to prove."""

    reported: Sequence[Reported]
    read: Callable[[RepoPath], bytes]
    vouching: Callable[[], AbstractContextManager[Vouching | None]]
    policy: Policy


class WorkerCrew(Protocol):
    """Who works off repositories: processes of this machine, or a cluster. Answers lie in the run when one ended."""

    @property
    def free(self) -> bool:
        """Whether one more may start."""
        ...

    @property
    def busy(self) -> tuple[int, ...]:
        """The numbers that are worked on."""
        ...

    def running_seconds(self) -> float:
        """Seconds that those have taken so far, together."""
        ...

    def start(self, number: int, seconds: float) -> None:
        """Begin with a repository, which has so much time."""
        ...

    def wait(self, seconds: float) -> list[WorkerEnded]:
        """Those that ended within so many seconds."""
        ...

    def end(self) -> None:
        """End what is worked on."""
        ...


class Codemods(Protocol):
    """Repairs files in memory, each proven, by the rules named (none: the standard ones)."""

    def repair(self, path: RepoPath, data: bytes, rules: Sequence[str], policy: Policy) -> RepairedFile:
        """A file's repairs, judged by the gates of a policy."""
        ...

    def remediate(self, findings: Findings) -> tuple[tuple[FindingOutcome, ...], Patch]:
        """Other tools' findings, answered one by one, and the patch of what was repaired."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerCommands:
    """How workers are started (a run's folder and more follow), and the names of the rules there are."""

    worker: tuple[str, ...]
    rules: tuple[str, ...] = field(default=())
