"""What one verification was asked and has gathered so far, and how that becomes the answer at any moment."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.domain.claim import Claim
from localagent.domain.edit import digest_of
from localagent.domain.guard import VERIFY_SECONDS, Guard
from localagent.domain.strength import Grade
from localagent.domain.task import Event
from localagent.domain.verification import PersonReason, Verification, VerifyVerdict
from localagent.jail.api import BackendKind
from localagent.ports import Approvals, Sink

_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyRequest:
    """What the user asked for, parsed. `seconds` bounds the tests of each tree, as `fix --max-seconds` does.

    `claim` is what the patch is said to be for, None where that is to be inferred. `service` holds the approvals that
    count where who asked may not approve. `guard`: which tests outside `tests` must not break; all that there are where
    `tests` names none.
    """

    patch: bytes
    repo: Path
    baseline: str = ""
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    python: str = ""
    seed: int = 0
    policy: Path | None = None
    backend: BackendKind | None = None
    least: Grade | None = None
    claim: Claim | None = None
    crosshair: bool = False
    seconds: float = 300.0
    jobs: int = 1
    guard: Guard = field(default_factory=lambda: Guard(seconds=VERIFY_SECONDS))
    service: Approvals | None = None


@dataclass(kw_only=True, slots=True)
class VerifyRun:
    """What one verification gathers; `answer` makes the value of it. `asks` names who demands the least strength."""

    request: VerifyRequest
    sink: Sink
    asks: str = "--min-strength"
    begin: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    known: dict[str, object] = field(default_factory=dict)

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Tell the sink, and how long it took the report."""
        begin = time.monotonic()
        self.sink.emit(Event(kind="stage", at_seconds=round(begin - self.begin, 3), data={"stage": stage}))
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - begin, 3)

    def answer(
        self,
        verdict: VerifyVerdict,
        reason: str,
        *,
        remedy: str = "",
        headline: str = "",
        exit_code: int = 1,
        asked: PersonReason = PersonReason.GATES,
    ) -> Verification:
        """The value, with all that is known by now."""
        base = Verification(
            verdict=verdict,
            reason=reason,
            headline=headline,
            asked=asked if verdict is VerifyVerdict.NEEDS_PERSON else None,
            claim=self.request.claim,
            claim_inferred=self.request.claim is None,
            remedy=remedy,
            exit=0 if verdict.yes else exit_code,
            patch=digest_of(self.request.patch),
            repo=str(self.request.repo.resolve()),
            seed=self.request.seed,
            least_strength=self.request.least.value if self.request.least is not None else "",
            seconds=dict(self.seconds),
            warnings=tuple(dict.fromkeys(self.warnings)),
        )
        return replace(base, **self.known)  # type: ignore[arg-type]
