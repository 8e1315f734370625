"""Where symbols are used over all files: surely, or possibly where Python decides at run time.

A use is sure where the file's own words lead to the symbol: scopes, imports, classes known by constructor, annotation,
`self` or `isinstance`. It is possible where a name fits and nothing says otherwise: an attribute of something unknown,
a text that equals the name (`getattr`, `monkeypatch`, dynamic imports), an override that may be reached.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from localagent.code.graph.code_graph import MODULE_ITSELF, CodeGraph
from localagent.code.graph.facts import DefinitionKind, ExpressionKind, ParameterKind, Use, UseKind
from localagent.code.graph.module_view import MODULE_SCOPE, NAMED, ModuleView
from localagent.code.graph.values import Symbol, Value, ValueKind
from localagent.domain.paths import RepoPath


class ReferenceKind(StrEnum):
    """What a reference does with the symbol."""

    READ = "read"
    WRITE = "write"
    CALL = "call"
    DELETE = "delete"
    IMPORT = "import"
    DEFINITION = "definition"
    DECORATOR = "decorator"
    KEYWORD = "keyword"
    EXPORT = "__all__"
    STRING = "string"
    DECLARATION = "declaration"
    FIXTURE = "fixture"
    DOCUMENTATION = "documentation"


class Certainty(StrEnum):
    """Whether a reference is known to mean the symbol."""

    CERTAIN = "certain"
    POSSIBLE = "possible"


_KINDS = {
    UseKind.READ: ReferenceKind.READ,
    UseKind.WRITE: ReferenceKind.WRITE,
    UseKind.CALL: ReferenceKind.CALL,
    UseKind.DELETE: ReferenceKind.DELETE,
    UseKind.IMPORT: ReferenceKind.IMPORT,
    UseKind.DEFINE: ReferenceKind.DEFINITION,
    UseKind.DECORATOR: ReferenceKind.DECORATOR,
    UseKind.KEYWORD: ReferenceKind.KEYWORD,
    UseKind.EXPORT: ReferenceKind.EXPORT,
    UseKind.STRING: ReferenceKind.STRING,
    UseKind.DECLARE: ReferenceKind.DECLARATION,
}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Reference:
    """One use of a symbol.

    Lines begin at 1. Columns are bytes from 0 of the line's UTF-8 form, the end not included; `exact` says that they
    hold the name and nothing else, so that it can be replaced there. `inside` is the qualified name of the function or
    class around it, "" at module level.
    """

    path: RepoPath
    line: int
    column: int
    end_column: int
    kind: ReferenceKind
    certainty: Certainty
    inside: str
    exact: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """What a use may mean: symbols that it surely means, and whether it may mean others that bear its name."""

    symbols: frozenset[Symbol]
    complete: bool


def find_references(graph: CodeGraph, symbols: Collection[Symbol]) -> tuple[Reference, ...]:
    """All references to some symbols, their definitions among them, in order of path, line and column."""
    wanted = twins(graph, symbols)
    names = _names_of(graph, wanted)
    found: set[Reference] = set()
    for path in graph.files_naming(names):
        found |= set(_in_file(graph, graph.view(path), wanted, names))
    return tuple(sorted(found))


def twins(graph: CodeGraph, symbols: Collection[Symbol]) -> frozenset[Symbol]:
    """The symbols, and what a stub (`.pyi`) beside the file, or the file beside a stub, calls the same."""
    found = set(symbols)
    for symbol in symbols:
        other = symbol.path[:-1] if symbol.path.endswith(".pyi") else symbol.path + "i"
        if symbol.scope >= 0 and other in graph.facts:
            found |= set(_same_in(graph.view(other), scope_name(graph.view(symbol.path), symbol.scope), symbol))
    return frozenset(found)


def _same_in(view: ModuleView, scope: str, symbol: Symbol) -> Iterator[Symbol]:
    for at in range(len(view.facts.scopes)):
        if scope_name(view, at) == scope and (at == MODULE_SCOPE or view.definition_of_scope.get(at, -1) >= 0):
            same = Symbol(view.path, at, symbol.name)
            if view.bindings(at, symbol.name):
                yield same


def scope_name(view: ModuleView, scope: int) -> str:
    """The qualified name of the definition whose inside a scope is, "" for the module."""
    at = view.definition_of_scope.get(scope, -1)
    return view.facts.qualified_name(at) if at >= 0 else ""


def _names_of(graph: CodeGraph, symbols: Iterable[Symbol]) -> set[str]:
    """The names under which some symbols are used: their own, and those that imports give them."""
    names = {_own_name(symbol) for symbol in symbols}
    while True:
        imports = [fact for path in graph.files_naming(names) for fact in graph.facts[path].imports]
        given = {f.bound for f in imports if (f.item or f.module.rpartition(".")[2]) in names} - names - {"*"}
        if not given:
            return names
        names |= given


def _own_name(symbol: Symbol) -> str:
    if symbol.scope != MODULE_ITSELF:
        return symbol.name
    return module_name(symbol.path).rpartition(".")[2]


def _in_file(graph: CodeGraph, view: ModuleView, wanted: frozenset[Symbol], names: set[str]) -> Iterator[Reference]:
    own = {_own_name(symbol) for symbol in wanted}
    for name in sorted(names):
        for use in view.uses_by_name.get(name, ()):
            kind = _KINDS[UseKind(use.kind)]
            resolved = resolve_use(graph, view, use)
            if resolved.symbols & wanted:
                if use.kind == UseKind.DEFINE and Symbol(view.path, *_named(view, use)) not in wanted:
                    kind = ReferenceKind.FIXTURE
                yield _reference(view, use, kind, Certainty.CERTAIN)
            elif name in own and use.length and not resolved.complete and _may_mean(graph, view, use, wanted):
                yield _reference(view, use, kind, Certainty.POSSIBLE)


def _named(view: ModuleView, use: Use) -> tuple[int, str]:
    row = view.facts.expressions[use.expression]
    return row.a, view.facts.names[row.b]


def _reference(view: ModuleView, use: Use, kind: ReferenceKind, certainty: Certainty) -> Reference:
    function = view.function_around(use.scope)
    name = view.name_of(use.expression)
    dots = max(name.rfind("."), name.rfind(":")) + 1
    skipped = len(name[:dots].encode()) if use.length >= 0 else 0
    return Reference(
        path=view.path,
        line=use.line,
        column=use.column + skipped,
        end_column=use.column + max(0, use.length),
        kind=kind,
        certainty=certainty,
        inside=view.facts.qualified_name(function) if function >= 0 else "",
        exact=use.length > 0,
    )


def resolve_use(graph: CodeGraph, view: ModuleView, use: Use) -> Resolved:
    """What a use means, followed through imports."""
    if use.expression < 0:
        return Resolved(symbols=frozenset(), complete=False)
    kind, a, b = view.facts.expressions[use.expression]
    name = view.facts.names[b] if kind in NAMED else ""
    match kind:
        case ExpressionKind.NAME:
            return _resolve_name(graph, view, use, a, name)
        case ExpressionKind.ATTRIBUTE:
            members = graph.members(graph.values(view.path, a), name)
            return Resolved(symbols=members.symbols, complete=members.complete or bool(members.symbols))
        case ExpressionKind.MODULE:
            file = graph.modules.resolve(name, view.path)
            return Resolved(symbols=frozenset({Symbol(file, MODULE_ITSELF, "")} if file else ()), complete=True)
        case ExpressionKind.KEYWORD:
            return _resolve_keyword(graph, view, a, name)
        case ExpressionKind.STRING if use.kind == UseKind.EXPORT:
            return Resolved(symbols=graph.origins(Symbol(view.path, MODULE_SCOPE, name)), complete=True)
        case _:
            return Resolved(symbols=frozenset(), complete=False)


def _resolve_name(graph: CodeGraph, view: ModuleView, use: Use, scope: int, name: str) -> Resolved:
    if scope < 0:
        found = graph.members_of_stars(view, name)
        return Resolved(symbols=found.symbols, complete=found.complete or bool(found.symbols))
    symbol = Symbol(view.path, scope, name)
    symbols = graph.origins(symbol)
    if use.kind == UseKind.DEFINE:
        function = view.definition_of_scope.get(scope, -1)
        parameters = view.facts.definitions[function].parameters if function >= 0 else ()
        if any(p.name == name for p in parameters):
            fixture = graph.fixture(view, function, name)
            symbols |= {fixture} if fixture is not None else set()
    return Resolved(symbols=symbols, complete=True)


def _resolve_keyword(graph: CodeGraph, view: ModuleView, callee: int, name: str) -> Resolved:
    """The parameter or dataclass field that a keyword argument is for."""
    found: set[Symbol] = set()
    complete = True
    for value in graph.values(view.path, callee):
        if value.kind in (ValueKind.UNKNOWN, ValueKind.INSTANCE):
            complete = False
        for function in _called_with(graph, value):
            made = graph.definition(function)
            if any(p.name == name and p.kind != ParameterKind.VAR_KEYWORD for p in made.parameters):
                found.add(Symbol(function.path, made.own_scope, name))
            elif any(p.kind == ParameterKind.VAR_KEYWORD for p in made.parameters):
                complete = False
        if value.kind == ValueKind.CLASS and not graph.member(value, "__init__").symbols:
            found |= graph.member(value, name).symbols
    return Resolved(symbols=frozenset(found), complete=complete or bool(found))


def _called_with(graph: CodeGraph, value: Value) -> list[Value]:
    if value.kind == ValueKind.FUNCTION:
        return [value]
    if value.kind == ValueKind.CLASS:
        made = graph.values_of(graph.member(value, "__init__").symbols)
        return [v for v in made if v.kind == ValueKind.FUNCTION]
    return []


def _may_mean(graph: CodeGraph, view: ModuleView, use: Use, wanted: frozenset[Symbol]) -> bool:
    """Whether a use of the right name that is not resolved may mean one of some symbols."""
    kind = view.facts.expressions[use.expression].kind if use.expression >= 0 else -1
    if kind == ExpressionKind.STRING:
        text = view.name_of(use.expression).replace(":", ".")
        return any(_fits(graph, symbol, text) for symbol in wanted)
    if kind == ExpressionKind.ATTRIBUTE:
        return any(_is_attribute(graph, symbol) for symbol in wanted)
    if kind == ExpressionKind.KEYWORD:
        return any(_is_parameter_or_field(graph, symbol) for symbol in wanted)
    return any(symbol.scope == MODULE_SCOPE for symbol in wanted)  # a name that a star may have brought


def _fits(graph: CodeGraph, symbol: Symbol, text: str) -> bool:
    """Whether a text may be the symbol's name: `name`, or a dotted one that its qualified name ends with."""
    if "." not in text:
        return _is_attribute(graph, symbol)
    return ("." + qualified_name(graph, symbol)).endswith("." + text)


def module_name(path: str) -> str:
    """A file's dotted name from the repository's root."""
    return path.rstrip("/").removesuffix(".pyi").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def qualified_name(graph: CodeGraph, symbol: Symbol) -> str:
    """A symbol's dotted name from the repository's root."""
    module = module_name(symbol.path)
    if symbol.scope == MODULE_ITSELF:
        return module
    scope = scope_name(graph.view(symbol.path), symbol.scope)
    return ".".join(part for part in (module, scope, symbol.name) if part)


def _is_attribute(graph: CodeGraph, symbol: Symbol) -> bool:
    """Whether a symbol can be reached as an attribute: a member of a class or module, or a module."""
    if symbol.scope <= MODULE_SCOPE:
        return True
    view = graph.view(symbol.path)
    at = view.definition_of_scope.get(symbol.scope, -1)
    return at >= 0 and view.facts.definitions[at].kind == DefinitionKind.CLASS


def _is_parameter_or_field(graph: CodeGraph, symbol: Symbol) -> bool:
    if symbol.scope <= MODULE_SCOPE:
        return False
    view = graph.view(symbol.path)
    at = view.definition_of_scope.get(symbol.scope, -1)
    made = view.facts.definitions[at] if at >= 0 else None
    return made is not None and (
        made.kind == DefinitionKind.CLASS or any(p.name == symbol.name for p in made.parameters)
    )
