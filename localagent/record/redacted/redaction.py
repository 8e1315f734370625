"""Leaving out of a document whatever could be text of a repository: what is known to be ours stays, all else is marked.

A shape says what a document may keep, field by field. A text stays only where its field's shape knows it (a word of
ours, a digest, a time); a field that no shape names goes with all that is in it. What goes becomes `redacted-N`: equal
things of one document get one number, and nothing of them can be worked out from it, not even their length. Numbers and
truth values stay. Not promised: that what stays tells nothing. A digest of a file confirms the file to whoever can
guess it whole, and counts tell how much there is.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from localagent.text.strict_json import canonical

Keep: TypeAlias = Callable[[str], bool]
_MOST_COUNT = 1 << 53  # more is no count, but may be a text in figures


@dataclass(frozen=True, slots=True)
class Fields:
    """An object: these names, each with its shape; any other name is marked with its value."""

    shapes: "Mapping[str, Shape]"


@dataclass(frozen=True, slots=True)
class Named:
    """An object whose names are data: kept where `name` knows them, each value by one shape."""

    name: Keep
    value: "Shape"


@dataclass(frozen=True, slots=True)
class Each:
    """A list, each item by one shape."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The first of these that is for the value's type."""

    shapes: "tuple[Shape, ...]"


Shape: TypeAlias = Keep | Fields | Named | Each | OneOf


def never(_text: str) -> bool:
    """The shape of a text that may be anybody's; an empty one stays, it says nothing."""
    return False


def matching(pattern: str) -> Keep:
    """Texts that match whole."""
    return re.compile(pattern, re.ASCII).fullmatch  # type: ignore[return-value]


def among(words: frozenset[str]) -> Keep:
    """These words alone."""
    return words.__contains__


@dataclass(slots=True)
class Redaction:
    """The numbers given in one document."""

    _numbers: dict[str, int] = field(default_factory=dict)

    def mark(self, value: object) -> str:
        """What stands for a value; the same for an equal one."""
        text = value if isinstance(value, str) else canonical(value).decode("ascii")
        return f"redacted-{self._numbers.setdefault(text, len(self._numbers) + 1)}"

    def of(self, value: Any, shape: Shape) -> Any:
        """The value with everything marked that its shape does not know."""
        chosen = _for(value, shape)
        if value is None or isinstance(value, bool) or value == "":
            return value
        if isinstance(value, int | float) and chosen is not None:
            return value if abs(value) < _MOST_COUNT else self.mark(value)
        if isinstance(value, Mapping) and isinstance(chosen, Fields):
            return self._fields(value, chosen)
        if isinstance(value, Mapping) and isinstance(chosen, Named):
            return {(k if chosen.name(k) else self.mark(k)): self.of(v, chosen.value) for k, v in value.items()}
        if isinstance(value, list | tuple) and isinstance(chosen, Each):
            return [self.of(item, chosen.item) for item in value]
        if isinstance(value, str) and callable(chosen) and chosen(value):
            return value
        return self.mark(value)

    def _fields(self, value: Mapping[str, Any], shape: Fields) -> dict[str, Any]:
        return {
            name if name in shape.shapes else self.mark(name): self.of(item, shape.shapes[name])
            if name in shape.shapes
            else self.mark(item)
            for name, item in value.items()
        }


def _for(value: object, shape: Shape) -> Shape | None:
    """The part of a shape that is for this type; None where there is none. Numbers need a leaf."""
    for part in shape.shapes if isinstance(shape, OneOf) else (shape,):
        if isinstance(value, Mapping):
            fits = isinstance(part, Fields | Named)
        elif isinstance(value, list | tuple):
            fits = isinstance(part, Each)
        else:
            fits = not isinstance(part, Fields | Named | Each | OneOf)
        if fits:
            return part
    return None
