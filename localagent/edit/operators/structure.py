"""The shape of a whole file, when failures say that it is wrong: a class that is missing, a name nobody can import.

These operators see the whole file as one unit. Not promised: that methods put into a class find each other.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from localagent.edit.layout import movable, step
from localagent.edit.operator_context import Change, OperatorContext, Splice3
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import likeness
from localagent.edit.unit import Stmt
from localagent.edit.whole_file_failures import lost_methods, stray_line, undefined_at_import, wanted_names


def _indented(ctx: OperatorContext, first: int, end: int, by: str) -> list[Splice3]:
    """Put `by` before every line of a span that is neither empty nor inside a text."""
    inside = [
        ctx.unit.outer(e.node)
        for e in ctx.unit.exprs
        if isinstance(e.node, (cst.SimpleString, cst.FormattedString)) and e.line != e.end_line
    ]
    base = ctx.unit.base
    out: list[Splice3] = []
    for start in ctx.unit.source.line_starts:
        at = start - base
        empty = ctx.unit.text[at : at + 1] in (b"\n", b"\r", b"")
        if first <= at < end and not empty and not any(a < at < b for a, b in inside):
            out.append((at, at, by))
    return out


def _self_added(ctx: OperatorContext, s: Stmt) -> list[Splice3]:
    node = s.node
    if not isinstance(node, cst.FunctionDef):
        return []
    first = node.params.params[0].name.value if node.params.params else ""
    marks = {d.decorator.value for d in node.decorators if isinstance(d.decorator, cst.Name)}
    if first in ("self", "cls") or node.params.posonly_params or "staticmethod" in marks:
        return []
    own = "cls" if "classmethod" in marks else "self"
    open_at = ctx.unit.text.index(b"(", ctx.unit.span(node.name)[1]) + 1
    params = node.params
    starred = isinstance(params.star_arg, (cst.Param, cst.ParamStar)) or params.star_kwarg is not None
    empty = not params.params and not params.kwonly_params and not starred
    return [(open_at, open_at, own if empty else f"{own}, ")]


@operator("class-around", prior=2.4, wide=True)
def class_around(ctx: OperatorContext) -> Iterator[Change]:
    """Module-level functions become methods of the class that could not be imported, with `self` added if missing."""
    inner = step(ctx)
    rows = ctx.unit.root.statements
    for name in wanted_names(ctx.path, ctx.failures):
        if name in ctx.facts.module_names or name in ctx.facts.imports:
            continue
        for first, s in enumerate(rows):
            if not isinstance(s.node, cst.FunctionDef) or not movable(s):
                continue
            ends = [first]
            while ends[-1] + 1 < len(rows) and isinstance(rows[ends[-1] + 1].node, cst.FunctionDef):
                ends.append(ends[-1] + 1)
            for last in dict.fromkeys((ends[-1], first)):
                fresh = first == 0 or not isinstance(rows[first - 1].node, cst.FunctionDef)
                delta = (0.3 if name[:1].isupper() else -1.0) + (0.2 if last == ends[-1] else 0.0)
                bare = [x for at in range(first, last + 1) for x in _self_added(ctx, rows[at])]
                lines = _indented(ctx, s.line_start, rows[last].line_end, inner)
                head = (s.line_start, s.line_start, f"class {name}:{ctx.unit.newline}{inner}")
                splices = sorted([head, *(x for x in lines if x[0] != s.line_start), *bare])
                yield Change(
                    tuple(splices),
                    delta + (0.0 if fresh else -0.6),
                    s.line,
                    rows[last].end_line,
                    f"class {name} around {s.node.name.value}",
                )


@operator("method-indent", prior=2.4, wide=True)
def method_indent(ctx: OperatorContext) -> Iterator[Change]:
    """Functions that follow a class become its methods if one was missing there; `self` is added if missing."""
    rows = ctx.unit.root.statements
    for class_name, wanted in lost_methods(ctx.facts, ctx.failures):
        for at, s in enumerate(rows):
            if not isinstance(s.node, cst.ClassDef) or s.node.name.value != class_name or s.suites[0].inline:
                continue
            ends = at
            while ends + 1 < len(rows) and isinstance(rows[ends + 1].node, cst.FunctionDef) and movable(rows[ends + 1]):
                ends += 1
            names = [r.node.name.value for r in rows[at + 1 : ends + 1] if isinstance(r.node, cst.FunctionDef)]
            if wanted not in names or not s.suites[0].statements:
                continue
            inner = s.suites[0].statements[0].indent
            for last in dict.fromkeys((ends, at + 1 + names.index(wanted))):
                moved = rows[at + 1 : last + 1]
                bare = [x for r in moved for x in _self_added(ctx, r)]
                lines = _indented(ctx, moved[0].line_start, moved[-1].line_end, inner)
                delta = 0.2 if last == ends else 0.0
                note = f"{', '.join(names[: last - at])} into class {class_name}"
                anchor = (s.start, s.start + 1, ctx.unit.slice(s.start, s.start + 1))  # the class is parsed with them
                yield Change(tuple(sorted([anchor, *lines, *bare])), delta, s.line, moved[-1].end_line, note)


@operator("exported-name", prior=2.0, wide=True)
def exported_name(ctx: OperatorContext) -> Iterator[Change]:
    """A class or function of the module gets the name that could not be imported, in the whole file."""
    for name in wanted_names(ctx.path, ctx.failures):
        if name in ctx.facts.module_names or name in ctx.facts.imports:
            continue
        for s in ctx.unit.root.statements:
            if not isinstance(s.node, (cst.FunctionDef, cst.ClassDef)):
                continue
            old = s.node.name.value
            is_class = isinstance(s.node, cst.ClassDef)
            if is_class != name[:1].isupper() and likeness(old, name) < 0.8:
                continue
            uses = [(e.start, e.end, name) for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == old]
            splices = tuple(sorted([(*ctx.unit.span(s.node.name), name), *uses]))
            delta = 1.2 * likeness(old, name) - 0.8
            yield Change(splices, delta, s.line, s.end_line, f"{old} -> {name} in the file")


@operator("module-import", prior=2.0, wide=True)
def module_import(ctx: OperatorContext) -> Iterator[Change]:
    """A name that is undefined while the module is imported gets its import above the first statement."""
    from localagent.code.builtin_types import IMPORTS  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failures:
        name = undefined_at_import(ctx.path, failure)
        first = next((s for s in ctx.unit.root.statements if s.line >= ctx.facts.body_start_line), None)
        if not name or first is None or not movable(first):
            continue
        origins = [facts.imports[name] for facts in ctx.nearby if name in facts.imports]
        for place, origin in enumerate(dict.fromkeys([*origins, *IMPORTS.get(name, ())])):
            module, _, member = origin.partition(":")
            if module.startswith("."):
                continue
            line = f"from {module} import {member}" if member else f"import {module}"
            if (member or module.split(".")[0]) != name:
                line += f" as {name}"
            splice = (first.line_start, first.line_start, line + ctx.unit.newline)
            use = failure.frames[-1].line
            yield Change((splice,), 0.6 - 0.1 * place, min(first.line, use), max(first.line, use), line)


@operator("header-drop", prior=1.0, wide=True)
def header_drop(ctx: OperatorContext) -> Iterator[Change]:
    """The header of an unused function is removed, so its body belongs to the function before it."""
    for s in ctx.unit.statements:
        if not isinstance(s.node, cst.FunctionDef) or not s.index or s.node.decorators or not movable(s):
            continue
        above = s.suite.statements[s.index - 1]
        name = s.node.name.value
        if not isinstance(above.node, cst.FunctionDef) or ctx.facts.names[name] or ctx.facts.attributes[name]:
            continue
        mine, theirs = s.suites[0], above.suites[0]
        if mine.inline or theirs.inline or not mine.statements or not theirs.statements:
            continue
        if mine.statements[0].indent != theirs.statements[-1].indent:
            continue
        ends = isinstance(theirs.statements[-1].node, cst.SimpleStatementLine)
        cut = (above.line_end, mine.statements[0].line_start, "")
        yield Change((cut,), -0.2 if ends else 0.0, above.line, s.end_line, f"def {name} dropped, its body kept")


@operator("stray-block", prior=2.0, wide=True)
def stray_block(ctx: OperatorContext) -> Iterator[Change]:
    """Statements up to a `return` outside functions (`break` outside loops) go back into the block above them."""
    inner = step(ctx)
    for failure in ctx.failures:
        line = stray_line(ctx.path, failure)
        at = next((s for s in reversed(ctx.unit.statements) if s.line <= line <= s.end_line), None)
        if not line or at is None:
            continue
        loops = "loop" in failure.message
        hosts = (cst.For, cst.While) if loops else (cst.FunctionDef,)
        while True:
            rows = at.suite.statements
            starts = [k for k in range(at.index, 0, -1) if isinstance(rows[k - 1].node, hosts)]
            for place, first in enumerate(starts[:6]):
                yield from _moved_in(ctx, rows[first : at.index + 1], inner, -0.15 * place)
                tail = rows[first:]
                if len(tail) > at.index + 1 - first:
                    yield from _moved_in(ctx, tail, inner, -0.1 - 0.15 * place)
            owner = at.suite.owner
            if owner is None:
                break
            at = owner


def _moved_in(ctx: OperatorContext, rows: Sequence[Stmt], by: str, delta: float) -> Iterator[Change]:
    if all(movable(s) for s in rows):
        first, end = rows[0].line_start, rows[-1].line_end
        ends = [*(at for at, _, _ in _indented(ctx, first, end, by)), end]
        text = ctx.unit.slice(first, ends[0]) + "".join(by + ctx.unit.slice(a, b) for a, b in pairwise(ends))
        yield Change(((first, end, text),), delta, rows[0].line, rows[-1].end_line, f"{len(rows)} statements indented")
