"""Changes that a model tried and that were refused: places that stand as they were, and what only a person may allow.

A model may say that it is done after a part of its work was refused; whether the rest is worth anything alone, the
tests do not always know. In a file that is otherwise changed a place counts where a person could have said yes: what
no person may allow, such as a hidden door, is not missed, nor is anything of a model that was contained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from localagent.agent.approval import is_word_of, plan_of, scope_of
from localagent.agent.containment import is_contained
from localagent.agent.events import AgentEvent, Answered, Replied, ResultKind, agreed_files, last_said
from localagent.agent.tools.edit_tools import TOOLS
from localagent.agent.tools.tool import Arguments, Workshop, parse_arguments
from localagent.agent.tools.working_copy import ToolFault, WorkingCopy
from localagent.domain.chat import ToolCall
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

_CHANGES = {tool.name: tool for tool in TOOLS}


def refused_changes(
    events: Sequence[AgentEvent], instruction: str, written: Mapping[RepoPath, str | None]
) -> tuple[RepoPath, ...]:
    """Such files since a person spoke, as they were tried. `written`: what the copy holds otherwise than the tree."""
    since = events[last_said(events) + 1 :]
    results = {e.call_id: e for e in since if isinstance(e, Answered)}
    plan = plan_of(events)
    texts, agreed = [instruction, *plan], agreed_files(events) or frozenset()
    named = scope_of(texts)
    tried = [t for e in since if isinstance(e, Replied) for c in e.calls if (t := _tried(c, results)) is not None]
    found, contained = [], is_contained(events)
    for at, change in enumerate(tried):
        if change.result.kind is not ResultKind.REFUSED:
            continue
        path = change.path
        vain = contained or change.result.broken
        if path in written and (vain or _went_through(change, tried[at + 1 :], written[path] or "")):
            continue
        if path in agreed or named.names(path) or is_word_of(path, texts):
            found.append(path)
    return tuple(dict.fromkeys(found))


def with_refused(
    events: Sequence[AgentEvent], workshop: Workshop, written: Mapping[RepoPath, str | None]
) -> dict[RepoPath, str | None]:
    """What the copy would hold with the changes since a person spoke that nothing but a person's yes was wanting for.

    Made in their order; those that do not apply any more were given up, or made in another way. Nothing of a model that
    was contained.
    """
    if is_contained(events):
        return dict(written)
    since = events[last_said(events) + 1 :]
    asked = {e.call_id for e in since if isinstance(e, Answered) and e.for_person}
    whole = dict(written)
    place = replace(workshop, copy=WorkingCopy(workshop.copy.base, lambda: whole))
    for call in (c for e in since if isinstance(e, Replied) for c in e.calls if c.id in asked and c.name in _CHANGES):
        tool = _CHANGES[call.name]
        try:
            action = tool.prepare(place, parse_arguments(tool, call.arguments))
        except ToolFault:
            continue
        whole |= {write.path: write.text for write in action.writes}
    return whole


class _Change(NamedTuple):
    """A call that was to change a file: its arguments, and what came of it."""

    path: RepoPath
    given: Arguments
    result: Answered

    @property
    def place(self) -> set[str]:
        """The lines of the place, without their indentation: those it replaces, or what it says of a function."""
        lines = (self.given.get("old") or self.given.get("source") or "").splitlines()
        return {line.strip() for line in lines if line.strip()}


def _tried(call: ToolCall, results: Mapping[str, Answered]) -> _Change | None:
    """None for a call that changes no file, or names nothing that could be changed."""
    result = results.get(call.id)
    if result is None or call.name not in _CHANGES:
        return None
    try:
        given = parse_arguments(_CHANGES[call.name], call.arguments)
        return _Change(RepoPath(str(given["path"])), given, result)
    except (ToolFault, UsageFault):
        return None


def _went_through(refused: _Change, later: Sequence[_Change], now: str) -> bool:
    """Whether a place is not as it was, or was changed after the refusal; of a whole file that it is changed at all."""
    old, name = refused.given.get("old"), refused.given.get("name")
    if (old is None and name is None) or (old is not None and old not in now):
        return True
    done = [c for c in later if c.path == refused.path and c.result.kind is ResultKind.DONE]
    return any(
        (name is not None and c.given.get("name") == name) or "content" in c.given or c.place & refused.place
        for c in done
    )
