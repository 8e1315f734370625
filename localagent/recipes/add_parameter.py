"""The recipe `add-parameter`: a parameter with a default, or with a value that calls pass, in a function or method.

Overrides and base methods get it too. It comes last among what may be passed by position; behind `*args` it can be
passed by name only, so that no call means anything else than before. Calls pass it by name.
"""

import ast

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import ExpressionKind, FunctionOrClass, ParameterKind
from localagent.code.graph.find_symbols import definitions_of
from localagent.code.graph.references import Certainty, Reference, ReferenceKind, find_references, qualified_name
from localagent.code.graph.values import Symbol
from localagent.domain.claim import Claim
from localagent.domain.paths import RepoPath
from localagent.recipes.argument_lists import CallTokens, outer_items
from localagent.recipes.find_target import check_name, family_of, functions_of, kind_of, target_of
from localagent.recipes.instruction import AddParameter
from localagent.recipes.recipe import (
    Place,
    RecipeChange,
    RecipeQuestionError,
    RecipeSources,
    SourceSplice,
    counted,
    listed,
)

_BY_HAND = "change it by hand, or with a model (--model)"
_PROPERTIES = frozenset({"property", "cached_property", "setter", "deleter", "fixture"})


def add_parameter(sources: RecipeSources, asked: AddParameter) -> RecipeChange:
    """The tree with the parameter. RecipeQuestionError where a person has to decide something first."""
    graph = sources.graph
    check_name(asked.name)
    target = _function(sources, asked)
    _check_default(asked)
    family = family_of(sources, target) if not target.name.startswith("__") else frozenset({target})
    files: dict[RepoPath, CallTokens] = {}
    definitions = [(s, path, made) for s in sorted(family) for path, made in functions_of(graph, s)]
    for _, path, made in definitions:
        _check_definition(graph, path, made, asked)
    splices = [_in_signature(_file(sources, files, path), made, asked) for _, path, made in definitions]
    references = [r for r in find_references(graph, _called(graph, family)) if r.end_column != r.column]
    calls = _calls(sources, files, references, asked) if asked.value else []
    writes = sources.after([*splices, *calls])
    annotation = f": {asked.annotation}" if asked.annotation else ""
    shown = f"{asked.name}{annotation}{f' = {asked.default}' if asked.default else ''}"
    others = len(definitions) - 1
    together = f" and {counted(others, 'override')} of it" if others > 0 else ""
    passed = f", {asked.value} passed in {counted(len(calls), 'call')}" if asked.value else ""
    return RecipeChange(
        understood=f"add the parameter {shown} to {kind_of(graph, target)} {qualified_name(graph, target)}{together}"
        f"{passed}, {counted(len(writes), 'file')}",
        writes=writes,
        claim=Claim.ADDS,
    )


def _function(sources: RecipeSources, asked: AddParameter) -> Symbol:
    graph = sources.graph
    target = target_of(sources, asked.function, asked.kind or "callable")
    if kind_of(graph, target) == "class":
        made = definitions_of(graph, target)[0]
        view = graph.view(made.path)
        own = view.facts.definitions[made.index].own_scope
        if "__init__" not in view.members.get(made.index, {}):
            raise RecipeQuestionError(
                f"the class {qualified_name(graph, target)} has no __init__ of its own", "name the method that is meant"
            )
        return Symbol(made.path, own, "__init__")
    if not functions_of(graph, target):
        raise RecipeQuestionError(
            f"{asked.function} is no function or method: it takes no parameters", "name a function"
        )
    return target


def _called(graph: CodeGraph, family: frozenset[Symbol]) -> frozenset[Symbol]:
    """What stands at calls: the functions themselves, and for `__init__` the class."""
    found = set(family)
    for symbol in family:
        view = graph.view(symbol.path)
        at = view.definition_of_scope.get(symbol.scope, -1)
        if symbol.name == "__init__" and at >= 0:
            made = view.facts.definitions[at]
            found = (found - {symbol}) | {Symbol(symbol.path, made.scope, made.name)}
    return frozenset(found)


def _check_default(asked: AddParameter) -> None:
    if not asked.default and not (asked.value and not asked.caller):
        raise RecipeQuestionError(
            f"what is {asked.name} where a call does not pass it?",
            f"give a default (`{asked.name}=None`), or say `and pass VALUE at every call`",
        )
    for text in filter(None, (asked.default, asked.value)):
        try:
            node = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise RecipeQuestionError(
                f"{text!r} is not a value in Python", "write it as Python does, text in quotes"
            ) from None
        if text is asked.default and isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp):
            raise RecipeQuestionError(f"the default {text} would be shared by all calls", f"give `{asked.name}=None`")
        if text is asked.default and any(isinstance(n, ast.Name | ast.Call | ast.Await) for n in ast.walk(node)):
            raise RecipeQuestionError(f"the default {text} is not a plain value", "put text in quotes; or use a model")
        if any(isinstance(n, ast.NamedExpr | ast.Lambda | ast.Yield | ast.Await) for n in ast.walk(node)):
            raise RecipeQuestionError(f"{text} is not a plain value", _BY_HAND)


def _check_definition(graph: CodeGraph, path: RepoPath, made: FunctionOrClass, asked: AddParameter) -> None:
    """RecipeQuestionError where the parameter cannot be one of a definition."""
    view = graph.view(path)
    place = Place(path=path, line=made.line)
    if any(p.name == asked.name for p in made.parameters):
        raise RecipeQuestionError(
            f"{made.name} ({place}) has a parameter {asked.name!r} already", "choose another name"
        )
    if _PROPERTIES & set(view.decorator_names(made)):
        raise RecipeQuestionError(
            f"{made.name} ({place}) is a property or a fixture: nobody passes arguments", _BY_HAND
        )
    for use in view.uses_by_name.get(asked.name, ()):
        row = view.facts.expressions[use.expression]
        if row.kind == ExpressionKind.NAME and _is_inside(graph, path, use.scope, made.own_scope):
            other = f"{path}:{use.line} uses another {asked.name!r} in {made.name}"
            raise RecipeQuestionError(other, "choose another name")
        if row.kind == ExpressionKind.KEYWORD and any(p.kind == ParameterKind.VAR_KEYWORD for p in made.parameters):
            raise RecipeQuestionError(
                f"{made.name} takes any keyword, and {path}:{use.line} passes {asked.name!r}", _BY_HAND
            )


def _is_inside(graph: CodeGraph, path: RepoPath, scope: int, outer: int) -> bool:
    scopes = graph.view(path).facts.scopes
    while scope >= 0 and scope != outer:
        scope = scopes[scope].parent
    return scope == outer


def _file(sources: RecipeSources, files: dict[RepoPath, CallTokens], path: RepoPath) -> CallTokens:
    if path not in files:
        files[path] = CallTokens(path, sources.text(path))
    return files[path]


def _in_signature(file: CallTokens, made: FunctionOrClass, asked: AddParameter) -> SourceSplice:
    """The splice that adds the parameter where no call that stands means anything else."""
    inside = file.brackets_after(file.text.offset(made.line, made.column))
    if not inside:
        raise RecipeQuestionError(f"the signature of {made.name} ({file.path}:{made.line}) cannot be read", _BY_HAND)
    equals = " = " if asked.annotation else "="
    argument = asked.name + (f": {asked.annotation}" if asked.annotation else "")
    argument += f"{equals}{asked.default}" if asked.default else ""
    items = list(outer_items(inside))
    by_name = next((t for t in items if t.text == "*"), None)
    keywords = next((t for t in items if t.text == "**"), None)
    takes_any = any(p.kind == ParameterKind.VAR_POSITIONAL for p in made.parameters)
    has_default = any(p.default >= 0 and p.kind <= ParameterKind.POSITIONAL_OR_KEYWORD for p in made.parameters)
    if not asked.default and has_default and by_name is None:
        argument = f"*, {argument}"
    elif by_name is not None and not takes_any and (asked.default or not has_default):
        return file.added_before(by_name, argument)
    return file.added_before(keywords, argument) if keywords is not None else file.added_at_end(inside, argument)


def _calls(
    sources: RecipeSources, files: dict[RepoPath, CallTokens], references: list[Reference], asked: AddParameter
) -> list[SourceSplice]:
    """The value, in the calls that are to pass it."""
    chosen = [r for r in references if not asked.caller or _is_in(r, asked.caller)]
    every = not asked.default
    open_ = [
        r for r in chosen if r.certainty is Certainty.POSSIBLE and r.kind in (ReferenceKind.CALL, ReferenceKind.READ)
    ]
    passed_on = [r for r in chosen if every and r.kind in (ReferenceKind.READ, ReferenceKind.DECORATOR)]
    if open_ or passed_on:
        places = [Place(path=r.path, line=r.line) for r in open_ or passed_on]
        why = "may call it or something else" if open_ else "pass it on, to be called elsewhere"
        raise RecipeQuestionError(
            f"{counted(len(places), 'place')} {why}: {listed(places)}", "give the parameter a default"
        )
    found = []
    for reference in chosen:
        if reference.kind is ReferenceKind.CALL and reference.certainty is Certainty.CERTAIN:
            found.append(_in_call(_file(sources, files, reference.path), reference, asked))
    if not found and asked.caller:
        raise RecipeQuestionError(f"{asked.caller} does not call {asked.function}", "name a function that does")
    return found


def _is_in(reference: Reference, caller: str) -> bool:
    """Whether a reference lies in a function, class or module of a (dotted) name."""
    module = reference.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    names = f".{module}.{reference.inside}" if reference.inside else f".{module}"
    return names.endswith(f".{caller}")


def _in_call(file: CallTokens, reference: Reference, asked: AddParameter) -> SourceSplice:
    place = Place(path=reference.path, line=reference.line)
    end = file.text.offset(reference.line, reference.end_column)
    call = file.calls.get(end)
    if call is None or not reference.exact:
        raise RecipeQuestionError(f"the call in {place} cannot be read", _BY_HAND)
    if any(k.arg in (None, asked.name) for k in call.keywords):
        raise RecipeQuestionError(f"the call in {place} may pass {asked.name!r} already", _BY_HAND)
    if len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp) and not call.keywords:
        start = file.text.offset(call.args[0].lineno, call.args[0].col_offset)
        if file.brackets_after(end)[0].start == start:
            raise RecipeQuestionError(f"the call in {place} passes a bare generator", "put it into parentheses first")
    return file.added_at_end(file.brackets_after(end), f"{asked.name}={asked.value}")
