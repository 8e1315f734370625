"""Whether a condition singles out one input of a test: true of it, and otherwise for what stands right beside it.

`neighbours` are values of the same kind that differ in one place. Nothing runs: conditions are tried by
`constant_folding`.
Limitations: a condition on two arguments at once is looked at part by part; objects have no neighbours.
"""

import ast
from collections.abc import Iterator
from enum import Enum
from typing import Any

from localagent.code.constant_evaluation import Unknown
from localagent.code.literal_uses import is_specific
from localagent.code.test_literals import TRIVIAL, key_of
from localagent.gate.overfitting.call_trace import Met, tainted, value_of

_MOST_PLACES = 24
_MOST_NODES = 120


class Focus(Enum):
    """How much of an input a condition pins down."""

    WHOLE = "the whole input"
    MOST = "most of the input, or its length"
    LITTLE = "little of it"


def neighbours(value: Any) -> tuple[list[Any], list[Any]]:
    """(values that differ in one place, values that are longer or shorter by one)."""
    if isinstance(value, bool) or value is None:
        return [], []
    if isinstance(value, int):
        return [
            n for n in (value - 2, value - 1, value + 1, value + 2, 2 * value, -value, value + 100) if n != value
        ], []
    if isinstance(value, float):
        return [n for n in (value - 1, value + 1, value + 0.5, 2 * value, -value) if n != value], []
    if isinstance(value, str):
        return _texts(value)
    if isinstance(value, bytes):
        same, other = _texts(value.decode("latin-1"))
        return [t.encode("latin-1") for t in same], [t.encode("latin-1") for t in other]
    if isinstance(value, list | tuple):
        make = type(value)
        swapped = [
            make([*value[:at], near, *value[at + 1 :]])
            for at in range(min(len(value), _MOST_PLACES))
            for near in neighbours(value[at])[0][:2]
        ]
        return swapped, [make(value[:-1]), make(value[1:]), make([*value, *value[-1:]])] if value else []
    if isinstance(value, dict):
        less: list[Any] = [{k: v for k, v in value.items() if k != gone} for gone in list(value)[:_MOST_PLACES]]
        return [{**value, k: near} for k, v in value.items() for near in neighbours(v)[0][:1]], less
    return [], []


def _texts(value: str) -> tuple[list[str], list[str]]:
    same = [value[:at] + _beside(value[at]) + value[at + 1 :] for at in range(min(len(value), _MOST_PLACES))]
    return same, [value[:-1], value[1:], value + "e", "e" + value] if value else []


def _beside(letter: str) -> str:
    for alphabet in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"):
        if letter in alphabet:
            return alphabet[(alphabet.index(letter) + 1) % len(alphabet)]
    return "-" if letter != "-" else "_"


def focus(met: Met) -> Focus:
    """How much of an argument a condition pins down."""
    names = tainted(met.node, met.names)
    if met.holds is None or len(names) != 1 or sum(1 for _ in ast.walk(met.node)) > _MOST_NODES:
        return Focus.LITTLE
    value = met.names[names[0]].value
    same, other = neighbours(value)
    if key_of(value) in TRIVIAL or not same:
        return Focus.LITTLE
    flipped = [_differs(met, names[0], near) for near in same]
    longer = [_differs(met, names[0], near) for near in other]
    if all(flipped) and all(longer):
        return Focus.WHOLE
    if isinstance(value, int | float):  # `x ** 2 == 49` holds for both signs
        apart = [near for near, differs in zip(same, flipped, strict=True) if not differs]
        return Focus.MOST if apart == [-value] else Focus.LITTLE
    most = 2 * sum(flipped) >= len(flipped)
    return Focus.MOST if most or (longer and all(longer)) else Focus.LITTLE


def _differs(met: Met, name: str, value: Any) -> bool:
    try:
        return bool(value_of(met.node, met.names, {name: value})) is not met.holds
    except Unknown:
        return False


def constants(met: Met) -> Iterator[Any]:
    """What a condition compares with: the largest parts of it into which no argument went."""
    open_ones: list[ast.AST] = [met.node]
    while open_ones:
        node = open_ones.pop()
        if isinstance(node, ast.expr) and not tainted(node, met.names):
            try:
                yield value_of(node, met.names)
            except Unknown:
                pass
            else:
                continue
        open_ones += ast.iter_child_nodes(node)


def names_a_case(met: Met) -> bool:
    """Whether a condition compares with something specific."""
    return any(is_specific(value) for value in constants(met))
