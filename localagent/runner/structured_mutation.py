"""One change of a call's values, the relations between its arguments kept: positions change in `positions`.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, List, Optional, Tuple

from .positions import drop_or_repeat, shrink, swap_positions
from .relations import (
    all_distinct,
    atoms_of,
    bounds_tables,
    holds_atom,
    index_like,
    is_nested,
    is_sorted,
    is_table,
    length_preserved,
    letter_class,
    mapped,
    objects_of,
    sorted_somewhere,
)
from .rng import Chance

_RECORD = 3
_Change = Callable[[List[Any], Chance], Optional[List[Any]]]


def careful(tree: List[Any], start: List[Any], rng: Chance) -> Optional[List[Any]]:
    """A neighbour with the relations of `start` kept, or None when there is nothing to change."""
    before = [len(a) if isinstance(a, (list, tuple, str)) else None for a in tree]
    for _ in range(12):
        made = rng.choice(_CHANGES)(copy.deepcopy(tree), rng)
        if made is None:
            continue
        if any(index_like(start[i]) and len(a) <= min(start[i]) for i, a in enumerate(made)):
            continue  # too short for any position that the list may hold
        for i, a in enumerate(made):
            if isinstance(a, list) and index_like(start[i]):
                made[i] = [min(v, len(a) - 1) for v in a]
            elif isinstance(a, list) and is_sorted(start[i]):
                made[i] = sorted(a)
            if type(a) is int and not bounds_tables(tree[i], tree):
                made[i] = length_preserved(tree[i], a, before, made)
        return made
    return None


def _swap_values(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """Two values change places everywhere."""
    atoms = atoms_of(tree)
    kind = rng.choice([int, str])
    pool: List[Any] = [a for a in atoms if type(a) is kind]
    if len(pool) < 2 or sorted_somewhere(tree):
        return None
    a, b = rng.sample(pool, 2)
    top = max(pool) if kind is int else None
    made: List[Any] = mapped(tree, {a: b, b: a}, 0, top)
    return made


def _shift_values(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """All flat numbers from one on become larger: order and equality stay, gaps grow."""
    if any(index_like(a) for a in tree) or any(is_nested(a) for a in tree):
        return None
    pool = sorted(a for a in atoms_of(tree) if type(a) is int)
    if not pool:
        return None
    least, by = rng.choice(pool), rng.choice([1, 1, 2, 5])
    made: List[Any] = mapped(tree, {v: v + by for v in pool if v >= least}, 0)
    return made


def _new_value(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """One place of a flat list takes another value: one of the list's, or a new one where all are distinct."""
    places = [i for i, a in enumerate(tree) if isinstance(a, list) and a and not is_nested(a)]
    if not places:
        return None
    i = rng.choice(places)
    items = tree[i]
    at = rng.randrange(len(items))
    distinct = len(items) > 1 and all_distinct(items)
    if type(items[at]) is int:
        low = min(v for v in items if type(v) is int)
        near = rng.choice([items[at] + step for step in (-2, -1, 1, 2, 3)] + list(rng.numbers[:3]))
        if near < min(low, 1):
            near = items[at] + 1
        value = near if distinct or rng.random() < 0.5 else rng.choice(items)
        if (distinct and value in items) or any(k != i and holds_atom(a, items[at]) for k, a in enumerate(tree)):
            return None
    elif type(items[at]) is str and not distinct:
        value = rng.choice(items)
    else:
        return None
    ordered = is_sorted(items)
    items[at] = value
    if ordered:
        try:
            items.sort()
        except TypeError:
            return None
    return tree


def _cell(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """One cell of a table takes a value of the same column."""
    tables = [a for a in tree if is_nested(a) and is_table(a)]
    if not tables:
        return None
    table = rng.choice(tables)
    column = rng.randrange(len(table[0]))
    row = rng.randrange(len(table))
    wide = len(table[0]) > _RECORD or len(table[0]) == len(table)
    cells = [r[k] for r in table for k in range(len(r)) if wide or k == column]
    if not isinstance(table[row], list):
        return None
    table[row][column] = copy.deepcopy(rng.choice(cells))
    return tree


def _scalar(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """A number near, its sign kept; a bound of numbers in tables only grows."""
    places = [i for i, a in enumerate(tree) if type(a) in (int, float) and not isinstance(a, bool)]
    if not places:
        return None
    i = rng.choice(places)
    old = tree[i]
    new = rng.choice([old + 1, old - 1, old + 2, old * 2, old // 2, old + 5, old - 2])
    if (old > 0 and new <= 0) or old >= 0 > new:
        new = old + 1
    if type(old) is int and bounds_tables(old, tree):
        new = max(new, old)
    if new == old:
        return None
    tree[i] = new
    return tree


def _text(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """A character of a text is dropped, repeated, or becomes another of its characters."""
    places: List[Tuple[int, Optional[int]]] = []
    for i, a in enumerate(tree):
        if isinstance(a, str) and a:
            places.append((i, None))
        elif isinstance(a, list):
            places.extend((i, k) for k, s in enumerate(a) if isinstance(s, str) and s)
    if not places:
        return None
    i, k = rng.choice(places)
    old = tree[i] if k is None else tree[i][k]
    group = [a for a in (tree if k is None else tree[i]) if isinstance(a, str)]
    fixed = len(group) > 1 and all(len(s) == len(old) for s in group)
    alphabet = [c for s in group for c in s] if k is not None or fixed else list(old)
    alphabet += [c for c in rng.letters if any(letter_class(c) == letter_class(d) for d in alphabet[:50])]
    at = rng.randrange(len(old))
    what = 2 if fixed or len(old) < 2 else rng.randrange(3)
    if what == 0:
        new = old[:at] + old[at + 1 :]
    elif what == 1:
        new = old[:at] + old[at] + old[at:]
    else:
        new = old[:at] + rng.choice(alphabet) + old[at + 1 :]
    if k is None:
        tree[i] = new
    elif len(tree[i]) > 1 and all_distinct(tree[i]) and new in tree[i]:
        return None
    else:
        tree[i][k] = new
    return tree


def _link(tree: List[Any], rng: Chance) -> Optional[List[Any]]:
    """A link of an object graph (a list, a tree) is cut, turned, or a plain attribute takes another's value."""
    objects = objects_of(tree)
    links = [(o, n) for o in objects for n, v in vars(o).items() if any(v is p for p in objects)]
    plain = [(o, n) for o in objects for n, v in vars(o).items() if type(v) is int]
    what = rng.randrange(3)
    if what == 0 and links:
        o, name = rng.choice(links)
        if not any(vars(p).get(name, o) is None for p in objects):
            return None
        _put(o, name, None)
    elif what == 1 and links:
        o, name = rng.choice(links)
        others = [n for n, v in vars(o).items() if n != name and (v is None or any(v is p for p in objects))]
        if not others:
            return None
        other = rng.choice(others)
        first, second = getattr(o, name), getattr(o, other)
        _put(o, name, second)
        _put(o, other, first)
    elif plain:
        o, name = rng.choice(plain)
        same = [vars(p)[n] for p, n in plain if n == name]
        _put(o, name, rng.choice(same))
    else:
        return None
    return tree


def _put(o: Any, name: str, value: Any) -> None:
    """Set an attribute of a copy, also where its class forbids that (frozen dataclasses)."""
    try:
        setattr(o, name, value)
    except Exception:  # of the code under test
        vars(o)[name] = value


_CHANGES: List[_Change] = [
    _swap_values,
    _shift_values,
    _new_value,
    _new_value,
    _cell,
    drop_or_repeat,
    drop_or_repeat,
    shrink,
    shrink,
    swap_positions,
    _scalar,
    _text,
    _text,
    _link,
    _link,
]
