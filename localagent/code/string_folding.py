"""What constant expressions come to: texts that are put together from pieces, turned round, decoded, or formatted.

One evaluator for every gate. It computes on constants alone, of bounded size, and calls nothing but methods of `str`
and `bytes` that are named here. Not computed: whatever depends on arguments, on attributes, or on a loop of statements.
"""

import ast
import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any

from localagent.code.names import last_name

Value = str | bytes | int | tuple["Value", ...]
Values = tuple[Value, ...]
"""What an expression may come to, in each case that is known."""
Look = Callable[[str], Values | None]

_MOST_TEXT = 4_000
_MOST_CASES = 16
_MOST_PARTS = 400
_DEPTH = 40
_MOST_STEPS = 4_000
_WIDE = re.compile(r"\d{3}|[*{}]|\.__|\[")
_PLAIN = frozenset(
    {"lower", "upper", "strip", "lstrip", "rstrip", "title", "casefold", "swapcase", "capitalize", "replace", "join",
     "removeprefix", "removesuffix", "split", "rsplit", "translate", "encode", "decode", "hex", "partition",
     "rpartition", "splitlines"}
)  # fmt: skip
_CODECS: dict[str, Callable[..., Any]] = {
    "b64decode": base64.b64decode, "b32decode": base64.b32decode, "b16decode": base64.b16decode,
    "b85decode": base64.b85decode, "a85decode": base64.a85decode, "urlsafe_b64decode": base64.urlsafe_b64decode,
    "standard_b64decode": base64.standard_b64decode, "decodebytes": base64.decodebytes, "unhexlify": binascii.unhexlify,
    "a2b_hex": binascii.a2b_hex, "a2b_base64": binascii.a2b_base64,
}  # fmt: skip
_FAULTS = (ValueError, TypeError, LookupError, OverflowError, ArithmeticError, MemoryError, AttributeError)


def texts_of(node: ast.expr, look: Look | None = None) -> set[str] | None:
    """Every text that an expression may come to, None if it is no constant text. `look`: what a name stands for."""
    values = values_of(node, look)
    if not values:
        return None
    found = {v for v in values if isinstance(v, str)}
    return found if len(found) == len(set(values)) else None


def values_of(node: ast.expr, look: Look | None = None) -> Values | None:
    """Every constant value that an expression may come to, None where it is computed or too large."""
    if isinstance(node, ast.Constant) and look is None:
        return (node.value,) if isinstance(node.value, str | bytes | int) else None
    try:
        return tuple(dict.fromkeys(_Folder(look).fold(node, _DEPTH)))
    except (_Unknown, *_FAULTS):
        return None


class _Unknown(Exception):  # noqa: N818 - ends a computation, is never seen outside
    pass


class _Folder:
    """Computes one expression."""

    def __init__(self, look: Look | None) -> None:
        self._look = look
        self._bound: dict[str, Values] = {}
        self._steps = 0

    def fold(self, node: ast.expr | None, depth: int) -> list[Value]:
        """The values, at least one; _Unknown where there is something that is not constant."""
        self._steps += 1
        if depth <= 0 or node is None or self._steps > _MOST_STEPS:
            raise _Unknown
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, str | bytes | int):
                raise _Unknown
            return [node.value]
        if isinstance(node, ast.Name):
            values = self._bound.get(node.id) or (self._look(node.id) if self._look else None)
            if not values:
                raise _Unknown
            return list(values)
        way = getattr(self, f"_{type(node).__name__.lower()}", None)
        if way is None:
            raise _Unknown
        found: list[Value] = [_bounded(v) for v in way(node, depth - 1)]
        if not found or len(found) > _MOST_CASES:
            raise _Unknown
        return found

    def _several(self, nodes: list[ast.expr], depth: int) -> Iterator[tuple[Value, ...]]:
        if len(nodes) > _MOST_PARTS:
            raise _Unknown
        cases: list[tuple[Value, ...]] = [()]
        for node in nodes:
            if isinstance(node, ast.Starred):
                more = [v if isinstance(v, tuple) else tuple(_parts(v)) for v in self.fold(node.value, depth)]
                cases = [(*case, *values) for case in cases for values in more]
            else:
                cases = [(*case, value) for case in cases for value in self.fold(node, depth)]
            if len(cases) > _MOST_CASES:
                raise _Unknown
        yield from cases

    def _tuple(self, node: ast.Tuple, depth: int) -> Iterator[Value]:
        yield from self._several(node.elts, depth)

    _list = _tuple

    def _ifexp(self, node: ast.IfExp, depth: int) -> list[Value]:
        return [*self.fold(node.body, depth), *self.fold(node.orelse, depth)]

    def _boolop(self, node: ast.BoolOp, depth: int) -> list[Value]:
        return [value for part in node.values for value in self.fold(part, depth)]

    def _namedexpr(self, node: ast.NamedExpr, depth: int) -> list[Value]:
        return self.fold(node.value, depth)

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> list[Value]:
        if not isinstance(node.op, ast.USub):
            raise _Unknown
        return [-v for v in self.fold(node.operand, depth) if isinstance(v, int)]

    def _joinedstr(self, node: ast.JoinedStr, depth: int) -> Iterator[Value]:
        for parts in self._several(node.values, depth):
            yield "".join(p if isinstance(p, str) else str(p) for p in parts)

    def _formattedvalue(self, node: ast.FormattedValue, depth: int) -> list[Value]:
        if node.format_spec is not None:
            raise _Unknown
        return [repr(v) if node.conversion == ord("r") else str(v) for v in self.fold(node.value, depth)]

    def _binop(self, node: ast.BinOp, depth: int) -> Iterator[Value]:
        for left in self.fold(node.left, depth):
            for right in self.fold(node.right, depth):
                yield _calculated(node.op, left, right)

    def _subscript(self, node: ast.Subscript, depth: int) -> Iterator[Value]:
        if isinstance(node.value, ast.Dict):
            for key in self.fold(node.slice, depth):
                for have, item in zip(node.value.keys, node.value.values, strict=True):
                    if isinstance(have, ast.Constant) and have.value == key:
                        yield from self.fold(item, depth)
            return
        for value in self.fold(node.value, depth):
            if isinstance(value, int):
                raise _Unknown
            if isinstance(node.slice, ast.Slice):
                ends = (node.slice.lower, node.slice.upper, node.slice.step)
                yield value[slice(*(self._bound_of(end, depth) for end in ends))]
                continue
            for at in self.fold(node.slice, depth):
                if not isinstance(at, int) or not -len(value) <= at < len(value):
                    raise _Unknown
                yield value[at]

    def _bound_of(self, node: ast.expr | None, depth: int) -> int | None:
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        values = self.fold(node, depth)
        if len(values) != 1 or not isinstance(values[0], int):
            raise _Unknown
        return values[0]

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> Iterator[Value]:
        """One loop over constants without a condition."""
        (loop, *others) = node.generators
        if others or loop.ifs or not isinstance(loop.target, ast.Name):
            raise _Unknown
        had = self._bound.get(loop.target.id)
        for items in self.fold(loop.iter, depth):
            made: list[Value] = []
            for item in _parts(items):
                self._bound[loop.target.id] = (item,)
                made += self.fold(node.elt, depth)[:1]
            yield tuple(made)
        self._bound.pop(loop.target.id, None)
        if had is not None:
            self._bound[loop.target.id] = had

    _generatorexp = _listcomp

    def _call(self, node: ast.Call, depth: int) -> Iterator[Value]:
        func = node.func
        name = last_name(func)
        if (
            name in ("map", "filter")
            and len(node.args) == 2
            and isinstance(node.args[0], ast.Name)
            and not node.keywords
        ):
            call = ast.Call(func=node.args[0], args=[ast.Name(id="\0", ctx=ast.Load())], keywords=[])
            loop = ast.comprehension(target=ast.Name(id="\0", ctx=ast.Store()), iter=node.args[1], ifs=[], is_async=0)
            yield from self._listcomp(ast.ListComp(elt=call, generators=[loop]), depth)
            return
        if any(k.arg not in ("encoding", "errors") for k in node.keywords) and name != "format":
            raise _Unknown
        for args in self._several(node.args, depth):
            if isinstance(func, ast.Attribute) and name in _PLAIN | {"format"} and not _is_class(func.value):
                for receiver in self.fold(func.value, depth):
                    named = (
                        {k.arg or "": self.fold(k.value, depth)[0] for k in node.keywords} if name == "format" else {}
                    )
                    yield _method(receiver, name, args, named)
            else:
                yield _function(name, args)


def _is_class(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("str", "bytes", "codecs", "base64", "binascii", "os", "path")


def _calculated(op: ast.operator, left: Value, right: Value) -> Value:
    try:
        if isinstance(op, ast.Add) and type(left) is type(right):
            return left + right  # type: ignore[operator]
        if isinstance(op, ast.Mult) and isinstance(right, int) and right <= 100 and _size(left) <= 100:
            return left * right
        if isinstance(op, ast.Mod) and isinstance(left, str) and not _WIDE.search(left):
            return left % right
        if isinstance(left, int) and isinstance(right, int) and max(abs(left), abs(right)) < 1 << 32:
            whole = {ast.Sub: left - right, ast.BitXor: left ^ right, ast.BitAnd: left & right, ast.BitOr: left | right}
            if type(op) in whole:
                return whole[type(op)]
            if isinstance(op, ast.Mod | ast.FloorDiv):
                return left % right if isinstance(op, ast.Mod) else left // right
    except _FAULTS:
        pass  # not a constant that Python would compute either
    raise _Unknown


def _method(receiver: Value, name: str, args: tuple[Value, ...], named: dict[str, Value]) -> Value:
    if not isinstance(receiver, str | bytes):
        raise _Unknown
    try:
        if name == "format":
            if not isinstance(receiver, str) or re.search(r"\{[^{}]*[.\[:!][^{}]*\}", receiver):
                raise _Unknown
            return receiver.format(*args, **named)
        if name == "replace" and len(args) > 1 and _size(args[1]) * (_size(receiver) + 1) > _MOST_TEXT:
            raise _Unknown
        if name == "join" and args and len(_parts(args[0])) * (_size(receiver) + 1) > _MOST_TEXT:
            raise _Unknown
        made: Any = getattr(receiver, name)(*args)
    except _FAULTS as error:
        raise _Unknown from error
    found: Value = tuple(made) if isinstance(made, list) else made
    return found


def _function(name: str, args: tuple[Value, ...]) -> Value:
    """What a function of this name makes of constants, whatever module it is from."""
    way = _CODECS.get(name) if len(args) == 1 else None
    way = way or _WAYS.get((name, len(args)))
    if way is None:
        raise _Unknown
    try:
        made: Any = way(*args)
    except (*_FAULTS, binascii.Error) as error:
        raise _Unknown from error
    found: Value = tuple(made) if isinstance(made, list) else made
    return found


def _undone(data: Any, codec: Any) -> Any:
    if codec not in ("rot13", "rot_13", "unicode_escape", "hex", "base64"):
        raise _Unknown
    return codecs.decode(data, codec)


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | tuple):
        raise _Unknown
    return bytes(value)


_WAYS: dict[tuple[str, int], Callable[..., Any]] = {
    ("reversed", 1): lambda value: _parts(value)[::-1],
    ("sorted", 1): lambda value: sorted(_parts(value)),
    ("list", 1): lambda value: _parts(value),
    ("tuple", 1): lambda value: _parts(value),
    ("bytes", 1): _as_bytes,
    ("bytearray", 1): _as_bytes,
    ("chr", 1): chr,
    ("ord", 1): ord,
    ("str", 1): lambda value: value if isinstance(value, str) else str(value),
    ("str", 2): str,
    ("fromhex", 1): bytes.fromhex,
    ("decode", 2): _undone,
    ("join", 2): lambda between, parts: between.join(_parts(parts)),
}


def _parts(value: Value) -> tuple[Value, ...]:
    if isinstance(value, int):
        raise _Unknown
    if len(value) > _MOST_PARTS:
        raise _Unknown
    return tuple(value)


def _size(value: Value) -> int:
    return 0 if isinstance(value, int) else len(value)


def _bounded(value: Value) -> Value:
    if isinstance(value, int) and abs(value) >= 1 << 64:
        raise _Unknown
    if _size(value) > _MOST_TEXT:
        raise _Unknown
    return value
