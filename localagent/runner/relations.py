"""What holds between the arguments of a call, as far as their values show: lengths, positions, order, identity.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

_OBJECTS_LIMIT = 200
_RECORD = 3


def is_sorted(items: Any) -> bool:
    """A list of more than two items in ascending order."""
    try:
        return (
            isinstance(items, list) and len(items) > 2 and all(items[i] <= items[i + 1] for i in range(len(items) - 1))
        )
    except TypeError:
        return False


def index_like(value: Any) -> bool:
    """A flat list whose numbers are all positions in it (or -1), the first one or the last one among them."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(type(v) is int and -1 <= v < len(value) for v in value)
        and (min(value) <= 0 or (len(value) > _RECORD and max(value) == len(value) - 1))
    )


def length_preserved(old: int, new: int, lengths: List[Optional[int]], made: List[Any]) -> int:
    """A number that was a length stays that length; one that was at most the only length stays so, and positive."""
    for i, length in enumerate(lengths):
        if length is not None and old == length and old > 1:
            return len(made[i])
    known = [(length, len(made[i])) for i, length in enumerate(lengths) if length]
    if known and 1 <= old <= max(known)[0]:
        return max(1, min(new, max(now for _, now in known)))
    return new


def bounds_tables(number: int, tree: List[Any]) -> bool:
    """Whether no number of a table is larger: the names of nodes, of rows."""
    nested = [v for a in tree if is_nested(a) for v in atoms_of([a]) if type(v) is int]
    return bool(nested) and number >= max(nested)


def atoms_of(tree: List[Any]) -> List[Any]:
    """Ints (not bools) and texts that stand in lists, each once; a key of a dict that is no value is a field's name."""
    found: Dict[Any, None] = {}
    keys: Dict[Any, None] = {}

    def look(value: Any, depth: int) -> None:
        if isinstance(value, (list, tuple)):
            for v in value:
                look(v, depth + 1)
        elif isinstance(value, dict):
            for k, v in value.items():
                if type(k) is str:
                    keys[k] = None
                else:
                    look(k, depth + 1)
                look(v, depth + 1)
        elif depth > 1 and (type(value) is int or type(value) is str):
            found[value] = None

    look(tree, 0)
    scalars = [a for a in tree if type(a) is str]
    found.update((k, None) for k in keys if k in scalars)
    return list(found)


def mapped(value: Any, change: Dict[Any, Any], depth: int = 0, skip: Any = None) -> Any:
    """Atoms replaced wherever they stand; scalar arguments that equal `skip` stay."""
    if isinstance(value, list):
        return [mapped(v, change, depth + 1, skip) for v in value]
    if type(value) is tuple:
        return tuple(mapped(v, change, depth + 1, skip) for v in value)
    if type(value) is dict:
        return {mapped(k, change, depth + 1, skip): mapped(v, change, depth + 1, skip) for k, v in value.items()}
    if (type(value) is int or type(value) is str) and value in change and not (depth == 1 and value == skip):
        return change[value]
    return value


def sorted_somewhere(tree: List[Any]) -> bool:
    """Whether some argument is a sorted list."""
    return any(isinstance(a, list) and is_sorted(a) for a in tree)


def letter_class(letter: str) -> str:
    """Digit, lower case, upper case, or the sign itself."""
    return "1" if letter.isdigit() else "a" if letter.islower() else "A" if letter.isalpha() else letter


def objects_of(tree: List[Any]) -> List[Any]:
    """Objects with attributes of their own, found through lists and attributes; the first argument may be `self`."""
    found: List[Any] = []
    todo = list(tree)
    while todo and len(found) < _OBJECTS_LIMIT:
        value = todo.pop(0)
        if isinstance(value, (list, tuple)):
            todo.extend(value)
        elif isinstance(value, type) or callable(value) or any(value is f for f in found):
            continue
        elif isinstance(getattr(value, "__dict__", None), dict):
            found.append(value)
            todo.extend(vars(value).values())
    return found


def is_nested(value: Any) -> bool:
    """A list that holds lists or tuples."""
    return isinstance(value, list) and bool(value) and any(isinstance(v, (list, tuple)) for v in value)


def is_table(value: List[Any]) -> bool:
    """Rows that are lists of one length, at least one long."""
    return all(isinstance(v, list) and v and len(v) == len(value[0]) for v in value)


def is_square(value: List[Any]) -> bool:
    """A table with as many rows as columns."""
    return is_nested(value) and is_table(value) and len(value[0]) == len(value)


def all_distinct(items: List[Any]) -> bool:
    """Whether no item stands twice; False where that cannot be told."""
    try:
        return len(set(items)) == len(items)
    except TypeError:
        return False


def holds_atom(value: Any, atom: Any) -> bool:
    """Whether a list or tuple holds an equal value of the same type."""
    return isinstance(value, (list, tuple)) and any(type(v) is type(atom) and v == atom for v in value)


def permutations(group: List[Any]) -> bool:
    """Whether all groups hold the same items."""
    try:
        return all(sorted(g) == sorted(group[0]) for g in group[1:])
    except TypeError:
        return False


def without(items: Any, gone: Any) -> Any:
    """The items less the first that equals `gone`."""
    at = list(items).index(gone)
    return items[:at] + items[at + 1 :]
