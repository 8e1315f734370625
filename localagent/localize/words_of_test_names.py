"""How far functions are about what the failing tests are named after: BM25F over the pieces that `search` has.

`test_nested_dict` in `test_match.py` points at what speaks of matching and of nested dictionaries, in its name, its
docstrings, its strings or its code. Statistics are those of the files that are handed in.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from localagent.code.index.chunks import Chunk, chunks_of
from localagent.code.index.identifiers import terms
from localagent.code.index.query import parse_query
from localagent.code.index.ranking import B_CHUNK, FIELD_WEIGHTS, K1
from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import TestResult
from localagent.domain.paths import RepoPath
from localagent.ports import Sources

LineScores = Mapping[RepoPath, Sequence[float]]


def scores_by_test_names(failing: Iterable[TestResult], paths: Iterable[RepoPath], sources: Sources) -> LineScores:
    """For each file a score of every line (from 1), that of the innermost function or class around it, in [0, 1]."""
    query = parse_query(" ".join(dict.fromkeys(t.id.rpartition("/")[2].replace("::", " ") for t in failing)))
    chunks = [(path, chunk) for path in paths for chunk in chunks_of(path, sources[path], parse_or_none(sources[path]))]
    scores = _bm25f([_weighted(chunk) for _, chunk in chunks], query.terms)
    best = max(scores, default=0.0) or 1.0
    found: dict[RepoPath, list[float]] = {}
    for (path, chunk), score in zip(chunks, scores, strict=True):  # inner ones come after those around them
        lines = found.setdefault(path, [])
        lines.extend([0.0] * (chunk.last_line + 1 - len(lines)))
        lines[chunk.first_line : chunk.last_line + 1] = [score / best] * (chunk.last_line + 1 - chunk.first_line)
    return found


def _weighted(chunk: Chunk) -> dict[str, float]:
    """Terms with how often they are there, weighted by field."""
    text = chunk.text
    found: defaultdict[str, float] = defaultdict(float)
    for name, texts in (("name", [text.name]), ("docs", text.docs), ("strings", text.strings), ("code", text.code)):
        for term in terms("\n".join(texts)):
            found[term] += FIELD_WEIGHTS[name]
    return found


def _bm25f(documents: Sequence[Mapping[str, float]], query: Iterable[tuple[str, float]]) -> list[float]:
    """BM25F as `ranking.bm25f` has it, of documents that are at hand."""
    total = len(documents)
    seen = Counter(term for document in documents for term in document)
    sizes = [sum(document.values()) for document in documents]
    mean = sum(sizes) / total if sum(sizes) else 1.0
    weights = {term: w * math.log(1 + (total - seen[term] + 0.5) / (seen[term] + 0.5)) for term, w in query}
    return [
        sum(
            weight * document[term] / (document[term] + K1 * (1 - B_CHUNK + B_CHUNK * size / mean))
            for term, weight in weights.items()
            if term in document
        )
        for document, size in zip(documents, sizes, strict=True)
    ]
