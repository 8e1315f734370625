"""What expressions are and names stand for, over the facts of all files of a repository.

Without regard to order: a name that is bound twice is both. What is not known is said to be `UNKNOWN`, never left out.
Cycles give what the rest of them gives; results that a cycle cut short are not kept, so that no answer depends on what
was asked before. Not followed: what callers pass for parameters without annotation, metaclasses, operators.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from localagent.code.graph.annotations import annotated_values, element_values, entered_values, item_values
from localagent.code.graph.facts import DefinitionKind, ExpressionKind, FunctionOrClass, ModuleFacts
from localagent.code.graph.module_view import MODULE_SCOPE, ModuleView, last_part
from localagent.code.graph.values import ANYTHING, NOTHING, UNKNOWN, Symbol, Value, ValueKind, Values
from localagent.code.module_names import ModuleTable
from localagent.domain.paths import RepoPath

MODULE_ITSELF = -1
_DEEPEST = 40
_MOST_STEPS = 20_000
_MOST_VALUES = 24
_PROPERTIES = frozenset(
    {"property", "cached_property", "abstractproperty", "lazy_property", "getter", "hybrid_property"}
)
_WRITERS = frozenset({"setter", "deleter"})
_NOT_A_BASE = frozenset(
    {"builtins.object", "typing.Generic", "typing.Protocol", "abc.ABC", "typing_extensions.Protocol"}
)
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "iter", "reversed", "deque", "enumerate"})
_SAME = frozenset({"copy.copy", "copy.deepcopy", "dataclasses.replace", "functools.partial", "functools.wraps"})

Ancestor = tuple[RepoPath, int]


class Members(NamedTuple):
    """The symbols that an attribute may be; `complete` is False where it may be something else as well."""

    symbols: frozenset[Symbol]
    complete: bool


_NO_MEMBERS = Members(frozenset(), True)


class CodeGraph:
    """The names of a repository. Facts are given by whoever reads files; nothing is read here.

    `names` gives `ModuleFacts.names` of a file, for facts that are costly to get (`stored_facts`).
    """

    def __init__(
        self, facts: Mapping[RepoPath, ModuleFacts], names: Callable[[RepoPath], Iterable[str]] | None = None
    ) -> None:
        self.facts = facts
        self._names = names
        self.modules = ModuleTable(facts.keys())
        self._views: dict[str, ModuleView] = {}
        self._values: dict[tuple[str, int], Values] = {}
        self._running: dict[tuple[str, int], int] = {}
        self._cut = _DEEPEST + 1  # the shallowest running question that was asked again
        self._steps = 0
        self._ancestors: dict[tuple[str, int], tuple[tuple[Ancestor, ...], bool]] = {}

    def view(self, path: str) -> ModuleView:
        """The facts of one file, arranged. KeyError where there are none."""
        if path not in self._views:
            self._views[path] = ModuleView(RepoPath(path), self.facts[RepoPath(path)])
        return self._views[path]

    def files_naming(self, names: Iterable[str]) -> list[RepoPath]:
        """The files whose facts hold one of some names, whole or as the last part of a dotted one; sorted."""
        return sorted({path for name in names for path in self._files_by_name.get(name, ())})

    @cached_property
    def _files_by_name(self) -> Mapping[str, list[RepoPath]]:
        found: defaultdict[str, list[RepoPath]] = defaultdict(list)
        for path in self.facts:
            for name in self.facts[path].names if self._names is None else self._names(path):
                found[last_part(name)].append(path)
        return found

    def definition(self, value: Value | Ancestor) -> FunctionOrClass:
        """The definition that a class, instance or function value has."""
        path, index = (value.path, value.index) if isinstance(value, Value) else value
        return self.view(path).facts.definitions[index]

    # what an expression is

    def values(self, path: str, expression: int) -> Values:
        """Everything that an expression of a file may be."""
        if expression < 0:
            return ANYTHING
        key = (path, expression)
        known = self._values.get(key)
        if known is not None:
            return known
        depth = len(self._running)
        if key in self._running:
            self._cut = min(self._cut, self._running[key])
            return NOTHING
        if not depth:
            self._cut, self._steps = _DEEPEST + 1, 0
        self._steps += 1
        if depth >= _DEEPEST or self._steps > _MOST_STEPS:
            self._cut = 0
            return ANYTHING
        self._running[key] = depth
        try:
            found = self._value(self.view(path), expression)
        finally:
            del self._running[key]
        if len(found) > _MOST_VALUES:
            found = ANYTHING
        if self._cut >= depth:
            self._cut = _DEEPEST + 1
            self._values[key] = found
        return found

    def _value(self, view: ModuleView, expression: int) -> Values:
        kind, a, b = view.facts.expressions[expression]
        path = view.path
        match kind:
            case ExpressionKind.NAME:
                return self._name(view, expression)
            case ExpressionKind.ATTRIBUTE:
                return self._attribute(view, a, view.facts.names[b])
            case ExpressionKind.CALL:
                return self._joined(self._called(f, path, b) for f in self.values(path, a))
            case ExpressionKind.ITEM:
                return self._joined(item_values(self, v, b) for v in self.values(path, a))
            case ExpressionKind.SUBSCRIPT:
                return self._joined(self._subscript(v, path, expression) for v in self.values(path, a))
            case ExpressionKind.ELEMENT:
                return self._joined(element_values(self, v) for v in self.values(path, a))
            case ExpressionKind.AWAIT:
                return self.values(path, a)
            case ExpressionKind.ENTER:
                return self._joined(entered_values(self, v) for v in self.values(path, a))
            case ExpressionKind.INSTANCE | ExpressionKind.NARROWED:
                return annotated_values(self, path, a)
            case ExpressionKind.LITERAL:
                return frozenset({Value(ValueKind.BUILTIN, name=view.facts.names[b])})
            case ExpressionKind.TUPLE | ExpressionKind.LIST | ExpressionKind.DICT:
                return frozenset({Value(ValueKind.DISPLAY, path, expression)})
            case ExpressionKind.UNION:
                return self.values(path, a) | self.values(path, b)
            case ExpressionKind.MODULE:
                return self._module(view, view.facts.names[b])
            case ExpressionKind.SUPER:
                at = view.class_around(a)
                return frozenset({Value(ValueKind.INSTANCE, path, at, "super")}) if at >= 0 else ANYTHING
            case ExpressionKind.DEFINED:
                made = view.facts.definitions[a].kind
                value = ValueKind.CLASS if made == DefinitionKind.CLASS else ValueKind.FUNCTION
                return frozenset({Value(value, path, a)})
            case _:
                return ANYTHING

    @staticmethod
    def _joined(found: Iterable[Values]) -> Values:
        return frozenset().union(*found)

    def _module(self, view: ModuleView, dotted: str) -> Values:
        file = self.modules.resolve(dotted, view.path)
        if file is not None:
            return frozenset({Value(ValueKind.MODULE, file)})
        return ANYTHING if dotted.startswith(".") else frozenset({Value(ValueKind.EXTERNAL, name=dotted)})

    def _name(self, view: ModuleView, expression: int) -> Values:
        _, scope, b = view.facts.expressions[expression]
        name = view.facts.names[b]
        if scope < 0:
            found = self._from_stars(view, name, frozenset())
            if found.symbols or not found.complete:
                return self.values_of(found.symbols) | (NOTHING if found.complete else ANYTHING)
            return frozenset({Value(ValueKind.EXTERNAL, name=f"builtins.{name}")})
        holder = view.self_parameters.get(expression)
        if holder is not None:
            return frozenset({Value(ValueKind.CLASS if holder[1] else ValueKind.INSTANCE, view.path, holder[0])})
        return self.values_of({Symbol(view.path, scope, name)})

    def values_of(self, symbols: Iterable[Symbol]) -> Values:
        """Everything that some symbols may be."""
        return self._joined(self._symbol_values(symbol) for symbol in symbols)

    def _symbol_values(self, symbol: Symbol) -> Values:
        if symbol.scope == MODULE_ITSELF:
            return frozenset({Value(ValueKind.MODULE, symbol.path)})
        view = self.view(symbol.path)
        at = view.definition_of_scope.get(symbol.scope, -1)
        members = view.members.get(at)
        bound = view.bindings(symbol.scope, symbol.name) if members is None else members.get(symbol.name, [])
        surely = [b for b in bound if not self._is_narrowed(view, b.value)]
        found = self._joined(self._bound_value(view, b.value, symbol) for b in surely)
        if members is None and at >= 0 and self._is_untyped(view, at, symbol.name):
            fixture = self.fixture(view, at, symbol.name)
            found = self._fixture_values(fixture) if fixture is not None else found | ANYTHING
        if found <= ANYTHING and len(surely) < len(bound):
            found = self._joined(self.values(view.path, b.value) for b in bound if b not in surely) | found
        return found or ANYTHING

    def _bound_value(self, view: ModuleView, value: int, symbol: Symbol) -> Values:
        """A value that is bound; `from . import name` in a package's own file is its submodule."""
        found = self.values(view.path, value)
        if not found and symbol.scope == MODULE_SCOPE:
            inner = self.modules.submodule(view.path, symbol.name)
            return frozenset({Value(ValueKind.MODULE, inner)}) if inner is not None else found
        return found

    @staticmethod
    def _is_narrowed(view: ModuleView, value: int) -> bool:
        return value >= 0 and view.facts.expressions[value].kind == ExpressionKind.NARROWED

    @staticmethod
    def _is_untyped(view: ModuleView, function: int, name: str) -> bool:
        parameters = view.facts.definitions[function].parameters
        return any(p.name == name and p.annotation < 0 for p in parameters)

    # names through imports

    def origins(self, symbol: Symbol) -> frozenset[Symbol]:
        """The symbols that a name stands for: itself, or what it was imported from in the repository."""
        return self._origins(symbol, frozenset())

    def _origins(self, symbol: Symbol, asked: frozenset[Symbol]) -> frozenset[Symbol]:
        if symbol in asked:
            return frozenset()
        view = self.view(symbol.path)
        found: set[Symbol] = set()
        bound = view.bindings(symbol.scope, symbol.name)
        for binding in bound:
            reached = self._imported(view, binding.value, asked | {symbol})
            found |= {symbol} if reached is None else reached
        if bound and not found and symbol.scope == MODULE_SCOPE:
            inner = self.modules.submodule(symbol.path, symbol.name)
            return frozenset({Symbol(inner, MODULE_ITSELF, "")} if inner is not None else {symbol})
        return frozenset(found or {symbol})

    def _imported(self, view: ModuleView, value: int, asked: frozenset[Symbol]) -> set[Symbol] | None:
        """What an import's value is in the repository: empty where it comes from outside, None for no import."""
        row = view.facts.expressions[value] if value >= 0 else None
        if row is None:
            return None
        if row.kind == ExpressionKind.MODULE:
            file = self.modules.resolve(view.facts.names[row.b], view.path)
            return {Symbol(file, MODULE_ITSELF, "")} if file is not None else set()
        if row.kind == ExpressionKind.ATTRIBUTE and row.a >= 0:
            inner = view.facts.expressions[row.a]
            if inner.kind == ExpressionKind.MODULE:
                file = self.modules.resolve(view.facts.names[inner.b], view.path)
                return set(self._module_member(file, view.facts.names[row.b], asked).symbols) if file else set()
        return None

    def module_member(self, module: str, name: str) -> Members:
        """What a module's attribute is."""
        return self._module_member(module, name, frozenset())

    def _module_member(self, module: str, name: str, asked: frozenset[Symbol]) -> Members:
        if module in self.facts:
            view = self.view(module)
            if view.bindings(MODULE_SCOPE, name):
                found = self._origins(Symbol(module, MODULE_SCOPE, name), asked)
                if found:
                    return Members(found, True)
            starred = self._from_stars(view, name, asked)
            if starred.symbols:
                return starred
        inner = self.modules.submodule(module, name)
        if inner is not None:
            return Members(frozenset({Symbol(inner, MODULE_ITSELF, "")}), True)
        if module not in self.facts:
            return Members(frozenset(), module.endswith("/"))
        return Members(frozenset(), starred.complete and not view.bindings(MODULE_SCOPE, "__getattr__"))

    def members_of_stars(self, view: ModuleView, name: str) -> Members:
        """What star imports of a file bring under a name that nothing else there binds."""
        return self._from_stars(view, name, frozenset())

    def _from_stars(self, view: ModuleView, name: str, asked: frozenset[Symbol]) -> Members:
        """What star imports of a file bring under a name."""
        found: set[Symbol] = set()
        complete = True
        for module in view.stars:
            mark = Symbol(view.path, MODULE_SCOPE, f"{module}.{name}")
            file = self.modules.resolve(module, view.path)
            if file is None:
                complete = False
            elif mark not in asked and file in self.facts and self._is_public(file, name):
                inner = self._module_member(file, name, asked | {mark})
                found |= inner.symbols
                complete = complete and inner.complete
        return Members(frozenset(found), complete)

    def _is_public(self, file: str, name: str) -> bool:
        facts = self.view(file).facts
        if facts.exports is not None:
            return name in facts.exports or bool(facts.export_sources)
        return not name.startswith("_")

    # attributes

    def members(self, values: Values, name: str) -> Members:
        """The symbols that an attribute of some values may be."""
        found: set[Symbol] = set()
        complete = True
        for value in values:
            one = self.member(value, name)
            found |= one.symbols
            complete = complete and one.complete
        return Members(frozenset(found), complete)

    def member(self, value: Value, name: str) -> Members:
        """The symbols that an attribute of a value may be."""
        match value.kind:
            case ValueKind.MODULE:
                return self.module_member(value.path, name)
            case ValueKind.CLASS | ValueKind.INSTANCE:
                return self._class_member(value, name)
            case ValueKind.UNKNOWN:
                return Members(frozenset(), False)
            case _:
                return _NO_MEMBERS

    def _class_member(self, value: Value, name: str) -> Members:
        ancestors, is_open = self.ancestors(value.path, value.index)
        for path, index in ancestors[value.name == "super" :]:
            view = self.view(path)
            if name in view.members.get(index, {}):
                own = view.facts.definitions[index].own_scope
                return Members(frozenset({Symbol(path, own, name)}), True)
        return Members(frozenset(), not is_open and name.startswith("__"))

    def ancestors(self, path: str, index: int) -> tuple[tuple[Ancestor, ...], bool]:
        """A class and its bases in the order of look-up (C3), and whether some base is not known."""
        key = (path, index)
        if key not in self._ancestors:
            self._ancestors[key] = (((RepoPath(path), index),), True)  # for a class that is its own base
            self._ancestors[key] = self._linearized(RepoPath(path), index)
        return self._ancestors[key]

    def _linearized(self, path: RepoPath, index: int) -> tuple[tuple[Ancestor, ...], bool]:
        is_open = False
        bases: list[Ancestor] = []
        for base in self.view(path).facts.definitions[index].bases:
            for value in sorted(self.values(path, base)):
                if value.kind == ValueKind.CLASS and (value.path, value.index) != (path, index):
                    bases.append((RepoPath(value.path), value.index))
                elif value.kind not in (ValueKind.EXTERNAL, ValueKind.ALIAS) or value.name not in _NOT_A_BASE:
                    is_open = is_open or not value.name.startswith(("typing.Generic", "typing.Protocol"))
        lines = [list(self.ancestors(*base)[0]) for base in bases]
        is_open = is_open or any(self.ancestors(*base)[1] for base in bases)
        return ((path, index), *_merged([*lines, bases])), is_open

    @cached_property
    def subclasses(self) -> Mapping[Ancestor, tuple[Ancestor, ...]]:
        """By class: every class that has it among its bases, directly or not."""
        found: dict[Ancestor, list[Ancestor]] = {}
        for path in sorted(self.facts):
            for at, definition in enumerate(self.facts[path].definitions):
                if definition.kind == DefinitionKind.CLASS:
                    for base in self.ancestors(path, at)[0][1:]:
                        found.setdefault(base, []).append((path, at))
        return {base: tuple(below) for base, below in found.items()}

    def _attribute(self, view: ModuleView, receiver: int, name: str) -> Values:
        found: set[Value] = set()
        for value in self.values(view.path, receiver):
            if value.kind == ValueKind.EXTERNAL:
                found.add(Value(ValueKind.EXTERNAL, name=f"{value.name}.{name}"))
                continue
            if value.kind in (ValueKind.DISPLAY, ValueKind.TYPED, ValueKind.GENERATOR, ValueKind.BUILTIN):
                found.add(UNKNOWN)
                continue
            members = self.member(value, name)
            got = self.values_of(members.symbols)
            found |= self._read(value, got) if value.kind == ValueKind.INSTANCE else got
            if not members.symbols:
                found.add(UNKNOWN)
        return frozenset(found)

    def _read(self, receiver: Value, values: Values) -> set[Value]:
        """What an attribute of an instance gives: of a property what it returns."""
        found: set[Value] = set()
        for value in values:
            marks = set(self.view(value.path).decorator_names(self.definition(value))) if _is_function(value) else set()
            if marks & _PROPERTIES:
                found |= self.returned(value, receiver)
            elif not marks & _WRITERS:
                found.add(value)
        return found

    # calls

    def _called(self, function: Value, path: str, first: int) -> Values:
        match function.kind:
            case ValueKind.CLASS:
                return frozenset({Value(ValueKind.INSTANCE, function.path, function.index)})
            case ValueKind.FUNCTION:
                return self.returned(function, None)
            case ValueKind.INSTANCE:
                return self.method_result(function, "__call__")
            case ValueKind.EXTERNAL:
                return self._called_outside(function.name, path, first)
            case _:
                return ANYTHING

    def method_result(self, instance: Value, name: str) -> Values:
        """What calling a method of an instance gives."""
        found = self.values_of(self.member(instance, name).symbols)
        return self._joined(self.returned(f, instance) for f in found if _is_function(f)) or ANYTHING

    def _called_outside(self, name: str, path: str, first: int) -> Values:
        short = name.removeprefix("builtins.").removeprefix("collections.")
        if short in _CONTAINERS and first >= 0:
            return self.values(path, first)
        if name in _SAME and first >= 0:
            return self.values(path, first)
        if name == "builtins.next" and first >= 0:
            return self._joined(element_values(self, v) for v in self.values(path, first))
        if name == "typing.cast" and first >= 0:
            return annotated_values(self, path, first)
        if name == "builtins.type" and first >= 0:
            return frozenset(
                Value(ValueKind.CLASS, v.path, v.index) if v.kind == ValueKind.INSTANCE else UNKNOWN
                for v in self.values(path, first)
            )
        if name.startswith("builtins.") and short in ("str", "int", "bytes", "dict", "list", "set", "len", "repr"):
            return frozenset({Value(ValueKind.BUILTIN, name=short)})
        return ANYTHING

    def returned(self, function: Value, receiver: Value | None) -> Values:
        """What calling a function gives, on an instance where it is a method."""
        view = self.view(function.path)
        made = view.facts.definitions[function.index]
        if made.annotation >= 0:
            found = annotated_values(self, function.path, made.annotation, receiver)
            if made.yielded < 0:
                return found | self._functions_returned(function.path, made, found)
            if found - ANYTHING:
                return found
        if made.yielded >= 0:
            return frozenset({Value(ValueKind.GENERATOR, function.path, made.yielded)})
        if made.returned < 0:
            return ANYTHING
        if receiver is not None and self._gives_itself(view, made):
            return frozenset({receiver._replace(name="")})
        return self.values(function.path, made.returned)

    def _functions_returned(self, path: str, made: FunctionOrClass, annotated: Values) -> Values:
        """The functions that a function gives back which is annotated with no class of the repository (`Callable`)."""
        if made.returned < 0 or (not annotated <= ANYTHING and all(v.kind != ValueKind.TYPED for v in annotated)):
            return NOTHING
        return frozenset(value for value in self.values(path, made.returned) if _is_function(value))

    @staticmethod
    def _gives_itself(view: ModuleView, made: FunctionOrClass) -> bool:
        """Whether a method returns `self`, or `cls(...)`."""
        at = made.returned
        row = view.facts.expressions[at]
        return at in view.self_parameters or (
            row.kind == ExpressionKind.CALL and view.self_parameters.get(row.a, (-1, False))[1]
        )

    def _subscript(self, value: Value, path: str, expression: int) -> Values:
        if value.kind == ValueKind.CLASS:
            return frozenset({value})
        if value.kind in (ValueKind.EXTERNAL, ValueKind.ALIAS):
            return frozenset({Value(ValueKind.ALIAS, path, expression, value.name)})
        return item_values(self, value, -1)

    # fixtures

    def fixture(self, view: ModuleView, function: int, name: str) -> Symbol | None:
        """The pytest fixture that a parameter of a test, or of another fixture, asks for by its name."""
        made = view.facts.definitions[function]
        if not made.fixture and not made.name.startswith("test"):
            return None
        for path in self._fixture_files(view.path):
            inner = self.view(path)
            for definition in inner.facts.definitions:
                if definition.fixture == name and (definition is not made):
                    return Symbol(path, definition.scope, definition.name)
        return None

    def _fixture_files(self, path: RepoPath) -> Iterator[RepoPath]:
        yield path
        folders = path.parts[:-1]
        for depth in range(len(folders), -1, -1):
            conftest = RepoPath("/".join((*folders[:depth], "conftest.py")))
            if conftest in self.facts and conftest != path:
                yield conftest

    def _fixture_values(self, fixture: Symbol) -> Values:
        view = self.view(fixture.path)
        made = [d for d in view.facts.definitions if d.fixture and (d.scope, d.name) == fixture[1:]]
        found: set[Value] = set()
        for definition in made:
            if definition.annotation >= 0 and definition.yielded < 0:
                found |= annotated_values(self, fixture.path, definition.annotation)
            elif definition.yielded >= 0:
                found |= self.values(fixture.path, definition.yielded)
            else:
                found |= self.values(fixture.path, definition.returned)
        return frozenset(found)


def _is_function(value: Value) -> bool:
    return value.kind == ValueKind.FUNCTION


def _merged(lines: list[list[Ancestor]]) -> list[Ancestor]:
    """The merge of C3 (Barrett et al., 1996); where the orders contradict one another the first comes first."""
    found: list[Ancestor] = []
    waiting = [line for line in lines if line]
    while waiting:
        heads = [line[0] for line in waiting]
        free = [h for h in heads if not any(h in line[1:] for line in waiting)]
        head = free[0] if free else heads[0]
        found.append(head)
        waiting = [rest for line in waiting if (rest := [x for x in line if x != head])]
    return found
