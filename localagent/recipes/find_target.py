"""Which symbol an instruction means, and what has to change together with it."""

import builtins
import difflib
import keyword
import unicodedata
from collections.abc import Iterable

from localagent.code.graph.code_graph import MODULE_ITSELF, CodeGraph
from localagent.code.graph.facts import DefinitionKind, FunctionOrClass
from localagent.code.graph.find_symbols import definitions_of, find_symbols
from localagent.code.graph.references import twins
from localagent.code.graph.values import Symbol, ValueKind
from localagent.domain.paths import RepoPath
from localagent.recipes.recipe import RecipeQuestionError, RecipeSources, listed, symbol_text
from localagent.text.visible_text import shortened

_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.ASYNC_FUNCTION})
_OBJECT = frozenset(dir(object))


def kind_of(graph: CodeGraph, symbol: Symbol) -> str:
    """What a symbol is, in a word."""
    if symbol.scope == MODULE_ITSELF:
        return "module"
    view = graph.view(symbol.path)
    holder = view.definition_of_scope.get(symbol.scope, -1)
    around = view.facts.definitions[holder] if holder >= 0 else None
    made = [graph.view(f.path).facts.definitions[f.index] for f in definitions_of(graph, symbol)]
    if any(d.kind == DefinitionKind.CLASS for d in made):
        return "class"
    if around is not None and around.kind == DefinitionKind.CLASS:
        return "method" if made else "attribute"
    if made:
        return "function"
    if around is not None:
        return "parameter" if any(p.name == symbol.name for p in around.parameters) else "variable"
    return "constant"


def _near(graph: CodeGraph, name: str) -> str:
    """A question after functions and classes with names like this one, "" where there are none."""
    known = {definition.name for facts in graph.facts.values() for definition in facts.definitions}
    like = difflib.get_close_matches(name.rpartition(".")[2], sorted(known), n=3)
    return f"did you mean {' or '.join(map(repr, like))}? else " if like else ""


def target_of(sources: RecipeSources, name: str, kind: str) -> Symbol:
    """The one symbol that a name means. RecipeQuestionError where it is none, or several."""
    graph = sources.graph
    found = [s for s in find_symbols(graph, _with_path(graph, name)) if _is_kind(graph, s, kind)]
    if not found:
        what = kind if kind not in ("", "callable") else "function, class, method, constant or parameter"
        raise RecipeQuestionError(
            f"there is no {what} named {name!r} in the Python files of this tree",
            f"{_near(graph, name)}name it as `module.name`, `module.Class.name` or `path.py:name`",
            unknown=True,
        )
    known = [s for s in found if not s.path.endswith(".pyi")] or found
    known = [s for s in known if kind or kind_of(graph, s) not in ("variable", "parameter")] or known
    if len(known) > 1 and (exact := [s for s in known if symbol_text(graph, s).startswith(f"{name} ")]):
        known = exact
    if len(known) > 1 and not set(known) <= family_of(sources, known[0]):
        raise RecipeQuestionError(
            f"which {name!r} is meant: {listed([symbol_text(graph, s) for s in known])}?",
            "say its full name, or `path.py:name`",
        )
    return known[0]


def _with_path(graph: CodeGraph, name: str) -> str:
    """A name as `find_symbols` takes it, where the end of a path is given. RecipeQuestionError where several end so."""
    path, colon, rest = name.rpartition(":")
    if not colon or path in graph.facts:
        return name
    found = [one for one in sorted(graph.facts) if one.endswith(f"/{path}")]
    if len(found) > 1:
        raise RecipeQuestionError(
            f"which {path!r} is meant: {listed(found)}?", "give its path from the repository's root"
        )
    return f"{found[0]}:{rest}" if found else name


def _is_fixture(graph: CodeGraph, symbol: Symbol) -> bool:
    made = functions_of(graph, symbol)
    return any(one.fixture for _, one in made)


def _is_kind(graph: CodeGraph, symbol: Symbol, kind: str) -> bool:
    actual = kind_of(graph, symbol)
    match kind:
        case "":
            return actual != "module"
        case "function" | "test":
            return actual in ("function", "method")
        case "callable":
            return bool(functions_of(graph, symbol)) or actual == "class"
        case "method" | "property":
            return actual == "method"
        case "constant" | "variable":
            return actual in ("constant", "variable", "attribute")
        case "attribute":
            return actual in ("attribute", "method")
        case "fixture":
            return _is_fixture(graph, symbol)
    return actual == kind


def check_name(name: str) -> None:
    """RecipeQuestionError for what cannot be a name, or had better not be one."""
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        raise RecipeQuestionError(
            f"{shortened(name, 60)!r} cannot be a name in Python", "give a name of letters, digits and _"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise RecipeQuestionError(f"{name!r} is a keyword of Python", "choose another name")
    if hasattr(builtins, name):
        raise RecipeQuestionError(f"{name!r} would hide the builtin of that name", "choose another name")
    if name.startswith("__"):
        raise RecipeQuestionError(
            f"{name!r}: names that begin with __ mean something to Python itself", "choose another"
        )


def family_of(sources: RecipeSources, symbol: Symbol) -> frozenset[Symbol]:
    """What must keep the same name: stubs, and for methods and their parameters the overrides and base methods."""
    graph = sources.graph
    found = set(twins(graph, [symbol]))
    match kind_of(graph, symbol):
        case "method" | "attribute":
            found |= _overrides(graph, symbol)
        case "parameter":
            view = graph.view(symbol.path)
            method = view.facts.definitions[view.definition_of_scope[symbol.scope]]
            holder = Symbol(symbol.path, method.scope, method.name)
            if kind_of(graph, holder) == "method" and not method.name.startswith("__"):
                found |= set(_parameters(graph, _overrides(graph, holder), symbol.name))
    return frozenset(s for one in found for s in twins(graph, [one]))


def _parameters(graph: CodeGraph, methods: Iterable[Symbol], name: str) -> Iterable[Symbol]:
    for method in methods:
        for _, made in functions_of(graph, method):
            if any(p.name == name for p in made.parameters):
                yield Symbol(method.path, made.own_scope, name)


def functions_of(graph: CodeGraph, symbol: Symbol) -> list[tuple[RepoPath, FunctionOrClass]]:
    """The `def`s that a symbol is, several where it is overloaded or made under conditions."""
    made = [(f.path, graph.view(f.path).facts.definitions[f.index]) for f in definitions_of(graph, symbol)]
    return [(path, d) for path, d in made if d.kind in _FUNCTIONS]


def _overrides(graph: CodeGraph, symbol: Symbol) -> set[Symbol]:
    """The members of that name in all classes that share it by inheritance, and the symbol itself."""
    found: set[Symbol] = set()
    waiting = [symbol]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        at = graph.view(one.path).definition_of_scope.get(one.scope, -1)
        _ask_of_bases(graph, one, at)
        around = (*graph.ancestors(one.path, at)[0], *graph.subclasses.get((RepoPath(one.path), at), ()))
        for below in list(around):
            around += graph.ancestors(*below)[0]  # a second base of a subclass may name it as well
        for path, index in around:
            view = graph.view(path)
            if one.name in view.members.get(index, {}):
                waiting.append(Symbol(path, view.facts.definitions[index].own_scope, one.name))
    return found


def _ask_of_bases(graph: CodeGraph, symbol: Symbol, index: int) -> None:
    """RecipeQuestionError where a class that defines a member has a base elsewhere that may define it, too."""
    for path, at in graph.ancestors(symbol.path, index)[0]:
        view = graph.view(path)
        for base in view.facts.definitions[at].bases:
            for value in graph.values(path, base):
                if value.kind in (ValueKind.CLASS, ValueKind.MODULE) or _lacks(value.name, symbol.name):
                    continue
                raise RecipeQuestionError(
                    f"{view.facts.qualified_name(at)} in {path} has a base class outside of this tree "
                    f"({value.name or view.name_of(base) or 'unknown'}) that may define {symbol.name!r} as well",
                    "change it by hand, or with a model (--model)",
                )


def _lacks(base: str, name: str) -> bool:
    """Whether a base class from outside is known not to have a member."""
    module, _, last = base.rpartition(".")
    if module in ("typing", "typing_extensions", "abc"):
        return last in ("Generic", "Protocol", "ABC", "NamedTuple", "TypedDict") and name not in _OBJECT
    made = getattr(builtins, last, None) if module == "builtins" else None
    return isinstance(made, type) and not hasattr(made, name)
