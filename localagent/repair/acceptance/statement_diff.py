"""The effects between two lists of statements: what was added, dropped, moved, wrapped, or changed inside.

Statements that stand unchanged are found by their text and never looked into, so that a large file costs little. The
others are paired with the most similar one of the same type.

Limitations: among a great many changed statements in one block (more than `_MOST_PAIRED` on a side) only equal ones
and definitions of one name are paired. What else changed inside a block that was wrapped is not told.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from localagent.code.spans import Definition, Function, first_line, last_line
from localagent.repair.acceptance.effect import EffectKind, MessageKind, PatchEffect, TreePosition, text_of
from localagent.repair.acceptance.expression_diff import expressions, key, message_arguments, parts
from localagent.repair.acceptance.message_text import literal_text, message_call, message_names

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BLOCKS = (ast.With, ast.AsyncWith, ast.Try, ast.For, ast.AsyncFor, ast.While)
_WORD = re.compile(r"\w+")
_LIKENESS = 0.35
_MOST_PAIRED = 60
_LONGEST_GUARD = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The lines of the file before and after."""

    before: Sequence[bytes]
    after: Sequence[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loose:
    """A statement that stands on one side only. `block` says of which list; the same for both sides of a pair."""

    effect: PatchEffect
    key: str
    block: int
    added: bool


Found = PatchEffect | Loose


def statements(old: Sequence[ast.stmt], new: Sequence[ast.stmt], at: TreePosition, sources: Sources) -> Iterator[Found]:
    """The effects of replacing one block of statements by another; loose ones are not yet matched for moves."""
    start, end = _unchanged(old, new, sources)
    before, after = list(old[start : len(old) - end]), list(new[start : len(new) - end])
    block = id(old)
    line = before[0].lineno if before else old[start - 1].lineno if start and old else at.line
    at = replace(at, line=line)
    for kind, inner, outer in _wrapped(before, after):
        before = [n for n in before if n not in inner and n is not outer]
        after = [n for n in after if n not in inner and n is not outer]
        first = outer if outer in old else inner[0]
        yield replace(at, line=first.lineno).effect(kind, first, inner[0] if first is outer else outer)
    for one, other in _pairs(before, after):
        if one is not None and other is not None:
            yield from _changed(one, other, at, sources)
        elif one is not None:
            yield _loose(one, at, block, added=False)
        elif other is not None:
            yield _loose(other, at, block, added=True)


Wrap = tuple[EffectKind, list[ast.stmt], ast.stmt]


def _wrapped(old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[Wrap]:
    """(kind, statements that stand in both, the block around them on one side)."""
    if len(old) > _MOST_PAIRED or len(new) > _MOST_PAIRED:
        return
    for inside, outside, added in ((old, new, True), (new, old, False)):
        still = {key(n) for n in outside}
        for block in outside:
            if not isinstance(block, (ast.If, *_BLOCKS)) or key(block) in {key(n) for n in inside}:
                continue
            held = _nested_statements(block)
            same = [n for n in inside if key(n) in held and key(n) not in still and not isinstance(n, ast.Pass)]
            alike = [n for n in inside if type(n) is type(block)]
            twins = [n for n in alike if _head(n) == _head(block) or any(key(s) in _nested_statements(n) for s in same)]
            if same and not twins:
                yield _wrap_kind(block, added=added), same, block
                return


def _nested_statements(block: ast.stmt) -> set[str]:
    """The statements at any depth inside another."""
    return {key(n) for n in ast.walk(block) if isinstance(n, ast.stmt) and n is not block}


def _wrap_kind(block: ast.stmt, *, added: bool) -> EffectKind:
    if isinstance(block, ast.If):
        return EffectKind.WRAPS_IN_IF if added else EffectKind.UNWRAPS_IF
    return EffectKind.WRAPS_IN_BLOCK if added else EffectKind.UNWRAPS_BLOCK


def _unchanged(old: Sequence[ast.stmt], new: Sequence[ast.stmt], sources: Sources) -> tuple[int, int]:
    most = min(len(old), len(new))
    start = next((i for i in range(most) if not _same(old[i], new[i], sources)), most)
    rest = most - start
    end = next((i for i in range(rest) if not _same(old[-1 - i], new[-1 - i], sources)), rest)
    return start, end


def _same(old: ast.stmt, new: ast.stmt, sources: Sources) -> bool:
    if type(old) is not type(new):
        return False
    if old.col_offset == new.col_offset and _rows(old, sources.before) == _rows(new, sources.after):
        return old.end_col_offset == new.end_col_offset and old.lineno - first_line(old) == new.lineno - first_line(new)
    return key(old) == key(new)


def _rows(node: ast.stmt, rows: Sequence[bytes]) -> Sequence[bytes]:
    return rows[first_line(node) - 1 : last_line(node)]


Pair = tuple[ast.stmt | None, ast.stmt | None]


def _pairs(old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[Pair]:
    """Who stands for whom, in the order of the new block; wrapped statements are left to `_wrapped`."""
    if len(old) > _MOST_PAIRED or len(new) > _MOST_PAIRED:
        yield from _pairs_in_order(old, new)
        return
    score = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            likeness = _likeness(old[i], new[j])
            both = score[i + 1][j + 1] + likeness if likeness >= _LIKENESS else -1.0
            score[i][j] = max(both, score[i + 1][j], score[i][j + 1])
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new):
            likeness = _likeness(old[i], new[j])
            if likeness >= _LIKENESS and score[i][j] == score[i + 1][j + 1] + likeness:
                yield old[i], new[j]
                i, j = i + 1, j + 1
                continue
        if i < len(old) and (j == len(new) or score[i][j] == score[i + 1][j]):
            yield old[i], None
            i += 1
        else:
            yield None, new[j]
            j += 1


def _pairs_in_order(old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[Pair]:
    """Equal statements first, definitions by name, the rest loose: for very large changes."""
    left: dict[str, list[ast.stmt]] = {}
    for node in new:
        left.setdefault(_label(node), []).append(node)
    for node in old:
        same = left.get(_label(node))
        yield node, same.pop(0) if same else None
    yield from ((None, node) for nodes in left.values() for node in nodes)


def _label(node: ast.stmt) -> str:
    return f"{type(node).__name__} {node.name}" if isinstance(node, Definition) else key(node)


def _likeness(old: ast.stmt, new: ast.stmt) -> float:
    """0 to 1, more than 1 for equal ones: how much two statements share; 0 for those that cannot stand for another."""
    if type(old) is not type(new):
        return 0.0
    if isinstance(old, Definition) and isinstance(new, Definition) and old.name == new.name:
        return 1.5
    if key(old) == key(new):
        return 2.0
    if isinstance(old, _LEAVES):
        return _LIKENESS + 0.05
    floor = 0.5 if _head(old) == _head(new) else 0.0
    was, now = _token_counts(old), _token_counts(new)
    return max(floor, 2 * sum((was & now).values()) / max(1, sum(was.values()) + sum(now.values())))


def _head(node: ast.stmt) -> str:
    """What a statement is about, whatever it does with it: a target, a condition; itself where it has no such part."""
    for field in ("targets", "target", "test", "items"):
        parts_of = getattr(node, field, None)
        if parts_of is not None:
            found = parts_of if isinstance(parts_of, list) else [parts_of]
            return " ".join(key(n) for n in found) + (key(node.iter) if isinstance(node, ast.For) else "")
    return key(node)


@lru_cache(maxsize=2048)
def _token_counts(node: ast.stmt) -> Counter[str]:
    return Counter(_WORD.findall(key(node)))


def _loose(node: ast.stmt, at: TreePosition, block: int, *, added: bool) -> Loose:
    guard = isinstance(node, ast.If) and not node.orelse and len(node.body) <= _LONGEST_GUARD
    guard = guard and isinstance(node, ast.If) and isinstance(node.body[-1], _LEAVES)
    if isinstance(node, ast.Import | ast.ImportFrom):
        kind = EffectKind.CHANGES_IMPORT
    elif _is_docstring(node):
        kind = EffectKind.CHANGES_DOCUMENTATION
    elif added:
        kind = EffectKind.ADDS_GUARD if guard else EffectKind.ADDS_STATEMENT
    else:
        kind = EffectKind.DROPS_GUARD if guard else EffectKind.DROPS_STATEMENT
    at = _message_statement(node, at)
    effect = at.effect(kind, "", node) if added else replace(at, line=node.lineno).effect(kind, node, "")
    return Loose(effect=effect, key=key(node), block=block, added=added)


def _message_statement(node: ast.stmt, at: TreePosition) -> TreePosition:
    """A whole statement that only writes a message; that there is a warning at all is behaviour."""
    from_call = _statement_message(node)
    if from_call in (MessageKind.NONE, MessageKind.WARNING):
        return at
    return replace(at, message=from_call, message_text=literal_text(node))


def _statement_message(node: ast.stmt) -> MessageKind:
    return (
        message_call(node.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        else MessageKind.NONE
    )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _changed(old: ast.stmt, new: ast.stmt, at: TreePosition, sources: Sources) -> Iterator[Found]:
    """The effects inside a statement that stands on both sides."""
    if _same(old, new, sources):
        return
    at = replace(at, line=old.lineno, form_old="", form_new="", fallback=EffectKind.OTHER)
    found = tuple(_inside(old, new, at, sources))
    yield from found or (at.effect(EffectKind.OTHER, old, new),)


def _inside(old: ast.stmt, new: ast.stmt, at: TreePosition, sources: Sources) -> Iterator[Found]:
    if isinstance(old, Function) and isinstance(new, Function):
        yield from _function(old, new, at, sources)
    elif isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
        yield from _class(old, new, at, sources)
    elif isinstance(old, ast.If | ast.While) and isinstance(new, ast.If | ast.While):
        yield from expressions(old.test, new.test, replace(at, in_condition=True, whole=True))
        yield from _branches(old, new, at, sources)
    elif isinstance(old, ast.Try) and isinstance(new, ast.Try):
        yield from _try(old, new, at, sources)
    elif isinstance(old, ast.For | ast.AsyncFor) and isinstance(new, ast.For | ast.AsyncFor):
        yield from expressions(old.target, new.target, replace(at, fallback=EffectKind.CHANGES_TARGET))
        yield from expressions(old.iter, new.iter, at)
        yield from _branches(old, new, at, sources)
    elif isinstance(old, ast.With | ast.AsyncWith) and isinstance(new, ast.With | ast.AsyncWith):
        yield from _header(old, new, at)
        yield from statements(old.body, new.body, at, sources)
    elif isinstance(old, ast.Assign) and isinstance(new, ast.Assign):
        yield from _assign(old, new, at)
    elif isinstance(old, ast.Raise) and isinstance(new, ast.Raise):
        yield from _raise(old, new, at)
    elif isinstance(old, ast.Return) and isinstance(new, ast.Return):
        yield from _return(old, new, at)
    elif isinstance(old, ast.Import | ast.ImportFrom):
        yield at.effect(EffectKind.CHANGES_IMPORT, old, new)
    elif _is_docstring(old) and _is_docstring(new):
        yield at.effect(EffectKind.CHANGES_DOCUMENTATION, old, new)
    elif isinstance(old, ast.Assert) and isinstance(new, ast.Assert):
        yield from _assert(old, new, at)
    elif isinstance(old, ast.AnnAssign) and isinstance(new, ast.AnnAssign):
        if key(old.annotation) != key(new.annotation):
            yield at.effect(EffectKind.CHANGES_ANNOTATION, old.annotation, new.annotation)
        yield from expressions(old.target, new.target, replace(at, fallback=EffectKind.CHANGES_TARGET))
        yield from _optional(old.value, new.value, replace(at, fallback=EffectKind.CHANGES_VALUE))
    else:
        yield from parts(old, new, replace(at, fallback=EffectKind.CHANGES_VALUE))


def _branches(
    old: ast.If | ast.While | ast.For | ast.AsyncFor,
    new: ast.If | ast.While | ast.For | ast.AsyncFor,
    at: TreePosition,
    sources: Sources,
) -> Iterator[Found]:
    yield from statements(old.body, new.body, at, sources)
    yield from statements(old.orelse, new.orelse, at, sources)


def _header(old: ast.With | ast.AsyncWith, new: ast.With | ast.AsyncWith, at: TreePosition) -> Iterator[PatchEffect]:
    if len(old.items) != len(new.items):
        yield at.effect(EffectKind.OTHER, old, new)
        return
    for one, other in zip(old.items, new.items, strict=True):
        yield from parts(one, other, at)


def _optional(old: ast.expr | None, new: ast.expr | None, at: TreePosition) -> Iterator[PatchEffect]:
    if old is not None and new is not None:
        yield from expressions(old, new, at)
    elif old is not None or new is not None:
        yield at.effect(at.fallback, old or "", new or "")


def _assign(old: ast.Assign, new: ast.Assign, at: TreePosition) -> Iterator[PatchEffect]:
    turned = len(old.targets) == len(new.targets) == 1 and (
        ast.unparse(old.targets[0]) == ast.unparse(new.value) and ast.unparse(old.value) == ast.unparse(new.targets[0])
    )
    if turned:
        yield at.effect(EffectKind.SWAPS_ASSIGNMENT, old, new)
        return
    if [key(t) for t in old.targets] != [key(t) for t in new.targets]:
        yield at.effect(EffectKind.CHANGES_TARGET, _targets(old), _targets(new))
    named = {t.id for t in new.targets if isinstance(t, ast.Name)}
    if named and named <= at.message_names:
        at = replace(at, message=MessageKind.RAISE, message_text=literal_text(old.value, new.value))
    at = replace(at, fallback=EffectKind.CHANGES_VALUE, form_old=text_of(old), form_new=text_of(new))
    yield from expressions(old.value, new.value, at)


def _targets(node: ast.Assign) -> str:
    return " = ".join(ast.unparse(t) for t in node.targets)


def _raise(old: ast.Raise, new: ast.Raise, at: TreePosition) -> Iterator[PatchEffect]:
    if isinstance(old.exc, ast.Call) and isinstance(new.exc, ast.Call):
        yield from message_arguments(old.exc, new.exc, at)
    elif old.exc is not None and new.exc is not None and key(old.exc) != key(new.exc):
        yield at.effect(EffectKind.CHANGES_EXCEPTION, old.exc, new.exc)
    else:
        yield from _optional(old.exc, new.exc, replace(at, fallback=EffectKind.CHANGES_EXCEPTION))
    yield from _optional(old.cause, new.cause, at)


def _return(old: ast.Return, new: ast.Return, at: TreePosition) -> Iterator[PatchEffect]:
    at = replace(at, in_return=True, fallback=EffectKind.CHANGES_RETURN, form_old=text_of(old), form_new=text_of(new))
    if at.function.endswith("__repr__") and old.value is not None and new.value is not None:
        at = replace(at, message=MessageKind.REPR, message_text=literal_text(old, new))
    yield from _optional(old.value, new.value, at)


def _assert(old: ast.Assert, new: ast.Assert, at: TreePosition) -> Iterator[PatchEffect]:
    yield from expressions(old.test, new.test, replace(at, in_condition=True, whole=True))
    worded = replace(at, message=MessageKind.ASSERT, fallback=EffectKind.CHANGES_MESSAGE)
    yield from _optional(old.msg, new.msg, worded)


def _try(old: ast.Try, new: ast.Try, at: TreePosition, sources: Sources) -> Iterator[Found]:
    yield from statements(old.body, new.body, at, sources)
    for one, other in zip(old.handlers, new.handlers, strict=False):
        if _optional_key(one.type) != _optional_key(other.type) or one.name != other.name:
            yield replace(at, line=one.lineno).effect(EffectKind.CHANGES_EXCEPT, _handler(one), _handler(other))
        yield from statements(one.body, other.body, at, sources)
    for gone in old.handlers[len(new.handlers) :]:
        yield replace(at, line=gone.lineno).effect(EffectKind.CHANGES_EXCEPT, _handler(gone), "")
    for come in new.handlers[len(old.handlers) :]:
        yield at.effect(EffectKind.CHANGES_EXCEPT, "", _handler(come))
    yield from statements(old.orelse, new.orelse, at, sources)
    yield from statements(old.finalbody, new.finalbody, at, sources)


def _optional_key(node: ast.AST | None) -> str:
    return "" if node is None else key(node)


def _handler(node: ast.ExceptHandler) -> str:
    caught = "" if node.type is None else " " + ast.unparse(node.type)
    return f"except{caught}" + (f" as {node.name}" if node.name else "")


def _class(old: ast.ClassDef, new: ast.ClassDef, at: TreePosition, sources: Sources) -> Iterator[Found]:
    inner = replace(at, class_name=new.name, function="")
    yield from _decorators(old.decorator_list, new.decorator_list, inner)
    before = [*map(key, old.bases), *map(key, old.keywords), old.name]
    after = [*map(key, new.bases), *map(key, new.keywords), new.name]
    if before != after:
        yield inner.effect(EffectKind.CHANGES_SIGNATURE, old, new)
    name = f"{at.function}.<locals>.{old.name}" if at.function else old.name
    name = f"{at.class_name}.{old.name}" if at.class_name and not at.function else name
    yield from statements(old.body, new.body, replace(inner, class_name=name), sources)


def _function(old: Function, new: Function, at: TreePosition, sources: Sources) -> Iterator[Found]:
    inner = replace(at, function=qualified(at, old.name), message_names=message_names(old) & message_names(new))
    yield from _decorators(old.decorator_list, new.decorator_list, inner)
    yield from _signature(old, new, inner)
    yield from statements(old.body, new.body, inner, sources)


def qualified(at: TreePosition, name: str) -> str:
    """A function's qualified name, as Python gives it."""
    if at.function:
        return f"{at.function}.<locals>.{name}"
    return f"{at.class_name}.{name}" if at.class_name else name


def _decorators(old: Sequence[ast.expr], new: Sequence[ast.expr], at: TreePosition) -> Iterator[PatchEffect]:
    if [key(d) for d in old] != [key(d) for d in new]:
        before, after = (", ".join("@" + ast.unparse(d) for d in side) for side in (old, new))
        yield at.effect(EffectKind.CHANGES_DECORATOR, before, after)


def _signature(old: Function, new: Function, at: TreePosition) -> Iterator[PatchEffect]:
    if type(old) is not type(new) or old.name != new.name or _names(old.args) != _names(new.args):
        yield at.effect(EffectKind.CHANGES_SIGNATURE, _called(old), _called(new))
    else:
        was, now = _defaults(old.args), _defaults(new.args)
        if was.keys() != now.keys():
            yield at.effect(EffectKind.CHANGES_SIGNATURE, _called(old), _called(new))
        for name in was:
            if key(was[name]) != key(now[name]):
                yield replace(at, keyword=name, line=was[name].lineno).effect(
                    EffectKind.CHANGES_DEFAULT, was[name], now[name]
                )
    hints_before, hints_after = _annotations(old), _annotations(new)
    if any(hints_before[name] != hints_after[name] for name in hints_before.keys() & hints_after.keys()):
        yield at.effect(EffectKind.CHANGES_ANNOTATION, _called(old), _called(new))


def _called(node: Function) -> str:
    return f"{node.name}({ast.unparse(node.args)})"


def _names(args: ast.arguments) -> tuple[object, ...]:
    extra = (args.vararg.arg if args.vararg else "", args.kwarg.arg if args.kwarg else "")
    return (*(tuple(a.arg for a in side) for side in (args.posonlyargs, args.args, args.kwonlyargs)), *extra)


def _defaults(args: ast.arguments) -> dict[str, ast.expr]:
    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    found = {a.arg: d for a, d in zip(positional[first:], args.defaults, strict=True)}
    return found | {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}


def _annotations(node: Function) -> dict[str, str]:
    hints = {a.arg: _optional_key(a.annotation) for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    return hints | {"->": _optional_key(node.returns)}
