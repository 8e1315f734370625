"""Values as texts that are equal where the values' structure is.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
import io
import types
from typing import Any, Dict

SHAPE_LIMIT = 4000
_ITEMS_LIMIT = 300
_PLAIN = (int, float, str, bool, type(None), bytes, complex)
_TOLD_BY_REPR = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress"})  # values of the library


def shape(value: Any, depth: int = 0) -> str:
    """A text that is equal for values of equal structure: attributes of objects instead of their addresses.

    Streams in memory stay where they are, and so do iterators that can be copied; of others it takes the values.
    `True`, `1` and `1.0` are equal here as they are to a test that compares with `==`.
    """
    if depth > 60:
        return "..."
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return repr(int(value))[:SHAPE_LIMIT]
    if isinstance(value, _PLAIN):
        return repr(value)[:SHAPE_LIMIT]
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ",".join(shape(v, depth + 1) for v in value[:_ITEMS_LIMIT]) + ")"
    if isinstance(value, (set, frozenset)):
        return "set(" + ",".join(sorted(shape(v, depth + 1) for v in list(value)[:_ITEMS_LIMIT])) + ")"
    if isinstance(value, dict):
        pairs = list(value.items())[:_ITEMS_LIMIT]
        return "dict(" + ",".join(shape(k, depth + 1) + ":" + shape(v, depth + 1) for k, v in pairs) + ")"
    if isinstance(value, (io.StringIO, io.BytesIO)) and not value.closed:
        return "%s(%d,%r)" % (type(value).__name__, value.tell(), value.getvalue()[:SHAPE_LIMIT])
    if hasattr(value, "__next__") and not _attributes(value):
        taken = []
        for item in _twin(value):
            taken.append(shape(item, depth + 1))
            if len(taken) >= _ITEMS_LIMIT:
                break
        return "list(" + ",".join(taken) + ")"
    if type(value).__module__ in _TOLD_BY_REPR:
        return repr(value)[:SHAPE_LIMIT]
    attributes = _attributes(value)
    name = type(value).__qualname__
    if isinstance(attributes, dict) and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return name + shape(attributes, depth + 1)
    return name


def _twin(iterator: Any) -> Any:
    """A copy that can be gone through in the place of an iterator; itself where there is none, as of a generator."""
    try:
        return copy.copy(iterator)
    except Exception:  # whatever the iterator's own copying raises
        return iterator


def _attributes(value: Any) -> Any:
    """What an object holds: its `__dict__`, and what its classes keep in slots."""
    attributes = getattr(value, "__dict__", None)
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return attributes
    slots: Dict[str, Any] = {}
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            private = name.startswith("__") and not name.endswith("__")
            real = "_%s%s" % (kind.__name__.lstrip("_"), name) if private else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, real):
                slots[real] = getattr(value, real)
    return {**slots, **attributes} if slots and isinstance(attributes, dict) else slots or attributes
