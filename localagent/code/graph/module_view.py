"""The facts of one file, arranged for questions: what binds a name, what a class holds, what stands where."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from localagent.code.graph.facts import (
    BindingFact,
    DefinitionKind,
    Expression,
    ExpressionKind,
    FunctionOrClass,
    ModuleFacts,
    ParameterFact,
    ParameterKind,
    ScopeType,
    Use,
)
from localagent.domain.paths import RepoPath

MODULE_SCOPE = 0
NAMED = frozenset(
    {
        ExpressionKind.NAME, ExpressionKind.ATTRIBUTE, ExpressionKind.KEYWORD, ExpressionKind.STRING,
        ExpressionKind.MODULE,
    }
)  # fmt: skip
"""Kinds of expressions whose `b` is the index of a name."""
_WITHOUT_SELF = frozenset({"staticmethod"})
_OF_THE_CLASS = frozenset({"classmethod"})
_MADE_CLASS_METHODS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})


class ModuleView:
    """One file and its facts; everything is looked up once."""

    def __init__(self, path: RepoPath, facts: ModuleFacts) -> None:
        self.path = path
        self.facts = facts

    def name_of(self, expression: int) -> str:
        """The name that an expression ends with, "" where it ends otherwise."""
        if expression < 0:
            return ""
        row = self.facts.expressions[expression]
        if row.kind == ExpressionKind.MODULE:
            return self.facts.names[row.b].rpartition(".")[2]
        return self.facts.names[row.b] if row.kind in NAMED else ""

    @cached_property
    def by_target(self) -> Mapping[int, list[BindingFact]]:
        """Bindings by the expression that is bound."""
        found: defaultdict[int, list[BindingFact]] = defaultdict(list)
        for binding in self.facts.bindings:
            found[binding.target].append(binding)
        return found

    @cached_property
    def index_of(self) -> Mapping[Expression, int]:
        """The index of each expression."""
        return {row: at for at, row in enumerate(self.facts.expressions)}

    @cached_property
    def name_index(self) -> Mapping[str, int]:
        """The index of each name."""
        return {name: at for at, name in enumerate(self.facts.names)}

    def bindings(self, scope: int, name: str) -> list[BindingFact]:
        """What binds a name of a scope, in the order of the source."""
        at = self.name_index.get(name, -1)
        row = self.index_of.get(Expression(int(ExpressionKind.NAME), scope, at), -1)
        return self.by_target.get(row, []) if at >= 0 and row >= 0 else []

    @cached_property
    def definition_of_scope(self) -> Mapping[int, int]:
        """The definition whose inside a scope is."""
        return {definition.own_scope: at for at, definition in enumerate(self.facts.definitions)}

    def class_around(self, scope: int) -> int:
        """The class that the nearest function around a scope is a method of; -1 for none."""
        while scope > 0:
            row = self.facts.scopes[scope]
            parent = row.parent
            if row.kind == ScopeType.FUNCTION and parent > 0 and self.facts.scopes[parent].kind == ScopeType.CLASS:
                return self.definition_of_scope.get(parent, -1)
            scope = parent
        return -1

    def function_around(self, scope: int) -> int:
        """The innermost `def` or class that a scope lies in, lambdas and comprehensions left out; -1 for the module."""
        while scope > 0:
            at = self.definition_of_scope.get(scope, -1)
            if at >= 0 and self.facts.definitions[at].kind != DefinitionKind.LAMBDA:
                return at
            scope = self.facts.scopes[scope].parent
        return -1

    def decorator_names(self, definition: FunctionOrClass) -> list[str]:
        """The last names of a definition's decorators."""
        return [self.name_of(self._called(expression)) for expression in definition.decorators]

    @cached_property
    def made_decorators(self) -> Mapping[int, frozenset[int]]:
        """By what is called: the decorators that the calls give, as `f()` in `@f()`."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for definition in self.facts.definitions:
            for decorator in definition.decorators:
                if self._called(decorator) != decorator:
                    found[self._called(decorator)].add(decorator)
        return {callee: frozenset(decorators) for callee, decorators in found.items()}

    def _called(self, expression: int) -> int:
        row = self.facts.expressions[expression] if expression >= 0 else None
        return row.a if row is not None and row.kind == ExpressionKind.CALL else expression

    def name_row(self, scope: int, name: str) -> int:
        """The expression that a name of a scope is; -1 where the file has none."""
        row = Expression(int(ExpressionKind.NAME), scope, self.name_index.get(name, -1))
        return self.index_of.get(row, -1)

    @cached_property
    def self_parameters(self) -> Mapping[int, tuple[int, bool]]:
        """By NAME of a method's first parameter: its class, and whether it is the class itself (`cls`)."""
        found: dict[int, tuple[int, bool]] = {}
        for definition in self.facts.definitions:
            holder = self.definition_of_scope.get(definition.scope, -1)
            first = first_positional(definition)
            if first is None or holder < 0 or self.facts.definitions[holder].kind != DefinitionKind.CLASS:
                continue
            marks = set(self.decorator_names(definition))
            if definition.kind in (DefinitionKind.CLASS, DefinitionKind.LAMBDA) or marks & _WITHOUT_SELF:
                continue
            by_class = bool(marks & _OF_THE_CLASS) or definition.name in _MADE_CLASS_METHODS
            found[self.name_row(definition.own_scope, first.name)] = (holder, by_class)
        return found

    @cached_property
    def members(self) -> Mapping[int, Mapping[str, list[BindingFact]]]:
        """By class: what its body and its methods' `self.name = ...` bind."""
        found: dict[int, dict[str, list[BindingFact]]] = {
            at: {} for at, d in enumerate(self.facts.definitions) if d.kind == DefinitionKind.CLASS
        }
        for binding in self.facts.bindings:
            row = self.facts.expressions[binding.target] if binding.target >= 0 else None
            holder = -1
            if row is not None and row.kind == ExpressionKind.NAME and row.a > 0:
                holder = self.definition_of_scope.get(row.a, -1)
            elif row is not None and row.kind == ExpressionKind.ATTRIBUTE:
                value = self.facts.expressions[binding.value].kind if binding.value >= 0 else -1
                holder = -1 if value == ExpressionKind.NARROWED else self.self_parameters.get(row.a, (-1, False))[0]
            if row is not None and holder in found:
                found[holder].setdefault(self.facts.names[row.b], []).append(binding)
        return found

    @cached_property
    def uses_by_name(self) -> Mapping[str, list[Use]]:
        """Uses by the last part of their name: that of a text is what stands behind its last dot or colon."""
        found: defaultdict[str, list[Use]] = defaultdict(list)
        for use in self.facts.uses:
            found[last_part(self.name_of(use.expression))].append(use)
        return found

    @cached_property
    def calls_by_name(self) -> Mapping[str, list[tuple[int, int]]]:
        """(what is called, its first positional argument) of calls, by the last name of what is called."""
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for row in self.facts.expressions:
            if row.kind == ExpressionKind.CALL:
                found[self.name_of(row.a)].append((row.a, row.b))
        return found

    @cached_property
    def stars(self) -> list[str]:
        """Modules of which everything is imported, as written."""
        return [fact.module for fact in self.facts.imports if fact.item == "*"]


def last_part(name: str) -> str:
    """What stands behind the last dot or colon of a name."""
    return name.replace(":", ".").rpartition(".")[2]


def first_positional(definition: FunctionOrClass) -> ParameterFact | None:
    """The first parameter that takes a positional argument."""
    for parameter in definition.parameters:
        if parameter.kind <= ParameterKind.POSITIONAL_OR_KEYWORD:
            return parameter
        return None
    return None
