"""Values as texts that are equal where the values' structure is.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
import hashlib
import io
import itertools
import re
import types
from typing import Any, Dict, Iterable, List, Tuple

SHAPE_LIMIT = 4000
NODES_LIMIT = 20000
_DEPTH_LIMIT = 60
_ITEMS_LIMIT = 300
_PLAIN = (int, float, str, bool, type(None), bytes, complex)
_TEMPORARY = "pytest-of-"
_NUMBERED = re.compile(r"(/pytest-of-[^/]+/pytest-)\d+(/[^/'\"]*?)\d+(?=[/'\"]|$)")  # of `tmp_path`: one a run
_ADDRESS = re.compile(r"0x[0-9a-f]{9,12}\b")  # of an object, in a name that was made of it
_TOLD_BY_REPR = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress"})  # values of the library


def shape(value: Any) -> str:
    """A text that is equal for values of equal structure: attributes of objects instead of their addresses.

    Streams in memory stay where they are, and so do iterators that can be copied; of others it takes the values.
    Folders that pytest makes for each run are equal whatever their number, and addresses of objects whatever they are.
    `True`, `1` and `1.0` are equal here as they are to a test that compares with `==`. An object inside itself is told
    by how far up it stands; of what has more than `NODES_LIMIT` parts the rest is left out.
    """
    return _Walk().text(value)


def whole_shape(value: Any, most: int = NODES_LIMIT) -> Tuple[str, int]:
    """The shape of a value in use, of which nothing is taken, and how many parts were looked at.

    Where objects know one another, so that there is no end of ways to each, each is told once, and where it is met
    again. "" where there are more than `most` parts. Long texts are told by their digest.
    """
    walk = _Walk(min(most, NODES_LIMIT), in_use=True)
    text = walk.text(value)
    if walk.whole:
        return text, walk.parts
    text, parts = walk.graph(value)
    return text, walk.parts + parts


class _Walk:
    """One walk through a value: the objects that it is inside of, how many parts it has seen, whether all of them."""

    def __init__(self, most: int = NODES_LIMIT, *, in_use: bool = False) -> None:
        self._inside: Dict[int, int] = {}
        self._most, self._in_use = most, in_use
        self.parts, self.whole = 0, True

    def text(self, value: Any) -> str:
        if _is(value, bool) or (_is(value, float) and value.is_integer()):
            return repr(int(value))[:SHAPE_LIMIT]
        if _is(value, _PLAIN):
            return self._cut(repr(value))
        depth = len(self._inside)
        if id(value) in self._inside:
            return "^%d" % (depth - self._inside[id(value)])
        self.parts += 1
        if depth > _DEPTH_LIMIT or self.parts > self._most:
            self.whole = False
            return "..."
        self._inside[id(value)] = depth
        try:
            return self._parts(value)
        finally:
            del self._inside[id(value)]

    def _parts(self, value: Any) -> str:
        if _is(value, (list, tuple)):
            return type(value).__name__ + "(" + ",".join(self._texts(value)) + ")"
        if _is(value, (set, frozenset)):
            return "set(" + ",".join(sorted(self._texts(value))) + ")"
        if _is(value, dict):
            pairs = self._first(value.items())
            return "dict(" + ",".join(self.text(k) + ":" + self.text(v) for k, v in pairs) + ")"
        if _is(value, (io.StringIO, io.BytesIO)) and not value.closed:
            return "%s(%d,%s)" % (type(value).__name__, value.tell(), self._cut(repr(value.getvalue())))
        if not _attributes(value) and hasattr(type(value), "__next__"):  # asking a mock for it would make it
            return "list(" + ",".join(() if self._in_use else self._texts(_twin(value))) + ")"
        if type(value).__module__ in _TOLD_BY_REPR:
            return self._cut(repr(value))
        attributes = _attributes(value)
        name = type(value).__qualname__
        if _is(attributes, dict) and not _is(value, (type, types.ModuleType, types.FunctionType)):
            return name + self.text(attributes)
        return name

    def graph(self, value: Any) -> Tuple[str, int]:
        """Each object once, in the order in which they are met; "" where there are too many."""
        numbers, todo, out = {id(value): 0}, [value], []
        met = 0
        for one in todo:
            named: List[Any] = []
            if _is(one, dict):
                parts = [part for pair in one.items() for part in pair]
            elif _is(one, (list, tuple)):
                parts = list(one)
            elif _is(one, (set, frozenset)):  # objects in sets have no order that another run has, too
                parts = []
                named = sorted(self._cut(repr(part)) for part in one if _is(part, _PLAIN)) + [len(one)]
            else:
                parts, named = self._members(one)
            met += 1 + len(parts)
            if met > self._most:
                return "", met
            texts = []
            for part in parts:
                if _is(part, _PLAIN):
                    texts.append(self._cut(repr(part)))
                    continue
                if id(part) not in numbers:
                    numbers[id(part)] = len(todo)
                    todo.append(part)
                texts.append("#%d" % numbers[id(part)])
            out.append("%s(%s)" % (type(one).__qualname__, ",".join(texts + [str(name) for name in named])))
        return ";".join(out), met

    def _members(self, value: Any) -> Tuple[List[Any], List[Any]]:
        """What an object holds, and texts for what stands for itself."""
        attributes = _attributes(value)
        plain = _is(value, (type, types.ModuleType, types.FunctionType, io.StringIO, io.BytesIO))
        if plain or type(value).__module__ in _TOLD_BY_REPR or not _is(attributes, dict):
            return [], [self.text(value)]
        return [part for pair in attributes.items() for part in pair], []

    def _texts(self, values: Iterable[Any]) -> List[str]:
        return [self.text(v) for v in self._first(values)]

    def _first(self, values: Iterable[Any]) -> List[Any]:
        limit = max(0, self._most - self.parts) if self._in_use else _ITEMS_LIMIT
        found = list(itertools.islice(values, limit))
        if len(found) == limit:
            self.whole = False
        if self._in_use:
            self.parts += len(found)
        return found

    def _cut(self, text: str) -> str:
        if _TEMPORARY in text:
            text = _NUMBERED.sub(r"\1\2", text)
        if "0x" in text:
            text = _ADDRESS.sub("0x", text)
        if len(text) > SHAPE_LIMIT:
            if self._in_use:
                return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            self.whole = False
        return text[:SHAPE_LIMIT]


def _is(value: Any, kinds: Any) -> bool:
    """Whether it is one of these in truth: a mock with a `spec` says of itself that it is."""
    return issubclass(type(value), kinds)


def _twin(iterator: Any) -> Any:
    """A copy that can be gone through in the place of an iterator; itself where there is none, as of a generator."""
    try:
        return copy.copy(iterator)
    except Exception:  # whatever the iterator's own copying raises
        return iterator


def instance_dict(value: Any) -> Any:
    """The `__dict__` of an object, None where it has none; a `__getattr__` of its own is not asked."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _attributes(value: Any) -> Any:
    """What an object holds: its `__dict__`, and what its classes keep in slots."""
    attributes = instance_dict(value)
    if _is(value, (type, types.ModuleType, types.FunctionType)):
        return attributes
    slots: Dict[str, Any] = {}
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            private = name.startswith("__") and not name.endswith("__")
            real = "_%s%s" % (kind.__name__.lstrip("_"), name) if private else name
            member = kind.__dict__.get(real)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    slots[real] = member.__get__(value)
                except AttributeError:  # nothing was put there yet
                    continue
    return {**slots, **attributes} if slots and _is(attributes, dict) else slots or attributes
