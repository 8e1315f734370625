"""What happens in a session: frozen events, appended to one log and never changed.

The log is the session. Everything else (the conversation, the working copy, the plan, what is used of the limits) is
computed from it, so a session that was killed goes on where its last complete event stands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from localagent.domain.chat import ToolCall
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

IMPLEMENTER, PLANNER, TESTER, REVIEWER = "implementer", "planner", "tester", "reviewer"
RECIPE = "recipe"
SKELETON = "skeleton"
FILLED = "fill-bodies"
UNCALLED = frozenset({RECIPE, SKELETON, FILLED})
"""Call and tool of results that no reply called for: a recipe's, a skeleton's, the search's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileWrite:
    """What a path of the working copy becomes; `text` None: it goes."""

    path: RepoPath
    text: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonSaid:
    """A person's words to the model: an answer, a correction."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noted:
    """The program's words to the model that answer no call: what was wrong with a reply, what is left."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Replied:
    """A reply of the model. `recovered`: the calls stood as text in it. Tokens are -1 where they are not known."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    recovered: bool = False
    prompt_tokens: int = -1
    reply_tokens: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class NoReply:
    """The model, or its server, gave none."""

    fault: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A call is about to be carried out; written before it is."""

    call_id: str


class ResultKind(StrEnum):
    """How a call ended."""

    DONE = "done"
    ERROR = "error"  # the call was wrong, or what it ran failed to run
    REFUSED = "refused"  # the call was understood, and may not be


class AgreedBy(StrEnum):
    """Who agreed to a plan or to tests that a model made."""

    PERSON = "person"
    ASSUMED = "assumed"  # nobody read it: --assume
    NOBODY = "nobody"  # nobody was there, or was to be asked


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """What the rest of the session is bound to: the files of a plan, or those of tests. `by`: who agreed."""

    by: AgreedBy
    files: tuple[RepoPath, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreedTests:
    """Tests that a model wrote before the work, by file; none: it said (`said`) that no test can show the change."""

    by: AgreedBy
    said: str
    files: Mapping[RepoPath, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The result of a call, with what it changed: one event, so that neither stands without the other.

    `plan` are the steps of a `plan` call. `injected` says where a text was met that speaks to a machine. `broken` are
    rules that what was refused would have broken, whoever asked for it; `for_person`: only a person's yes was wanting.
    """

    call_id: str
    tool: str
    kind: ResultKind
    text: str
    writes: tuple[FileWrite, ...] = ()
    plan: tuple[str, ...] = ()
    injected: str = ""
    agreement: Agreement | None = None
    broken: tuple[str, ...] = ()
    for_person: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Condensed:
    """From here on the results of the first `upto` events are shown as one line each; `summary`: as a summary."""

    upto: int
    summary: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Undone:
    """Writes of the events from `since` on are taken back."""

    since: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A person has seen what was met that speaks to a machine."""

    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleBegan:
    """From here on a model plays this role, in a conversation of its own. Before the first of them: the implementer."""

    role: str


class ReviewAnswer(StrEnum):
    """What a reviewer, a model, said of a change that was proven."""

    APPROVE = "approve"
    OBJECT = "object"
    NONE = "none"  # no answer that can be read or counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Objection:
    """A fault that a reviewer names. `path` "" and `line` 0: no place in the tree, or none that is there."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.path and self.line else self.path
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewed:
    """A review of the whole change by a model that sees no conversation. `reason` of an approval, or of no answer."""

    answer: ReviewAnswer
    model: str
    digest: str
    reason: str = ""
    objections: tuple[Objection, ...] = ()
    prompt_tokens: int = -1
    reply_tokens: int = -1


class EndKind(StrEnum):
    """How a session ended, for the time being."""

    FINISHED = "finished"
    NEEDS_PERSON = "needs-person"
    LIMITS_EXCEEDED = "limits-exceeded"
    GAVE_UP = "gave-up"
    NEXT_ROLE = "next-role"  # the role's work is done, the session's is not


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The outcome. A session that is resumed goes on after it. `remedy`: what a person can say instead."""

    kind: EndKind
    reason: str
    remedy: str = ""


AgentEvent = (
    PersonSaid | Noted | Replied | NoReply | Started | Answered | Condensed | Undone | Seen
    | RoleBegan | Reviewed | Ended
)  # fmt: skip


class EventLog(Protocol):
    """Keeps events, durably, before whoever appends goes on."""

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """All of them, oldest first."""
        ...

    @property
    def whole_session(self) -> tuple[AgentEvent, ...]:
        """Those of other roles, too, where these are one role's."""
        ...

    def append(self, event: AgentEvent) -> None:
        """Add one."""
        ...


class MemoryLog:
    """A log that lasts as long as the program; `keep` is told each event before it counts."""

    def __init__(self, events: tuple[AgentEvent, ...] = (), keep: Callable[[AgentEvent], None] | None = None) -> None:
        self._events = list(events)
        self._keep = keep

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """All of them, oldest first."""
        return tuple(self._events)

    whole_session = events

    def append(self, event: AgentEvent) -> None:
        """Add one."""
        if self._keep is not None:
            self._keep(event)
        self._events.append(event)


@dataclass(frozen=True, slots=True)
class RoleLog:
    """The events of one role in a session's log: its own, and what a person said to whom it may be."""

    whole: EventLog
    role: str

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """Those of the role, oldest first."""
        return events_of(self.role, self.whole.events)

    @property
    def whole_session(self) -> tuple[AgentEvent, ...]:
        """Those of other roles, too."""
        return self.whole.events

    def append(self, event: AgentEvent) -> None:
        """Add one; the role's turn begins with it where another one's was."""
        if role_of(self.whole.events) != self.role:
            self.whole.append(RoleBegan(role=self.role))
        self.whole.append(event)


_KINDS: dict[str, type[AgentEvent]] = {
    "agent-person": PersonSaid,
    "agent-note": Noted,
    "agent-reply": Replied,
    "agent-no-reply": NoReply,
    "agent-started": Started,
    "agent-result": Answered,
    "agent-condensed": Condensed,
    "agent-undone": Undone,
    "agent-seen": Seen,
    "agent-role": RoleBegan,
    "agent-review": Reviewed,
    "agent-ended": Ended,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def event_json(event: AgentEvent) -> tuple[str, dict[str, Any]]:
    """The kind of an event and its data as JSON values."""
    data: dict[str, Any] = {name: getattr(event, name) for name in type(event).__dataclass_fields__}
    match event:
        case Replied():
            data["calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in event.calls]
        case Answered():
            data["writes"] = [{"path": str(w.path), "text": w.text} for w in event.writes]
            agreed = event.agreement
            told = None if agreed is None else {"by": agreed.by.value, "files": [str(f) for f in agreed.files]}
            data |= {
                "kind": event.kind.value,
                "plan": list(event.plan),
                "agreement": told,
                "broken": list(event.broken),
            }
        case Reviewed():
            objections = [{"path": o.path, "line": o.line, "reason": o.reason} for o in event.objections]
            data |= {"answer": event.answer.value, "objections": objections}
        case Ended():
            data["kind"] = event.kind.value
    return _NAMES[type(event)], data


def event_of(kind: str, data: Mapping[str, Any]) -> AgentEvent | None:
    """The event back from its JSON; None for kinds that are none of a session's. ValueError for a damaged one."""
    made = _KINDS.get(kind)
    if made is None:
        return None
    try:
        values = dict(data)
        if made is Replied:
            values["calls"] = tuple(ToolCall(**c) for c in values["calls"])
        elif made is Answered:
            values["writes"] = tuple(FileWrite(path=RepoPath(w["path"]), text=w["text"]) for w in values["writes"])
            agreed = values.get("agreement")
            made_by = (
                None
                if agreed is None
                else Agreement(by=AgreedBy(agreed["by"]), files=tuple(map(RepoPath, agreed["files"])))
            )
            values |= {"kind": ResultKind(values["kind"]), "plan": tuple(values["plan"]), "agreement": made_by}
            values["broken"] = tuple(values.get("broken", ()))
        elif made is Reviewed:
            objections = tuple(Objection(**o) for o in values["objections"])
            values |= {"answer": ReviewAnswer(values["answer"]), "objections": objections}
        elif made is Ended:
            values["kind"] = EndKind(values["kind"])
        return made(**values)
    except (TypeError, KeyError, UsageFault) as error:
        raise ValueError(f"not an event of a session: {kind}: {error}") from error


def writes_of(events: tuple[AgentEvent, ...]) -> dict[RepoPath, str | None]:
    """What the working copy has become, by path, in the order of the first write; what was undone is left out."""
    done: list[tuple[int, FileWrite]] = []
    for number, event in enumerate(events):
        if isinstance(event, Answered):
            done += [(number, write) for write in event.writes]
        elif isinstance(event, Undone):
            done = [(n, write) for n, write in done if n < event.since]
    return {write.path: write.text for _, write in done}


def role_of(events: Sequence[AgentEvent]) -> str:
    """The role whose turn it is."""
    return next((e.role for e in reversed(events) if isinstance(e, RoleBegan)), IMPLEMENTER)


def events_of(role: str, events: Sequence[AgentEvent]) -> tuple[AgentEvent, ...]:
    """The events of a role, oldest first: its own, and what a person said to whom it may be."""
    found: list[AgentEvent] = []
    at = IMPLEMENTER
    for event in events:
        if isinstance(event, RoleBegan):
            at = event.role
        elif at == role or isinstance(event, PersonSaid):
            found.append(event)
    return tuple(found)


def agreed_files(events: Sequence[AgentEvent]) -> frozenset[RepoPath] | None:
    """The files that may be changed by the plan that was agreed to, what it was widened by included; None: no plan."""
    found = [e.agreement.files for e in events if isinstance(e, Answered) and e.tool == "plan" and e.agreement]
    return frozenset(file for files in found for file in files) if found else None


def agreed_tests(events: tuple[AgentEvent, ...]) -> AgreedTests | None:
    """The tests that were agreed to before the work; None where none were, or they were taken back."""
    for number, event in enumerate(events):
        if isinstance(event, Answered) and event.tool in ("finish", "no_test") and event.agreement is not None:
            undone = (e for e in events[number + 1 :] if isinstance(e, Undone))
            then = writes_of((*events[: number + 1], *undone))
            texts = {path: then.get(path) for path in event.agreement.files}
            files = {path: text for path, text in texts.items() if text is not None}
            if len(files) == len(texts):
                return AgreedTests(by=event.agreement.by, said=event.text, files=files)
    return None


def last_said(events: Sequence[AgentEvent]) -> int:
    """Index of the last words of a person; -1 where none were said since the instruction."""
    return max((n for n, e in enumerate(events) if isinstance(e, PersonSaid)), default=-1)


def pending_calls(events: tuple[AgentEvent, ...]) -> tuple[tuple[ToolCall, bool], ...]:
    """Calls of the last reply that have no result, and whether each was started."""
    last = max((n for n, e in enumerate(events) if isinstance(e, Replied)), default=-1)
    if last < 0:
        return ()
    reply, after = events[last], events[last + 1 :]
    assert isinstance(reply, Replied)
    answered = {e.call_id for e in after if isinstance(e, Answered)}
    started = {e.call_id for e in after if isinstance(e, Started)}
    return tuple((call, call.id in started) for call in reply.calls if call.id not in answered)
