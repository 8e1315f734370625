"""What one Python file says of its names, as rows of numbers and texts: a value that can be stored and read again.

Rows refer to one another by index, -1 is none. Lines begin at 1; columns are bytes, from 0, of the line in the file's
UTF-8 form (`source_text.SourceText.utf8`). The rows do not depend on where the file lies, so that equal files share
them. `encoded` and `decoded` are exact inverses; their format is `FORMAT`, and another one is not read. The names come
first in the bytes: `encoded_names` reads them without the rest.
"""

import json
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

FORMAT = 4
MOST_DECODED_BYTES = 256 << 20
_LENGTH_BYTES = 4
_WORD = 4  # bytes of one number before the empty ones are left out
_COLUMNS = 15


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


_KEYWORDS: dict[int, str] = {
    DefinitionKind.FUNCTION: "def ",
    DefinitionKind.ASYNC_FUNCTION: "async def ",
    DefinitionKind.CLASS: "class ",
}


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
    """A compact form of the facts: names as JSON; then JSON of what is no number, and columns of numbers as bytes."""
    scopes, expressions, bindings = (
        _columns(rows, width)
        for rows, width in (
            (facts.scopes, len(Scope._fields)),
            (facts.expressions, len(Expression._fields)),
            (facts.bindings, len(BindingFact._fields)),
        )
    )
    columns = [*scopes, *expressions, *bindings, *_use_columns(facts.uses, _name_lengths(facts))]
    planes = [_planes(column) for column in columns]
    head = [
        FORMAT,
        [[len(column), len(found)] for column, found in zip(columns, planes, strict=True)],
        facts.definitions,
        facts.imports,
        facts.exports,
        facts.export_sources,
    ]
    names, text = _packed(_json(facts.names)), _json(head)
    numbers = b"".join(plane for found in planes for plane in found)
    return b"".join((_length(names), names, _packed(_length(text) + text + numbers)))


def encoded_names(data: bytes) -> tuple[str, ...]:
    """`names` of the facts that were encoded. FactsFormatError where that is not what the bytes are."""
    try:
        return tuple(json.loads(_unpacked(data[_LENGTH_BYTES : _names_end(data)])))
    except (zlib.error, TypeError, ValueError) as error:
        raise FactsFormatError(f"stored names cannot be read: {error}") from error


class DefinitionHead(NamedTuple):
    """What is shown of a definition; see `FunctionOrClass`. The signature begins with `def`, `async def` or `class`."""

    name: str
    first_line: int
    end_line: int
    signature: str
    doc: str


def head_of(made: FunctionOrClass) -> DefinitionHead:
    """The head of a definition."""
    signature = _KEYWORDS.get(made.kind, "") + made.signature
    return DefinitionHead(made.name, made.first_line, made.end_line, signature, made.doc)


def encoded_heads(data: bytes) -> list[DefinitionHead]:
    """The heads of all definitions of facts that were encoded, without the rest. FactsFormatError as of `decoded`."""
    try:
        body = _unpacked(data[_names_end(data) :])
        definitions = json.loads(body[_LENGTH_BYTES : _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")])[2]
        return [head_of(FunctionOrClass._make(row)) for row in definitions]
    except (zlib.error, TypeError, ValueError, IndexError) as error:
        raise FactsFormatError(f"stored facts cannot be read: {error}") from error


def decoded(data: bytes) -> ModuleFacts:
    """The facts that were encoded. FactsFormatError where that is not what the bytes are."""
    try:
        names = encoded_names(data)
        body = _unpacked(data[_names_end(data) :])
        start = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
        version, shapes, definitions, imports, exports, sources = json.loads(body[_LENGTH_BYTES:start])
        if version != FORMAT:
            raise FactsFormatError(f"stored facts are of format {version}, not {FORMAT}")
        columns = _columns_of(body[start:], shapes)
        expressions = tuple(map(Expression._make, zip(*columns[3:6], strict=True)))
        return ModuleFacts(
            names=names,
            scopes=tuple(map(Scope._make, zip(*columns[:3], strict=True))),
            expressions=expressions,
            definitions=tuple(_definition(row) for row in definitions),
            bindings=tuple(map(BindingFact._make, zip(*columns[6:9], strict=True))),
            imports=tuple(map(ImportFact._make, imports)),
            uses=tuple(_uses(columns[9:], _lengths(expressions, names))),
            exports=None if exports is None else tuple(exports),
            export_sources=tuple(sources),
        )
    except (zlib.error, TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise FactsFormatError(f"stored facts cannot be read: {error}") from error


def _names_end(data: bytes) -> int:
    return _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _length(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES, "big")


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, 6)


def _unpacked(data: bytes) -> bytes:
    inflate = zlib.decompressobj()
    text = inflate.decompress(data, MOST_DECODED_BYTES)
    if not inflate.eof:
        raise FactsFormatError("stored facts are cut off or too long")
    return text


def _columns(rows: tuple[tuple[int, ...], ...], width: int) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def _planes(column: list[int]) -> list[bytes]:
    """The lowest bytes of all numbers (from -1), then the next ones, as far as one has any: these compress best."""
    data = _little(array("I", [number + 1 for number in column])).tobytes()
    width = max(1, (max(column, default=0) + 1).bit_length() + 7 >> 3)
    return [data[at::_WORD] for at in range(width)]


def _columns_of(data: bytes, shapes: list[list[int]]) -> list[list[int]]:
    """The columns of (numbers, planes) each; ValueError where the bytes are not just these."""
    columns, at = [], 0
    for count, width in shapes:
        if not 1 <= width <= _WORD or not 0 <= count * width <= len(data) - at:
            raise ValueError("columns are cut off")
        words = bytearray(_WORD * count)
        for plane in range(width):
            words[plane::_WORD] = data[at : at + count]
            at += count
        columns.append([number - 1 for number in _little(array("I", bytes(words)))])
    if at != len(data) or len(columns) != _COLUMNS:
        raise ValueError("columns are missing, or too many")
    return columns


def _little(words: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _name_lengths(facts: ModuleFacts) -> list[int]:
    return _lengths(facts.expressions, facts.names)


def _lengths(expressions: Sequence[Expression], names: Sequence[str]) -> list[int]:
    """The bytes of the name that each expression ends with; 0 where it ends with none."""
    ending = (ExpressionKind.NAME, ExpressionKind.ATTRIBUTE)
    sizes = [len(name.encode("utf-8", "surrogatepass")) for name in names]
    return [sizes[row.b] if row.kind in ending else 0 for row in expressions]


def _use_columns(uses: Sequence[Use], lengths: Sequence[int]) -> list[list[int]]:
    """Columns of uses: lines as steps, columns as steps within a line, and a length only where the name says another.

    A length is 0 where it is that of the name, and 2 more than it is otherwise.
    """
    kinds, lines, columns, sizes, scopes, expressions = _columns(tuple(uses), len(Use._fields))
    steps = [b - a for a, b in zip([0, *lines], lines, strict=False)]
    within = [b - a if not step else b for a, b, step in zip([0, *columns], columns, steps, strict=False)]
    odd = [0 if size == _named(lengths, at) else size + 2 for size, at in zip(sizes, expressions, strict=True)]
    return [kinds, steps, within, odd, scopes, expressions]


def _uses(columns: list[list[int]], lengths: Sequence[int]) -> Iterator[Use]:
    """The uses that `_use_columns` took apart."""
    line = column = 0
    for kind, step, within, odd, scope, at in zip(*columns, strict=True):
        line += step
        column = within if step else column + within
        yield Use(kind, line, column, odd - 2 if odd else _named(lengths, at), scope, at)


def _named(lengths: Sequence[int], expression: int) -> int:
    return lengths[expression] if expression >= 0 else 0


def _definition(row: list[object]) -> FunctionOrClass:
    made = FunctionOrClass._make(row)
    return made._replace(
        decorators=tuple(made.decorators),
        bases=tuple(made.bases),
        parameters=tuple(map(ParameterFact._make, made.parameters)),
    )
