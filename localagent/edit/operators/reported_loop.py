"""A loop whose header was lost: the failure names its variable."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.failure_hints import undefined
from localagent.edit.layout import movable, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.unit import Stmt

_MOST_NAMES = 8
_MOST_ROWS = 12


@operator("undefined-loop", prior=0.9, effects={EditEffect.MENDS_NAME, EditEffect.INVENTS})
def undefined_loop(ctx: OperatorContext) -> Iterator[Change]:
    """The statements that read an undefined name become the body of a `for` over a likely collection."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        uses = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == name and not e.store]
        rows = _rows([e.statement for e in uses])
        if not name or not rows:
            continue
        text = ctx.unit.slice(rows[0].line_start, rows[-1].eol)
        if any(q in text for q in ('"""', "'''")):
            continue  # a text inside would change
        inner = step(ctx)
        body = ctx.unit.newline.join(inner + line if line.strip() else line for line in text.split(ctx.unit.newline))
        for over, delta in _sources(ctx, name, rows[0]).items():
            header = f"for {name} in {over}:"
            new = f"{rows[0].indent}{header}{ctx.unit.newline}{body}"
            yield ctx.splice(rows[0], (rows[0].line_start, rows[-1].eol, new), delta=delta, note=header)


def _rows(statements: list[Stmt]) -> list[Stmt]:
    """The statements of one block from the first to the last that holds a use; [] where they cannot be moved."""
    if not statements:
        return []
    suite = statements[0].suite
    first = last = statements[0].index
    for s in statements:
        up: Stmt | None = s
        while up is not None and up.suite is not suite:
            up = up.suite.owner
        if up is not None:
            first, last = min(first, up.index), max(last, up.index)
    rows = suite.statements[first : last + 1]
    return rows if len(rows) <= _MOST_ROWS and all(movable(s) for s in rows) else []


def _sources(ctx: OperatorContext, name: str, at: Stmt) -> dict[str, float]:
    """What the variable may run over, with its bonus: plurals, indexes of what it subscripts, other loops' headers."""
    names = [n for n in ctx.visible(at) if n not in (name, "self", "cls")]
    found: dict[str, float] = {}
    for plural in (f"{name}s", f"{name}es", f"{name[:-1]}ies", f"{name}_list", f"{name}List", f"all_{name}s"):
        if plural in names:
            found.setdefault(plural, 0.8)
    for target in _subscripted(ctx, name):
        found.setdefault(f"range(len({target}))", 0.5)
        found.setdefault(f"range(1, len({target}))", 0.0)
    for other in ctx.unit.statements:
        if isinstance(other.node, cst.For) and ctx.unit.code(other.node.target) == name:
            found.setdefault(ctx.unit.code(other.node.iter), 0.4)
    for rank, n in enumerate(names[:_MOST_NAMES]):
        found.setdefault(n, -0.2 - 0.05 * rank)
        found.setdefault(f"range({n})", -0.5 - 0.05 * rank)
        found.setdefault(f"range(len({n}))", -0.6 - 0.05 * rank)
    return found


def _subscripted(ctx: OperatorContext, name: str) -> list[str]:
    """Names that the variable is an index of."""
    out: dict[str, None] = {}
    for _, node in ctx.of(cst.Subscript):
        for element in node.slice:
            index = element.slice
            if (
                isinstance(index, cst.Index)
                and name in ctx.unit.code(index.value).split()
                and isinstance(node.value, cst.Name)
            ):
                out[node.value.value] = None
    return list(out)
