"""How values are written into texts: the format specifications of f-strings."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator

_USUAL = (":02d", ":.2f", ":02", ":,", ":.1f", ":03d", ":.0f", ":,.2f", ":d", ":>2")
_PER_FIELD = 16


@operator("format-spec", prior=-0.9)
def format_spec(ctx: OperatorContext) -> Iterator[Change]:
    """A field of an f-string gets, changes or loses its format: as other fields of the function, or a usual one."""
    known: dict[str, None] = {}
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.FormattedString):
            known.update(dict.fromkeys(filter(None, (_spec(ctx, p) for p in _fields(expr.node)))))
    for expr, node in ctx.of(cst.FormattedString):
        own = {_spec(ctx, p) for p in _fields(node)}
        for field in _fields(node):
            old, (start, end) = _spec(ctx, field), _spec_span(ctx, field)
            offers = [(x, 0.6 if x in own else 0.2) for x in known] + [(x, -0.6) for x in _USUAL if x not in known]
            for place, (new, delta) in enumerate([*offers[:_PER_FIELD], *([("", 0.1)] if old else [])]):
                if new != old:
                    note = f"{{{ctx.unit.code(field.expression)}{old}}} -> {new or 'no format'}"
                    yield ctx.splice(expr, (start, end, new), delta=delta - 0.05 * place, note=note)


def _fields(text: cst.FormattedString) -> list[cst.FormattedStringExpression]:
    return [p for p in text.parts if isinstance(p, cst.FormattedStringExpression) and p.equal is None]


def _spec_span(ctx: OperatorContext, field: cst.FormattedStringExpression) -> tuple[int, int]:
    """Where a field's format stands or would stand, conversion not included."""
    end = ctx.unit.span(field)[1] - 1
    if field.format_spec is None:
        return end, end
    written = sum(len(_part(ctx, p).encode()) for p in field.format_spec)
    return end - written - 1, end


def _spec(ctx: OperatorContext, field: cst.FormattedStringExpression) -> str:
    """A field's format with its colon; empty where it has none."""
    return ctx.unit.slice(*_spec_span(ctx, field))


def _part(ctx: OperatorContext, part: cst.BaseFormattedStringContent) -> str:
    return part.value if isinstance(part, cst.FormattedStringText) else ctx.unit.slice(*ctx.unit.span(part))
