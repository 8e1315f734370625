"""The recipe `rename` for modules: the file, every import of it, what uses it by its name, texts that name it.

The proof that nothing else changed its meaning is the one of `rename`: every use of either name is resolved again.
"""

import re
import sys

from localagent.code.graph.code_graph import MODULE_ITSELF
from localagent.code.graph.facts import UseKind
from localagent.code.graph.find_symbols import find_symbols
from localagent.code.graph.references import Certainty, ReferenceKind, find_references, module_name, resolve_use
from localagent.code.graph.values import Symbol
from localagent.code.related_tests import is_test
from localagent.domain.claim import Claim
from localagent.domain.paths import RepoPath
from localagent.recipes.find_target import check_name
from localagent.recipes.instruction import Possible, Rename
from localagent.recipes.names_in_text import IMPORTS, check_computed, computed_names
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
_STARTED = frozenset({"__init__", "__main__", "conftest", "setup", "manage", "conf", "noxfile", "tasks"})


def is_module(sources: RecipeSources, asked: Rename) -> bool:
    """Whether an instruction means a file: it says so, or nothing else has the name."""
    found = find_symbols(sources.graph, asked.old) if not asked.kind else ()
    only_modules = bool(found) and all(s.scope == MODULE_ITSELF for s in found)
    return asked.kind == "module" or asked.old.endswith(".py") or only_modules


def rename_module(sources: RecipeSources, asked: Rename) -> RecipeChange:
    """The tree with the file under its new name. RecipeQuestionError where a person has to decide something first."""
    path = _file(sources, asked.old)
    folder, _, name = path.removesuffix(".py").rpartition("/")
    new = _new_name(path, asked.new)
    after = RepoPath(f"{folder}/{new}.py" if folder else f"{new}.py")
    _check(sources, path, after, name, new)
    dotted = module_name(path).removeprefix("src.")
    computed, unknown = computed_names(sources, (dotted, f".{name}"), IMPORTS)
    check_computed(computed, dotted, asked.possible)
    module = Symbol(path, MODULE_ITSELF, "")
    splices, left = set(_texts(sources, path, name, new)), []
    known = {(s.path, s.start) for s in splices}
    for reference in find_references(sources.graph, {module}):
        text = sources.text(reference.path)
        start, end = (text.offset(reference.line, c) for c in (reference.column, reference.end_column))
        place = Place(path=reference.path, line=reference.line)
        if text.utf8[start:end] != name.encode() or (reference.path, start) in known:
            continue  # another name stands there: `import plugins as p`
        if reference.certainty is Certainty.CERTAIN or (
            asked.possible is Possible.CHANGE and reference.kind is not ReferenceKind.STRING
        ):
            splices.add(SourceSplice(path=reference.path, start=start, end=end, text=new))
        else:
            left.append(place)
            check_computed([place] if reference.path in unknown else [], dotted, asked.possible)
    changed: dict[RepoPath, str] = sources.after(sorted(splices))
    own = changed.pop(path, None) or sources.python[path].decode("utf-8")
    _check_meaning(sources, {**changed, after: own}, path, after, (name, new))
    _check_elsewhere(sources, path, asked.possible)
    paths = [*changed, path]
    rest = f", {counted(len(left), 'possible place')} left" if left else ""
    return RecipeChange(
        understood=f"rename the module {path} to {after}, {counted(len(splices), 'place')} in "
        f"{counted(len(changed), 'other file')}{rest}",
        writes={**changed, path: None, after: own},
        claim=Claim.ADDS if any(is_test(RepoPath(p)) for p in paths) else Claim.PRESERVES,
        left=tuple(left),
    )


def _file(sources: RecipeSources, name: str) -> RepoPath:
    """The one file that a dotted name, or the end of a path, means."""
    graph = sources.graph
    if name.endswith(".py"):
        found = [path for path in sorted(graph.facts) if f"/{path}".endswith(f"/{name}")]
        found = [path for path in found if path == name] or found
    else:
        found = [path for path in sorted(graph.facts) if f".{module_name(path)}".endswith(f".{name}")]
    found = [path for path in found if path.endswith(".py")]
    if not found:
        raise RecipeQuestionError(f"there is no module {name!r} in this tree", "give its path", unknown=True)
    if len(found) > 1:
        raise RecipeQuestionError(f"which {name!r} is meant: {listed(found)}?", "give its path")
    return RepoPath(found[0])


def _new_name(path: RepoPath, new: str) -> str:
    """The last part of a new name whose other parts are the module's own."""
    around, _, last = new.removesuffix(".py").replace("/", ".").rpartition(".")
    own = module_name(path).rpartition(".")[0]
    if around and not f".{own}".endswith(f".{around}"):
        raise RecipeQuestionError(
            f"{new!r} lies elsewhere: this recipe renames, and does not move", "give a plain name"
        )
    return last


def _check(sources: RecipeSources, path: RepoPath, after: RepoPath, name: str, new: str) -> None:
    check_name(new)
    if path.endswith("/__init__.py"):
        raise RecipeQuestionError(f"{path} is a package: this recipe renames one file", _BY_HAND)
    if name in _STARTED or path + "i" in sources.graph.facts or (is_test(path) and name.startswith("test")):
        raise RecipeQuestionError(f"{path} is named from outside, or has a stub or tests of that name", _BY_HAND)
    stem = after.removesuffix(".py")
    if any(one == after or one.startswith(f"{stem}/") or one == f"{stem}.pyi" for one in sources.python):
        raise RecipeQuestionError(f"{after} is there already", "choose another name")
    if new in sys.stdlib_module_names and f"{path.rpartition('/')[0]}/__init__.py" not in sources.python:
        raise RecipeQuestionError(f"{new!r} would hide the standard library's module", "choose another name")
    if unread := sources.unread_with(name):
        raise RecipeQuestionError(f"{listed(unread)} cannot be read as Python, and names {name!r}", "mend that first")


def _texts(sources: RecipeSources, path: RepoPath, name: str, new: str) -> list[SourceSplice]:
    """Its name in texts that begin with it and go on with what stands in it, as `mock.patch` takes them."""
    graph, found = sources.graph, []
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for where in sorted(path for path, facts in graph.facts.items() if any(map(word.search, facts.names))):
        view = graph.view(where)
        for use in view.facts.uses:
            parts = view.name_of(use.expression).replace(":", ".").split(".") if use.kind == UseKind.STRING else []
            for at, part in enumerate(parts):
                dotted = ".".join(parts[: at + 1])
                if part == name and len(parts) > 1 and graph.modules.resolve(dotted, where) == path:
                    text = sources.text(where)
                    start = text.offset(use.line, use.column) + len(dotted.encode()) - len(name.encode())
                    end = start + len(name.encode())
                    if use.length <= 0 or text.utf8[start:end] != name.encode():
                        place = f"{where}:{use.line}"
                        raise RecipeQuestionError(f"{place} names {name!r} in a text that is not exact", _BY_HAND)
                    found.append(SourceSplice(path=where, start=start, end=end, text=new))
    return found


def _check_meaning(
    sources: RecipeSources, writes: dict[RepoPath, str], path: RepoPath, after: RepoPath, names: tuple[str, str]
) -> None:
    """RecipeQuestionError where a use of either name no longer means what it meant."""
    before, now = sources.graph, sources.with_writes(writes, without=path)

    def moved(symbol: Symbol) -> Symbol:
        return symbol._replace(path=after) if symbol.path == path else symbol

    for one in sorted(before.facts):
        was, then = before.view(one), now.view(after if one == path else one)
        for use, use_now in zip(was.facts.uses, then.facts.uses, strict=True):
            if was.name_of(use.expression).replace(":", ".").rpartition(".")[2] not in names:
                continue
            meant = {moved(s) for s in resolve_use(before, was, use).symbols}
            means = resolve_use(now, then, use_now).symbols
            other = {Symbol(s.path, s.scope, names[1] if s.name == names[0] else s.name) for s in meant}
            if means not in (meant, other):
                place = f"{one}:{use.line}"
                raise RecipeQuestionError(f"in {place} {names[1]!r} meets another of that name", "choose another name")


def _check_elsewhere(sources: RecipeSources, path: RepoPath, possible: Possible) -> None:
    dotted = re.escape(module_name(path).removeprefix("src.")).replace(r"\.", "[./]")
    word = re.compile(rf"(?<![\w.]){dotted}(?!\w)".encode())
    named = [one for one, data in sources.configuration.items() if word.search(data)]
    if named and possible is not Possible.LEAVE:
        raise RecipeQuestionError(
            f"{listed(named)} names {path} as well, and this recipe changes Python only",
            "change it there by hand too, and add `, leave the possible places` to the instruction",
        )
