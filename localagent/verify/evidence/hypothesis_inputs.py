"""Inputs made up by Hypothesis, from type hints, default values and what tests passed: literals only.

Deterministic under a seed: no example database, no clock. Not promised: that an input is one the function is meant for.
"""

import ast
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from localagent.code.source_text import parse_or_none
from localagent.verify.evidence.parameters import FunctionParameters

_TEXT_LIMIT = 2000
_ALPHABET = "abcxyzABZ0129 _-.,:;/\\'\"()[]{}<>=+*%$#@!?\n\tä€"
_LISTS = frozenset({"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence"})
_DICTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
_SETS = frozenset({"set", "Set", "AbstractSet", "MutableSet"})
_MOST = 6
_Strategy = st.SearchStrategy[Any]


def made_inputs(
    signature: FunctionParameters,
    seen: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    letters: Sequence[str],
    numbers: Sequence[int],
    *,
    key: str,
    home: Path,
    examples: int,
) -> list[tuple[str, str]]:
    """Literals of (positional, named) arguments, no two alike. `seen` are arguments that tests passed."""
    words = _CodeVocabulary(letters, numbers)
    positional = [
        words.parameter(hint, default, [args[n] for args, _ in seen if n < len(args)])
        for n, (_, hint, default) in enumerate(signature.positional)
    ]
    named = {
        name: words.parameter(hint, default, [kwargs[name] for _, kwargs in seen if name in kwargs])
        for name, hint, default in signature.named
    }
    found: dict[tuple[str, str], None] = {}
    places = st.integers(0, max(0, len(positional) - 1))
    links = st.lists(st.tuples(places, places, st.integers(-2, 2)), max_size=2 if len(positional) > 1 else 0)
    set_hypothesis_home_dir(home)

    @seed(int(hashlib.sha256(key.encode()).hexdigest()[:12], 16))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*positional), st.fixed_dictionaries(named), links)
    def collect(args: tuple[Any, ...], kwargs: dict[str, Any], near: list[tuple[int, int, int]]) -> None:
        pair = (repr(_linked(args, near)), repr(kwargs))
        if len(pair[0]) + len(pair[1]) <= _TEXT_LIMIT:
            found.setdefault(pair)

    collect()
    return list(found)


def _linked(args: tuple[Any, ...], links: Sequence[tuple[int, int, int]]) -> tuple[Any, ...]:
    """Numbers beside one another: what goes wrong at a boundary shows where two arguments nearly meet."""
    made = list(args)
    for one, other, step in links:
        if one != other and type(made[one]) is int and type(made[other]) is int:
            made[one] = made[other] + step
        elif one != other and type(made[one]) is int and type(made[other]) in (str, list):
            made[one] = len(made[other]) + step
    return tuple(made)


class _CodeVocabulary:
    """Strategies that know the letters and numbers written in the code."""

    def __init__(self, letters: Sequence[str], numbers: Sequence[int]) -> None:
        near = sorted({n + step for n in numbers for step in (-1, 0, 1)})[:60]
        plain = st.integers(-20, 20) | st.integers(-(1 << 33), 1 << 33)
        self.integers: _Strategy = plain | st.sampled_from(near) if near else plain
        self.text: _Strategy = st.text(_ALPHABET + "".join(letters), max_size=12)
        self.floats: _Strategy = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([0.0, 0.5, -1.5])
        self.anything: _Strategy = (
            st.integers(-20, 20) | self.text | st.lists(st.integers(-9, 9), max_size=_MOST) | st.none() | st.booleans()
        )

    def parameter(self, hint: ast.expr | None, default: ast.expr | None, seen: Sequence[Any]) -> _Strategy:
        """By the hint, else by the values that were seen, else by the default; values that were seen always join."""
        told = self._hint(hint) if hint is not None else None
        constant = default.value if isinstance(default, ast.Constant) else None
        if told is None and seen:
            told = st.one_of([self._like(value) for value in seen[:8]])
        if told is None:
            told = self._like(constant) if default is not None and constant is not None else self.anything
        if seen:
            told = st.sampled_from(list(seen[:20])) | told
        return told | st.just(constant) if isinstance(default, ast.Constant) else told

    def _like(self, value: Any) -> _Strategy:
        """Values of the same make as a literal."""
        if isinstance(value, bool):
            return st.booleans()
        if isinstance(value, int):
            return st.integers(value - 5, value + 5) | self.integers
        if isinstance(value, float):
            return self.floats
        if isinstance(value, str):
            return st.text(value[:50], max_size=len(value) + 3) | self.text if value else self.text
        if isinstance(value, bytes):
            return st.binary(max_size=12)
        if isinstance(value, list) and value:
            return st.lists(st.one_of([self._like(v) for v in value[:4]]), max_size=_MOST)
        if isinstance(value, tuple):
            return st.tuples(*[self._like(v) for v in value[:20]])
        if isinstance(value, dict) and value:
            return st.fixed_dictionaries({k: self._like(v) for k, v in list(value.items())[:20]})
        if isinstance(value, set) and value:
            return st.sets(st.sampled_from(sorted(value, key=repr)), min_size=1)
        return st.just(value)

    def _hint(self, node: ast.expr) -> _Strategy | None:
        """By a type hint; None for one that names anything but plain data."""
        if isinstance(node, ast.Constant):
            if node.value is None:
                return st.none()
            return self._quoted(node.value) if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union([node.left, node.right])
        name = _name(node.value if isinstance(node, ast.Subscript) else node)
        inner: list[ast.expr] = []
        if isinstance(node, ast.Subscript):
            inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            some = self._union(inner)
            return None if some is None else some | st.none()
        if name == "Union":
            return self._union(inner)
        if name == "Literal":
            values = [n.value for n in inner if isinstance(n, ast.Constant)]
            return st.sampled_from(values) if values else None
        return self._collection(name, inner)

    def _quoted(self, text: str) -> _Strategy | None:
        tree = parse_or_none(text[:500])
        first = tree.body[0] if tree is not None and tree.body else None
        return self._hint(first.value) if isinstance(first, ast.Expr) and not _is_text(first.value) else None

    def _union(self, nodes: Sequence[ast.expr]) -> _Strategy | None:
        found = [s for s in map(self._hint, nodes) if s is not None]
        return st.one_of(found) if found else None

    def _collection(self, name: str, inner: Sequence[ast.expr]) -> _Strategy | None:
        plain = {
            "int": self.integers, "str": self.text, "float": self.floats, "bool": st.booleans(),
            "bytes": st.binary(max_size=12), "object": self.anything, "Any": self.anything,
        }.get(name)  # fmt: skip
        if plain is not None:
            return plain
        if name in ("tuple", "Tuple") and inner:
            if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
                item = self._hint(inner[0])
                return None if item is None else st.lists(item, max_size=_MOST).map(tuple)
            items = [self._hint(n) for n in inner]
            return st.tuples(*[i for i in items if i is not None]) if all(i is not None for i in items) else None
        told = [self._hint(n) for n in inner]
        parts = [self.anything if t is None else t for t in told] or [st.integers(-20, 20) | self.text] * 2
        if name in _LISTS:
            return st.lists(parts[0], max_size=_MOST)
        if name in _SETS:
            elements = st.integers(-20, 20) if not inner else parts[0].map(_hashable)
            return st.sets(elements, min_size=1, max_size=_MOST)
        if name in _DICTS:
            return st.dictionaries(parts[0].map(_hashable) if inner else self.text, parts[-1], max_size=_MOST)
        return None


def _hashable(value: object) -> object:
    """A value that may be a key or an element: what a hint does not say is made of lists, too."""
    if isinstance(value, dict):
        return tuple((_hashable(k), _hashable(v)) for k, v in value.items())
    if isinstance(value, set):
        value = sorted(value, key=repr)  # whose order is no run's own
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
