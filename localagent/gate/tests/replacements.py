"""One word for another throughout names and texts: `member` -> `patron` in `add_member`, `Member` and "no members".

A word counts by itself or as a part of a name, in lower case, capitalized and in capitals, and with an `s` behind it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

_MOST_TERMS = 40
_MARKED = re.compile(r"`([^`\n]{2,60})`|\"([^\"\n]{2,60})\"|(?<!\w)'([^'\n]{2,60})'(?!\w)")
_ARROW = re.compile(r"[`\"']?([\w.-]{2,60})[`\"']?\s*(?:->|=>|→)\s*[`\"']?([\w.-]{2,60})")
_TO = re.compile(r"\b(\w{3,60})\s+(?:to|into)\s+(\w{3,60})\b")
_RENAMES = re.compile(r"\brenam|\bnew name|\breplac", re.IGNORECASE)


@dataclass(frozen=True)
class Replacement:
    """`new` for `old`, wherever it stands as a word or a part of a name."""

    old: str
    new: str

    @cached_property
    def _forms(self) -> list[tuple[re.Pattern[str], str]]:
        forms = {self.old: self.new}
        if self.old.islower():
            forms |= {self.old.capitalize(): self.new.capitalize(), self.old.upper(): self.new.upper()}
        return [(_as_word(old), new) for old, new in forms.items()]

    def apply(self, text: str) -> str:
        """A text with every such word replaced."""
        for word, new in self._forms:
            text = word.sub(new.replace("\\", r"\\"), text)
        return text

    def has_come(self, text: str) -> bool:
        """Whether a text holds the new word."""
        return Replacement(self.new, "").apply(text) != text


def _as_word(word: str) -> re.Pattern[str]:
    before = r"(?<![A-Z])" if word[:1].isupper() and word[1:2].islower() else r"(?<![A-Za-z0-9])"
    after = r"(?=s?(?![a-z0-9]))" if word[-1:].isalnum() else ""
    return re.compile((before if word[:1].isalnum() else "") + re.escape(word) + after)


def stated(instruction: str) -> frozenset[Replacement]:
    """The replacements that an instruction may mean: one marked term for another, `a -> b`, "rename a to b"."""
    marked = [next(filter(None, found)) for found in _MARKED.findall(instruction)]
    terms = list(dict.fromkeys(marked))[:_MOST_TERMS]
    pairs = [(old, new) for old in terms for new in terms] + _ARROW.findall(instruction)
    pairs += _TO.findall(instruction) if _RENAMES.search(instruction) else []
    return frozenset(Replacement(old, new) for old, new in pairs if old != new)


def is_consistent(replacement: Replacement, texts: Iterable[str], changed: Iterable[tuple[str, str]]) -> bool:
    """Whether each of some texts that hold the old word is `changed`, and none held the new one before."""
    went = {old for old, _ in changed}
    return all(not replacement.has_come(text) and (text in went or replacement.apply(text) == text) for text in texts)


def between(old: str, new: str) -> Iterator[Replacement]:
    """The replacement that makes one name of another, by the parts that `_` separates."""
    parts = old.split("_"), new.split("_")
    head = 0
    while head < min(map(len, parts)) and parts[0][head] == parts[1][head]:
        head += 1
    tail = 0
    while tail < min(map(len, parts)) - head and parts[0][-1 - tail] == parts[1][-1 - tail]:
        tail += 1
    words = ["_".join(p[head : len(p) - tail]) for p in parts]
    if all(words):
        yield Replacement(*words)
