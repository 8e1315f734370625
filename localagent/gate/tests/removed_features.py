"""What a patch takes out of the sources for good, and whether a test that goes tested nothing else.

By the imports of the test: every name that it uses of the changed sources must stand in none of them any more, or that
after which it is called; by an option of a command, `--name`, which it gives and is called after; or by what is removed
and called like it, which a function that it imports used and uses no more. Not told: tests that reach what they test by
other ways, as by fixtures; these stay tests that are gone.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from localagent.code.names import ASSIGNING, bound_name, imports_of
from localagent.code.regions import DoesNotParse, decode_source, parse, walk
from localagent.code.spans import Definition, Function
from localagent.domain.edit import FileChange
from localagent.gate.tests.inventory import suite_of
from localagent.gate.tests.moved_tests import moved_tests
from localagent.gate.tests.renamed_tests import renamed_tests

WHOLE = "*"
USE = "the use of "
"""Begins what is told of a test that went with the use of a removed thing."""
_LEAST_WORD = 3
_LEAST = 4  # letters of a name after which a test is called
_ROUTE = re.compile(r"/[a-z][\w/.-]*")
_OPTION = re.compile(r"--[a-z][a-z0-9-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What sources lose. `names`: by the module's dotted path, with `*` where all of it goes; `options` of commands.

    `routes`: texts like `/v1/push`. `uses`: by module and function, the names of removed things that it used before and
    uses no more.
    """

    names: Mapping[str, frozenset[str]]
    options: frozenset[str] = frozenset()
    routes: frozenset[str] = frozenset()
    uses: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)


def removed(files: list[FileChange]) -> Removed:
    """The names and options that changed sources have nowhere any more. A source that does not parse loses none."""
    found: dict[str, frozenset[str]] = {}
    had, have = (set[str](), set[str]()), (set[str](), set[str]())  # options, routes
    bodies: dict[tuple[str, str], list[set[str]]] = {}
    for file in files:
        module = file.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        try:
            trees = [parse(decode_source(data)) for data in (file.before, file.after)]
        except DoesNotParse:
            continue
        before, after = map(_bound, trees)
        for at, form in enumerate((_OPTION, _ROUTE)):
            had[at].update(_texts(trees[0], form))
            have[at].update(_texts(trees[1], form))
        for tree in trees:
            for name, used in _uses(tree):
                bodies.setdefault((module, name), []).append(used)
        if before - after:
            found[module] = frozenset(before - after) | ({WHOLE} if not file.after.strip() else frozenset())
    gone = {module.rpartition(".")[2] for module, names in found.items() if WHOLE in names}
    gone |= {name for names in found.values() for name in names}
    uses = {at: frozenset((sides[0] - sides[1]) & gone) for at, sides in bodies.items() if len(sides) == 2}
    options, routes = (frozenset(old - new) for old, new in zip(had, have, strict=True))
    return Removed(names=found, options=options, routes=routes, uses=uses)


def _uses(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The names that each function and class of a module uses."""
    for node in tree.body:
        if isinstance(node, Definition):
            names = (getattr(n, "id", None) or getattr(n, "attr", None) for n in walk(node))
            yield node.name, {name for name in names if isinstance(name, str)}


def _texts(tree: ast.AST, form: re.Pattern[str]) -> set[str]:
    texts = (n.value for n in walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return {text for text in texts if form.fullmatch(text)}


def _bound(tree: ast.Module) -> set[str]:
    """The names that a module and its classes bind; what stands nowhere by its name is gone."""
    return {bound_name(node) for node in walk(tree) if isinstance(node, ASSIGNING)} - {""}


def gone_tests(sources: list[FileChange], tests: list[FileChange]) -> frozenset[str]:
    """Ids of tests, without parameters, that changed files lose: to other names, files, or with what they tested."""
    lost = removed(sources)
    found: set[str] = set()
    moved = moved_tests(tests, sources)
    for file in tests:
        before, after = suite_of(file.before), suite_of(file.after)
        if before is not None and after is not None:
            now = renamed_tests(before, after)
            gone = [t for name, t in before.tests.items() if t.is_test and name not in after.tests]
            along = moved.get(file.path, ())
            gone = [t for t in gone if t.name in {*now, *along} or gone_with(t.node, before.loose, lost)]
            found |= {f"{file.path}::{t.name.replace('.', '::')}" for t in gone}
    return frozenset(found)


def gone_with(test: Function, imports: list[ast.stmt], lost: Removed) -> str:
    """What a test tested, if all of that is removed; "" if anything of it stays, or nobody can tell."""
    routes = _texts(test, _ROUTE)
    if routes and routes <= lost.routes:
        return min(routes)
    return _gone_option(test, lost.options) or _gone_names(test, imports, lost.names) or _gone_use(test, imports, lost)


def _gone_use(test: Function, imports: list[ast.stmt], lost: Removed) -> str:
    """The removed thing after which a test is called, where what it tests used that and does no more."""
    used = {n.id for n in walk(test) if isinstance(n, ast.Name)}
    for name, dotted, wanted, _ in (found for node in imports for found in imports_of(node)):
        for (module, function), words in lost.uses.items() if name in used and wanted else ():
            if function == wanted and f".{module}".endswith(f".{dotted.lstrip('.')}"):
                parts = f"_{test.name}_"
                told = [w for w in words if len(w) >= _LEAST and f"_{w.strip('_').lower()}_" in parts]
                if told:
                    return f"{USE}{max(told, key=len)}"
    return ""


def _gone_option(test: Function, options: Collection[str]) -> str:
    """The option without which a test cannot be what its name says."""
    gone = sorted(_texts(test, _OPTION) & {*options})
    return next((option for option in gone if option[2:].replace("-", "_") in test.name), "")


def _gone_names(test: Function, imports: list[ast.stmt], lost: Mapping[str, frozenset[str]]) -> str:
    used = {n.id for n in walk(test) if isinstance(n, ast.Name)}
    asked = {n.attr for n in walk(test) if isinstance(n, ast.Attribute)}
    gone: list[str] = []
    beside = False  # whether something else of the project is used, which stays
    for name, dotted, wanted, _ in (found for node in imports for found in imports_of(node)):
        module = dotted.lstrip(".")
        if name not in used:
            continue
        names = _lost_by(module, lost)
        if names is None:
            beside = beside or _is_of(module, lost)
            continue
        whole = wanted in names if wanted else WHOLE in names
        parts = sorted(asked & (names - {WHOLE}))
        if not whole and not parts:
            beside = True
            continue
        gone += [f"{module}.{wanted}" if whole and wanted else module] if whole else [f"{module}: {parts[0]}"]
    if beside and not any(_is_called_after(test, one) for one in gone):
        return ""  # it is still tested by this
    return ", ".join(dict.fromkeys(gone))


def _is_called_after(test: Function, gone: str) -> bool:
    """Whether a word of the last name of what is gone stands in the name of a test."""
    words = re.split(r"[\W_]+", re.split(r"[.: ]+", gone)[-1].lower())
    return any(len(word) >= _LEAST_WORD and word in test.name.lower().split("_") for word in words)


def _lost_by(module: str, lost: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """What a module, or a submodule that is named so, loses; sources may lie in a folder such as `src`."""
    for path, names in lost.items():
        if path == module or path.endswith(f".{module}"):
            return names
    return None


def _is_of(module: str, lost: Mapping[str, frozenset[str]]) -> bool:
    """Whether a module is of the project, as far as the changed sources tell."""
    return module.split(".", maxsplit=1)[0] in {part for path in lost for part in path.split(".")[:2]}
