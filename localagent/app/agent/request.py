"""What a `do` task is asked, and what its front end shows of the answer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localagent.agent.approval import Trust
from localagent.agent.events import IMPLEMENTER, PLANNER, REVIEWER, TESTER
from localagent.agent.limits import Limits
from localagent.jail.api import BackendKind

ROLES = (PLANNER, TESTER, IMPLEMENTER, REVIEWER)


@dataclass(frozen=True, kw_only=True, slots=True)
class DoRequest:
    """What the user asked for, parsed. `tests` must pass in the end; `roles` are played by models.

    `review_model` is the reviewer's model, "" for the one that works. `from_tests`, of the tests: the specification,
    which stays as it is; without a model the search fills what it can.
    With `files` it is an analysis of data, whose results go into a new folder `results`; nothing is changed then.
    """

    instruction: str
    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    from_tests: tuple[str, ...] = ()
    python: str = ""
    model: str = ""
    review_model: str = ""
    roles: tuple[str, ...] = (IMPLEMENTER,)
    trust: Trust = Trust.PLAN
    assume: bool = False
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    policy: Path | None = None
    backend: BackendKind | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False
    files: tuple[Path, ...] = ()
    results: Path | None = None


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


def other_reviewer(request: DoRequest) -> str:
    """The model that reviews, where it is not the one that works; "" where there is none."""
    return request.review_model if REVIEWER in request.roles and request.review_model != request.model else ""


def roles_of_worker(request: DoRequest) -> tuple[str, ...]:
    """The roles that the model that works plays itself."""
    return tuple(role for role in request.roles if role != REVIEWER or not other_reviewer(request))
