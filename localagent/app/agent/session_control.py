"""What a person does with kept sessions: taking steps back, and exports."""

from collections.abc import Sequence

from localagent.agent.events import (
    AgentEvent,
    Answered,
    Ended,
    NoReply,
    Noted,
    PersonSaid,
    Replied,
    ResultKind,
    Reviewed,
    RoleBegan,
    Undone,
    event_json,
    pending_calls,
    writes_of,
)
from localagent.app.agent.session_store import Session, journal_log
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.record.journal import Journal
from localagent.repo.diff.write_diff import unified_diff
from localagent.text.strict_json import dump
from localagent.text.visible_text import one_line, visible

_MOST_SHOWN = 4000


def undo_steps(kept: Session, begin: float, *, every: bool) -> tuple[RepoPath, ...]:
    """Take back the last step that changed files, or all of them; the paths. AnswerIsNo where there is none.

    Only the session's copy changes. `begin`: monotonic seconds now.
    """
    before = writes_of(kept.events)
    steps = [n for n, e in enumerate(kept.events) if isinstance(e, Answered) and e.writes]
    standing = [n for n in steps if writes_of((*kept.events, Undone(since=n))) != before]
    if not standing:
        raise AnswerIsNo(f"session {kept.record.id} has changed nothing", remedy="there is nothing to take back")
    undone = Undone(since=standing[0] if every else standing[-1])
    with Journal.reopened(kept.record.journal_path) as journal:
        log = journal_log(journal, begin, kept.events)
        log.append(undone)
        log.append(Noted(text="[the user took back: " + ", ".join(_paths(kept.events, undone)) + "]"))
    return _paths(kept.events, undone)


def _paths(events: Sequence[AgentEvent], undone: Undone) -> tuple[RepoPath, ...]:
    later = [w.path for e in events[undone.since :] if isinstance(e, Answered) for w in e.writes]
    return tuple(dict.fromkeys(later))


def say(kept: Session, begin: float, text: str) -> Session:
    """The session with a person's words added to it. Calls that were not carried out yet are not, after them."""
    with Journal.reopened(kept.record.journal_path) as journal:
        log = journal_log(journal, begin, kept.events)
        for call, _ in pending_calls(kept.events):
            told = "error: not carried out: the user interrupted"
            log.append(Answered(call_id=call.id, tool=call.name, kind=ResultKind.ERROR, text=told))
        log.append(PersonSaid(text=text))
        return Session(record=kept.record, request=kept.request, model=kept.model, events=log.events)


def as_patch(kept: Session) -> bytes:
    """The diff that a session ended with, accepted or not. AnswerIsNo where it has not ended, or changed nothing."""
    record = kept.record
    if (patch := record.patch()) is not None:
        return unified_diff(patch)
    unfinished = (record.result_json() or {}).get("agent", {}).get("unfinished", "")
    if not unfinished:
        raise AnswerIsNo(
            f"session {record.id} holds no patch: it has not ended, or nothing is changed",
            remedy=f"`localagent session show {record.id}` shows it",
        )
    return str(unfinished).encode("utf-8", "surrogateescape")


def as_markdown(kept: Session) -> str:
    """The transcript for people."""
    lines = [f"# Session {kept.record.id}", "", f"Repository: {kept.request.repo}", f"State: {kept.state}", ""]
    lines += ["## Instruction", "", visible(kept.request.instruction), ""]
    calls = {c.id: c for e in kept.events if isinstance(e, Replied) for c in e.calls}
    for event in kept.events:
        match event:
            case Replied() if event.text.strip():
                lines += ["**Model:** " + visible(event.text[:_MOST_SHOWN]), ""]
            case Answered():
                given = calls[event.call_id].arguments if event.call_id in calls else ""
                lines += [
                    f"### {event.tool} ({event.kind.value})",
                    "",
                    *(_fenced(given) if given else ()),
                    *_fenced(event.text),
                ]
            case NoReply():
                lines += [f"**No reply:** {event.fault}: {one_line(event.reason)}", ""]
            case PersonSaid():
                lines += [f"**User:** {visible(event.text)}", ""]
            case Noted():
                lines += [f"*{visible(event.text)}*", ""]
            case Reviewed():
                said = [event.reason] if event.reason else map(str, event.objections)
                lines += [f"**Reviewer ({event.model}, a model): {event.answer.value}**", ""]
                lines += [*(f"- {visible(one)}" for one in said), ""]
            case RoleBegan():
                lines += [f"## The model as {visible(event.role)}", ""]
            case Undone():
                lines += [f"*Steps from event {event.since} on were taken back.*", ""]
            case Ended():
                lines += [f"**{event.kind.value}:** {visible(event.reason)}", ""]
    return "\n".join(lines)


def _fenced(text: str) -> list[str]:
    """A text in a fence that it cannot end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, visible(text[:_MOST_SHOWN]), fence, ""]


def as_json_lines(kept: Session) -> bytes:
    """Every event, one a line."""
    lines = [dump({"event": kind, **data}) for kind, data in map(event_json, kept.events)]
    head = {"event": "session", "id": kept.record.id, "repo": str(kept.request.repo), "state": kept.state}
    return b"".join([dump({**head, "instruction": kept.request.instruction}), *lines])


def as_atif(kept: Session) -> bytes:
    """The Agent Trajectory Interchange Format, as far as it fits: steps with messages, tool calls and observations."""
    results = {e.call_id: e for e in kept.events if isinstance(e, Answered)}
    steps: list[dict[str, object]] = [{"step_id": 1, "source": "user", "message": kept.request.instruction}]
    for event in kept.events:
        if isinstance(event, Replied):
            shown = [{"tool_call_id": c.id, "function_name": c.name, "arguments": c.arguments} for c in event.calls]
            seen = [{"source_call_id": c.id, "content": results[c.id].text} for c in event.calls if c.id in results]
            steps.append(
                {
                    "step_id": len(steps) + 1,
                    "source": "agent",
                    "message": event.text,
                    "tool_calls": shown,
                    "observation": {"results": seen},
                    "metrics": {"prompt_tokens": event.prompt_tokens, "completion_tokens": event.reply_tokens},
                }
            )
        elif isinstance(event, PersonSaid | Noted):
            source = "user" if isinstance(event, PersonSaid) else "system"
            steps.append({"step_id": len(steps) + 1, "source": source, "message": event.text})
    agent = {"name": "localagent", "version": "1", "model_name": kept.model}
    return dump({"schema_version": "ATIF-v1.4", "session_id": kept.record.id, "agent": agent, "steps": steps}, indent=2)
