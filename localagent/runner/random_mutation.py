"""One argument of a call changed without care for the others.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
import random
import sys
from typing import Any, List, Optional

from .relations import is_sorted

_PLAIN = (int, float, str, bool, type(None), bytes, complex)


def vary(value: Any, rng: random.Random) -> Any:
    """A near neighbour of a plain value, a date, a span of time or a decimal number; anything else as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1 if value > 0 else value + 2, value * 2, 1, 2, max(0, value // 2)])
    if isinstance(value, float):
        return rng.choice([value + 1.0, value / 2, value * 2])
    if isinstance(value, str):
        return "".join(_vary_items(list(value), rng))
    if isinstance(value, (list, tuple)):
        items = _vary_items(list(value), rng)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict) and value:
        out = dict(value)
        key = rng.choice(list(out))
        if rng.random() < 0.5:
            del out[key]
        else:
            out[key] = vary(out[key], rng)
        return out
    step = _step(value)
    return value if step is None else _moved(value, step * rng.choice([1, -1, 2, 30]))


def _step(value: Any) -> Any:
    """What can be added to a value that calculates and is no plain number; None for anything else.

    Its module is not imported for that: where nobody has, there is no such value.
    """
    module = sys.modules.get(type(value).__module__)
    if module is None or module.__name__ not in ("datetime", "decimal"):
        return None
    name = type(value).__name__
    if name in ("date", "datetime", "timedelta"):
        return module.timedelta(days=1)
    return value.__class__(1) if name == "Decimal" else None


def _moved(value: Any, by: Any) -> Any:
    try:
        return value + by
    except ArithmeticError:  # past the last day, or more than a decimal can hold
        return value


def _vary_items(items: List[Any], rng: random.Random) -> List[Any]:
    if not items:
        return items
    ordered = is_sorted(items)
    at = rng.randrange(len(items))
    what = rng.randrange(5)
    if what == 0 and len(items) > 1:
        del items[at]
    elif what == 1:
        items.insert(at, copy.deepcopy(items[rng.randrange(len(items))]))
    elif what == 2 and len(items) > 1 and not ordered:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif what == 3 and len(items) > 2:
        items = items[: max(1, len(items) // 2)]
    elif not isinstance(items[at], str) or len(items[at]) != 1:
        items[at] = vary(items[at], rng)
    else:
        items[at] = items[rng.randrange(len(items))]
    return sorted(items) if ordered and len(items) > 1 else items


def careless(tree: List[Any], rng: random.Random) -> Optional[List[Any]]:
    """One argument changed; a count that equalled a length goes on doing so."""
    known = _PLAIN + (list, tuple, dict)
    places = [i for i, a in enumerate(tree) if (isinstance(a, known) and a is not None) or _step(a) is not None]
    if not places:
        return None
    i = rng.choice(places)
    old = tree[i]
    tree[i] = vary(copy.deepcopy(old), rng)
    if hasattr(old, "__len__"):
        for k, value in enumerate(tree):
            if k != i and type(value) is int and value == len(old) and value > 1:
                tree[k] = len(tree[i])
    return tree
