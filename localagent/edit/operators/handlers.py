"""Exceptions: which are caught, which are raised, with what."""

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from localagent.edit.layout import after, body_statements
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import ATOM

_USUAL = (
    "ValueError",
    "KeyError",
    "TypeError",
    "IndexError",
    "AttributeError",
    "RuntimeError",
    "OSError",
    "StopIteration",
    "OverflowError",
    "LookupError",
    "ImportError",
    "NotImplementedError",
    "ZeroDivisionError",
    "UnicodeError",
)
_NEARBY = {
    "KeyError": ("IndexError", "AttributeError", "LookupError"),
    "IndexError": ("KeyError", "LookupError"),
    "ValueError": ("TypeError",),
    "TypeError": ("ValueError", "AttributeError"),
    "OSError": ("FileNotFoundError", "PermissionError", "ValueError"),
    "FileNotFoundError": ("OSError",),
    "ImportError": ("ModuleNotFoundError", "AttributeError"),
    "ModuleNotFoundError": ("ImportError",),
    "AttributeError": ("TypeError", "KeyError"),
}


_CLEANED_UP = 0.6  # a handler that only cleans up and raises again, which what `Exception` leaves out passes by


_LEAVES = (cst.Raise, cst.Return, cst.Continue, cst.Break)


def _names_exception(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    return isinstance(parent, cst.ExceptHandler) or (isinstance(parent, cst.Raise) and parent.exc is node)


def _raises_again(handler: cst.ExceptHandler) -> bool:
    """Whether a handler ends in a plain `raise`."""
    body = handler.body.body
    last = body[-1] if body else None
    line = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else last
    return isinstance(line, cst.Raise) and line.exc is None


@operator("exception-swap", prior=-0.6)
def exception_swap(ctx: OperatorContext) -> Iterator[Change]:
    """A raised or caught exception becomes another one: of the file, of the failure, or a usual neighbour.

    Only a handler that raises again may catch `BaseException`: cancellation and exits pass `except Exception` by.
    """
    seen = [n for n, _ in ctx.facts.exceptions.most_common(8)]
    for facts in ctx.nearby[:4]:
        seen += [n for n, _ in facts.exceptions.most_common(4)]
    everywhere: Counter[str] = Counter()
    for facts in ctx.nearby:
        everywhere.update(facts.exceptions)
    seen += [n for n, _ in everywhere.most_common(10)]
    failed = [f.exception for f in ctx.failures if f.exception.isidentifier()]
    for expr in ctx.exprs:
        node = expr.node
        target = node.func if isinstance(node, cst.Call) and isinstance(expr.parent, cst.Raise) else node
        if not _names_exception(expr.parent, node) or not isinstance(target, (cst.Name, cst.Attribute)):
            continue
        span, old = ctx.unit.span(target), ctx.unit.code(target)
        offers = [*_NEARBY.get(old, ()), *failed, *seen, *_USUAL]
        if old == "Exception" and isinstance(expr.parent, cst.ExceptHandler) and _raises_again(expr.parent):
            yield ctx.splice(expr, (*span, "BaseException"), delta=_CLEANED_UP, note=f"{old} -> BaseException")
        for place, name in enumerate(dict.fromkeys(offers)):
            if name not in (old, "AssertionError", "BaseException"):
                yield ctx.splice(expr, (*span, name), delta=-0.08 * place, note=f"{old} -> {name}")


@operator("exception-widen", prior=-0.8)
def exception_widen(ctx: OperatorContext) -> Iterator[Change]:
    """An except clause catches one more exception, or one less."""
    failed = [f.exception for f in ctx.failures if f.exception.isidentifier() and f.exception != "AssertionError"]
    seen = [n for n, _ in ctx.facts.exceptions.most_common(6)]
    for expr in ctx.exprs:
        if not isinstance(expr.parent, cst.ExceptHandler):
            continue
        if isinstance(expr.node, cst.Tuple):
            held = [ctx.unit.code(e.value) for e in expr.node.elements]
            for gone in held:
                rest = [h for h in held if h != gone]
                yield ctx.put(expr, rest[0] if len(rest) == 1 else f"({', '.join(rest)})", ATOM, -0.6)
        else:
            held = [expr.text]
        for place, name in enumerate(dict.fromkeys([*failed, *_NEARBY.get(held[0], ()), *seen, *_USUAL])):
            if name not in held and name not in ("BaseException", "Exception"):
                yield ctx.put(
                    expr, f"({', '.join([*held, name])})", ATOM, -0.08 * place + (0.6 if name in failed else 0.0)
                )


@operator("raise-again", prior=-1.6)
def raise_again(ctx: OperatorContext) -> Iterator[Change]:
    """A handler that only records an exception raises it again: `raise` at its end."""
    for s in body_statements(ctx):
        head = s.suite.head
        if head is None or s is not s.suite.statements[-1] or isinstance(s.node, _LEAVES):
            continue
        if ctx.unit.slice(*head).startswith("except"):
            yield ctx.splice(s, after(ctx, s, "raise"), note="raise again")


@operator("raise-form", prior=-1.0)
def raise_form(ctx: OperatorContext) -> Iterator[Change]:
    """`raise` becomes a return or `pass`; an exception that is only created or returned is raised."""
    for s in ctx.statements:
        if isinstance(s.node, cst.Raise):
            for text in ("return None", "return False", "pass", "raise"):
                yield ctx.splice(s, (s.start, s.end, text), delta=-0.3, note=f"raise -> {text}")
        elif isinstance(s.node, (cst.Return, cst.Expr)) and isinstance(s.node.value, cst.Call):
            text = ctx.unit.code(s.node.value)
            if text.split("(")[0].endswith(("Error", "Exception")):
                yield ctx.splice(s, (s.start, s.end, f"raise {text}"), delta=1.0, note="raise ...")
