"""What a patch takes out of the sources for good, and whether a test that goes tested nothing else.

By the imports of the test: every name that it uses of the changed sources must stand in none of them any more; or by an
option of a command, `--name`, which it gives and is called after. Not told: tests that reach what they test by other
ways, as by fixtures; these stay tests that are gone.
"""

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from localagent.code.names import ASSIGNING, bound_name, imports_of
from localagent.code.regions import DoesNotParse, decode_source, parse, walk
from localagent.code.spans import Function
from localagent.domain.edit import FileChange
from localagent.gate.tests.inventory import suite_of
from localagent.gate.tests.renamed_tests import renamed_tests

WHOLE = "*"
_OPTION = re.compile(r"--[a-z][a-z0-9-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What sources lose. `names`: by the module's dotted path, with `*` where all of it goes; `options` of commands."""

    names: Mapping[str, frozenset[str]]
    options: frozenset[str] = frozenset()


def removed(files: list[FileChange]) -> Removed:
    """The names and options that changed sources have nowhere any more. A source that does not parse loses none."""
    found: dict[str, frozenset[str]] = {}
    had, have = set[str](), set[str]()
    for file in files:
        module = file.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        try:
            trees = [parse(decode_source(data)) for data in (file.before, file.after)]
        except DoesNotParse:
            continue
        before, after = map(_bound, trees)
        had |= _options(trees[0])
        have |= _options(trees[1])
        if before - after:
            found[module] = frozenset(before - after) | ({WHOLE} if not file.after.strip() else frozenset())
    return Removed(names=found, options=frozenset(had - have))


def _options(tree: ast.AST) -> set[str]:
    texts = (n.value for n in walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return {text for text in texts if _OPTION.fullmatch(text)}


def _bound(tree: ast.Module) -> set[str]:
    """The names that a module and its classes bind; what stands nowhere by its name is gone."""
    return {bound_name(node) for node in walk(tree) if isinstance(node, ASSIGNING)} - {""}


def gone_tests(sources: list[FileChange], tests: list[FileChange]) -> frozenset[str]:
    """Ids of tests, without parameters, that changed files lose: to new names, or with all that they tested."""
    lost = removed(sources)
    found: set[str] = set()
    for file in tests:
        before, after = suite_of(file.before), suite_of(file.after)
        if before is not None and after is not None:
            now = renamed_tests(before, after)
            gone = [t for name, t in before.tests.items() if t.is_test and name not in after.tests]
            gone = [t for t in gone if t.name in now or gone_with(t.node, before.loose, lost)]
            found |= {f"{file.path}::{t.name.replace('.', '::')}" for t in gone}
    return frozenset(found)


def gone_with(test: Function, imports: list[ast.stmt], lost: Removed) -> str:
    """What a test tested, if all of that is removed; "" if anything of it stays, or nobody can tell."""
    return _gone_option(test, lost.options) or _gone_names(test, imports, lost.names)


def _gone_option(test: Function, options: Collection[str]) -> str:
    """The option without which a test cannot be what its name says."""
    gone = sorted(_options(test) & {*options})
    return next((option for option in gone if option[2:].replace("-", "_") in test.name), "")


def _gone_names(test: ast.AST, imports: list[ast.stmt], lost: Mapping[str, frozenset[str]]) -> str:
    used = {n.id for n in walk(test) if isinstance(n, ast.Name)}
    asked = {n.attr for n in walk(test) if isinstance(n, ast.Attribute)}
    gone: list[str] = []
    for name, dotted, wanted, _ in (found for node in imports for found in imports_of(node)):
        module = dotted.lstrip(".")
        if name not in used:
            continue
        names = _lost_by(module, lost)
        if names is None:
            if _is_of(module, lost):
                return ""  # of the project, and not touched: it is still tested by this
            continue
        whole = wanted in names if wanted else WHOLE in names
        parts = sorted(asked & (names - {WHOLE}))
        if not whole and not parts:
            return ""
        gone += [f"{module}.{wanted}" if whole and wanted else module] if whole else [f"{module}: {parts[0]}"]
    return ", ".join(dict.fromkeys(gone))


def _lost_by(module: str, lost: Mapping[str, frozenset[str]]) -> frozenset[str] | None:
    """What a module, or a submodule that is named so, loses; sources may lie in a folder such as `src`."""
    for path, names in lost.items():
        if path == module or path.endswith(f".{module}"):
            return names
    return None


def _is_of(module: str, lost: Mapping[str, frozenset[str]]) -> bool:
    """Whether a module is of the project, as far as the changed sources tell."""
    return module.split(".", maxsplit=1)[0] in {part for path in lost for part in path.split(".")[:2]}
