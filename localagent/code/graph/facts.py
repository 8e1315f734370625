"""What one Python file says of its names, as rows of numbers and texts: a value that can be stored and read again.

Rows refer to one another by index, -1 is none. Lines begin at 1; columns are bytes, from 0, of the line in the file's
UTF-8 form (`source_text.SourceText.utf8`). The rows do not depend on where the file lies, so that equal files share
them. `encoded` and `decoded` are exact inverses; their format is `FORMAT`, and another one is not read. The names come
first in the bytes: `encoded_names` reads them without the rest.
"""

import json
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

FORMAT = 3
MOST_DECODED_BYTES = 256 << 20
_LENGTH_BYTES = 4


class FactsFormatError(ValueError):
    """Stored facts that are damaged, or of another format: collect them again."""


class ExpressionKind(IntEnum):
    """What an expression is made of; `a` and `b` are expressions where nothing else is said."""

    NAME = 0  # a: the scope that binds it, -1 for builtins and unknown names; b: index of the name
    ATTRIBUTE = 1  # a: of what, -1 where that is not followed; b: index of the name
    CALL = 2  # what calling a gives; b: the first positional argument
    ITEM = 3  # a[b]; b: a constant index from 0, -1 for any other
    ELEMENT = 4  # what iterating over a gives
    AWAIT = 5
    ENTER = 6  # what `with a as x` gives
    INSTANCE = 7  # a value that is annotated with a
    LITERAL = 8  # a value of a builtin type; b: index of the type's name
    TUPLE = 9  # a: the first item, b: the TUPLE of the others
    LIST = 10  # a: what the items may be; b: index of the type's name (list, set, generator)
    DICT = 11  # a: what the keys, b: what the values may be
    UNION = 12  # a or b
    MODULE = 13  # b: index of a dotted name, leading dots as in a relative import
    SUPER = 14  # `super()`; a: the scope it stands in
    DEFINED = 15  # what a `def`, `class` or `lambda` makes; a: the definition
    STRING = 16  # a text that looks like a name; b: index of it
    KEYWORD = 17  # a keyword argument; a: what is called, b: index of the name
    SUBSCRIPT = 18  # a[b], b an expression: an argument of a type in annotations
    NARROWED = 19  # a value that `isinstance` was asked about with a


class UseKind(IntEnum):
    """What is done with a name where it stands."""

    READ = 0
    WRITE = 1
    CALL = 2
    DELETE = 3
    IMPORT = 4
    DEFINE = 5  # the name of a `def`, `class` or parameter
    DECORATOR = 6
    KEYWORD = 7
    EXPORT = 8  # an item of `__all__`
    STRING = 9  # a text that equals a name, or a dotted one
    DECLARE = 10  # `global`, `nonlocal`


class ScopeType(IntEnum):
    """What opens a scope."""

    MODULE = 0
    CLASS = 1
    FUNCTION = 2
    COMPREHENSION = 3


class DefinitionKind(IntEnum):
    """What a definition makes."""

    FUNCTION = 0
    ASYNC_FUNCTION = 1
    CLASS = 2
    LAMBDA = 3


class ParameterKind(IntEnum):
    """How an argument reaches a parameter."""

    POSITIONAL_ONLY = 0
    POSITIONAL_OR_KEYWORD = 1
    VAR_POSITIONAL = 2
    KEYWORD_ONLY = 3
    VAR_KEYWORD = 4


class ImportContext(IntEnum):
    """Under what an import stands, the innermost that is no plain block."""

    PLAIN = 0
    CONDITIONAL = 1
    TYPE_CHECKING = 2
    TRY = 3


class Expression(NamedTuple):
    """One expression; see `ExpressionKind` for what `a` and `b` are."""

    kind: int
    a: int
    b: int


class Scope(NamedTuple):
    """One scope: the first is the module's. `definition` is -1 for the module and comprehensions."""

    kind: int
    parent: int
    definition: int


class Use(NamedTuple):
    """A name where it stands: `length` bytes from `column`; `scope` is around it, `expression` ends with it.

    The length is 0 for a call of what has no name there (`f()()`, `len(x)`, `a + b`), whose expression is what is
    called (`x.__len__`). Where the place of a name inside a string is not known, the length is -1 and the place that
    of the string.
    """

    kind: int
    line: int
    column: int
    length: int
    scope: int
    expression: int


class ParameterFact(NamedTuple):
    """One parameter of a function. `annotation` and `default` are expressions."""

    name: str
    kind: int
    annotation: int
    default: int


class FunctionOrClass(NamedTuple):
    """A `def`, `class` or `lambda`. `scope` binds its name, `own_scope` is inside.

    `first_line` is that of the first decorator, `line` and `column` are where the name stands, `end_line` and
    `end_column` where the definition ends. `annotation` is that of what it returns, `returned` and `yielded` what its
    statements do; `bases`, `decorators` and these are expressions. `fixture` is its name as a pytest fixture.
    """

    kind: int
    name: str
    scope: int
    own_scope: int
    first_line: int
    line: int
    column: int
    end_line: int
    end_column: int
    signature: str
    doc: str
    decorators: tuple[int, ...]
    bases: tuple[int, ...]
    parameters: tuple[ParameterFact, ...]
    annotation: int
    returned: int
    yielded: int
    fixture: str


class BindingFact(NamedTuple):
    """A name or attribute is given a value, both expressions; the value is -1 where it is not followed."""

    target: int
    value: int
    line: int


class ImportFact(NamedTuple):
    """One name of an import statement: `bound` in `scope`, `item` of `module` ("" for a module, `*` for all).

    The module begins with the dots of a relative import.
    """

    module: str
    item: str
    bound: str
    scope: int
    line: int
    context: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleFacts:
    """Everything the graph knows of one file. `exports` is `__all__`, None where it has none.

    `export_sources` are expressions of other modules' `__all__` that are part of it.
    """

    names: tuple[str, ...]
    scopes: tuple[Scope, ...]
    expressions: tuple[Expression, ...]
    definitions: tuple[FunctionOrClass, ...]
    bindings: tuple[BindingFact, ...]
    imports: tuple[ImportFact, ...]
    uses: tuple[Use, ...]
    exports: tuple[str, ...] | None
    export_sources: tuple[int, ...]

    def qualified_name(self, definition: int) -> str:
        """The name of a definition as `__qualname__` tells it, without `<locals>`."""
        parts = [self.definitions[definition].name]
        scope = self.scopes[self.definitions[definition].scope]
        while scope.parent >= 0:
            if scope.definition >= 0:
                parts.append(self.definitions[scope.definition].name)
            scope = self.scopes[scope.parent]
        return ".".join(reversed(parts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreadable:
    """A file without facts, and why."""

    reason: str


def encoded(facts: ModuleFacts) -> bytes:
    """A compact form of the facts: names, then columns of numbers, each as JSON and compressed."""
    uses = _columns(facts.uses, len(Use._fields))
    uses[1] = _steps(uses[1])
    uses[5] = _steps(uses[5])
    value = [
        FORMAT,
        _columns(facts.scopes, len(Scope._fields)),
        _columns(facts.expressions, len(Expression._fields)),
        facts.definitions,
        _columns(facts.bindings, len(BindingFact._fields)),
        facts.imports,
        uses,
        facts.exports,
        facts.export_sources,
    ]
    names = _packed(facts.names)
    return len(names).to_bytes(_LENGTH_BYTES, "big") + names + _packed(value)


def encoded_names(data: bytes) -> tuple[str, ...]:
    """`names` of the facts that were encoded. FactsFormatError where that is not what the bytes are."""
    try:
        return tuple(_unpacked(data[_LENGTH_BYTES : _names_end(data)]))
    except (zlib.error, TypeError, ValueError) as error:
        raise FactsFormatError(f"stored names cannot be read: {error}") from error


def decoded(data: bytes) -> ModuleFacts:
    """The facts that were encoded. FactsFormatError where that is not what the bytes are."""
    try:
        version, scopes, expressions, definitions, bindings, imports, uses, exports, sources = _unpacked(
            data[_names_end(data) :]
        )
        if version != FORMAT:
            raise FactsFormatError(f"stored facts are of format {version}, not {FORMAT}")
        uses[1] = _sums(uses[1])
        uses[5] = _sums(uses[5])
        return ModuleFacts(
            names=encoded_names(data),
            scopes=tuple(map(Scope._make, zip(*scopes, strict=True))),
            expressions=tuple(map(Expression._make, zip(*expressions, strict=True))),
            definitions=tuple(_definition(row) for row in definitions),
            bindings=tuple(map(BindingFact._make, zip(*bindings, strict=True))),
            imports=tuple(map(ImportFact._make, imports)),
            uses=tuple(map(Use._make, zip(*uses, strict=True))),
            exports=None if exports is None else tuple(exports),
            export_sources=tuple(sources),
        )
    except (zlib.error, TypeError, ValueError, IndexError, KeyError) as error:
        raise FactsFormatError(f"stored facts cannot be read: {error}") from error


def _names_end(data: bytes) -> int:
    return _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 6)


def _unpacked(data: bytes) -> Any:
    inflate = zlib.decompressobj()
    text = inflate.decompress(data, MOST_DECODED_BYTES)
    if not inflate.eof:
        raise FactsFormatError("stored facts are cut off or too long")
    return json.loads(text)


def _columns(rows: tuple[tuple[int, ...], ...], width: int) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def _steps(numbers: list[int]) -> list[int]:
    """Each number less the one before it: small ones compress better."""
    return [b - a for a, b in zip([0, *numbers], numbers, strict=False)]


def _sums(steps: list[int]) -> list[int]:
    total = 0
    return [total := total + step for step in steps]


def _definition(row: list[object]) -> FunctionOrClass:
    made = FunctionOrClass._make(row)
    return made._replace(
        decorators=tuple(made.decorators),
        bases=tuple(made.bases),
        parameters=tuple(map(ParameterFact._make, made.parameters)),
    )
