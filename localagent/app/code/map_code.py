"""What `localagent map` answers: the main definitions in so many tokens, or how the code is written."""

from localagent.app.code.repository_index import HitKind, RepositoryIndex
from localagent.app.code.snippets import shown
from localagent.code.graph.stored_facts import stored_graph
from localagent.code.index.conventions import Convention, conventions
from localagent.code.index.repo_map import MapEntry, fitting, rank_definitions
from localagent.code.related_tests import is_test

_SEED_FILES = 20
_SEED_WEIGHT = 50.0
_RECENT_WEIGHT = 3.0
_CHANGED_WEIGHT = 25.0


def map_of(index: RepositoryIndex, tokens: int, about: str = "") -> list[MapEntry]:
    """The highest ranked definitions that fit, tests left out; what `about` finds, and changes, weigh more."""
    seeds = {path: _RECENT_WEIGHT * weight for path, weight in index.history().recency().items()}
    seeds |= dict.fromkeys(index.changed(), _CHANGED_WEIGHT)
    if about:
        hits = index.search(about, kind=HitKind.FILE, limit=_SEED_FILES).hits
        seeds |= {hit.path: _SEED_WEIGHT / place for place, hit in enumerate(hits, 1)}
    graph = stored_graph(index.stored_facts())
    entries = rank_definitions(graph, (path for path in graph.facts if not is_test(path)), seeds)
    return fitting([_clean(entry) for entry in entries[: max(1, tokens)]], tokens)


def conventions_of(index: RepositoryIndex) -> list[Convention]:
    """How the repository's Python is written."""
    return conventions((path, facts, index.read(path)) for path, _, facts in index.facts())


def _clean(entry: MapEntry) -> MapEntry:
    return MapEntry(
        kind=entry.kind, path=entry.path, line=entry.line, name=shown(entry.name), signature=shown(entry.signature),
        summary=shown(entry.summary), rank=round(entry.rank, 6),
    )  # fmt: skip
