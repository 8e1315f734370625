"""Imports that fail: the name or module lies elsewhere now, is spelt otherwise, or is imported in a circle.

These operators see the whole file as one unit. Where a name lies now is told by the project's own files and by
`MOVED_NAMES`. Not promised: that what bears the name there does the same.
"""

import re
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from localagent.code.module_names import own_name
from localagent.code.related_tests import is_test
from localagent.domain.edit import EditEffect
from localagent.domain.paths import RepoPath
from localagent.domain.test_support_names import is_testing_support
from localagent.edit.failure_hints import missing_attribute
from localagent.edit.layout import before, movable, removed
from localagent.edit.operator_context import Change, OperatorContext, Splice3
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import likeness
from localagent.edit.unit import Stmt
from localagent.edit.whole_file_failures import failed_import

_EFFECTS = frozenset({EditEffect.MENDS_NAME, EditEffect.EXPLAINED})
_ALIKE = 0.6  # as like as a misspelt name is to the right one
_MOST_HOMES = 6


@operator("moved-import", prior=2.6, wide=True, effects=_EFFECTS)
def moved_import(ctx: OperatorContext) -> Iterator[Change]:
    """A name that cannot be imported is imported from where it lies now, or by the name that it bears there."""
    from localagent.code.moved_names import MOVED_NAMES  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failures:
        wanted = failed_import(ctx.path, failure)
        if wanted is None or not wanted.name:
            continue
        for s, node in _from_imports(ctx):
            alias = next((a for a in _aliases(node) if a.evaluated_name == wanted.name), None)
            if alias is None or not f".{wanted.module}".endswith(f".{_dotted(node)}"):
                continue
            homes = [new.rpartition(".") for new in MOVED_NAMES.get(f"{wanted.module}.{wanted.name}", ())]
            for place, (home, _, name) in enumerate(homes):
                for change in _imported_from(ctx, s, node, alias, home=home, name=name, delta=0.3 - 0.1 * place):
                    yield _following(change, alone=len(homes) == 1 and name == wanted.name)
            homes_here = _homes(ctx, node, [wanted.name])
            for place, home in enumerate(homes_here):
                delta = 0.2 - 0.1 * place
                for change in _imported_from(ctx, s, node, alias, home=home, name=wanted.name, delta=delta):
                    yield _following(change, alone=len(homes_here) == 1 and not homes)
            for name, alike in _alike_in(ctx, node, wanted.name):
                home = ctx.unit.slice(*_module_span(ctx, node))
                yield from _imported_from(ctx, s, node, alias, home=home, name=name, delta=alike - 0.9)


@operator("moved-module", prior=2.6, wide=True, effects=_EFFECTS)
def moved_module(ctx: OperatorContext) -> Iterator[Change]:
    """A module that is not there is imported from where it lies now."""
    from localagent.code.moved_names import MOVED_NAMES  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failures:
        wanted = failed_import(ctx.path, failure)
        if wanted is None or wanted.name:
            continue
        for s, node in _from_imports(ctx):
            if not f".{wanted.module}".endswith(f".{_dotted(node)}") or not _dotted(node):
                continue
            names = [str(a.evaluated_name) for a in _aliases(node)]
            known = [MOVED_NAMES.get(f"{wanted.module}.{name}", ()) for name in names]
            homes = {new[0].rpartition(".")[0]: 0.3 for new in known[:1] if new}
            homes.update(dict.fromkeys(MOVED_NAMES.get(wanted.module, ()), 0.2))
            homes.update({home: 0.2 - 0.1 * place for place, home in enumerate(_homes(ctx, node, names))})
            for home, delta in homes.items():
                start, end = _module_span(ctx, node)
                note = f"from {home} import {', '.join(names)}"
                change = Change(((start, end, home),), delta, s.line, s.end_line, note)
                yield _following(change, alone=len(homes) == 1)
        for s, import_node in _plain_imports(ctx):
            for alias in import_node.names:
                if alias.evaluated_name == wanted.module:
                    for new in MOVED_NAMES.get(wanted.module, ()):
                        yield _following(_renamed_module(ctx, s, alias, wanted.module, new), alone=True)


@operator("moved-attribute", prior=2.6, wide=True, effects=_EFFECTS)
def moved_attribute(ctx: OperatorContext) -> Iterator[Change]:
    """An attribute that a module no longer has becomes the name that stands for it now, wherever the file uses it."""
    from localagent.code.moved_names import MOVED_NAMES  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failing_with("AttributeError"):
        module, name = missing_attribute(failure) or ("", "")
        for place, new in enumerate(MOVED_NAMES.get(f"{module}.{name}", ())):
            uses = [
                (e, base)
                for e in ctx.unit.exprs
                if isinstance(e.node, cst.Attribute)
                and e.node.attr.value == name
                and ctx.facts.imports.get(base := ctx.unit.code(e.node.value)) == module
            ]
            if not uses:
                continue
            texts, imported = _spelt(ctx, module, uses[0][1], new)
            splices = sorted([(e.start, e.end, texts) for e, _ in uses] + imported)
            line = next((f.line for f in reversed(failure.frames) if f.path == ctx.path), uses[0][0].line)
            change = Change(tuple(splices), 0.3 - 0.1 * place, line, line, f"{module}.{name} -> {new}")
            yield _following(change, alone=new.rpartition(".")[2] == name)


@operator("local-import", prior=1.6, wide=True, effects=_EFFECTS)
def local_import(ctx: OperatorContext) -> Iterator[Change]:
    """An import in a circle moves into the functions that need it, or goes where nothing does."""
    for failure in ctx.failures:
        if "circular import" not in failure.message:
            continue
        lines = ctx.lines_of(failure)
        for s in ctx.unit.root.statements:
            if not isinstance(s.node, cst.ImportFrom | cst.Import) or not movable(s):
                continue
            bound = _bound(s.node)
            if s.line not in lines or not bound:
                continue
            uses = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text in bound]
            homes = {id(f): f for e in uses if (f := _outermost(e.statement)) is not None}
            if any(_outermost(e.statement) is None for e in uses):
                continue  # needed while the module is imported
            bodies = [_first_line(f) for f in homes.values()]
            if any(first is None for first in bodies):
                continue
            text = ctx.unit.slice(s.start, s.end)
            moved = [before(ctx, first, text) for first in bodies if first is not None]
            note = f"{text} where it is used" if moved else f"{text} removed"
            yield Change(tuple(sorted([removed(s), *moved])), 0.2, s.line, s.end_line, note)


# -- statements


def _from_imports(ctx: OperatorContext) -> Iterator[tuple[Stmt, cst.ImportFrom]]:
    for s in ctx.unit.statements:
        if isinstance(s.node, cst.ImportFrom) and not isinstance(s.node.names, cst.ImportStar):
            yield s, s.node


def _plain_imports(ctx: OperatorContext) -> Iterator[tuple[Stmt, cst.Import]]:
    for s in ctx.unit.statements:
        if isinstance(s.node, cst.Import):
            yield s, s.node


def _aliases(node: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    return node.names if not isinstance(node.names, cst.ImportStar) else ()


def _dotted(node: cst.ImportFrom) -> str:
    """The module's dotted name without its leading dots."""
    return get_full_name_for_node(node.module) or "" if node.module is not None else ""


def _module_span(ctx: OperatorContext, node: cst.ImportFrom) -> tuple[int, int]:
    """The bytes of the module's name with its leading dots."""
    spans = [ctx.unit.span(part) for part in (*node.relative, *([node.module] if node.module is not None else []))]
    return spans[0][0], spans[-1][1]


def _bound(node: cst.ImportFrom | cst.Import) -> set[str]:
    """The names that an import binds; empty where nobody can tell."""
    if isinstance(node.names, cst.ImportStar):
        return set()
    return {str(a.evaluated_alias or a.evaluated_name).partition(".")[0] for a in node.names}


def _outermost(s: Stmt) -> Stmt | None:
    """The outermost function whose body a statement is in; None at the module's or a class's level."""
    found = None
    owner = s.suite.owner
    while owner is not None:
        found = owner if isinstance(owner.node, cst.FunctionDef) else found
        owner = owner.suite.owner
    return found


def _first_line(function: Stmt) -> Stmt | None:
    """The first statement of a function after its docstring, if something can be put before it."""
    rows = [] if function.suites[0].inline else function.suites[0].statements
    after_docstring = rows[1:] if rows and isinstance(rows[0].node, cst.Expr) and len(rows) > 1 else rows
    return next((s for s in after_docstring[:1] if movable(s)), None)


# -- changes


def _following(change: Change, *, alone: bool) -> Change:
    """Marked as following a move where the name lies in one place and has kept its name."""
    return change.having(EditEffect.FOLLOWS_MOVE) if alone else change


def _imported_from(
    ctx: OperatorContext, s: Stmt, node: cst.ImportFrom, alias: cst.ImportAlias, *, home: str, name: str, delta: float
) -> Iterator[Change]:
    """The one name comes from `home`, by its name there; where it had another one, its uses follow."""
    old, bound = str(alias.evaluated_name), alias.evaluated_alias
    uses = [] if name == old or bound else _uses(ctx, old, name)
    said = f"{name} as {bound}" if bound else name
    line = f"from {home} import {said}" if home != "builtins" else ""
    others = [a for a in _aliases(node) if a is not alias]
    note = (line or "no import") + ("" if name == old else f", for {old}")
    if not others:
        gone = (s.start, s.end, line) if line else removed(s)
        yield Change(tuple(sorted([gone, *uses])), delta, s.line, s.end_line, note)
        return
    same = home == ctx.unit.slice(*_module_span(ctx, node))
    start, end = ctx.unit.span(alias)
    if same:
        yield Change(tuple(sorted([(start, end, said), *uses])), delta, s.line, s.end_line, note)
        return
    at = [ctx.unit.span(a) for a in _aliases(node)]
    place = at.index((start, end))
    cut = (start, at[place + 1][0], "") if place + 1 < len(at) else (at[place - 1][1], end, "")
    added = [before(ctx, s, line)] if line else []
    yield Change(tuple(sorted([*added, cut, *uses])), delta, s.line, s.end_line, note)


def _uses(ctx: OperatorContext, old: str, new: str) -> list[Splice3]:
    return [(e.start, e.end, new) for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == old]


def _renamed_module(ctx: OperatorContext, s: Stmt, alias: cst.ImportAlias, old: str, new: str) -> Change:
    """`import old` becomes `import new`, and so do its uses."""
    start, end = ctx.unit.span(alias.name)
    uses = [
        (e.start, e.end, new)
        for e in ctx.unit.exprs
        if alias.asname is None and e.text == old and isinstance(e.node, cst.Name | cst.Attribute)
    ]
    return Change(tuple(sorted([(start, end, new), *uses])), 0.2, s.line, s.end_line, f"import {new}, for {old}")


def _spelt(ctx: OperatorContext, module: str, base: str, new: str) -> tuple[str, list[Splice3]]:
    """How a file that knows `module` as `base` says a dotted name, and the import that it takes."""
    home, _, name = new.rpartition(".")
    if home.partition(".")[0] == "builtins":
        return new.removeprefix("builtins."), []
    known = next((bound for bound, origin in ctx.facts.imports.items() if origin == (home or new)), "")
    if known:
        return (f"{known}.{name}" if home else known), []
    line = f"import {home or new}"
    at, node = next(
        ((s, n) for s, n in _plain_imports(ctx) if any(a.evaluated_name == module for a in n.names)), (None, None)
    )
    if at is None or node is None or not movable(at):
        return new, []
    if home.startswith(f"{module}.") and base == module and len(node.names) == 1:
        return new, [(at.start, at.end, line)]
    return new, [before(ctx, at, line)]


# -- places


def _homes(ctx: OperatorContext, node: cst.ImportFrom, names: Sequence[str]) -> list[str]:
    """The project's modules that define all these names, as an import here would say them; the nearest first."""
    patterns = [
        re.compile(rb"^(?:(?:async\s+)?def|class)\s+%b\b|^%b\s*[:=]" % (n.encode(), n.encode()), re.M) for n in names
    ]
    found = [
        path
        for path, text in ctx.sources.items()
        if path != ctx.path
        and path.endswith(".py")
        and not (is_test(path) or is_testing_support(path))
        and all(p.search(text) for p in patterns)
    ]
    shared = sorted(found, key=lambda p: (-_shared(p, ctx.path), len(p.parts), p))[:_MOST_HOMES]
    return [_as_imported(ctx, path, relative=bool(node.relative)) for path in shared]


def _shared(path: RepoPath, other: RepoPath) -> int:
    """How many folders two files have in common."""
    return next(
        (n for n, (a, b) in enumerate(zip(path.parts[:-1], other.parts[:-1], strict=False)) if a != b),
        min(len(path.parts), len(other.parts)) - 1,
    )


def _as_imported(ctx: OperatorContext, path: RepoPath, *, relative: bool) -> str:
    """A module's name in an import of this file: from the package's top, or with dots where the others have some."""
    name = own_name(path)
    shared = _shared(path, ctx.path)
    if relative and shared:
        dots = "." * (len(ctx.path.parts) - shared)
        return dots + ".".join(name[shared:])
    packages = {p.parts[:-1] for p in ctx.sources if p.name == "__init__.py"}
    top = next((n for n in range(len(name)) if name[: n + 1] in packages), len(name) - 1)
    return ".".join(name[top:])


def _alike_in(ctx: OperatorContext, node: cst.ImportFrom, wanted: str) -> list[tuple[str, float]]:
    """Names of the project's module that are spelt nearly like a wanted one, with how alike they are."""
    module = _dotted(node).replace(".", "/")
    text = next(
        (t for p, t in ctx.sources.items() if module and f"/{p}".endswith((f"/{module}.py", f"/{module}/__init__.py"))),
        b"",
    )
    names = re.findall(rb"^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*[:=]", text, re.M)
    found = {(a or b).decode("utf-8", "replace") for a, b in names}
    alike = [(name, likeness(wanted, name)) for name in found if name != wanted]
    return sorted([(n, at) for n, at in alike if at >= _ALIKE], key=lambda row: (-row[1], row[0]))[:3]
