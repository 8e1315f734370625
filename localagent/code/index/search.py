"""From a query to ranked hits: exact symbols first, then by BM25F and history; broadened where nothing was found."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from localagent.code.index.chunks import ChunkKind
from localagent.code.index.history import History
from localagent.code.index.query import Query, broader, parse_query
from localagent.code.index.ranking import FILE_SHARE, Scores, bm25f
from localagent.code.index.store import native_path
from localagent.code.related_tests import is_test
from localagent.domain.paths import RepoPath

MAX_HITS_PER_FILE = 3
MESSAGE_SHARE = 0.3
RECENCY_SHARE = 2.0
NEXT_CHUNKS_SHARE = 0.3  # of the three chunks after a file's best one
TEST_FACTOR = 0.7
TEXT_FACTOR = 0.7
_CANDIDATES = 400
_CODE = frozenset((ChunkKind.FUNCTION, ChunkKind.CLASS, ChunkKind.MODULE))


class HitKind(StrEnum):
    """What is looked for."""

    FUNCTION = "function"
    CLASS = "class"
    FILE = "file"
    TEST = "test"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHit:
    """One result. Lines from 1, both ends included; `reasons` say why it is here, the weightiest first."""

    path: str
    first_line: int
    last_line: int
    kind: str
    name: str
    signature: str
    summary: str
    score: float
    reasons: tuple[str, ...]
    terms: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """Hits, the best first. `broadened` says how the query was made wider, empty where it was not."""

    hits: tuple[SearchHit, ...]
    broadened: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    chunk: int
    file: int
    path: str
    first_line: int
    last_line: int
    kind: ChunkKind
    name: str
    signature: str
    summary: str


def search(
    connection: sqlite3.Connection, tree: int, text: str, *, kind: HitKind | None, limit: int, history: History
) -> SearchResult:
    """The best hits for words, identifiers or a sentence."""
    query = parse_query(text)
    hits = _hits(connection, tree, query, kind, history)
    if hits:
        return SearchResult(hits=tuple(hits[:limit]))
    wide = broader(query, connection)
    hits = _hits(connection, tree, wide, kind, history)
    told = ", ".join(dict.fromkeys(term for hit in hits[:limit] for term in hit.terms)) if hits else ""
    return SearchResult(hits=tuple(hits[:limit]), broadened=told)


def _hits(
    connection: sqlite3.Connection, tree: int, query: Query, kind: HitKind | None, history: History
) -> list[SearchHit]:
    scores = bm25f(connection, tree, query)
    exact = _exact_symbols(connection, tree, query)
    wanted = dict.fromkeys([*exact, *(scores.best(_CANDIDATES) if kind is None else scores.chunks)])
    rows = _rows(connection, tree, wanted)
    messages, recency = history.message_scores(query), history.recency()
    asks_tests = kind is HitKind.TEST or any(term == "test" for term, _ in query.terms)

    def weigh(row: _Row, score: float, share: float = 1.0) -> float:
        prior = MESSAGE_SHARE * messages.get(row.path, 0.0) + RECENCY_SHARE * recency.get(row.path, 0.0)
        factor = 1.0 if row.kind in _CODE else TEXT_FACTOR
        if not asks_tests and is_test(RepoPath(row.path)):
            factor = TEST_FACTOR
        return (score + share * prior) * factor

    if kind is HitKind.FILE:
        return _file_hits(query, rows, scores, weigh, messages)
    hits = []
    for row in rows:
        if not _is_of(row, kind):
            continue
        score = scores.chunks.get(row.chunk, 0.0) + FILE_SHARE * scores.files.get(row.file, 0.0)
        score = weigh(row, score, FILE_SHARE)
        hits.append((row.chunk not in exact, _hit(query, row, score, scores, exact.get(row.chunk, ""), messages)))
    hits.sort(key=lambda pair: (pair[0], -pair[1].score, pair[1].path, pair[1].first_line))
    return _at_most_per_file([hit for _, hit in hits])


def _file_hits(
    query: Query,
    rows: Sequence[_Row],
    scores: Scores,
    weigh: Callable[[_Row, float], float],
    messages: dict[str, float],
) -> list[SearchHit]:
    """One hit for each file, with its best chunk."""
    by_file: dict[int, list[_Row]] = {}
    for row in rows:
        by_file.setdefault(row.file, []).append(row)
    hits = []
    for file, members in by_file.items():
        row, *others = sorted(members, key=lambda r: -scores.chunks.get(r.chunk, 0.0))
        following = sum(scores.chunks.get(r.chunk, 0.0) for r in others[:3])
        own = scores.chunks.get(row.chunk, 0.0) + NEXT_CHUNKS_SHARE * following
        score = weigh(row, scores.files.get(file, 0.0) + own)
        hits.append(_hit(query, row, score, scores, "", messages, kind="file"))
    return sorted(hits, key=lambda hit: (-hit.score, hit.path))


def _hit(
    query: Query, row: _Row, score: float, scores: Scores, exact: str, messages: dict[str, float], kind: str = ""
) -> SearchHit:
    terms = tuple(scores.matched.get(row.chunk, ()))
    shown = dict.fromkeys(query.spelled.get(term, term) for term in terms)
    reasons = ((exact,) if exact else ()) + ((f"matches {', '.join(shown)}",) if terms else ())
    if row.path in messages:
        reasons += ("commit messages",)
    return SearchHit(
        path=row.path, first_line=row.first_line, last_line=row.last_line, kind=kind or row.kind.value, name=row.name,
        signature=row.signature, summary=row.summary, score=round(score, 4), reasons=reasons, terms=terms,
    )  # fmt: skip


def _at_most_per_file(hits: Sequence[SearchHit]) -> list[SearchHit]:
    seen: Counter[str] = Counter()
    kept = []
    for hit in hits:
        seen[hit.path] += 1
        if seen[hit.path] <= MAX_HITS_PER_FILE:
            kept.append(hit)
    return kept


def _is_of(row: _Row, kind: HitKind | None) -> bool:
    match kind:
        case None | HitKind.FILE:
            return True
        case HitKind.FUNCTION:
            return row.kind is ChunkKind.FUNCTION
        case HitKind.CLASS:
            return row.kind is ChunkKind.CLASS
        case HitKind.TEST:
            return row.kind in (ChunkKind.FUNCTION, ChunkKind.CLASS) and is_test(RepoPath(row.path))
        case HitKind.TEXT:
            return row.kind not in (ChunkKind.FUNCTION, ChunkKind.CLASS)


def _exact_symbols(connection: sqlite3.Connection, tree: int, query: Query) -> dict[int, str]:
    """Chunks that define what the query names, with how exactly."""
    found: dict[int, str] = {}
    for identifier in query.identifiers:
        rows = connection.execute(
            "SELECT c.id, c.name FROM chunk c WHERE c.last_name=? AND c.file IN (SELECT file FROM member WHERE tree=?)",
            (identifier.rpartition(".")[2].lower(), tree),
        )
        for chunk, name in rows:
            if f".{name}".endswith(f".{identifier}") or f".{identifier}".endswith(f".{name}"):
                found[chunk] = f"defines {identifier}"
            elif f".{name}".lower().endswith(f".{identifier.lower()}"):
                found.setdefault(chunk, f"defines {name}, spelled otherwise")
    return found


def _rows(connection: sqlite3.Connection, tree: int, chunks: Iterable[int]) -> list[_Row]:
    """The chunks with their paths in a tree."""
    asked = list(chunks)
    found = []
    for start in range(0, len(asked), 500):
        part = asked[start : start + 500]
        rows = connection.execute(
            "SELECT c.id, c.file, m.path, c.first_line, c.last_line, c.kind, c.name, c.signature, c.summary"
            " FROM json_each(?2) j CROSS JOIN chunk c ON c.id=j.value"
            " CROSS JOIN member m INDEXED BY member_file ON m.file=c.file AND m.tree=?1",
            (tree, json.dumps(part)),
        )
        found += [
            _Row(
                chunk=chunk, file=file, path=native_path(path), first_line=first, last_line=last, kind=ChunkKind(kind),
                name=name, signature=signature, summary=summary,
            )
            for chunk, file, path, first, last, kind, name, signature, summary in rows
        ]  # fmt: skip
    order = {chunk: at for at, chunk in enumerate(asked)}
    return sorted(found, key=lambda row: order[row.chunk])
