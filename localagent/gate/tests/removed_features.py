"""What a patch takes out of the sources for good, and whether a test that goes tested nothing else.

By the imports of the test: every name that it uses of the changed sources must stand in none of them any more. Not
told: tests that reach what they test by other ways, by fixtures or by a command; these stay tests that are gone.
"""

import ast
from collections.abc import Mapping

from localagent.code.names import ASSIGNING, bound_name, imports_of
from localagent.code.regions import DoesNotParse, decode_source, parse, walk
from localagent.domain.edit import FileChange
from localagent.gate.tests.inventory import suite_of

Removed = Mapping[str, frozenset[str]]
"""What each module loses, by its dotted path; `*` where all of it goes."""
WHOLE = "*"


def removed(files: list[FileChange]) -> Removed:
    """The names that changed sources no longer bind anywhere. A source that does not parse loses none."""
    found: dict[str, frozenset[str]] = {}
    for file in files:
        module = file.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        try:
            before, after = (_bound(parse(decode_source(data))) for data in (file.before, file.after))
        except DoesNotParse:
            continue
        if before - after:
            found[module] = frozenset(before - after) | ({WHOLE} if not file.after.strip() else frozenset())
    return found


def _bound(tree: ast.Module) -> set[str]:
    """The names that a module and its classes bind; what stands nowhere by its name is gone."""
    return {bound_name(node) for node in walk(tree) if isinstance(node, ASSIGNING)} - {""}


def gone_tests(sources: list[FileChange], tests: list[FileChange]) -> frozenset[str]:
    """Ids of tests, without parameters, that changed files of tests lose together with all that they tested."""
    lost = removed(sources)
    found: set[str] = set()
    for file in tests if lost else ():
        before, after = suite_of(file.before), suite_of(file.after)
        if before is not None and after is not None:
            gone = (t for name, t in before.tests.items() if t.is_test and name not in after.tests)
            found |= {
                f"{file.path}::{t.name.replace('.', '::')}" for t in gone if gone_with(t.node, before.loose, lost)
            }
    return frozenset(found)


def gone_with(test: ast.AST, imports: list[ast.stmt], lost: Removed) -> str:
    """What a test tested, if all of that is removed; "" if anything of it stays, or nobody can tell."""
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


def _lost_by(module: str, lost: Removed) -> frozenset[str] | None:
    """What a module, or a submodule that is named so, loses; sources may lie in a folder such as `src`."""
    for path, names in lost.items():
        if path == module or path.endswith(f".{module}"):
            return names
    return None


def _is_of(module: str, lost: Removed) -> bool:
    """Whether a module is of the project, as far as the changed sources tell."""
    return module.split(".", maxsplit=1)[0] in {part for path in lost for part in path.split(".")[:2]}
