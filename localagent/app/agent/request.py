"""What a `do` task is asked, and what its front end shows of the answer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localagent.agent.approval import Trust
from localagent.agent.loop import Limits
from localagent.jail.api import BackendKind


@dataclass(frozen=True, kw_only=True, slots=True)
class DoRequest:
    """What the user asked for, parsed. `tests` must pass in the end; `roles` are those that the model plays."""

    instruction: str
    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    python: str = ""
    model: str = ""
    roles: tuple[str, ...] = ("implementer",)
    trust: Trust = Trust.PLAN
    assume: bool = False
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    policy: Path | None = None
    backend: BackendKind | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class DoOutcome:
    """What a front end shows. `diff` is the accepted patch, `proposal` one that a person may take."""

    exit: int
    reason: str
    remedy: str = ""
    session: str = ""
    diff: bytes = b""
    proposal: bytes = b""
    report: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    applied: bool = False

    @property
    def task_id(self) -> str:
        """The session is a task."""
        return self.session
