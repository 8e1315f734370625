"""Files that a model planned to change, whose changes were refused, and that stand as they were.

A model may say that it is done after a part of its work was refused; whether the rest is worth anything alone, the
tests do not always know.
"""

from collections.abc import Collection, Sequence

from localagent.agent.approval import is_word_of, scope_of
from localagent.agent.events import AgentEvent, Answered, Replied, ResultKind, agreed_files, last_said
from localagent.agent.tools.edit_tools import TOOLS
from localagent.agent.tools.tool import parse_arguments
from localagent.agent.tools.working_copy import ToolFault
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
