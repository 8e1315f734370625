"""The recipe `rename`: a function, class, method, attribute, constant, variable or parameter, wherever it is used.

What surely means it is changed, by exact splices. That nothing else changed its meaning is shown by resolving every use
of the old and of the new name again in the tree as it becomes: each must mean what it meant.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import ExpressionKind, Use, UseKind
from localagent.code.graph.module_view import MODULE_SCOPE
from localagent.code.graph.references import (
    Certainty,
    Reference,
    ReferenceKind,
    find_references,
    module_name,
    qualified_name,
    resolve_use,
)
from localagent.code.graph.values import Symbol
from localagent.code.related_tests import is_test
from localagent.domain.claim import Claim
from localagent.domain.paths import RepoPath
from localagent.recipes.find_target import check_name, family_of, kind_of, target_of
from localagent.recipes.instruction import Possible, Rename
from localagent.recipes.names_in_text import (
    ATTRIBUTES,
    check_computed,
    computed_names,
    example_names,
    named_by,
    named_in_documents,
)
from localagent.recipes.recipe import (
    Place,
    RecipeChange,
    RecipeQuestionError,
    RecipeSources,
    SourceSplice,
    listed,
)
from localagent.text.visible_text import counted

_BY_HAND = "change it by hand, or with a model (--model)"
_ASK = "add `, also the possible places` or `, leave the possible places` to the instruction"
_HANDS_ON = frozenset(
    {
        "partial", "partialmethod", "replace", "_replace", "submit", "to_thread", "call", "assert_called_with",
        "assert_called_once_with", "assert_any_call", "apply", "_make", "delay", "parametrize",
    }
)  # fmt: skip
_ASKS_BY_TEXT = re.compile(rb"\b(?:getattr|setattr|hasattr|delattr|object|methodcaller|attrgetter|multiple)\s*\(")


def rename(sources: RecipeSources, asked: Rename) -> RecipeChange:
    """The renamed tree. RecipeQuestionError where a person has to decide something first."""
    graph = sources.graph
    target = target_of(sources, asked.old, asked.kind)
    kind, old = kind_of(graph, target), target.name
    new = _new_name(graph, target, asked.new)
    if new == old:
        raise RecipeQuestionError(f"{asked.old} is called {new!r} already", "give another name")
    if old.startswith("__") or (kind == "function" and old.startswith("pytest_")):
        raise RecipeQuestionError(f"{old!r} is called by that name from outside", _BY_HAND)
    check_name(new)
    wanted = _with_fixtures(graph, family_of(sources, target))
    _check_free(sources, wanted, new)
    texts = [_in_text(sources, path, use, old, new) for path, use in _dotted_texts(graph, wanted, old)]
    known = {(s.path, s.end) for s in texts}
    references = [
        r
        for r in find_references(graph, wanted)
        if r.end_column != r.column and (r.path, sources.text(r.path).offset(r.line, r.end_column)) not in known
    ]
    open_to_all = _is_open(graph, wanted)
    computed, unknown = computed_names(sources, [old], ATTRIBUTES if open_to_all else {})
    check_computed(computed if open_to_all else [], old, asked.possible)
    sure, left = _decided(sources, references, wanted, asked.possible, unknown)
    splices = [*texts, *(splice for reference in sure for splice in _splice(sources, reference, old, new))]
    for splice, certain in example_names(sources, wanted, old) if open_to_all else ():
        if certain or asked.possible is Possible.CHANGE:
            splices.append(replace(splice, text=new))
        else:
            left.append(Place(path=splice.path, line=sources.text(splice.path).line_of(splice.start)))
    left += named_in_documents(sources, wanted, old) if open_to_all else []
    _check_shared(graph, wanted, old)
    _check_elsewhere(sources, wanted, old, asked.possible)
    if kind in ("parameter", "attribute"):
        _check_passed_on(graph, old)
    writes = sources.after(splices)
    _check_meaning(sources, writes, wanted, {(s.path, s.start) for s in splices}, old, new)
    rest = f", {counted(len(left), 'possible place')} left" if left else ""
    places = f"{counted(len(set(splices)), 'place')} in {counted(len(writes), 'file')}"
    others = len({s for s in wanted if kind_of(graph, s) == kind and s.path.endswith(".py")}) - 1
    together = f" with {counted(others, 'override')}" if others > 0 and kind in ("method", "parameter") else ""
    understood = f"rename {kind} {qualified_name(graph, target)} to {new}{together}, {places}{rest}"
    # Tests that are renamed along fail without the patch: they show that the new name works, not that nothing changed.
    claim = Claim.ADDS if any(is_test(RepoPath(path)) for path in writes) else Claim.PRESERVES
    return RecipeChange(understood=understood, writes=writes, claim=claim, left=tuple(left))


def _new_name(graph: CodeGraph, target: Symbol, new: str) -> str:
    """The last part of a new name whose other parts are those of the old one."""
    around, dot, last = new.rpartition(".")
    if dot and not ("." + qualified_name(graph, target)).endswith(f".{around}.{target.name}"):
        raise RecipeQuestionError(
            f"{new!r} lies elsewhere: this recipe renames, and does not move", "give a plain name"
        )
    return last


def _with_fixtures(graph: CodeGraph, symbols: frozenset[Symbol]) -> frozenset[Symbol]:
    """With the parameters that ask pytest for a fixture by its name."""
    found = set(symbols)
    for path in sorted(graph.facts):
        view = graph.view(path)
        for at, made in enumerate(view.facts.definitions):
            for parameter in made.parameters:
                if any(s.name == parameter.name for s in symbols):
                    fixture = graph.fixture(view, at, parameter.name)
                    found |= {Symbol(path, made.own_scope, parameter.name)} if fixture in symbols else set()
    return frozenset(found)


def _check_free(sources: RecipeSources, symbols: Iterable[Symbol], new: str) -> None:
    """RecipeQuestionError where the new name is taken beside the old one."""
    graph = sources.graph
    for symbol in sorted(symbols):
        view = graph.view(symbol.path)
        at = view.definition_of_scope.get(symbol.scope, -1)
        classes: tuple[tuple[RepoPath, int], ...] = ()
        if at in view.members:
            above, below = graph.ancestors(symbol.path, at)[0], graph.subclasses.get((RepoPath(symbol.path), at), ())
            classes = (*above, *below)
        taken = next((p for p, i in classes if new in graph.view(p).members.get(i, {})), None)
        if taken is None and (view.bindings(symbol.scope, new) or _is_submodule(graph, symbol, new)):
            taken = RepoPath(symbol.path)
        if taken is not None:
            raise RecipeQuestionError(
                f"{new!r} is taken: {taken} has one beside {symbol.name!r}", "choose another name"
            )


def _is_submodule(graph: CodeGraph, symbol: Symbol, new: str) -> bool:
    if symbol.scope != MODULE_SCOPE or not symbol.path.endswith("/__init__.py"):
        return False
    inside = symbol.path.removesuffix("__init__.py") + new
    return any(path.startswith((inside + ".py", inside + "/")) for path in graph.facts)


def _is_open(graph: CodeGraph, wanted: Iterable[Symbol]) -> bool:
    """Whether it can be asked for by its name: what stands in a module or class."""
    return any(kind_of(graph, symbol) not in ("parameter", "variable") for symbol in wanted)


def _decided(
    sources: RecipeSources,
    references: list[Reference],
    wanted: frozenset[Symbol],
    possible: Possible,
    unknown: frozenset[RepoPath],
) -> tuple[list[Reference], list[Place]]:
    """(what is changed, what may belong to it and is left). RecipeQuestionError for what a person has to decide.

    `unknown`: the files that ask for attributes by names of which nothing is known; a text there may be such a name.
    """
    is_member = any(kind_of(sources.graph, s) in ("method", "attribute") for s in wanted)
    sure, left, open_ = [], [], []
    for reference in references:
        place = Place(path=reference.path, line=reference.line)
        is_text = reference.kind is ReferenceKind.STRING
        undecided = (
            reference.path in unknown or _is_looked_up(sources, reference)
            if is_text
            else is_member or reference.kind is ReferenceKind.KEYWORD
        )
        if reference.certainty is Certainty.CERTAIN or (possible is Possible.CHANGE and (undecided or not is_text)):
            sure.append(reference)
        elif possible is Possible.ASK and undecided:
            open_.append(place)
        else:
            left.append(place)
    if open_:
        raise RecipeQuestionError(
            f"{counted(len(open_), 'place')} may mean it or something else of that name: {listed(open_)}", _ASK
        )
    return sure, left


def _dotted_texts(graph: CodeGraph, wanted: frozenset[Symbol], old: str) -> list[tuple[RepoPath, Use]]:
    """Texts that name it by its way from a module, as `monkeypatch.setattr` takes them."""
    found = []
    for path in sorted(graph.facts):
        view = graph.view(path)
        for use in view.uses_by_name.get(old, ()):
            parts = view.name_of(use.expression).replace(":", ".").split(".")
            if use.kind == UseKind.STRING and len(parts) > 1 and named_by(graph, parts, path) & wanted:
                found.append((path, use))
    return found


def _in_text(sources: RecipeSources, path: str, use: Use, old: str, new: str) -> SourceSplice:
    text = sources.text(path)
    end = text.offset(use.line, use.column + use.length)
    start = end - len(old.encode())
    if use.length <= 0 or text.utf8[start:end] != old.encode():
        raise RecipeQuestionError(f"{path}:{use.line} names {old!r} in a text that cannot be changed exactly", _BY_HAND)
    return SourceSplice(path=RepoPath(path), start=start, end=end, text=new)


def _is_looked_up(sources: RecipeSources, reference: Reference) -> bool:
    """Whether the line of a text asks for an attribute by its name."""
    text = sources.text(reference.path)
    start = text.line_starts[max(0, reference.line - 2)]
    return _ASKS_BY_TEXT.search(text.utf8[start : text.offset(reference.line, reference.column)]) is not None


def _splice(sources: RecipeSources, reference: Reference, old: str, new: str) -> list[SourceSplice]:
    """The splice of a reference; none where another name stands there (`import load as read`)."""
    place = Place(path=reference.path, line=reference.line)
    if not reference.exact:
        raise RecipeQuestionError(f"{place} uses {old!r} where its exact place is not known", _BY_HAND)
    text = sources.text(reference.path)
    start, end = (text.offset(reference.line, c) for c in (reference.column, reference.end_column))
    found = text.utf8[start:end].decode("utf-8", "replace")
    if found != old:
        if reference.kind is ReferenceKind.EXPORT:
            raise RecipeQuestionError(f"{place} names {old!r} in a way that is not read", _BY_HAND)
        return []
    return [SourceSplice(path=reference.path, start=start, end=end, text=new)]


def _check_passed_on(graph: CodeGraph, old: str) -> None:
    """RecipeQuestionError where an argument is given by its name to something that hands it on."""
    for path in sorted(graph.facts):
        view = graph.view(path)
        for use in view.uses_by_name.get(old, ()):
            row = view.facts.expressions[use.expression]
            if row.kind == ExpressionKind.KEYWORD and view.name_of(row.a) in _HANDS_ON:
                raise RecipeQuestionError(
                    f"{path}:{use.line} may pass {old!r} on to it by {view.name_of(row.a)}", _BY_HAND
                )


def _check_shared(graph: CodeGraph, wanted: frozenset[Symbol], old: str) -> None:
    """RecipeQuestionError where one use means what is renamed and something else, too."""
    for path in sorted(graph.facts):
        view = graph.view(path)
        for use in view.uses_by_name.get(old, ()):
            found = resolve_use(graph, view, use).symbols
            others = found - wanted
            if found & wanted and any(s.name == old and s.path in graph.facts and s.path != path for s in others):
                raise RecipeQuestionError(
                    f"{path}:{use.line} may mean {qualified_name(graph, min(found & wanted))} or "
                    f"{qualified_name(graph, min(others))}",
                    "rename both by hand, or with a model (--model)",
                )


def _check_elsewhere(sources: RecipeSources, wanted: frozenset[Symbol], old: str, possible: Possible) -> None:
    """RecipeQuestionError where files that are not Python, or that cannot be read, name it."""
    if unread := sources.unread_with(old):
        raise RecipeQuestionError(f"{listed(unread)} cannot be read as Python, and names {old!r}", "mend that first")
    if possible is not Possible.ASK:
        return
    modules = {module_name(s.path).removeprefix("src.") for s in wanted if s.scope == MODULE_SCOPE}
    words = [re.compile(rf"(?<![\w]){re.escape(m)}\s*[.:]\s*{re.escape(old)}(?!\w)".encode()) for m in sorted(modules)]
    named = [path for path, data in sources.configuration.items() if any(w.search(data) for w in words)]
    if named:
        raise RecipeQuestionError(
            f"{listed(named)} names {old!r} as well, and this recipe changes Python only",
            f"change it there by hand too: {_ASK.replace('also the possible places` or `, ', '')}",
        )


def _check_meaning(
    sources: RecipeSources,
    writes: dict[RepoPath, str],
    wanted: frozenset[Symbol],
    changed: set[tuple[RepoPath, int]],
    old: str,
    new: str,
) -> None:
    """RecipeQuestionError where a use of either name no longer means what it meant."""
    before, after = sources.graph, sources.with_writes(writes)
    for path in sorted(before.facts):
        names = before.facts[path].names
        if old not in names and new not in names:
            continue
        was, now = before.view(path), after.view(path)
        if len(was.facts.uses) != len(now.facts.uses):
            raise RecipeQuestionError(f"{path}: what the new name does there cannot be told", _BY_HAND)
        for use, then in zip(was.facts.uses, now.facts.uses, strict=True):
            last = was.name_of(use.expression).replace(":", ".").rpartition(".")[2]
            if last not in (old, new):
                continue
            meant, means = resolve_use(before, was, use).symbols, resolve_use(after, now, then).symbols
            offset = sources.text(path).offset(use.line, use.column) if use.length > 0 else -1
            expected = {Symbol(s.path, s.scope, new) if s in wanted else s for s in meant}
            expected |= {Symbol(s.path, s.scope, new) for s in meant if s.path == path and (path, offset) in changed}
            if not (means <= expected and (expected & means or not expected)):
                raise RecipeQuestionError(
                    f"in {path}:{use.line} the new name {new!r} meets another of that name", "choose another name"
                )
