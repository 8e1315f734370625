"""Bugs put into code that is right: one small change of a random function.

Several kinds of them no operator of the edit space undoes as such.

Not promised: that a change is a bug; a few do not alter what the program does.
"""

import ast
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from localagent.code.source_text import line_starts, parse_or_none
from localagent.code.spans import Function, byte_span, last_line
from localagent.training.ranker_history import HistoryFix

Put = tuple[int, int, str]  # bytes [start, end) of the source become the text


@dataclass(frozen=True, kw_only=True, slots=True)
class _Code:
    """A function of a source: where its nodes lie."""

    source: bytes
    starts: tuple[int, ...]
    function: Function
    names: tuple[str, ...]
    attributes: tuple[str, ...]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return byte_span(node, self.starts)

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def put(self, node: ast.expr | ast.stmt, text: str) -> Put:
        return *self.span(node), text

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Put]:
        """The text `old` between two nodes becomes `new`, where it stands there once."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end].decode()
        if gap.strip(" ()\\\n") == old and gap.count(old) == 1:
            at = start + gap.index(old)
            yield at, at + len(old), new


Inject = Callable[[_Code, ast.AST, random.Random], Iterator[Put]]

_COMPARE = {
    ast.Lt: ("<", ("<=", ">", ">=")), ast.LtE: ("<=", ("<", ">=")), ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")), ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)), ast.Is: ("is", ("is not", "==")), ast.IsNot: ("is not", ("is", "!=")),
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ("+", ("-",)), ast.Sub: ("-", ("+",)), ast.Mult: ("*", ("+", "/", "**")), ast.Div: ("/", ("//", "*")),
    ast.FloorDiv: ("//", ("/",)), ast.Mod: ("%", ("//",)), ast.BitAnd: ("&", ("|",)), ast.BitOr: ("|", ("&",)),
}  # fmt: skip
_METHODS = {
    "append": "extend", "extend": "append", "startswith": "endswith", "endswith": "startswith", "lstrip": "strip",
    "rstrip": "strip", "strip": "rstrip", "find": "rfind", "split": "rsplit", "rsplit": "split", "keys": "items",
    "items": "keys", "values": "keys", "upper": "lower", "lower": "upper", "update": "add", "add": "update",
    "union": "intersection", "get": "pop", "pop": "get", "partition": "rpartition", "rpartition": "partition",
    "min": "max", "max": "min", "any": "all", "all": "any", "isinstance": "issubclass",
}  # fmt: skip
_ERRORS = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError")


def _compared(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        old, others = _COMPARE[type(node.ops[0])]
        yield from code.between(node.left, node.comparators[0], old, draw.choice(others))


def _reckoned(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return
        old, others = _ARITHMETIC[type(node.op)]
        yield from code.between(node.left, node.right, old, draw.choice(others))


def _operand_lost(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.BinOp):
        yield code.put(node, code.text(draw.choice((node.left, node.left, node.right))))


def _shifted(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 1000:
        yield code.put(node, str(abs(node.value + draw.choice((-1, 1, 1)))))


def _beside(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    """A count or bound is one off."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("range", "len")
        and node.args
    ):
        target = node if node.func.id == "len" else node.args[-1]
        yield code.put(target, f"{code.text(target)} {draw.choice('+-')} 1")


def _and_or(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield from code.between(node.values[0], node.values[1], old, new)


def _condition_lost(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.BoolOp):
        kept = list(node.values)
        kept.pop(draw.randrange(len(kept)))
        word = " and " if isinstance(node.op, ast.And) else " or "
        yield code.put(node, word.join(code.text(k) for k in kept))


def _not_lost(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield code.put(node, code.text(node.operand))


def _negated(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
        yield code.put(node.test, f"not {code.text(node.test)}")


def _other_name(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in code.names:
        others = [n for n in code.names if n != node.id]
        if others:
            yield code.put(node, draw.choice(others))


def _other_attribute(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and code.attributes:
        near = sorted(code.attributes, key=lambda a: -len(set(a) & set(node.attr)) / max(len(a), len(node.attr)))[:6]
        if near := [a for a in near if a != node.attr]:
            yield code.put(node, f"{code.text(node.value)}.{draw.choice(near)}")


def _attribute_lost(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not isinstance(node.value, ast.Constant):
        yield code.put(node, code.text(node.value))


def _argument_lost(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1:
        parts = [code.text(a) for a in node.args]
        parts += [f"{k.arg}={code.text(k.value)}" if k.arg else f"**{code.text(k.value)}" for k in node.keywords]
        parts.pop(draw.randrange(len(parts)))
        yield code.put(node, f"{code.text(node.func)}({', '.join(parts)})")


def _arguments_turned(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        first, second = map(code.text, node.args)
        yield code.put(node, f"{code.text(node.func)}({second}, {first})")


def _call_lost(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    """What was wrapped, or what a method was called on, stands alone."""
    if isinstance(node, ast.Call) and not node.keywords:
        if isinstance(node.func, ast.Name) and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
            yield code.put(node, code.text(node.args[0]))
        elif isinstance(node.func, ast.Attribute) and not node.args:
            yield code.put(node, code.text(node.func.value))


def _call_forgotten(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Call) and not node.keywords and not node.args:
        yield code.put(node, code.text(node.func))


def _other_method(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield code.put(node.func, f"{code.text(node.func.value)}.{_METHODS[node.func.attr]}")
        elif isinstance(node.func, ast.Name) and node.func.id in _METHODS:
            yield code.put(node.func, _METHODS[node.func.id])


def _bounds_moved(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Slice):
        if node.lower is not None and node.upper is None:
            yield code.put(node.lower, draw.choice(("", f"{code.text(node.lower)} + 1")))
        elif node.upper is not None:
            yield code.put(node.upper, draw.choice(("", f"{code.text(node.upper)} - 1")))


def _index_lost(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield code.put(node, code.text(node.value))


def _truth_flipped(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Constant) and (isinstance(node.value, bool) or node.value is None):
        yield code.put(node, "False" if node.value is True else "True" if node.value is False else "False")


def _jump_changed(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Break | ast.Continue):
        yield code.put(node, "continue" if isinstance(node, ast.Break) else "break")


def _assigned_flat(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.AugAssign):
        yield code.put(node, f"{code.text(node.target)} {draw.choice(('=', '-=', '+='))} {code.text(node.value)}")


def _returned_less(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Return) and node.value is not None:
        yield code.put(node, draw.choice(("return None", f"{code.text(node.value)}")))


def _other_error(code: _Code, node: ast.AST, draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name) and node.type.id in _ERRORS:
        yield code.put(node.type, draw.choice([e for e in _ERRORS if e != node.type.id]))


def _statement_lost(code: _Code, node: ast.AST, _draw: random.Random) -> Iterator[Put]:
    if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and not isinstance(
        getattr(node, "value", None), ast.Constant
    ):
        yield code.put(node, "pass")


INJECTORS: tuple[Inject, ...] = (
    _compared, _reckoned, _operand_lost, _shifted, _beside, _and_or, _condition_lost, _not_lost, _negated, _other_name,
    _other_attribute, _attribute_lost, _argument_lost, _arguments_turned, _call_lost, _call_forgotten, _other_method,
    _bounds_moved, _index_lost, _truth_flipped, _jump_changed, _assigned_flat, _returned_less, _other_error,
    _statement_lost,
)  # fmt: skip


def injected(origin: str, path: str, source: bytes, draw: random.Random) -> HistoryFix | None:
    """A source with one bug put in, and the source as it was as its fix; None where nothing can be done."""
    code = _chosen(source, draw)
    if code is None:
        return None
    nodes = [n for n in ast.walk(code.function) if n is not code.function]
    for inject in draw.sample(INJECTORS, len(INJECTORS)):
        puts = [put for node in nodes for put in inject(code, node, draw)]
        if puts:
            start, end, text = draw.choice(puts)
            bugged = source[:start] + text.encode() + source[end:]
            if bugged != source and _parses(bugged):
                first = bugged.count(b"\n", 0, start) + 1
                last = bugged.count(b"\n", 0, start + len(text.encode())) + 1
                where = f"{origin}:{first}:{inject.__name__.strip('_')}"
                return HistoryFix(origin=where, path=path, before=bugged, after=source, first=first, last=last)
    return None


def _chosen(source: bytes, draw: random.Random) -> _Code | None:
    """A random function of 3 to 60 lines of an ASCII source."""
    if not source.isascii() or b"\r" in source or b"\f" in source or not _parses(source):
        return None
    tree = parse_or_none(source)
    nodes = (n for n in ast.walk(tree) if isinstance(n, Function)) if tree is not None else ()
    functions = [n for n in nodes if 3 <= last_line(n) - n.lineno <= 60]
    if tree is None or not functions:
        return None
    function = draw.choice(functions)
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return _Code(
        source=source,
        starts=line_starts(source),
        function=function,
        names=tuple(sorted(names)),
        attributes=tuple(sorted(attributes)),
    )


def _parses(source: bytes) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(source, "injected", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
