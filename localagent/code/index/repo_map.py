"""The main definitions of a repository: personalised PageRank over who names whom.

Edges are by name: a definition, or the rest of a module, points at the definitions that bear a name it uses, the weight
shared among them; a name that many bear says little and is left out. PageRank as of Page and Brin (1998), with the
jumps going to seeds. Pure. Not promised: that an edge is a true reference; `code.graph` knows more of each.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.graph.facts import DefinitionKind, ExpressionKind, ModuleFacts, UseKind

DAMPING = 0.85
ROUNDS = 25
MOST_BEARERS = 6
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


def rank_definitions(modules: Iterable[tuple[str, ModuleFacts]], seeds: Mapping[str, float]) -> list[MapEntry]:
    """All functions and classes that stand in no function, the highest ranked first. `seeds` weigh paths."""
    entries: list[MapEntry] = []
    bearers: defaultdict[str, list[int]] = defaultdict(list)
    named: list[Counter[str]] = []
    for path, facts in modules:
        places = {}
        for at, definition in enumerate(facts.definitions):
            name = facts.qualified_name(at)
            if definition.kind == DefinitionKind.LAMBDA or not _outermost(facts, definition.scope):
                continue
            places[at] = len(entries)
            bearers[definition.name].append(len(entries))
            entries.append(
                MapEntry(
                    kind=_KEYWORDS[DefinitionKind(definition.kind)], path=path, line=definition.line, name=name,
                    signature=definition.signature, summary=definition.doc,
                    rank=0.0,
                )
            )  # fmt: skip
            named.append(Counter())
        _count_names(facts, places, named)
    ranks = _page_rank(_edges(named, bearers), _jumps(entries, seeds))
    ranks = [
        rank * (PRIVATE_FACTOR if e.name.rpartition(".")[2].startswith("_") else 1.0)
        for rank, e in zip(ranks, entries, strict=True)
    ]
    order = sorted(range(len(entries)), key=lambda at: (-ranks[at], entries[at].path, entries[at].line))
    return [_ranked(entries[at], ranks[at]) for at in order]


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


def _count_names(facts: ModuleFacts, places: Mapping[int, int], named: list[Counter[str]]) -> None:
    """Which names each definition uses; what stands in none is not counted."""
    for use in facts.uses:
        if use.kind not in _USES or use.expression < 0:
            continue
        expression = facts.expressions[use.expression]
        if expression.kind not in (ExpressionKind.NAME, ExpressionKind.ATTRIBUTE):
            continue
        scope = use.scope
        while scope >= 0 and facts.scopes[scope].definition not in places:
            scope = facts.scopes[scope].parent
        if scope >= 0:
            named[places[facts.scopes[scope].definition]][facts.names[expression.b]] += 1


def _edges(named: Sequence[Counter[str]], bearers: Mapping[str, Sequence[int]]) -> list[dict[int, float]]:
    edges: list[dict[int, float]] = []
    for at, names in enumerate(named):
        out: defaultdict[int, float] = defaultdict(float)
        for name, count in names.items():
            targets = bearers.get(name, ())
            if 0 < len(targets) <= MOST_BEARERS:
                for target in targets:
                    if target != at:
                        out[target] += count**0.5 / len(targets)
        edges.append(dict(out))
    return edges


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


def _ranked(entry: MapEntry, rank: float) -> MapEntry:
    return MapEntry(
        kind=entry.kind, path=entry.path, line=entry.line, name=entry.name, signature=entry.signature,
        summary=entry.summary, rank=rank,
    )  # fmt: skip
