"""What past commits say of files: the words of their messages, and how lately and often a file was changed.

A message that fixed a fault of some kind names, in the words of people, what a file is about. Pure: commits are handed
in, newest first.
"""

import json
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localagent.code.index.identifiers import STOP_WORDS, terms_of, words
from localagent.code.index.query import Query

MAX_PATHS = 20  # a commit that touches more says little of each
_HALF_LIFE = 150  # commits
_RECENT_LIFE = 40
_ROUTINE_TEXT = """
fix add remov updat test bug issu merg releas version chang bump
"""
_ROUTINE = frozenset(_ROUTINE_TEXT.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One commit's subject and the paths that it touched."""

    subject: str
    paths: tuple[str, ...]


class History:
    """The commits of a branch, newest first, ready to be asked."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._rows = [(_subject_terms(c.subject), c.paths) for c in commits if 0 < len(c.paths) <= MAX_PATHS]
        self._seen: Counter[str] = Counter(term for subject, _ in self._rows for term in subject)

    def message_scores(self, query: Query) -> dict[str, float]:
        """How far the messages of the commits that touched a path are about the query; by path."""
        total = len(self._rows)
        weights = {
            term: weight * math.log(1 + total / (self._seen[term] + 0.5))
            for term, weight in query.terms
            if self._seen[term] and term not in _ROUTINE
        }
        scores: defaultdict[str, float] = defaultdict(float)
        for age, (subject, paths) in enumerate(self._rows):
            found = sum(weights[term] for term in subject if term in weights)
            if found:
                share = found / math.sqrt(len(subject)) * 0.5 ** (age / (4 * _HALF_LIFE)) / math.sqrt(len(paths))
                for path in paths:
                    scores[path] += share
        return dict(scores)

    def recency(self) -> Mapping[str, float]:
        """How lately and often a path was changed, from 0; by path."""
        scores: defaultdict[str, float] = defaultdict(float)
        for age, (_, paths) in enumerate(self._rows):
            for path in paths:
                scores[path] += 0.5 ** (age / _RECENT_LIFE) / math.sqrt(len(paths))
        return {path: math.log1p(score) for path, score in scores.items()}


def packed(commits: Sequence[Commit]) -> bytes:
    """Commits as they are stored."""
    return zlib.compress(json.dumps([[c.subject, c.paths] for c in commits]).encode("ascii"), 6)


def unpacked(data: bytes) -> list[Commit]:
    """Stored commits."""
    return [Commit(subject=subject, paths=tuple(paths)) for subject, paths in json.loads(zlib.decompress(data))]


def _subject_terms(subject: str) -> frozenset[str]:
    return frozenset(term for word in words(subject) if word.lower() not in STOP_WORDS for term in terms_of(word))
