"""What an expression may be, as far as a repository's own sources say it."""

from enum import IntEnum
from typing import NamedTuple


class ValueKind(IntEnum):
    """What a value is; `path` and `index` name a definition, or an expression of a file."""

    UNKNOWN = 0  # anything else
    MODULE = 1  # path: its file, or its folder with `/` at the end
    CLASS = 2
    INSTANCE = 3
    FUNCTION = 4
    EXTERNAL = 5  # name: the dotted name of something that no file of the repository defines
    BUILTIN = 6  # an instance of a builtin type; name: the type's
    DISPLAY = 7  # a tuple, list, set, dict or generator; index: the expression that makes it
    TYPED = 8  # an instance of a generic type from outside; index: the SUBSCRIPT of its annotation
    ALIAS = 9  # such a type itself
    GENERATOR = 10  # what a generator function gives; index: what it yields


class Value(NamedTuple):
    """One thing that an expression may be."""

    kind: ValueKind
    path: str = ""
    index: int = -1  # type: ignore[assignment]  # a field, not the method of tuples
    name: str = ""


class Symbol(NamedTuple):
    """A name of a scope: what definitions and references have in common. The scope of a module itself is -1.

    A member of a class, be it bound in its body or on `self`, is a name of the class's own scope.
    """

    path: str
    scope: int
    name: str


UNKNOWN = Value(ValueKind.UNKNOWN)
Values = frozenset[Value]
NOTHING: Values = frozenset()
ANYTHING: Values = frozenset({UNKNOWN})
