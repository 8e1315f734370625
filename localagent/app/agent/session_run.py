"""What one run of a session is made of: who is at the other end, and what its parts share."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from localagent.agent.agent_ports import Person
from localagent.agent.events import AgentEvent, Answered, MemoryLog, Replied
from localagent.app.agent.request import DoRequest
from localagent.app.cancellation import Stop
from localagent.app.evidence.task_evidence import TaskEvidence
from localagent.app.settings import Settings
from localagent.domain.policy import Policy
from localagent.domain.task import Event
from localagent.ports import ChatModel, Sink
from localagent.record.store import TaskRecord
from localagent.text.visible_text import one_line


class Absent:
    """Nobody is there to be asked."""

    @property
    def present(self) -> bool:
        """Never."""
        return False

    def approves(self, what: str, detail: str) -> bool:
        """Nobody says yes."""
        del what, detail
        return False

    def answer(self, question: str) -> str:
        """Nobody answers."""
        del question
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class OneClock:
    """A sink whose events bear the session's time, also those of parts that begin to count anew.

    `begin`: monotonic seconds when the run began.
    """

    sink: Sink
    begin: float

    def emit(self, event: Event) -> None:
        """Tell the other sink, with the time since the session's run began."""
        self.sink.emit(replace(event, at_seconds=time.monotonic() - self.begin))


class Work(Enum):
    """What is to be done: the model goes on, or what stands in the copy is proven without it."""

    MODEL = "model"
    PROOF = "proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class Frontend:
    """Who is at the other end of a session: where progress goes, what ends it, who can be asked.

    `model` is one that is open already, and stays so. `on_text` is told the replies' text as it comes, `begun` the
    session's id as soon as it is kept.
    """

    sink: Sink
    stop: Stop = field(default_factory=Stop)
    person: Person = field(default_factory=Absent)
    model: ChatModel | None = None
    on_text: Callable[[str], None] | None = None
    begun: Callable[[str], None] = lambda _id: None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRun:
    """What the parts of one run share. `begin`: monotonic seconds; `known`: what the report holds in the end."""

    request: DoRequest
    settings: Settings
    policy: Policy
    record: TaskRecord
    evidence: TaskEvidence
    model: ChatModel
    front: Frontend
    sink: Sink
    log: MemoryLog
    begin: float
    known: dict[str, Any] = field(default_factory=dict)
    work: Work = Work.MODEL

    def emit(self, kind: str, data: Mapping[str, object]) -> None:
        """Tell the journal and whoever looks on."""
        self.sink.emit(Event(kind=kind, at_seconds=time.monotonic() - self.begin, data=data))

    def tell(self, event: AgentEvent) -> None:
        """What a person sees of an event while the session is at work."""
        if isinstance(event, Replied) and self.request.files and any(call.name == "run" for call in event.calls):
            self.emit("stage", {"stage": "running the script"})
        if isinstance(event, Replied):
            self.emit("reply", {"calls": len(event.calls)})
        if isinstance(event, Answered):
            text = one_line(event.text.partition("\n")[0], 300)
            self.emit("tool", {"tool": event.tool, "kind": event.kind.value, "text": text})

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """A stage that is told, and how long it took kept."""
        begin_at = time.monotonic()
        self.emit("stage", {"stage": stage})
        try:
            yield
        finally:
            seconds = self.known.setdefault("seconds", {})
            seconds[stage] = seconds.get(stage, 0.0) + time.monotonic() - begin_at
