"""Inputs near those of a call: what a fuzzer that respects their structure would try first.

A *kept* neighbour keeps the relations that the arguments seem to have: lists of equal length stay so, rows of a table
stay equally long, a count goes on equalling a length, an index stays below it, distinct values stay distinct, sorted
lists sorted, positive numbers positive, a value that stands in two arguments changes in both. A program that crashes
on such inputs is more likely wrong than the input. The other neighbours change one argument with no such care.

Runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

from .random_mutation import careless
from .rng import Chance
from .structured_mutation import careful

Call = Tuple[Tuple[Any, ...], Dict[str, Any], bool]  # args, kwargs, whether the relations were kept


def neighbours(args: Tuple[Any, ...], kwargs: Dict[str, Any], rng: Chance, count: int) -> List[Call]:
    """Up to `count` variations, kept ones and others in turn; repeats are not removed."""
    names = list(kwargs)
    start = [*args, *kwargs.values()]
    kept = [start]
    out: List[Call] = []
    for n in range(count):
        keeps = n % 2 == 0
        if keeps:
            made = careful(copy.deepcopy(rng.choice(kept[-6:] + kept[:1])), start, rng)
        else:
            made = careless(copy.deepcopy(start), rng)
        if made is None:
            continue
        if keeps:
            kept.append(made)
            made = copy.deepcopy(made)
        named = {name: made[len(args) + k] for k, name in enumerate(names)}
        out.append((tuple(made[: len(args)]), named, keeps))
    return out
