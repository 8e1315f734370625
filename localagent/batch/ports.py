"""What the batch is handed by whoever starts it: the hook's rules, which are a sibling's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy

HELD = 75  # a worker's exit status: a twin of its repository is being worked on, ask again


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """One file after its repairs. `after` is None where nothing changed; `refused` says why repairs were not made.

    `repaired` are (line, rule, message); `left` the rules of the findings that stay.
    """

    after: bytes | None
    repaired: tuple[tuple[int, str, str], ...] = ()
    left: tuple[str, ...] = ()
    refused: str = ""


class Codemods(Protocol):
    """Repairs files in memory, each proven, by the rules named (none: the standard ones)."""

    def repair(self, path: RepoPath, data: bytes, rules: Sequence[str], policy: Policy) -> Repaired:
        """A file's repairs, judged by the gates of a policy."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Ways:
    """How workers are started (a run's folder and more follow), and the names of the rules there are."""

    worker: tuple[str, ...]
    rules: tuple[str, ...] = field(default=())
