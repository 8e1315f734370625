"""Which functions calls pass for a parameter: what `callback()` may call in a function that takes `callback`.

Followed is the first argument of a call by the function's own name, and what a decorator is put on; one step, so that
no answer hangs on others. Not followed: other arguments, and parameters that are passed on.
"""

from collections.abc import Iterator

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import DefinitionKind, ExpressionKind, ParameterKind
from localagent.code.graph.module_view import ModuleView
from localagent.code.graph.values import Value, ValueKind


def passed_functions(graph: CodeGraph, view: ModuleView, expression: int) -> frozenset[Value]:
    """The functions and classes that calls pass for the parameter that an expression of a file names."""
    kind, scope, name = view.facts.expressions[expression]
    at = view.definition_of_scope.get(scope, -1) if kind == ExpressionKind.NAME else -1
    if at < 0 or not _is_first(view, at, view.facts.names[name]):
        return frozenset()
    function = Value(ValueKind.FUNCTION, view.path, at)
    names = _called_by(view, at)
    found = {
        value
        for path in graph.files_naming(names)
        for value in _passed_in(graph, graph.view(path), function, names)
        if value.kind in (ValueKind.FUNCTION, ValueKind.CLASS)
    }
    return frozenset(found)


def _is_first(view: ModuleView, function: int, name: str) -> bool:
    """Whether a name is the first parameter that a caller gives an argument for."""
    made = view.facts.definitions[function]
    given = [p.name for p in made.parameters if p.kind <= ParameterKind.POSITIONAL_OR_KEYWORD]
    is_method = bool(given) and view.name_row(made.own_scope, given[0]) in view.self_parameters
    return name in (given[1:2] if is_method else given[:1])


def _called_by(view: ModuleView, function: int) -> set[str]:
    """The names under which a function is called: its own, that of its class or of the function that makes it."""
    made = view.facts.definitions[function]
    around = view.definition_of_scope.get(made.scope, -1)
    if around < 0:
        return {made.name}
    holder = view.facts.definitions[around]
    if holder.kind == DefinitionKind.CLASS:
        return {holder.name} if made.name == "__init__" else {made.name}
    return {made.name, holder.name}


def _passed_in(graph: CodeGraph, view: ModuleView, function: Value, names: set[str]) -> Iterator[Value]:
    for name in sorted(names):
        for callee, first in view.calls_by_name.get(name, ()):
            if first >= 0 and _calls(graph, view, callee, function):
                yield from graph.values(view.path, first)
    for at, made in enumerate(view.facts.definitions):
        if names & set(view.decorator_names(made)):
            for decorator in made.decorators:
                if decorator >= 0 and function in graph.values(view.path, decorator):
                    kind = ValueKind.CLASS if made.kind == DefinitionKind.CLASS else ValueKind.FUNCTION
                    yield Value(kind, view.path, at)


def _calls(graph: CodeGraph, view: ModuleView, callee: int, function: Value) -> bool:
    """Whether calling an expression runs a function."""
    values = graph.values(view.path, callee)
    return function in values or any(
        function in graph.values_of(graph.member(value, "__init__").symbols)
        for value in values
        if value.kind == ValueKind.CLASS
    )
