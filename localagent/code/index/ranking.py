"""Ranks the chunks and files of a tree for a query: BM25F over fields, then what a file and its history say.

BM25F as of Robertson, Zaragoza and Taylor (2004): term frequencies are weighted by field before they saturate. All
statistics are those of the one tree, whatever else the store holds. To a chunk's own score comes a share of its file's,
and of what the messages of past commits that touched the file say. Constants were tuned on bench/know_search.py.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from localagent.code.index.extract import FIELDS
from localagent.code.index.query import Query

FIELD_WEIGHTS: Mapping[str, float] = {"name": 5.0, "path": 3.0, "docs": 1.5, "strings": 1.0, "code": 1.0}
K1 = 1.2
B_CHUNK = 0.4
B_FILE = 0.5
FILE_SHARE = 0.35
_COMMON = 0.4  # a term in more than so many of all chunks is left out where the query has others
_WEIGHT = " ".join(f"WHEN '{name}' THEN {weight}" for name, weight in FIELD_WEIGHTS.items())
_ROWS = (
    f"SELECT p.doc, c.file, c.size, p.tf FROM (SELECT doc, sum(CASE col {_WEIGHT} END) tf"  # noqa: S608 - constants
    " FROM term_place WHERE term=?1 GROUP BY doc) p"
    " JOIN chunk c ON c.id=p.doc WHERE c.file IN (SELECT file FROM member WHERE tree=?2)"
)
assert set(FIELD_WEIGHTS) == set(FIELDS)


@dataclass(kw_only=True, slots=True)
class Scores:
    """Scores by chunk and by file, and which terms were found in each."""

    chunks: dict[int, float] = field(default_factory=dict)
    files: dict[int, float] = field(default_factory=dict)
    file_of: dict[int, int] = field(default_factory=dict)
    matched: dict[int, list[str]] = field(default_factory=dict)

    def best(self, most: int) -> list[int]:
        """The best chunks, and all that are as good as the last: numbers of chunks differ from index to index."""
        score = {c: round(own + FILE_SHARE * self.files[self.file_of[c]], 9) for c, own in self.chunks.items()}
        least = sorted(score.values(), reverse=True)[: most + 1]
        return [c for c, s in score.items() if len(least) <= most or s >= least[-2]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCounts:
    """How many files and chunks a tree has, and how many terms in all."""

    files: int
    chunks: int
    terms: int


def tree_counts(connection: sqlite3.Connection, tree: int) -> TreeCounts:
    """The counts of the last update."""
    files, chunks, terms = connection.execute("SELECT files, chunks, terms FROM tree WHERE id=?", (tree,)).fetchone()
    return TreeCounts(files=files, chunks=chunks, terms=terms)


def bm25f(connection: sqlite3.Connection, tree: int, query: Query) -> Scores:
    """BM25F of every chunk and file that holds one of the query's terms."""
    counts = tree_counts(connection, tree)
    scores = Scores()
    if not counts.chunks:
        return scores
    mean_chunk, mean_file = counts.terms / counts.chunks, counts.terms / counts.files
    sizes: dict[int, int] = dict(
        connection.execute("SELECT f.id, f.term_count FROM member m JOIN file f ON f.id=m.file WHERE m.tree=?", (tree,))
    )
    by_term = _rows_by_term(connection, tree, query, counts)
    chunk_total: defaultdict[int, float] = defaultdict(float)
    file_total: defaultdict[int, float] = defaultdict(float)
    for (term, weight), rows in by_term:
        in_file: defaultdict[int, float] = defaultdict(float)
        idf = weight * _idf(len(rows), counts.chunks)
        for chunk, file, size, frequency in rows:
            saturated = frequency / (frequency + K1 * (1 - B_CHUNK + B_CHUNK * size / mean_chunk))
            chunk_total[chunk] += idf * saturated
            in_file[file] += frequency
            scores.file_of[chunk] = file
            scores.matched.setdefault(chunk, []).append(term)
        idf = weight * _idf(len(in_file), counts.files)
        for file, frequency in in_file.items():
            length = 1 - B_FILE + B_FILE * sizes[file] / mean_file
            file_total[file] += idf * frequency / (frequency + K1 * length)
    scores.chunks, scores.files = dict(chunk_total), dict(file_total)
    return scores


def _rows_by_term(
    connection: sqlite3.Connection, tree: int, query: Query, counts: TreeCounts
) -> list[tuple[tuple[str, float], list[tuple[int, int, int, float]]]]:
    """The tree's chunks with each term; very common terms only where there are no others."""
    found = [(term, connection.execute(_ROWS, (term[0], tree)).fetchall()) for term in query.terms]
    found = [(term, rows) for term, rows in found if rows]
    telling = [(term, rows) for term, rows in found if len(rows) <= _COMMON * counts.chunks]
    return telling or found


def _idf(documents: int, total: int) -> float:
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))
