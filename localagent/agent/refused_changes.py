"""Changes that a model tried and that were refused: files that stand as they were, and what only a person may allow.

A model may say that it is done after a part of its work was refused; whether the rest is worth anything alone, the
tests do not always know.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from localagent.agent.approval import is_word_of, scope_of
from localagent.agent.events import AgentEvent, Answered, Replied, ResultKind, agreed_files, last_said
from localagent.agent.tools.edit_tools import TOOLS
from localagent.agent.tools.tool import Workshop, parse_arguments
from localagent.agent.tools.working_copy import ToolFault, WorkingCopy
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

_CHANGES = {tool.name: tool for tool in TOOLS}


def refused_changes(
    events: Sequence[AgentEvent], instruction: str, written: Collection[RepoPath]
) -> tuple[RepoPath, ...]:
    """Such files since a person spoke, as they were tried. `written`: what the copy holds otherwise than the tree."""
    since = events[last_said(events) + 1 :]
    refused = {e.call_id for e in since if isinstance(e, Answered) and e.kind is ResultKind.REFUSED}
    plan = next((e.plan for e in reversed(events) if isinstance(e, Answered) and e.plan), ())
    texts, agreed = [instruction, *plan], agreed_files(events) or frozenset()
    named = scope_of(texts)
    found = []
    for call in (c for e in since if isinstance(e, Replied) for c in e.calls if c.id in refused and c.name in _CHANGES):
        try:
            tried = RepoPath(str(parse_arguments(_CHANGES[call.name], call.arguments)["path"]))
        except (ToolFault, UsageFault):
            continue  # it named nothing that could have been changed
        if tried not in written and (tried in agreed or named.names(tried) or is_word_of(tried, texts)):
            found.append(tried)
    return tuple(dict.fromkeys(found))


def with_refused(
    events: Sequence[AgentEvent], workshop: Workshop, written: Mapping[RepoPath, str | None]
) -> dict[RepoPath, str | None]:
    """What the copy would hold with the changes since a person spoke that nothing but a person's yes was wanting for.

    Made in their order; those that do not apply any more were given up, or made in another way.
    """
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
