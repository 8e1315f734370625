"""Who calls whom: an edge for each place where a function's body, or a module's own level, calls a function.

Calling a class calls what makes its instances; reading a property calls it; a decorator is called where it stands.
An edge is possible where the callee is an override that may be meant, a function only passed on, or bears the name of
an attribute of something unknown. Operators, `for`, `with`, `len` and the like call methods of what is known only.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from localagent.code.graph.code_graph import Ancestor, CodeGraph
from localagent.code.graph.facts import DefinitionKind, ExpressionKind, Use, UseKind
from localagent.code.graph.module_view import ModuleView
from localagent.code.graph.passed_functions import passed_functions
from localagent.code.graph.references import Certainty, resolve_use
from localagent.code.graph.values import Symbol, Value, ValueKind, Values
from localagent.domain.paths import RepoPath

MODULE_LEVEL = -1
_MAKING = ("__init__", "__new__", "__post_init__")
_MOST_BY_NAME = 24  # more methods of one name say nothing about which is called


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class FunctionId:
    """One definition of a file, by its place in the file's facts; -1 is the module's own level."""

    path: RepoPath
    index: int


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class CallEdge:
    """A call of `callee` in the body of `caller`, at a line and a column as in `Reference`."""

    caller: FunctionId
    callee: FunctionId
    line: int
    column: int
    certainty: Certainty


class CallGraph:
    """All calls of a repository, worked out for a file when it is first asked about."""

    def __init__(self, graph: CodeGraph) -> None:
        self.graph = graph
        self._of_file: dict[str, tuple[CallEdge, ...]] = {}

    def in_file(self, path: str) -> tuple[CallEdge, ...]:
        """The calls that a file makes, in order."""
        if path not in self._of_file:
            view = self.graph.view(path)
            found = {edge for use in view.facts.uses for edge in self._edges(view, use)}
            self._of_file[path] = tuple(sorted(_surest(found)))
        return self._of_file[path]

    @cached_property
    def by_callee(self) -> Mapping[FunctionId, tuple[CallEdge, ...]]:
        """Every call, by what is called."""
        found: defaultdict[FunctionId, list[CallEdge]] = defaultdict(list)
        for path in sorted(self.graph.facts):
            for edge in self.in_file(path):
                found[edge.callee].append(edge)
        return {callee: tuple(edges) for callee, edges in found.items()}

    def callees(self, function: FunctionId) -> tuple[CallEdge, ...]:
        """The calls in a function's own body."""
        return tuple(edge for edge in self.in_file(function.path) if edge.caller == function)

    def callers(self, function: FunctionId) -> tuple[CallEdge, ...]:
        """The calls of a function."""
        return self.by_callee.get(function, ())

    def _edges(self, view: ModuleView, use: Use) -> Iterator[CallEdge]:
        caller = FunctionId(path=view.path, index=view.function_around(use.scope))
        for function, certainty in self._called(view, use):
            callee = FunctionId(path=RepoPath(function[0]), index=function[1])
            yield CallEdge(caller=caller, callee=callee, line=use.line, column=use.column, certainty=certainty)

    def _called(self, view: ModuleView, use: Use) -> Iterator[tuple[tuple[str, int], Certainty]]:
        if use.expression < 0:
            return
        if use.kind in (UseKind.CALL, UseKind.DECORATOR):
            yield from self._by_value(view, use)
        elif use.kind in (UseKind.READ, UseKind.WRITE):
            yield from self._by_reading(view, use)

    def _by_value(self, view: ModuleView, use: Use) -> Iterator[tuple[tuple[str, int], Certainty]]:
        values = self.graph.values(view.path, use.expression)
        made = view.made_decorators.get(use.expression, ()) if use.kind == UseKind.DECORATOR else ()
        for value in sorted(values.union(*(self._decorating(view, decorator) for decorator in made))):
            yield from ((f, Certainty.CERTAIN) for f in self._runs(value))
        symbols = resolve_use(self.graph, view, use).symbols
        for function in self._overrides(symbols):
            yield function, Certainty.POSSIBLE
        if any(v.kind == ValueKind.UNKNOWN for v in values):
            passed = passed_functions(self.graph, view, use.expression)
            yield from ((f, Certainty.CERTAIN) for value in sorted(passed) for f in self._runs(value))
        row = view.facts.expressions[use.expression]
        unknown = all(v.kind == ValueKind.UNKNOWN for v in values)
        if unknown and use.length and row.kind == ExpressionKind.ATTRIBUTE:
            named = self.methods.get(view.name_of(use.expression), ())
            yield from ((f, Certainty.POSSIBLE) for f in named if len(named) <= _MOST_BY_NAME)

    def _decorating(self, view: ModuleView, decorator: int) -> Values:
        """What `@f()` puts a definition into: the functions among what `f()` gives, which may be what `@f` is, too."""
        values = self.graph.values(view.path, decorator)
        return frozenset(value for value in values if value.kind == ValueKind.FUNCTION) or values

    def _runs(self, value: Value) -> Iterator[tuple[str, int]]:
        """The functions that run when a value is called."""
        if value.kind == ValueKind.FUNCTION and not self._is_overload(value):
            yield value.path, value.index
        elif value.kind == ValueKind.CLASS:
            made = {name: self._functions(self.graph.member(value, name).symbols) for name in _MAKING}
            if made["__init__"]:  # written by hand: it is no dataclass's, which calls `__post_init__`
                del made["__post_init__"]
            yield from (function for functions in made.values() for function in functions)
        elif value.kind == ValueKind.INSTANCE:
            yield from self._functions(self.graph.member(value, "__call__").symbols)

    def _functions(self, symbols: Iterable[Symbol]) -> list[tuple[str, int]]:
        values = self.graph.values_of(symbols)
        return sorted((v.path, v.index) for v in values if v.kind == ValueKind.FUNCTION and not self._is_overload(v))

    def _is_overload(self, function: Value) -> bool:
        """Whether a function is one of the signatures of another, which is what runs."""
        view, made = self.graph.view(function.path), self.graph.definition(function)
        if "overload" not in view.decorator_names(made):
            return False
        same = (d for d in view.facts.definitions if (d.scope, d.name) == (made.scope, made.name))
        return any("overload" not in view.decorator_names(d) for d in same)

    def _overrides(self, symbols: Iterable[Symbol]) -> Iterator[tuple[str, int]]:
        """The functions of the same name in classes below that of a method."""
        for symbol in sorted(symbols):
            for path, index in self._below(symbol):
                view = self.graph.view(path)
                if symbol.name in view.members.get(index, {}):
                    own = view.facts.definitions[index].own_scope
                    yield from self._functions([Symbol(path, own, symbol.name)])

    def _below(self, symbol: Symbol) -> tuple[Ancestor, ...]:
        if symbol.scope <= 0:
            return ()
        at = self.graph.view(symbol.path).definition_of_scope.get(symbol.scope, -1)
        return self.graph.subclasses.get((RepoPath(symbol.path), at), ())

    def _by_reading(self, view: ModuleView, use: Use) -> Iterator[tuple[tuple[str, int], Certainty]]:
        """Properties that are read or set, and functions that are passed on."""
        row = view.facts.expressions[use.expression]
        if row.kind not in (ExpressionKind.NAME, ExpressionKind.ATTRIBUTE):
            return
        if view.name_of(use.expression) not in self.function_names:
            return
        symbols = resolve_use(self.graph, view, use).symbols
        for path, index in self._functions(symbols):
            inner = self.graph.view(path)
            marks = set(inner.decorator_names(inner.facts.definitions[index]))
            is_property = bool(marks & {"property", "cached_property", "abstractproperty"})
            is_setter = "setter" in marks
            if row.kind == ExpressionKind.ATTRIBUTE and (is_property or is_setter):
                if is_property == (use.kind == UseKind.READ):
                    yield (path, index), Certainty.CERTAIN
            elif use.kind == UseKind.READ:
                yield (path, index), Certainty.POSSIBLE

    @cached_property
    def function_names(self) -> frozenset[str]:
        """Names of all functions."""
        return frozenset(d.name for facts in self.graph.facts.values() for d in facts.definitions)

    @cached_property
    def methods(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Functions in class bodies by their name."""
        found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for path in sorted(self.graph.facts):
            view = self.graph.view(path)
            for at, made in enumerate(view.facts.definitions):
                holder = view.definition_of_scope.get(made.scope, -1)
                in_class = holder >= 0 and view.facts.definitions[holder].kind == DefinitionKind.CLASS
                if in_class and made.kind in (DefinitionKind.FUNCTION, DefinitionKind.ASYNC_FUNCTION):
                    found[made.name].append((path, at))
        return {name: tuple(functions) for name, functions in found.items()}


def _surest(edges: Iterable[CallEdge]) -> set[CallEdge]:
    """Each call once, as surely as it is known."""
    best: dict[tuple[FunctionId, FunctionId, int, int], CallEdge] = {}
    for edge in edges:
        key = (edge.caller, edge.callee, edge.line, edge.column)
        if key not in best or edge.certainty == Certainty.CERTAIN:
            best[key] = edge
    return set(best.values())
