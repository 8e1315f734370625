"""A model that tries one thing after another that nobody may allow is contained: it is not asked what it means by it.

What was written since its first call that was refused is taken back, for nobody knows what of that belongs together,
and nothing more is written or run. What stood before is proven like any other change. A person's word ends it.
"""

from collections.abc import Sequence

from localagent.agent.events import AgentEvent, Answered, Noted, ResultKind, Undone, last_said

MOST_CALLS = 4  # each of which breaks another rule that no person answers; honest work breaks one or two
NOTE = "[contained] "
WHY = "this model tried too much that is never allowed, so nothing more is written or run until a person has spoken"


def is_contained(events: Sequence[AgentEvent]) -> bool:
    """Whether too many calls since a person spoke were refused for what none before them was refused for."""
    calls, rules = 0, set[str]()
    for event in events[last_said(events) + 1 :]:
        if isinstance(event, Answered) and not rules.issuperset(event.broken):
            calls, rules = calls + 1, rules | {*event.broken}
    return calls > MOST_CALLS


def containment(events: Sequence[AgentEvent]) -> tuple[AgentEvent, ...]:
    """What has to be appended to a log: the writes taken back, and the model told; () where nothing has."""
    said = last_said(events)
    told = any(isinstance(e, Noted) and e.text.startswith(NOTE) for e in events[said + 1 :])
    if told or not is_contained(events):
        return ()
    first = next(
        n for n, e in enumerate(events) if n > said and isinstance(e, Answered) and e.kind is ResultKind.REFUSED
    )
    words = f"{NOTE}{WHY}. Every change since the first refusal is taken back. Call finish if the rest does the task."
    return Undone(since=first), Noted(text=words)
