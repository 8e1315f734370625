"""Positions of a call's lists and texts dropped, repeated or swapped, in every argument of that length alike.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
from typing import Any, List, Optional

from .relations import all_distinct, holds_atom, is_nested, is_sorted, is_square, permutations, without
from .rng import Chance


def drop_or_repeat(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """One position goes from (or is repeated in) every argument of that length."""
    lengths = sorted({len(a) for a in tree if isinstance(a, (list, str)) and len(a) > 1})
    if not lengths:
        return None
    n = rng.choice(lengths)
    if n <= 2 and any(is_nested(a) for a in tree):
        return None
    at = rng.randrange(n)
    alike = [a for a in tree if isinstance(a, (list, str)) and len(a) == n]
    unlike = [a for a in tree if isinstance(a, list) and len(a) != n and not is_nested(a)]
    repeat = rng.random() < 0.4 and not any(isinstance(a, list) and all_distinct(a) for a in alike)
    if len(alike) > 1 and permutations(alike):
        gone = alike[0][at]
        return [without(a, gone) if isinstance(a, (list, str)) and len(a) == n else a for a in tree]
    if not repeat and any(holds_atom(u, a[at]) for u in unlike for a in alike if isinstance(a, list)):
        return None
    square = [a for a in alike if isinstance(a, list) and is_square(a) and n > 2]

    def cut(a: Any) -> Any:
        return a[:at] + a[at : at + 1] * 2 + a[at + 1 :] if repeat else a[:at] + a[at + 1 :]

    made = []
    for a in tree:
        if not isinstance(a, (list, str)) or len(a) != n:
            made.append(a)
            continue
        rows = cut(a)
        if any(a is s for s in square):
            rows = [cut(list(r)) if isinstance(r, list) else cut(r) for r in rows]
        made.append(copy.deepcopy(rows))
    return made


def shrink(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """The head or the tail of every argument of one length, or a smaller number: most faults show on small inputs."""
    lengths = sorted({len(a) for a in tree if isinstance(a, (list, str)) and len(a) > 2})
    alike = [a for a in tree if isinstance(a, (list, str)) and lengths and len(a) == lengths[-1]]
    others = [a for a in tree if isinstance(a, list) and not any(a is b for b in alike)]
    if (
        not lengths
        or (len(alike) > 1 and permutations(alike))
        or any(isinstance(a, list) and is_square(a) for a in alike)
    ):
        return None
    if any(holds_atom(u, v) for u in others for a in alike if isinstance(a, list) for v in a):
        return None
    n = rng.randrange(1, lengths[-1])
    head = rng.random() < 0.5
    return [(a[:n] if head else a[-n:]) if any(a is b for b in alike) else a for a in tree]


def swap_positions(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """Two positions change places in every unsorted argument of one length."""
    alike = [a for a in tree if isinstance(a, (list, str)) and len(a) > 1]
    if not alike:
        return None
    n = len(rng.choice(alike))
    group = [a for a in alike if len(a) == n]
    if any(isinstance(a, list) and is_sorted(a) for a in group) or (len(group) > 1 and permutations(group)):
        return None
    i, j = rng.sample(range(n), 2)
    made = []
    for a in tree:
        if isinstance(a, (list, str)) and len(a) == n:
            items = list(a)
            items[i], items[j] = items[j], items[i]
            made.append("".join(items) if isinstance(a, str) else items)
        else:
            made.append(a)
    return made
