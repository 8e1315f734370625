"""What a person asked, as terms and identifiers."""

import difflib
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from localagent.code.index.identifiers import STOP_WORDS, split_identifier, stem, terms_of, words

MAX_TERMS = 40
PART_WEIGHT = 0.6
_LEAST_ROOT = 3
_LIKE = 12
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """`terms` in their order, each with how much it counts; `identifiers` may be names of symbols as they are.

    `spelled` says of a term how it was asked for, where it is a stem.
    """

    text: str
    terms: tuple[tuple[str, float], ...]
    identifiers: tuple[str, ...]
    spelled: Mapping[str, str]


def parse_query(text: str) -> Query:
    """A query of words, identifiers or a sentence. A word of several parts counts whole and in parts."""
    found, telling = list(dict.fromkeys(words(text))), _telling(text)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for word in telling:
        whole, *parts = terms_of(word)
        weights[whole] = max(weights.get(whole, 0.0), 1.0)
        for part in parts:
            weights[part] = max(weights.get(part, 0.0), PART_WEIGHT)
        for part in (word, *split_identifier(word)):
            spelled.setdefault(stem(part.lower()), part.lower())
        spelled.setdefault(whole, word)
    names = [*_DOTTED.findall(text), *(w for w in telling if len(found) == 1 or is_identifier(w))]
    kept = tuple(weights.items())[:MAX_TERMS]
    return Query(text=text, terms=kept, identifiers=tuple(dict.fromkeys(names)), spelled=spelled)


def _telling(text: str) -> list[str]:
    """The words of a text that say what is looked for; all of them where none does."""
    found = list(dict.fromkeys(words(text)))
    return [word for word in found if word.lower() not in STOP_WORDS] or found


def is_identifier(word: str) -> bool:
    """Whether a word is written as code and not as prose: with an underscore, a digit behind letters, or humps."""
    return "_" in word or (len(split_identifier(word)) > 1 and not word.isdigit())


def broader(query: Query, connection: sqlite3.Connection) -> Query:
    """A query for what is like the words asked: their parts and stems, and terms of the index that resemble these."""
    weights: dict[str, float] = {}
    for word in _telling(query.text):
        for part in dict.fromkeys((word.lower(), *(p.lower() for p in split_identifier(word)))):
            root = stem(part)
            weights.setdefault(root, 1.0)
            for term in _terms_like(root, connection):
                weights.setdefault(term, 0.5)
    return Query(text=query.text, terms=tuple(weights.items())[:MAX_TERMS], identifiers=(), spelled={})


def _terms_like(root: str, connection: sqlite3.Connection) -> list[str]:
    """The index's terms that begin with a root, the most frequent first; else those that are spelled almost so."""
    if len(root) < _LEAST_ROOT:
        return []
    rows = connection.execute(
        "SELECT term FROM term_count WHERE term>=? AND term<? ORDER BY doc DESC LIMIT ?",
        (root, root + "\U0010ffff", _LIKE),
    ).fetchall()
    if not rows and len(root) > _LEAST_ROOT:
        begin = root[0]
        near = connection.execute(
            "SELECT term FROM term_count WHERE term>=? AND term<? AND length(term) BETWEEN ? AND ? LIMIT 5000",
            (begin, begin + "\U0010ffff", len(root) - 2, len(root) + 2),
        )
        return difflib.get_close_matches(root, [term for (term,) in near], n=3, cutoff=0.8)
    return [term for (term,) in rows]
