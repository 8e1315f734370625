"""Which plain properties one call of a function had. The host asks which held for every call before, and not after.

A property that makes no sense for a call is left out. Runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
import math
import types
from typing import Any, Dict, Optional, Tuple

from .structural_key import shape

WHOLE = "result is an int"
ROUND_TRIP = "round trip by "
OF_FURTHER_CALLS = frozenset({"idempotent", "never falls", "never rises", "symmetric"})  # told by more than the call
_ITEMS_LIMIT = 300
_NUMBERS = (int, float)
_STEPS = (1, 7)


def properties(
    function: types.FunctionType,
    inverse: Optional[types.FunctionType],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    args_after: Tuple[Any, ...],
    kwargs_after: Dict[str, Any],
    result: Any,
    *,
    alone: bool,
) -> Dict[str, bool]:
    """Name to whether it holds. `args` are those of the call before, without the object; `alone`: there is none."""
    found: Dict[str, bool] = {}
    if args or kwargs:
        found["arguments unchanged"] = shape((args, kwargs)) == shape((args_after, kwargs_after))
    first: Any = args[0] if args else None
    if type(result) in (list, tuple) and len(result) > 1:
        found["result in order"] = _in_order(result)
    if type(result) in (int, float):
        found["result not negative"] = result >= 0
        found[WHOLE] = type(result) is int
    if type(first) in (list, tuple, str) and type(result) in (list, tuple, str):
        found["length kept"] = len(first) == len(result)
        if type(first) is not str and type(result) is not str:
            found["elements kept"] = _elements(first) == _elements(result)
    if first is not None and len(args) == 1 and not kwargs:
        found["type kept"] = type(first) is type(result)
        if alone and type(first) is type(result):
            again = _called(function, result)
            found["idempotent"] = again is not None and again == shape(result)
        if alone and _on_the_line(first) and _on_the_line(result):
            found.update(_monotonic(function, first, result))
        if alone and inverse is not None:
            back = _called(inverse, result)
            found[ROUND_TRIP + inverse.__name__] = back is not None and back == shape(first)
    if alone and len(args) == 2 and not kwargs and type(args[0]) is type(args[1]):
        there, back = shape((args[0], args[1])), shape((args[1], args[0]))
        if there != back:  # else it says nothing
            other = _called(function, args[1], args[0])
            found["symmetric"] = other is not None and other == shape(result)
    return found


def _on_the_line(value: Any) -> bool:
    return type(value) in _NUMBERS and math.isfinite(value)


def _monotonic(function: types.FunctionType, first: Any, result: Any) -> Dict[str, bool]:
    """Whether the answer never falls, and never rises, from this number to others above it. Nothing where it raises."""
    rises, falls = True, True
    for step in _STEPS:
        try:
            above = function(first + step)
            if not _on_the_line(above):
                return {}
            rises, falls = rises and above >= result, falls and above <= result
        except Exception:  # of the code under test
            return {}
    return {"never falls": rises, "never rises": falls}


def _called(function: types.FunctionType, *values: Any) -> Optional[str]:
    """What a further call comes to, None where it raises."""
    try:
        return shape(function(*copy.deepcopy(values)))
    except Exception:  # of the code under test
        return None


def _elements(values: Any) -> Any:
    return sorted(shape(v) for v in list(values)[:_ITEMS_LIMIT])


def _in_order(values: Any) -> bool:
    try:
        return all(values[n] <= values[n + 1] for n in range(len(values) - 1))
    except Exception:  # of the code under test
        return False
