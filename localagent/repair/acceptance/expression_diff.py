"""The effects between two expressions that stand in the same place.

The first rule that has something to say says all of it; pairs of parts are compared the same way, so that a change is
named where it lies. Every pair of different expressions has at least one effect.

Limitations: a minimal diff is not looked for; two expressions without a likeness are one effect of the place's
own kind.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from localagent.repair.acceptance.effect import EffectKind, MessageKind, PatchEffect, TreePosition, text_of
from localagent.repair.acceptance.message_text import is_text, literal_text, message_call

_INVERSE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
_WRAP_DEPTH = 4
_FORM_NODES = 4  # an expression of fewer parts stands everywhere
_NAMED = (ast.Name, ast.Attribute)


@lru_cache(maxsize=4096)
def key(node: ast.AST) -> str:
    """What makes two nodes the same: their structure without places. Nobody may change a node afterwards."""
    return ast.dump(node)


@lru_cache(maxsize=4096)
def size(node: ast.AST) -> int:
    """How many parts an expression has, contexts and operators left out."""
    return sum(1 for n in ast.walk(node) if isinstance(n, ast.expr))


def expressions(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    """The effects of replacing one expression by another."""
    if key(old) == key(new):
        return
    at = replace(at, line=getattr(old, "lineno", at.line))
    if not at.form_old or (size(old) >= _FORM_NODES and size(new) >= _FORM_NODES):
        at = replace(at, form_old=text_of(old), form_new=text_of(new))
    for rule in (_negation, _parts_of_condition, _text, _constant, _wrapping, _alike):
        if found := tuple(rule(old, new, at)):
            yield from found
            return
    yield at.effect(at.fallback, old, new)


def _negation(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    if negated(old, new):
        yield at.effect(EffectKind.NEGATES_CONDITION, old, new)


def negated(old: ast.expr, new: ast.expr) -> bool:
    """Whether one says the opposite of the other."""
    for one, other in ((old, new), (new, old)):
        if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) and key(one.operand) == key(other):
            return True
    if not isinstance(old, ast.Compare) or not isinstance(new, ast.Compare) or len(old.ops) != 1 or len(new.ops) != 1:
        return False
    same = key(old.left) == key(new.left) and key(old.comparators[0]) == key(new.comparators[0])
    return same and _INVERSE[type(old.ops[0])] is type(new.ops[0])


def _parts_of_condition(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    """`and` and `or` parts that were added, dropped or changed."""
    if isinstance(old, ast.BoolOp) and isinstance(new, ast.BoolOp) and type(old.op) is not type(new.op):
        if [key(v) for v in old.values] == [key(v) for v in new.values]:
            yield at.effect(EffectKind.CHANGES_OPERATOR, old, new)
        return
    holder = new if isinstance(new, ast.BoolOp) else old
    if not isinstance(holder, ast.BoolOp):
        return
    before = old.values if isinstance(old, ast.BoolOp) else [old]
    after = new.values if isinstance(new, ast.BoolOp) else [new]
    kept, dropped, added = _aligned(before, after)
    if not kept and (len(before) != len(after) or len(before) == 1):
        return
    narrower = isinstance(holder.op, ast.And)
    inner = replace(at, whole=False)
    for one, other in zip(dropped, added, strict=False):
        yield from expressions(one, other, inner)
    for gone in dropped[len(added) :]:
        kind = EffectKind.WIDENS_CONDITION if narrower else EffectKind.NARROWS_CONDITION
        yield replace(inner, line=gone.lineno).effect(kind, gone, "")
    for come in added[len(dropped) :]:
        kind = EffectKind.NARROWS_CONDITION if narrower else EffectKind.WIDENS_CONDITION
        yield inner.effect(kind, "", come)
    if not dropped and not added:
        yield at.effect(EffectKind.SWAPS_OPERANDS, old, new)


def _aligned(
    before: Sequence[ast.expr], after: Sequence[ast.expr]
) -> tuple[list[ast.expr], list[ast.expr], list[ast.expr]]:
    """(those that stand in both, those that only stood before, those that only stand after)."""
    have, had = Counter(map(key, after)), Counter(map(key, before))
    both = have & had
    kept: list[ast.expr] = []
    dropped: list[ast.expr] = []
    left = Counter(both)
    for part in before:
        (kept if left[key(part)] > 0 else dropped).append(part)
        left[key(part)] -= 1
    left = Counter(both)
    added: list[ast.expr] = []
    for part in after:
        if left[key(part)] <= 0:
            added.append(part)
        left[key(part)] -= 1
    return kept, dropped, added


def _text(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    """Literal texts, f-strings of another shape included."""
    texts = (ast.JoinedStr, ast.Constant)
    if not isinstance(old, texts) or not isinstance(new, texts):
        return
    if any(isinstance(n, ast.Constant) and not isinstance(n.value, str | bytes) for n in (old, new)):
        return
    if isinstance(old, ast.JoinedStr) and isinstance(new, ast.JoinedStr) and len(old.values) == len(new.values):
        return  # compared part by part
    yield at.effect(
        EffectKind.CHANGES_MESSAGE if at.message is not MessageKind.NONE else EffectKind.CHANGES_TEXT, old, new
    )


def _constant(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    was, now = is_constant(old), is_constant(new)
    if was and now:
        numbers = all(isinstance(n, ast.UnaryOp) or _is_number(n) for n in (old, new))
        yield at.effect(EffectKind.CHANGES_NUMBER if numbers else EffectKind.CHANGES_CONSTANT, old, new)
    elif now and not isinstance(old, ast.JoinedStr):
        yield at.effect(EffectKind.CONSTANT_FOR_EXPRESSION, old, new)
    elif was and not isinstance(new, ast.JoinedStr):
        yield at.effect(EffectKind.EXPRESSION_FOR_CONSTANT, old, new)


def is_constant(node: ast.AST) -> bool:
    """A literal, or a number with a sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
        return _is_number(node)
    return isinstance(node, ast.Constant)


def _is_number(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return False
    return isinstance(node.value, int | float | complex)


def _wrapping(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    if holds(new, old):
        yield at.effect(EffectKind.WRAPS, old, new)
    elif holds(old, new):
        yield at.effect(EffectKind.UNWRAPS, old, new)


def holds(outer: ast.expr, inner: ast.expr) -> bool:
    """Whether an expression stands somewhere inside another, not too deep."""
    layer: list[ast.AST] = [outer]
    sought = key(inner)
    for _ in range(_WRAP_DEPTH):
        layer = [c for n in layer for c in ast.iter_child_nodes(n)]
        if any(type(c) is type(inner) and key(c) == sought for c in layer):
            return True
    return False


def _alike(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    """Two expressions of one type, part by part; a name and an attribute are one type."""
    if isinstance(old, _NAMED) and isinstance(new, _NAMED) and type(old) is not type(new):
        yield at.effect(EffectKind.CHANGES_NAME, old, new)
        return
    if type(old) is not type(new):
        return
    yield from _BY_TYPE.get(type(old), parts)(old, new, at)


def _compare(old: ast.Compare, new: ast.Compare, at: TreePosition) -> Iterator[PatchEffect]:
    before, after = [old.left, *old.comparators], [new.left, *new.comparators]
    ops_before, ops_after = [type(o) for o in old.ops], [type(o) for o in new.ops]
    if len(before) != len(after):
        return
    if [key(n) for n in before] == [key(n) for n in reversed(after)]:
        yield at.effect(EffectKind.SWAPS_OPERANDS, old, new)
        return
    if ops_before != ops_after:
        yield at.effect(EffectKind.CHANGES_COMPARISON, old, new)
    inner = replace(at, whole=False, fallback=at.fallback)
    for one, other in zip(before, after, strict=True):
        yield from expressions(one, other, inner)


def _binary(old: ast.BinOp, new: ast.BinOp, at: TreePosition) -> Iterator[PatchEffect]:
    if key(old.left) == key(new.right) and key(old.right) == key(new.left):
        yield at.effect(EffectKind.SWAPS_OPERANDS, old, new)
        return
    if type(old.op) is not type(new.op):
        yield at.effect(EffectKind.CHANGES_OPERATOR, old, new)
    yield from expressions(old.left, new.left, at)
    yield from expressions(old.right, new.right, at)


def _unary(old: ast.UnaryOp, new: ast.UnaryOp, at: TreePosition) -> Iterator[PatchEffect]:
    if type(old.op) is not type(new.op):
        yield at.effect(EffectKind.CHANGES_OPERATOR, old, new)
    yield from expressions(old.operand, new.operand, at)


def _name(old: ast.Name, new: ast.Name, at: TreePosition) -> Iterator[PatchEffect]:
    yield at.effect(EffectKind.CHANGES_NAME, old, new)


def _attribute(old: ast.Attribute, new: ast.Attribute, at: TreePosition) -> Iterator[PatchEffect]:
    if old.attr != new.attr:
        yield at.effect(EffectKind.CHANGES_ATTRIBUTE, old, new)
    yield from expressions(old.value, new.value, at)


def _call(old: ast.Call, new: ast.Call, at: TreePosition) -> Iterator[PatchEffect]:
    if key(old.func) != key(new.func):
        yield from _callee(old.func, new.func, at)
    inner = replace(at, in_argument=True, whole=False, fallback=EffectKind.CHANGES_ARGUMENT)
    kind = message_call(old)
    if kind is not MessageKind.NONE and kind == message_call(new):
        inner = replace(inner, message=kind, message_text=literal_text(old, new))
    if inner.message is MessageKind.WARNING:  # its category and stack level are behaviour
        plain = replace(inner, message=MessageKind.NONE)
        yield from _arguments(old.args[:1], new.args[:1], inner)
        yield from _arguments(old.args[1:], new.args[1:], plain)
        yield from _keywords(old.keywords, new.keywords, plain)
        return
    yield from _arguments(old.args, new.args, inner)
    yield from _keywords(old.keywords, new.keywords, inner)


def _callee(old: ast.expr, new: ast.expr, at: TreePosition) -> Iterator[PatchEffect]:
    same_method = isinstance(old, ast.Attribute) and isinstance(new, ast.Attribute) and old.attr == new.attr
    if isinstance(old, _NAMED) and isinstance(new, _NAMED) and not same_method:
        yield at.effect(EffectKind.CHANGES_CALLEE, old, new)
    else:
        yield from expressions(old, new, replace(at, whole=False))


def _arguments(old: Sequence[ast.expr], new: Sequence[ast.expr], at: TreePosition) -> Iterator[PatchEffect]:
    was, now = [key(n) for n in old], [key(n) for n in new]
    if was == now:
        return
    if sorted(was) == sorted(now):
        yield at.effect(EffectKind.SWAPS_ARGUMENTS, _listed(old), _listed(new))
        return
    start, end = _common(was, now)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    paired = min(len(before), len(after))
    for one, other in zip(before, after, strict=False):
        yield from expressions(one, other, at)
    for gone in before[paired:]:
        yield replace(at, line=gone.lineno).effect(EffectKind.DROPS_ARGUMENT, gone, "")
    for come in after[paired:]:
        yield at.effect(EffectKind.ADDS_ARGUMENT, "", come)


def _listed(nodes: Sequence[ast.expr]) -> str:
    return ", ".join(ast.unparse(n) for n in nodes)


def _common(was: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """(how many are the same at the start, how many of the rest at the end)."""
    most = min(len(was), len(now))
    start = next((i for i in range(most) if was[i] != now[i]), most)
    end = next((i for i in range(most - start) if was[-1 - i] != now[-1 - i]), most - start)
    return start, end


def _keywords(old: Sequence[ast.keyword], new: Sequence[ast.keyword], at: TreePosition) -> Iterator[PatchEffect]:
    if [key(k) for k in old] == [key(k) for k in new]:
        return
    left = {(k.arg or f"**{i}"): k for i, k in enumerate(new)}
    dropped: list[ast.keyword] = []
    for i, k in enumerate(old):
        other = left.pop(k.arg or f"**{i}", None)
        if other is None:
            dropped.append(k)
        else:
            yield from expressions(k.value, other.value, replace(at, keyword=k.arg or ""))
    for k in dropped:
        renamed = next((name for name, o in left.items() if key(o.value) == key(k.value)), None)
        if renamed is not None:
            yield at.effect(EffectKind.CHANGES_ARGUMENT, _argument(k), _argument(left.pop(renamed)))
        else:
            yield replace(at, line=k.value.lineno, keyword=k.arg or "").effect(
                EffectKind.DROPS_ARGUMENT, _argument(k), ""
            )
    for k in left.values():
        yield replace(at, keyword=k.arg or "").effect(EffectKind.ADDS_ARGUMENT, "", _argument(k))


def _argument(k: ast.keyword) -> str:
    return f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}"


def _if_expression(old: ast.IfExp, new: ast.IfExp, at: TreePosition) -> Iterator[PatchEffect]:
    if key(old.body) == key(new.orelse) and key(old.orelse) == key(new.body) and key(old.test) == key(new.test):
        yield at.effect(EffectKind.SWAPS_OPERANDS, old, new)
        return
    yield from expressions(old.test, new.test, replace(at, in_condition=True, whole=True))
    yield from expressions(old.body, new.body, at)
    yield from expressions(old.orelse, new.orelse, at)


def parts(old: ast.AST, new: ast.AST, at: TreePosition) -> Iterator[PatchEffect]:
    """Two nodes of one type field by field, for types without a rule of their own."""
    for field in old._fields:
        if field == "ctx":
            continue
        one, other = getattr(old, field, None), getattr(new, field, None)
        if isinstance(one, list) and isinstance(other, list):
            inner = replace(at, in_condition=True, whole=True) if field == "ifs" else at
            yield from _elements(one, other, inner)
        else:
            yield from _field(one, other, at)


def _field(one: object, other: object, at: TreePosition) -> Iterator[PatchEffect]:
    if isinstance(one, ast.expr) and isinstance(other, ast.expr):
        yield from expressions(one, other, at)
    elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
        if key(one) != key(other):
            if type(one) is not type(other):
                yield at.effect(EffectKind.CHANGES_OPERATOR, type(one).__name__, type(other).__name__)
            else:
                yield from parts(one, other, at)
    elif one != other:
        yield at.effect(at.fallback, _shown(one), _shown(other))


def _shown(value: object) -> ast.AST | str:
    if isinstance(value, ast.AST):
        return value
    return "" if value is None else str(value)


def _elements(old: Sequence[object], new: Sequence[object], at: TreePosition) -> Iterator[PatchEffect]:
    was = [key(n) if isinstance(n, ast.AST) else repr(n) for n in old]
    now = [key(n) if isinstance(n, ast.AST) else repr(n) for n in new]
    start, end = _common(was, now)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if before and sorted(was) == sorted(now):
        yield at.effect(EffectKind.SWAPS_OPERANDS, _joined(before), _joined(after))
        return
    paired = min(len(before), len(after))
    for one, other in zip(before, after, strict=False):
        yield from _field(one, other, at)
    for gone in before[paired:]:
        yield at.effect(EffectKind.DROPS_ELEMENT, _shown(gone), "")
    for come in after[paired:]:
        yield at.effect(EffectKind.ADDS_ELEMENT, "", _shown(come))


def _joined(nodes: Sequence[object]) -> str:
    return ", ".join(ast.unparse(n) if isinstance(n, ast.AST) else str(n) for n in nodes)


def message_arguments(old: ast.Call, new: ast.Call, at: TreePosition) -> Iterator[PatchEffect]:
    """The effects in a raised exception: its type, its messages, and arguments that are no message."""
    if key(old.func) != key(new.func):
        yield at.effect(EffectKind.CHANGES_EXCEPTION, old.func, new.func)
    text = literal_text(old, new)
    plain = replace(at, in_argument=True, fallback=EffectKind.CHANGES_ARGUMENT)
    worded = replace(plain, message=MessageKind.RAISE, message_text=text, fallback=EffectKind.CHANGES_MESSAGE)
    if len(old.args) == len(new.args):
        for one, other in zip(old.args, new.args, strict=True):
            texts = is_text(one, at.message_names) or is_text(other, at.message_names)
            yield from expressions(one, other, worded if texts else plain)
    else:
        yield from _arguments(old.args, new.args, plain)
    yield from _keywords(old.keywords, new.keywords, plain)


_BY_TYPE: dict[type[ast.expr], Callable[..., Iterator[PatchEffect]]] = {
    ast.Compare: _compare,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.IfExp: _if_expression,
}
