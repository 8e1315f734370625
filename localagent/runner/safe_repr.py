"""Values for a person: literals as such, objects by their attributes.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import math
import re
import types
from typing import Any, Iterable, List

from .failures import bounded
from .structural_key import instance_dict, shape

TEXT_LIMIT = 240
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (int, float, str, bool, type(None), bytes)


def show(value: Any, depth: int = 0) -> str:
    """A value for a person: literals as such, objects by their attributes, nothing that changes from run to run."""
    if literal(value):
        return bounded(repr(value), TEXT_LIMIT)
    if depth > 6:
        return "..."
    if type(value) in (list, tuple):
        inner = _joined((show(v, depth + 1) for v in value[:20]), depth)
        return bounded("[%s]" % inner if type(value) is list else "(%s)" % inner, TEXT_LIMIT)
    attributes = instance_dict(value)
    if type(attributes) is dict and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        inner = _joined(("%s=%s" % (k, show(v, depth + 1)) for k, v in list(attributes.items())[:20]), depth)
        return bounded("%s(%s)" % (type(value).__qualname__, inner), TEXT_LIMIT)
    return bounded(ADDRESS.sub("", shape(value)), TEXT_LIMIT)


def _joined(texts: Iterable[str], depth: int) -> str:
    """With commas; deep inside no more than can be shown, for objects that know one another have no end."""
    found: List[str] = []
    for text in texts:
        found.append(text)
        if depth > 1 and sum(map(len, found)) > TEXT_LIMIT:
            break
    return ", ".join(found)


def literal(value: Any, depth: int = 0) -> bool:
    """Whether `ast.literal_eval` gives the value back from its repr."""
    kind = type(value)
    if kind in _PLAIN:
        return kind is not float or math.isfinite(value)
    if depth > 20:
        return False
    if kind in (list, tuple):
        return all(literal(v, depth + 1) for v in value)
    if kind is set:
        return bool(value) and all(literal(v, depth + 1) for v in value)
    if kind is dict:
        return all(literal(k, depth + 1) and literal(v, depth + 1) for k, v in value.items())
    return False
