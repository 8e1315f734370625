"""What annotated values, items, elements and contexts are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localagent.code.graph.facts import ExpressionKind
from localagent.code.graph.values import ANYTHING, NOTHING, UNKNOWN, Value, ValueKind, Values

if TYPE_CHECKING:
    from localagent.code.graph.code_graph import CodeGraph

_TRANSPARENT = frozenset({"Optional", "Union", "Final", "ClassVar", "Annotated", "Required", "NotRequired", "ReadOnly"})
_AWAITED = frozenset({"Awaitable", "Coroutine"})
_MAPPINGS = frozenset(
    {"dict", "Dict", "Mapping", "MutableMapping", "DefaultDict", "defaultdict", "OrderedDict", "ChainMap"}
)
_BUILTINS = frozenset({"str", "int", "bytes", "bool", "float", "list", "dict", "set", "tuple", "frozenset", "complex"})


def annotated_values(graph: "CodeGraph", path: str, annotation: int, receiver: Value | None = None) -> Values:
    """What a value may be that is annotated so. `receiver` is what `Self` means."""
    found: set[Value] = set()
    for value in graph.values(path, annotation):
        found |= _instances(graph, value, receiver)
    return frozenset(found)


def _instances(graph: "CodeGraph", value: Value, receiver: Value | None) -> Values:
    last = value.name.rpartition(".")[2]
    match value.kind:
        case ValueKind.CLASS:
            return frozenset({Value(ValueKind.INSTANCE, value.path, value.index)})
        case ValueKind.BUILTIN:  # None
            return frozenset({value})
        case ValueKind.EXTERNAL if last == "Self":
            return frozenset({receiver}) if receiver is not None else ANYTHING
        case ValueKind.EXTERNAL if value.name.startswith("builtins.") and last in _BUILTINS:
            return frozenset({Value(ValueKind.BUILTIN, name=last)})
        case ValueKind.ALIAS if last in _TRANSPARENT:
            found = (annotated_values(graph, value.path, part, receiver) for part in arguments(graph, value))
            return frozenset().union(*(list(found)[:1] if last == "Annotated" else found))
        case ValueKind.ALIAS if last in ("Type", "type"):
            return frozenset().union(*(graph.values(value.path, part) for part in arguments(graph, value)))
        case ValueKind.ALIAS if last in _AWAITED:
            parts = list(arguments(graph, value))
            return annotated_values(graph, value.path, parts[-1], receiver) if parts else ANYTHING
        case ValueKind.ALIAS:
            return frozenset({Value(ValueKind.TYPED, value.path, value.index, value.name)})
        case _:
            return ANYTHING


def arguments(graph: "CodeGraph", alias: Value) -> Iterator[int]:
    """The expressions between the brackets of a type."""
    rows = graph.view(alias.path).facts.expressions
    at = rows[alias.index].b
    if at < 0:
        return
    if rows[at].kind != ExpressionKind.TUPLE:
        yield at
        return
    while at >= 0 and (rows[at].a >= 0 or rows[at].b >= 0):
        yield rows[at].a
        at = rows[at].b


def element_values(graph: "CodeGraph", value: Value) -> Values:
    """What iterating over a value gives."""
    match value.kind:
        case ValueKind.GENERATOR:
            return graph.values(value.path, value.index)
        case ValueKind.DISPLAY:
            return _items(graph, value, keys=True, at=-1)
        case ValueKind.TYPED:
            parts = list(arguments(graph, value))
            return annotated_values(graph, value.path, parts[0]) if parts else ANYTHING
        case ValueKind.INSTANCE:
            return frozenset().union(
                *(element_values(graph, v) for v in graph.method_result(value, "__iter__") - {value})
            )
        case _:
            return ANYTHING


def item_values(graph: "CodeGraph", value: Value, at: int) -> Values:
    """What `value[at]` gives; -1 for an index that is not known."""
    match value.kind:
        case ValueKind.DISPLAY:
            return _items(graph, value, keys=False, at=at)
        case ValueKind.TYPED:
            parts = list(arguments(graph, value))
            last = value.name.rpartition(".")[2]
            if not parts:
                return ANYTHING
            if last in _MAPPINGS:
                return annotated_values(graph, value.path, parts[-1])
            chosen = parts[at] if last in ("tuple", "Tuple") and 0 <= at < len(parts) else parts[0]
            return annotated_values(graph, value.path, chosen)
        case ValueKind.INSTANCE:
            return graph.method_result(value, "__getitem__")
        case ValueKind.GENERATOR:
            return graph.values(value.path, value.index)
        case _:
            return ANYTHING


def _items(graph: "CodeGraph", value: Value, *, keys: bool, at: int) -> Values:
    rows = graph.view(value.path).facts.expressions
    row = rows[value.index]
    if row.kind == ExpressionKind.DICT:
        return graph.values(value.path, row.a if keys else row.b)
    if row.kind == ExpressionKind.LIST:
        return graph.values(value.path, row.a)
    found: set[Value] = set()
    index = 0
    while row.a >= 0 or row.b >= 0:
        if at < 0 or index == at:
            found |= graph.values(value.path, row.a)
        index += 1
        row = rows[row.b]
    return frozenset(found) or ANYTHING


def entered_values(graph: "CodeGraph", value: Value) -> Values:
    """What `with value as name` gives."""
    match value.kind:
        case ValueKind.GENERATOR:
            return graph.values(value.path, value.index)
        case ValueKind.TYPED:
            return element_values(graph, value)
        case ValueKind.INSTANCE:
            found = graph.method_result(value, "__enter__") | graph.method_result(value, "__aenter__")
            return found - {UNKNOWN} or found
        case _:
            return ANYTHING if value.kind != ValueKind.BUILTIN else NOTHING
