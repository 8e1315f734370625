"""Which symbols a person means by a name: `func`, `Class.method`, `pkg.mod.func`, `path.py:func`, `path.py:12`."""

from collections.abc import Iterator

from localagent.code.graph.calls import FunctionId
from localagent.code.graph.code_graph import MODULE_ITSELF, CodeGraph
from localagent.code.graph.facts import DefinitionKind, ExpressionKind
from localagent.code.graph.module_view import MODULE_SCOPE, ModuleView
from localagent.code.graph.references import module_name, scope_name
from localagent.code.graph.values import Symbol
from localagent.domain.paths import RepoPath


def find_symbols(graph: CodeGraph, name: str) -> tuple[Symbol, ...]:
    """All symbols that a name may mean, in order of path and place; empty where there is none.

    A dotted name is the end of a qualified one. A line means the innermost definition around it, or what it binds.
    """
    path, colon, rest = name.rpartition(":")
    if colon and path in graph.facts:
        view = graph.view(path)
        return tuple(at_line(view, int(rest)) if rest.isascii() and rest.isdigit() else _named(view, rest))
    files = graph.files_naming([name.rpartition(".")[2]])
    found = [s for p in files for s in _named(graph.view(p), name)]
    return tuple(found) or tuple(_modules(graph, name))


def _named(view: ModuleView, name: str) -> Iterator[Symbol]:
    """The symbols of a file whose qualified name ends with a name: of modules and classes first, else of functions."""
    *around, last = name.split(".")
    module = module_name(view.path).split(".")
    found = []
    for scope, names in _bound(view).items():
        inner = scope_name(view, scope).split(".") if scope != MODULE_SCOPE else []
        qualified = [*module, *inner]
        fits = qualified[len(qualified) - len(around) :] == around if len(around) <= len(qualified) else False
        if last in names and fits and not _is_imported(view, scope, last):
            found.append(Symbol(view.path, scope, last))
    outer = [s for s in found if _is_open(view, s.scope)]
    yield from outer or found


def _bound(view: ModuleView) -> dict[int, set[str]]:
    """The names that each scope binds, members of classes among them."""
    found: dict[int, set[str]] = {}
    for binding in view.facts.bindings:
        row = view.facts.expressions[binding.target] if binding.target >= 0 else None
        if row is not None and row.kind == ExpressionKind.NAME and row.a >= 0:
            found.setdefault(row.a, set()).add(view.facts.names[row.b])
    for at, members in view.members.items():
        found.setdefault(view.facts.definitions[at].own_scope, set()).update(members)
    return found


def _is_imported(view: ModuleView, scope: int, name: str) -> bool:
    """Whether nothing but imports binds a name there."""
    bound = [b for b in view.bindings(scope, name) if b.value >= 0]
    imports = {f.bound for f in view.facts.imports if f.scope == scope}
    kinds = {view.facts.expressions[b.value].kind for b in bound}
    return name in imports and kinds <= {ExpressionKind.MODULE, ExpressionKind.ATTRIBUTE}


def _is_open(view: ModuleView, scope: int) -> bool:
    at = view.definition_of_scope.get(scope, -1)
    return scope == MODULE_SCOPE or (at >= 0 and view.facts.definitions[at].kind == DefinitionKind.CLASS)


def _modules(graph: CodeGraph, name: str) -> Iterator[Symbol]:
    for path in sorted(graph.facts):
        if ("." + module_name(path)).endswith("." + name):
            yield Symbol(path, MODULE_ITSELF, "")


def definition_at(view: ModuleView, line: int) -> int:
    """The innermost function or class around a line, its decorators included; -1 at module level."""
    found = -1
    for at, made in enumerate(view.facts.definitions):
        if made.kind != DefinitionKind.LAMBDA and made.first_line <= line <= made.end_line:
            found = at
    return found


def at_line(view: ModuleView, line: int) -> list[Symbol]:
    """The definition around a line, or the names that a line of the module's own level binds."""
    at = definition_at(view, line)
    if at >= 0:
        made = view.facts.definitions[at]
        return [Symbol(view.path, made.scope, made.name)]
    bound = (view.facts.expressions[b.target] for b in view.facts.bindings if b.line == line and b.target >= 0)
    names = {view.facts.names[row.b] for row in bound if row.kind == ExpressionKind.NAME and row.a == MODULE_SCOPE}
    return [Symbol(view.path, MODULE_SCOPE, name) for name in sorted(names)]


def definitions_of(graph: CodeGraph, symbol: Symbol) -> list[FunctionId]:
    """The functions and classes that a symbol is."""
    if symbol.scope == MODULE_ITSELF:
        return []
    made = enumerate(graph.view(symbol.path).facts.definitions)
    path = RepoPath(symbol.path)
    return [FunctionId(path=path, index=at) for at, d in made if (d.scope, d.name) == (symbol.scope, symbol.name)]
