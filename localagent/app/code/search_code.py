"""What `localagent search` answers: ranked hits, or all matches of an expression, with a line of each to show."""

import json
import re
from dataclasses import dataclass

from localagent.app.code.repository_index import HitKind, RepositoryIndex
from localagent.app.code.snippets import best_line, shown, shown_line
from localagent.code.index.search import SearchHit
from localagent.code.related_tests import is_test
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownHit:
    """A hit as it is shown: escaped, bounded, without secrets. Lines and columns from 1."""

    path: str
    line: int
    column: int
    first_line: int
    last_line: int
    kind: str
    name: str
    signature: str
    summary: str
    text: str
    reason: str
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchAnswer:
    """The hits, the best first; `found` counts all matches. `broadened`: the terms searched instead."""

    hits: tuple[ShownHit, ...]
    found: int
    broadened: str = ""


def search_text(index: RepositoryIndex, text: str, kind: HitKind | None, limit: int) -> SearchAnswer:
    """Ranked hits for words, identifiers or a sentence."""
    result = index.search(text, kind=kind, limit=limit)
    hits = tuple(_shown(index, hit) for hit in result.hits)
    return SearchAnswer(hits=hits, found=len(hits), broadened=result.broadened)


def search_expression(
    index: RepositoryIndex, pattern: str, kind: HitKind | None, limit: int, *, literal: bool
) -> SearchAnswer:
    """Every line that matches, sources first, then tests, then other text. UsageFault for what is no expression."""
    expression = re.escape(pattern) if literal else pattern
    try:
        re.compile(expression)
    except re.error as error:
        raise UsageFault(f"not a regular expression: {error}", remedy="quote it, or use --literal") from error
    places = [
        (path, line, column, text)
        for path, rows in index.scan(json.dumps(expression))
        for line, column, text in rows
        if _is_wanted(index, kind, path, line)
    ]
    places.sort(key=lambda place: (not place[0].endswith((".py", ".pyi")), is_test(RepoPath(place[0])), *place))
    hits = tuple(_match(index, *place) for place in places[:limit])
    return SearchAnswer(hits=hits, found=len(places))


def _is_wanted(index: RepositoryIndex, kind: HitKind | None, path: str, line: int) -> bool:
    match kind:
        case None | HitKind.FILE:
            return True
        case HitKind.TEST:
            return is_test(RepoPath(path))
        case HitKind.TEXT:
            return index.symbol_at(path, line) is None
        case HitKind.FUNCTION | HitKind.CLASS:
            symbol = index.symbol_at(path, line)
            return symbol is not None and symbol[0] == kind.value


def _match(index: RepositoryIndex, path: str, line: int, column: int, text: str) -> ShownHit:
    symbol = index.symbol_at(path, line)
    kind, name, signature = symbol if symbol else ("text", "", "")
    rows = index.read(path).decode("utf-8", "replace").splitlines()
    said = shown_line(rows, line) if line <= len(rows) and len(rows[line - 1]) == len(text) else shown(text)
    return ShownHit(
        path=path, line=line, column=column, first_line=line, last_line=line, kind=kind, name=shown(name),
        signature=shown(signature), summary="", text=said, reason="matches", score=1.0,
    )  # fmt: skip


def _shown(index: RepositoryIndex, hit: SearchHit) -> ShownHit:
    try:
        snippet = best_line(index.read(hit.path), hit.first_line, hit.last_line, frozenset(hit.terms))
        line, column, text = snippet.line, snippet.column, snippet.text
    except OSError as error:  # it went away since
        line, column, text = hit.first_line, 1, f"(cannot be read any more: {error.strerror or error})"
    if hit.reasons and hit.reasons[0].startswith("defines") and hit.signature:
        line = hit.first_line
    return ShownHit(
        path=hit.path, line=line, column=column, first_line=hit.first_line, last_line=hit.last_line, kind=hit.kind,
        name=shown(hit.name), signature=shown(hit.signature), summary=shown(hit.summary), text=text,
        reason="; ".join(shown(reason) for reason in hit.reasons), score=hit.score,
    )  # fmt: skip
