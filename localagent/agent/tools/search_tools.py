"""Looking: search, read, symbol, references."""

from localagent.agent.tools.tool import Action, Arguments, Done, Kind, Parameter, Tool, Workshop, bounded, numbered
from localagent.agent.tools.working_copy import ToolFault

_MOST_HITS = 40


def _search(workshop: Workshop, given: Arguments) -> Action:
    return _hits(workshop, "search", given["query"], "say more of what you look for")


def _symbol(workshop: Workshop, given: Arguments) -> Action:
    return _hits(workshop, "symbol", given["name"], "give the dotted name")


def _references(workshop: Workshop, given: Arguments) -> Action:
    return _hits(workshop, "references", given["name"], "search for a longer text")


def _hits(workshop: Workshop, how: str, wanted: str, rest: str) -> Action:
    if not wanted.strip() or len(wanted) > 500:
        raise ToolFault(f"{how} needs a text of at most 500 characters")

    def perform() -> Done:
        found = list(getattr(workshop.search, how)(wanted))
        if not found:
            return Done(text=f"nothing found for {wanted!r}")
        more = f"\n[{len(found) - _MOST_HITS} more: {rest}]" if len(found) > _MOST_HITS else ""
        return Done(text=bounded("\n".join(found[:_MOST_HITS]), workshop.limit // 2, rest) + more)

    return Action(perform=perform)


def _read(workshop: Workshop, given: Arguments) -> Action:
    path, text = workshop.copy.text(given["path"])
    lines = text.splitlines()
    first = max(1, given.get("start", 1))
    last = min(len(lines), given.get("end", len(lines)))
    if lines and first > last:
        raise ToolFault(f"{path} has {len(lines)} lines; give start and end within")

    def perform() -> Done:
        if not lines:
            return Done(text=f"{path} is empty")
        shown = bounded(numbered(lines[first - 1 : last], first), workshop.limit, "read on with start")
        part = f" lines {first} to {last} of {len(lines)}" if (first, last) != (1, len(lines)) else ""
        return Done(text=f"{path}{part}\n{shown}")

    return Action(perform=perform)


TOOLS = (
    Tool(
        name="search",
        description="Find words in the repository's files: path:line: text.",
        parameters=(Parameter(name="query"),),
        prepare=_search,
    ),
    Tool(
        name="read",
        description="Read a file, or its lines start to end. Line numbers are not part of the text.",
        parameters=(
            Parameter(name="path"),
            Parameter(name="start", kind=Kind.INTEGER, required=False),
            Parameter(name="end", kind=Kind.INTEGER, required=False),
        ),
        prepare=_read,
    ),
    Tool(
        name="symbol",
        description="Where a function, class or variable is defined.",
        parameters=(Parameter(name="name"),),
        prepare=_symbol,
    ),
    Tool(
        name="references",
        description="Where a name is used.",
        parameters=(Parameter(name="name"),),
        prepare=_references,
    ),
)
