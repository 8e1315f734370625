"""What a `fix` task is asked, and what its front end shows of the answer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localagent.domain.bisection import RevertedHunk
from localagent.domain.guard import Guard
from localagent.domain.task import Budget, Choosing, Task
from localagent.jail.api import BackendKind


@dataclass(frozen=True, kw_only=True, slots=True)
class FixRequest:
    """What the user asked for, parsed. Paths as given.

    `threads` of the model; None: as many as cores are free. `model_line`: the descriptor of a socket to a model process
    that serves others too; None: a child of the task's own. `gpu_layers`: `auto`, a number, or "" for what the settings
    say. `reverts`: ways to take back hunks of the commit that broke it, which are tried
    first; their lines are suspicious. `begun`: from when on the budget counts, on the monotonic clock; None: from now.
    """

    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""
    python: str = ""
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    use_model: bool = True
    model: str = ""
    writing: bool = True
    policy: Path | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False
    backend: BackendKind | None = None
    threads: int | None = None
    ways: tuple[str, ...] = ()
    model_line: int | None = None
    gpu_layers: str = ""
    choosing: Choosing = Choosing.ASK
    guard: Guard = field(default_factory=Guard)
    min_confidence: float = 0.0
    reverts: tuple[tuple[RevertedHunk, ...], ...] = ()
    begun: float | None = None

    def task(self) -> Task:
        """The task that is kept of it; whoever keeps it gives it its name."""
        return Task(
            id="",
            repo=str(self.repo.resolve()),
            tests=self.tests,
            checks=self.checks,
            text=self.text,
            python=self.python,
            seed=self.seed,
            budget=self.budget,
            choosing=self.choosing,
            guard=self.guard,
            min_confidence=self.min_confidence,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FixOutcome:
    """What a front end shows."""

    exit: int
    reason: str
    remedy: str = ""
    task_id: str = ""
    diff: bytes = b""
    report: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    applied: bool = False
