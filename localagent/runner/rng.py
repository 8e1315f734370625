"""A seeded source of chance that knows what the code under test is about.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import random
import sys
import types
from typing import Any, Dict, Iterable, List, Tuple

_NUMBERS_LIMIT = 1000


def seed_now(seed: int) -> None:
    """What is drawn from here on is drawn alike by every program that is seeded so."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(seed % (1 << 32))


class Chance(random.Random):
    """A seeded source that knows the letters and numbers written in the code under test (a fuzzer's dictionary)."""

    letters: Tuple[str, ...] = ()
    numbers: Tuple[int, ...] = ()

    @classmethod
    def of(cls, seed: int, codes: Iterable[types.CodeType]) -> "Chance":
        """With the constants of some code objects and those inside them."""
        made = cls(seed)
        letters: Dict[str, None] = {}
        numbers: Dict[int, None] = {}
        todo: List[Any] = list(codes)
        while todo:
            for value in todo.pop().co_consts:
                if isinstance(value, types.CodeType):
                    todo.append(value)
                elif type(value) is int and abs(value) <= _NUMBERS_LIMIT:
                    numbers[value] = None
                elif type(value) is str and len(value) == 1:
                    letters[value] = None
        made.letters, made.numbers = tuple(letters), tuple(numbers)
        return made
