"""Literals: numbers, texts, None and the truth values."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import ATOM, AWAIT, UNARY
from localagent.edit.unit import Expr

_MOST_DIGITS = 200
_CONSTANT_NAMES = ("True", "False", "None")
_SIMPLE = ("None", "True", "False", "0", "1", "-1", "''", "[]")
_DEFAULTS = {
    "int": ("0", "1", "-1", "2"),
    "bool": ("True", "False", "None"),
    "str": ("''", "' '", "None"),
    "none": ("True", "False", "0", "[]", "''", "{}"),
    "list": ("[]", "None", "[0]"),
}


def _level(text: str) -> int:
    if text.startswith("-"):
        return UNARY
    return AWAIT if text[:1].isdigit() else ATOM


def _is_constant(expr: Expr) -> bool:
    node = expr.node
    if isinstance(node, cst.Name):
        return node.value in _CONSTANT_NAMES
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString))


def whole_number(node: cst.CSTNode) -> int | None:
    """What an integer literal says; None for another node, and for one so long that Python may not write it again."""
    if not isinstance(node, cst.Integer) or len(node.value) > _MOST_DIGITS:
        return None
    return int(node.value, 0)


@operator("constant-step", prior=0.0, effects={EditEffect.MOVES_BOUNDARY, EditEffect.SHIFTS_NUMBER})
def constant_step(ctx: OperatorContext) -> Iterator[Change]:
    """A whole number becomes its neighbour, twice, half, or one of 0, 1, 2, 10, -1."""
    for expr, node in ctx.of(cst.Integer):
        value = whole_number(node)
        if value is None:
            continue
        negative = isinstance(expr.parent, cst.UnaryOperation)
        steps = {value + 1: 0.2, value - 1: 0.2, value + 2: -0.8, value - 2: -0.8, 0: -0.1, 1: -0.1, 2: -0.6}
        steps |= {value * 10: -1.0, value // 10: -1.0, value * 2: -1.2, value // 2: -1.2, 10: -1.8, -1: -0.6}
        steps.update({value + 1: 0.2, value - 1: 0.2})
        for new, delta in steps.items():
            if new != value and not (negative and new < 0):
                yield ctx.put(expr, str(new), _level(str(new)), delta)


@operator("truth-flip", prior=0.1)
def truth_flip(ctx: OperatorContext) -> Iterator[Change]:
    """`True` becomes `False`, and the other way round."""
    for expr, node in ctx.of(cst.Name):
        if node.value in ("True", "False") and not isinstance(expr.parent, cst.Attribute):
            yield ctx.put(expr, "False" if node.value == "True" else "True", ATOM)


@operator("constant-kind", prior=-0.8)
def constant_kind(ctx: OperatorContext) -> Iterator[Change]:
    """A literal becomes a usual value: 0, 1, -1, '', [], None, True, False, infinity."""
    for expr in ctx.exprs:
        if _is_constant(expr):
            texts = _DEFAULTS.get(ctx.kind(expr), ())
            for text in dict.fromkeys((*texts, *_SIMPLE, "float('inf')", "{}", "()")):
                if text != expr.text and _typed(expr, text):
                    yield ctx.put(expr, text, _level(text), 0.0 if text in texts else -0.8)
        elif isinstance(expr.node, (cst.List, cst.Dict, cst.Call)) and expr.text in (
            "[]",
            "{}",
            "set()",
            "list()",
            "dict()",
        ):
            for text in ("[]", "{}", "set()", "None", "0", "''", "()", "False", "True"):
                if text != expr.text:
                    yield ctx.put(expr, text, _level(text), -0.2)


@operator("value-plain", prior=-2.0)
def value_plain(ctx: OperatorContext) -> Iterator[Change]:
    """What is passed, assigned or compared with becomes a usual constant: `f(n)` to `f(0)`, `x = y` to `x = None`."""
    for expr, node in ctx.of_any(cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BinaryOperation):
        if expr.store or _is_constant(expr) or not _is_plain_operand(expr, node):
            continue
        kind = ctx.kind(expr)
        usual = _DEFAULTS.get(kind, ()) if kind != "none" else ()
        compared = isinstance(expr.parent, cst.ComparisonTarget)
        for text in dict.fromkeys((*usual, "0", "1", "None", "''", "[]", "True", "False")):
            if compared and text in ("True", "False", "None"):
                continue
            yield ctx.put(expr, text, _level(text), (0.0 if text in usual else -0.5) - (0.3 if compared else 0.0))


def _is_plain_operand(expr: Expr, node: cst.BaseExpression) -> bool:
    parent = expr.parent
    if isinstance(parent, cst.Arg):
        return not parent.star
    if isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return parent.value is node
    return isinstance(parent, cst.ComparisonTarget)


def _typed(expr: Expr, text: str) -> bool:
    """Refuses what cannot make sense: `''` inside an index of a sum, a list as an operand of a sign."""
    if isinstance(expr.parent, cst.UnaryOperation) and not isinstance(expr.parent.operator, cst.Not):
        return text[:1].isdigit() or text.startswith("float")
    if isinstance(expr.parent, cst.BinaryOperation):
        return text[:1].isdigit() or text.startswith(("-", "float", "'"))
    return not expr.in_fstring


@operator("constant-known", prior=-0.6)
def constant_known(ctx: OperatorContext) -> Iterator[Change]:
    """A literal becomes another literal of the same kind from this file."""
    for expr in ctx.exprs:
        if not isinstance(expr.node, (cst.Integer, cst.Float, cst.SimpleString)) or expr.in_fstring:
            continue
        is_text = isinstance(expr.node, cst.SimpleString)
        offers = []
        for text, lines in ctx.facts.constant_lines.items():
            if (text[:1] in "'\"b") == is_text and text not in (expr.text, "''"):
                away = min(abs(x - expr.line) for x in lines)
                offers.append((away, text))
        for away, text in sorted(offers)[:25]:
            yield ctx.put(expr, text, _level(text), -min(away, 100) * 0.01)


@operator("text-edit", prior=-1.2)
def text_edit(ctx: OperatorContext) -> Iterator[Change]:
    """A short string changes its case, loses or gains a space, or becomes empty; also the ends of an f-string."""
    for expr, formatted in ctx.of(cst.FormattedString):
        low, high = expr.start + len(formatted.start), expr.end - len(formatted.end)
        if expr.in_fstring or formatted.lpar or high <= low or "\n" in expr.text:
            continue
        text = ctx.unit.slice(low, high)
        for cut in ((low, low, " "), (high, high, " ")):
            yield ctx.splice(expr, cut, note="a blank more")
        for cut, there in (((low, low + 1, ""), text.startswith(" ")), ((high - 1, high, ""), text.endswith(" "))):
            if there:
                yield ctx.splice(expr, cut, note="a blank less")
    for expr, node in ctx.of(cst.SimpleString):
        quote, body = node.quote, node.raw_value
        if "\\" in body or len(body) > 40 or expr.in_fstring:
            continue
        offers = [body.lower(), body.upper(), body.capitalize(), body.strip(), body + " ", " " + body, ""]
        if len(body) == 1 and body.isascii() and body.isprintable():
            offers += [chr(ord(body) + 1), chr(ord(body) - 1)]
        for new in dict.fromkeys(offers):
            if new != body and new.isprintable() and not set(new) & set("'\"\\{}"):
                yield ctx.put(expr, f"{node.prefix}{quote}{new}{quote}", ATOM)
