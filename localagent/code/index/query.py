"""What a person asked, as terms and identifiers."""

import re
from dataclasses import dataclass

from localagent.code.index.identifiers import STOP_WORDS, split_identifier, stem, terms_of, words

MAX_TERMS = 40
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """`terms` in their order, each with how much it counts; `identifiers` may be names of symbols as they are."""

    text: str
    terms: tuple[tuple[str, float], ...]
    identifiers: tuple[str, ...]


def parse_query(text: str) -> Query:
    """A query of words, identifiers or a sentence. A word of several parts counts whole and in parts."""
    found = list(dict.fromkeys(words(text)))
    telling = [word for word in found if word.lower() not in STOP_WORDS] or found
    weights: dict[str, float] = {}
    for word in telling:
        whole, *parts = terms_of(word)
        weights[whole] = max(weights.get(whole, 0.0), 1.0)
        for part in parts:
            weights[part] = max(weights.get(part, 0.0), 0.6)
    names = [*_DOTTED.findall(text), *(w for w in telling if len(found) == 1 or is_identifier(w))]
    return Query(text=text, terms=tuple(weights.items())[:MAX_TERMS], identifiers=tuple(dict.fromkeys(names)))


def is_identifier(word: str) -> bool:
    """Whether a word is written as code and not as prose: with an underscore, a digit behind letters, or humps."""
    return "_" in word or (len(split_identifier(word)) > 1 and not word.isdigit())


def broader(query: Query, prefixes_of: "PrefixTerms") -> Query:
    """A query for what is like the terms: the parts of each, their stems, and the index's terms that begin so."""
    weights: dict[str, float] = {}
    for word in words(query.text):
        for part in {word.lower(), *(p.lower() for p in split_identifier(word))}:
            root = stem(part)
            for term in (part, root, *prefixes_of(root)):
                weights.setdefault(term, 1.0 if term == root else 0.5)
    return Query(text=query.text, terms=tuple(weights.items())[:MAX_TERMS], identifiers=())


class PrefixTerms:
    """The terms of an index that begin like a word, the most frequent first."""

    def __init__(self, connection: "object") -> None:
        self._connection = connection
