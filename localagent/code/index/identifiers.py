"""Text as search terms: identifiers whole and split, words reduced to a stem.

`parse_http_dates` becomes `parse_http_dates parse http date`. Stems follow a few rules of English in the spirit of
Harman's S-stemmer (1991), `-ed` and `-ing` added; what matters is that index and query are stemmed alike. Not
promised: linguistics, and words of scripts that are written without blanks.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

MAX_TERM_CHARS = 64
_WORD = re.compile(r"[^\W_](?:\w*[^\W_])?|_\w*[^\W_]\w*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LEAST_STEM = 3
_VOWEL = re.compile(r"[aeiouy]")
# Words that say nothing about what is looked for; left out of a query where it has others.
_STOP_WORDS_TEXT = """
a about all also an and any are as at be been being but by can could did do does doing done for from get gets
had has have having here how i if in into is it its just let made make makes may me more most my no not of on
one only or other our out over own see should show since so some such than that the their them then there these
they thing this those through to too under up use used uses using very via want was we were what when where
which while who why will with within without would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def words(text: str) -> Iterator[str]:
    """The identifiers and words of a text, as they are written."""
    return (match.group() for match in _WORD.finditer(text))


@lru_cache(maxsize=1 << 16)
def terms_of(word: str) -> tuple[str, ...]:
    """One word's terms: itself in lower case, then the stems of its parts; each once, the whole first."""
    whole = word.lower()[:MAX_TERM_CHARS]
    parts = [stem(part.lower()[:MAX_TERM_CHARS]) for part in split_identifier(word)]
    if len(parts) == 1 and whole.strip("_") == whole:
        return (parts[0],)
    return tuple(dict.fromkeys((whole, *parts)))


def split_identifier(word: str) -> list[str]:
    """The parts between underscores, humps and digits: `HTTPServer2` is `HTTP Server 2`."""
    return _PART.findall(word) if word.isascii() else [part for part in word.split("_") if part]


def terms(text: str) -> list[str]:
    """All terms of a text in its order, repeated as they are there."""
    return [term for word in words(text) for term in terms_of(word)]


def stem(word: str) -> str:
    """A lower-case word without its English ending; short words and words with digits as they are."""
    if not word.isalpha() or not word.isascii():
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM - 1:
            word = word[: -len(ending)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _LEAST_STEM:
            word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base is not word and base != word and len(base) >= _LEAST_STEM and _VOWEL.search(base):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word[:-1] if word.endswith("e") and len(word) > _LEAST_STEM + 1 else word
