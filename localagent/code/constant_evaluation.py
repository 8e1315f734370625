"""What an expression comes to for given values of its names: constants are folded, conditions are tried, nothing runs.

A small pure part of Python, bounded in steps and in the size of every value. No code of the repository is called.
Limitations: classes, attributes, formats with a width, `re` beyond plain texts, and names that are not given are
`Unknown`; a builtin that the repository has shadowed is taken for Python's own.
"""

import ast
import hashlib
import operator
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_MOST_STEPS = 2_000
_MOST_DEPTH = 40
_MOST_LENGTH = 2_000
_MOST_WEIGHT = 2_000  # parts of a value, and parts of these; eight characters of a text count as one
_MOST_NUMBER = 1 << 256
_MOST_POWER = 64
_PLAIN_FORMAT = re.compile(r"[^%]*(?:%[sdr][^%]*)*")


class Unknown(Exception):  # noqa: N818 - an answer about the expression, not an error of ours
    """The expression has no value that can be told without running code."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.eq, ast.IsNot: operator.ne, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
_TYPES: dict[str, type] = {
    t.__name__: t for t in (int, float, str, bytes, bool, list, tuple, dict, set, frozenset)
}  # fmt: skip


def _range(*bounds: int) -> list[int]:
    if not all(isinstance(b, int) for b in bounds) or not 1 <= len(bounds) <= 3 or 0 in bounds[2:]:
        raise Unknown("not a range")
    made = range(*bounds)
    if len(made) > _MOST_LENGTH:
        raise Unknown("too long a range")
    return list(made)


def _hash(value: object) -> int:
    if not isinstance(value, int):
        raise Unknown("differs from run to run")
    return hash(value)


def _digest(name: str) -> Callable[[object], object]:
    def made(value: object) -> object:
        if not isinstance(value, bytes):
            raise Unknown("not bytes")
        return hashlib.new(name, value, usedforsecurity=False)

    return made


def _plain_pattern(pattern: object, text: object, *, whole: bool, anywhere: bool = False) -> bool:
    """`re.match(pattern, text)` for patterns without operators, anchors aside."""
    if not isinstance(pattern, str) or not isinstance(text, str):
        raise Unknown("not a plain pattern")
    start, end = pattern.startswith(("^", r"\A")), pattern.endswith(("$", r"\Z")) and not pattern.endswith(r"\$")
    bare = re.sub(r"\A(?:\^|\\A)|(?:\$|\\Z)\Z", "", pattern)
    if re.search(r"[\\.^$*+?{}\[\]|()]", bare):
        raise Unknown("not a plain pattern")
    if whole or (end and (start or not anywhere)):
        return text == bare
    return text.endswith(bare) if end else text.startswith(bare) if start or not anywhere else bare in text


_CALLS: dict[str, Callable[..., Any]] = {
    "len": len, "sum": sum, "min": min, "max": max, "abs": abs, "ord": ord, "chr": chr, "str": str, "int": int,
    "float": float, "bool": bool, "sorted": sorted, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
    "dict": dict, "repr": repr, "reversed": lambda v: list(v)[::-1], "zip": lambda *v: list(zip(*v, strict=False)),
    "enumerate": lambda v: list(enumerate(v)), "range": _range, "any": any, "all": all, "round": round, "hash": _hash,
    "bytes": lambda v: bytes(v) if isinstance(v, list | tuple | bytes) else _never(), "hex": hex, "divmod": divmod,
    "next": lambda v, *other: next(iter(v), *other), "iter": list,
    "crc32": zlib.crc32, "adler32": zlib.adler32,
    "md5": _digest("md5"), "sha1": _digest("sha1"), "sha256": _digest("sha256"),
    "fullmatch": lambda p, t: _plain_pattern(p, t, whole=True),
    "match": lambda p, t: _plain_pattern(p, t, whole=False),
    "search": lambda p, t: _plain_pattern(p, t, whole=False, anywhere=True),
}  # fmt: skip
_METHODS = {
    str: frozenset(
        {"startswith", "endswith", "upper", "lower", "casefold", "title", "capitalize", "swapcase", "strip", "lstrip",
         "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition", "join", "replace", "count", "find",
         "rfind", "index", "rindex", "isdigit", "isalpha", "isalnum", "isupper", "islower", "isspace", "isnumeric",
         "isidentifier", "encode", "removeprefix", "removesuffix", "__eq__", "__ne__", "__contains__", "__len__"}
    ),
    bytes: frozenset({"startswith", "endswith", "decode", "hex", "count", "find", "index", "strip", "split", "__eq__"}),
    list: frozenset({"index", "count", "copy", "__eq__", "__contains__", "__getitem__", "__len__"}),
    tuple: frozenset({"index", "count", "__eq__", "__contains__", "__getitem__", "__len__"}),
    dict: frozenset({"get", "keys", "values", "items", "copy", "__getitem__", "__contains__", "__eq__"}),
    int: frozenset({"__eq__", "__ne__", "bit_length", "__add__", "__sub__", "__mul__"}),
    float: frozenset({"__eq__", "__ne__", "is_integer"}),
    set: frozenset({"__contains__", "union", "intersection", "difference", "issubset", "issuperset", "__eq__"}),
    frozenset: frozenset({"__contains__", "union", "intersection", "difference", "issubset", "issuperset"}),
}  # fmt: skip


def _never() -> Any:
    raise Unknown("no such value")


def evaluate(node: ast.expr, names: Mapping[str, object]) -> Any:
    """The value of an expression where its names have these values. Unknown if it cannot be told."""
    try:
        return _Evaluator(names).value(node, 0)
    except Unknown:
        raise
    except Exception as error:  # whatever an operation on hostile values raises, it has no value
        raise Unknown(type(error).__name__) from error


def sized(value: Any) -> Any:
    """The value itself. Unknown if it is larger than is looked at."""
    if isinstance(value, str | bytes | list | tuple | dict | set | frozenset) and _weight(value, _MOST_WEIGHT) <= 0:
        raise Unknown("too long")
    if isinstance(value, int) and abs(value) > _MOST_NUMBER:
        raise Unknown("too large")
    return value


def _weight(value: Any, left: int) -> int:
    """What is left of an allowance once a value's parts, and theirs, are counted; a shared part counts each time."""
    if isinstance(value, str | bytes):
        return left - 1 - (len(value) if len(value) > _MOST_LENGTH else len(value) // 8)
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    left -= 1
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            if left <= 0:
                break
            left = _weight(part, left)
    return left


class _Evaluator:
    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = dict(names)
        self._steps = 0

    def value(self, node: ast.expr | None, depth: int) -> Any:
        self._steps += 1
        if node is None or depth > _MOST_DEPTH or self._steps > _MOST_STEPS:
            raise Unknown("too much")
        made = getattr(self, f"_{type(node).__name__.lower()}", None)
        if made is None:
            raise Unknown(type(node).__name__)
        return sized(made(node, depth + 1))

    def _constant(self, node: ast.Constant, _depth: int) -> Any:
        return node.value

    def _name(self, node: ast.Name, _depth: int) -> Any:
        if node.id not in self._names:
            raise Unknown(node.id)
        return self._names[node.id]

    def _namedexpr(self, node: ast.NamedExpr, depth: int) -> Any:
        return self.value(node.value, depth)

    def _items(self, nodes: list[ast.expr], depth: int) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.value(node.value, depth)
            else:
                yield self.value(node, depth)

    def _tuple(self, node: ast.Tuple, depth: int) -> Any:
        return tuple(self._items(node.elts, depth))

    def _list(self, node: ast.List, depth: int) -> Any:
        return list(self._items(node.elts, depth))

    def _set(self, node: ast.Set, depth: int) -> Any:
        return set(self._items(node.elts, depth))

    def _dict(self, node: ast.Dict, depth: int) -> Any:
        made: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                made.update(self.value(item, depth))
            else:
                made[self.value(key, depth)] = self.value(item, depth)
        return made

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Any:
        return _UNARY[type(node.op)](self.value(node.operand, depth))

    def _binop(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        if isinstance(node.op, ast.Mult):
            for text, times in ((left, right), (right, left)):
                if hasattr(text, "__len__") and isinstance(times, int) and len(text) * times > _MOST_LENGTH:
                    raise Unknown("too long")
        if isinstance(node.op, ast.Pow | ast.LShift) and not (isinstance(right, int) and 0 <= right <= _MOST_POWER):
            raise Unknown("too large")
        formats = isinstance(left, str | bytes) and isinstance(node.op, ast.Mod)
        if formats and not (isinstance(left, str) and _PLAIN_FORMAT.fullmatch(left)):
            raise Unknown("a format")
        return _BINARY[type(node.op)](left, right)

    def _boolop(self, node: ast.BoolOp, depth: int) -> Any:
        found: Any = None
        for item in node.values:
            found = self.value(item, depth)
            if bool(found) is isinstance(node.op, ast.Or):
                return found
        return found

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        left = self.value(node.left, depth)
        for op, item in zip(node.ops, node.comparators, strict=True):
            right = self.value(item, depth)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, depth: int) -> Any:
        return self.value(node.body if self.value(node.test, depth) else node.orelse, depth)

    def _subscript(self, node: ast.Subscript, depth: int) -> Any:
        return self.value(node.value, depth)[self.value(node.slice, depth)]

    def _slice(self, node: ast.Slice, depth: int) -> Any:
        return slice(*(None if b is None else self.value(b, depth) for b in (node.lower, node.upper, node.step)))

    def _joinedstr(self, node: ast.JoinedStr, depth: int) -> Any:
        return "".join(str(self.value(item, depth)) for item in node.values)

    def _formattedvalue(self, node: ast.FormattedValue, depth: int) -> Any:
        if node.format_spec is not None:
            raise Unknown("a format")
        found = self.value(node.value, depth)
        return repr(found) if node.conversion == ord("r") else str(found)

    def _call(self, node: ast.Call, depth: int) -> Any:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "isinstance" and len(node.args) == 2:
            return self._isinstance(node, depth)
        if isinstance(func, ast.Attribute):
            return self._method(func, node, depth)
        if isinstance(func, ast.Name) and func.id in _CALLS and func.id not in self._names:
            return _CALLS[func.id](*self._items(node.args, depth), **self._keywords(node, depth))
        raise Unknown("a call")

    def _keywords(self, node: ast.Call, depth: int) -> dict[str, Any]:
        if any(k.arg is None or k.arg == "key" for k in node.keywords):
            raise Unknown("keywords")
        return {str(k.arg): self.value(k.value, depth) for k in node.keywords}

    def _isinstance(self, node: ast.Call, depth: int) -> bool:
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        known = [_TYPES.get(k.id) if isinstance(k, ast.Name) else None for k in kinds]
        if None in known:
            raise Unknown("a class")
        return isinstance(self.value(node.args[0], depth), tuple(k for k in known if k is not None))

    def _method(self, func: ast.Attribute, node: ast.Call, depth: int) -> Any:
        module = func.value.id if isinstance(func.value, ast.Name) and func.value.id not in self._names else ""
        if module in ("zlib", "binascii", "hashlib", "re") and func.attr in _CALLS:
            return _CALLS[func.attr](*self._items(node.args, depth))
        owner = self.value(func.value, depth)
        if func.attr in ("hexdigest", "digest") and hasattr(owner, "hexdigest") and not node.args:
            return owner.hexdigest() if func.attr == "hexdigest" else owner.digest()
        if type(owner) not in _METHODS or func.attr not in _METHODS[type(owner)]:
            raise Unknown(func.attr)
        found = getattr(owner, func.attr)(*self._items(node.args, depth), **self._keywords(node, depth))
        return list(found) if isinstance(owner, dict) and func.attr in ("keys", "values", "items") else found

    def _comprehended(self, node: Any, depth: int) -> Iterator[None]:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise Unknown("a comprehension")
        (loop,) = node.generators
        stood = dict(self._names)
        for item in sized(list(self.value(loop.iter, depth))):
            self._names.update(bound(loop.target, item))
            if all(self.value(test, depth) for test in loop.ifs):
                yield None
        self._names = stood

    def _listcomp(self, node: ast.ListComp, depth: int) -> Any:
        return [self.value(node.elt, depth) for _ in self._comprehended(node, depth)]

    _generatorexp = _listcomp

    def _setcomp(self, node: ast.SetComp, depth: int) -> Any:
        return {self.value(node.elt, depth) for _ in self._comprehended(node, depth)}

    def _dictcomp(self, node: ast.DictComp, depth: int) -> Any:
        return {self.value(node.key, depth): self.value(node.value, depth) for _ in self._comprehended(node, depth)}


def bound(target: ast.expr, value: Any) -> dict[str, Any]:
    """The names of an assignment's target and what each is given. Unknown for attributes, subscripts and stars."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, Iterable):
        parts = list(value)
        if len(parts) == len(target.elts):
            return {k: v for t, part in zip(target.elts, parts, strict=True) for k, v in bound(t, part).items()}
    raise Unknown("a target")
