"""The main definitions of a repository: personalised PageRank over who uses whom.

Edges are the certain references of `code.graph`: from the definition that a name stands in to the one that it means.
PageRank as of Page and Brin (1998), with the jumps going to seeds. Pure. Not promised: what cannot be resolved, as
attributes of parameters without annotation, counts nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import DefinitionKind, ModuleFacts, UseKind
from localagent.code.graph.module_view import ModuleView
from localagent.code.graph.references import resolve_use
from localagent.code.graph.values import Symbol
from localagent.domain.paths import RepoPath

DAMPING = 0.85
ROUNDS = 25
BYTES_PER_TOKEN = 4
PRIVATE_FACTOR = 0.3
_KEYWORDS = {
    DefinitionKind.FUNCTION: "def", DefinitionKind.ASYNC_FUNCTION: "async def", DefinitionKind.CLASS: "class",
}  # fmt: skip
_USES = frozenset((UseKind.READ, UseKind.CALL, UseKind.IMPORT, UseKind.DECORATOR, UseKind.EXPORT))


@dataclass(frozen=True, kw_only=True, slots=True)
class MapEntry:
    """A definition of the map, `kind` its keyword; `rank` is its share of all, from 0 to 1, private names less."""

    kind: str
    path: str
    line: int
    name: str
    signature: str
    summary: str
    rank: float


def rank_definitions(graph: CodeGraph, paths: Iterable[RepoPath], seeds: Mapping[str, float]) -> list[MapEntry]:
    """All functions and classes of some files that stand in no function, the highest ranked first.

    `seeds` weigh paths.
    """
    entries: list[MapEntry] = []
    places: dict[tuple[str, int], int] = {}
    bearers: defaultdict[Symbol, list[int]] = defaultdict(list)
    views = [graph.view(path) for path in sorted(paths)]
    for view in views:
        for at, definition in enumerate(view.facts.definitions):
            if definition.kind == DefinitionKind.LAMBDA or not _outermost(view.facts, definition.scope):
                continue
            places[view.path, at] = len(entries)
            bearers[Symbol(view.path, definition.scope, definition.name)].append(len(entries))
            entries.append(
                MapEntry(
                    kind=_KEYWORDS[DefinitionKind(definition.kind)], path=view.path, line=definition.line,
                    name=view.facts.qualified_name(at), signature=definition.signature, summary=definition.doc,
                    rank=0.0,
                )
            )  # fmt: skip
    ranks = _page_rank(_edges(graph, views, places, bearers), _jumps(entries, seeds))
    ranks = [
        rank * (PRIVATE_FACTOR if e.name.rpartition(".")[2].startswith("_") else 1.0)
        for rank, e in zip(ranks, entries, strict=True)
    ]
    order = sorted(range(len(entries)), key=lambda at: (-ranks[at], entries[at].path, entries[at].line))
    return [replace(entries[at], rank=ranks[at]) for at in order]


def fitting(entries: Sequence[MapEntry], tokens: int) -> list[MapEntry]:
    """As many of the first entries as their lines and the lines of their files have room for in so many tokens."""
    left, kept, files = tokens * BYTES_PER_TOKEN, [], set()
    for entry in entries:
        cost = map_bytes(entry) + (0 if entry.path in files else len(entry.path) + 1)
        if cost > left:
            break
        left -= cost
        files.add(entry.path)
        kept.append(entry)
    return kept


def map_bytes(entry: MapEntry) -> int:
    """What an entry's line takes."""
    return len(map_line(entry).encode("utf-8", "replace")) + 1


def map_line(entry: MapEntry) -> str:
    """An entry's line below that of its file."""
    head = f"{entry.kind} {entry.signature or entry.name}"
    depth = "  " * (1 + entry.name.count("."))
    return f"{depth}{entry.line}: {head}" + (f"  # {entry.summary}" if entry.summary else "")


def _outermost(facts: ModuleFacts, scope: int) -> bool:
    """Whether a scope is a module's or a class's that stands in no function."""
    while scope >= 0:
        definition = facts.scopes[scope].definition
        if definition >= 0 and facts.definitions[definition].kind != DefinitionKind.CLASS:
            return False
        scope = facts.scopes[scope].parent
    return True


def _edges(
    graph: CodeGraph,
    views: Sequence[ModuleView],
    places: Mapping[tuple[str, int], int],
    bearers: Mapping[Symbol, Sequence[int]],
) -> list[dict[int, float]]:
    """For each definition those that it uses, by the root of how often; what stands in no definition is not counted."""
    counts: list[Counter[int]] = [Counter() for _ in places]
    names = {symbol.name for symbol in bearers}
    names |= {fact.bound for view in views for fact in view.facts.imports if fact.bound != fact.item}
    for view in views:
        meant: dict[int, tuple[int, ...]] = {}  # the same expression means the same
        for use in view.facts.uses:
            if use.kind not in _USES or use.expression < 0:
                continue
            user = _definition_around(view, use.scope, places)
            if user < 0:
                continue
            if use.expression not in meant:
                symbols = resolve_use(graph, view, use).symbols if view.name_of(use.expression) in names else ()
                meant[use.expression] = tuple(at for symbol in symbols for at in bearers.get(symbol, ()))
            counts[user].update(at for at in meant[use.expression] if at != user)
    return [{target: count**0.5 for target, count in out.items()} for out in counts]


def _definition_around(view: ModuleView, scope: int, places: Mapping[tuple[str, int], int]) -> int:
    while scope >= 0:
        place = places.get((view.path, view.facts.scopes[scope].definition), -1)
        if place >= 0:
            return place
        scope = view.facts.scopes[scope].parent
    return -1


def _jumps(entries: Sequence[MapEntry], seeds: Mapping[str, float]) -> list[float]:
    weights = [1.0 + seeds.get(entry.path, 0.0) for entry in entries]
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def _page_rank(edges: Sequence[Mapping[int, float]], jumps: Sequence[float]) -> list[float]:
    ranks = list(jumps)
    totals = [sum(out.values()) for out in edges]
    for _ in range(ROUNDS):
        lost = sum(rank for rank, total in zip(ranks, totals, strict=True) if not total)
        fresh = [(1 - DAMPING + DAMPING * lost) * jump for jump in jumps]
        for at, out in enumerate(edges):
            for target, weight in out.items():
                fresh[target] += DAMPING * ranks[at] * weight / totals[at]
        ranks = fresh
    return ranks
