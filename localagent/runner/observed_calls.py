"""What functions answer to the calls of tests, where the tests make them: for calls that cannot be made again.

Arguments that hold locks, files or half of the program cannot be copied, so nobody can ask a function with them twice.
What it returned there, and how it left its arguments, can still be compared between two trees, call by call.
Standard library only, runs in the jail on the project's own Python. Not promised: which exception a call ended with.
"""

from __future__ import annotations

import dis
import hashlib
import types
from typing import Any, Dict, List, Tuple

from .failures import bounded
from .safe_repr import ADDRESS, TEXT_LIMIT, show
from .structural_key import whole_shape

CALLS_OF_TEST = 6
CALLS_LIMIT = 60  # of one function
_PARTS_LIMIT = 1_500_000  # of all values looked at
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)
_NOT_PLAIN = 0x20 | 0x80 | 0x200  # inspect: generators, coroutines, asynchronous generators
_VARIADIC, _KEYWORDS = 0x04, 0x08


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _OpenCall:
    """A call that has not ended: its frame, which keeps its number from being given again, and its arguments."""

    def __init__(self, frame: Any, key: str, record: Dict[str, Any], arguments: List[Tuple[str, Any]]) -> None:
        self.frame, self.key, self.record, self.arguments = frame, key, record, arguments


class ObservedCalls:
    """Calls of some functions, by a key that the same call of another tree has too; the first of each test."""

    def __init__(self) -> None:
        self.records: Dict[str, Dict[str, Any]] = {}
        self._open: Dict[int, _OpenCall] = {}
        self._made: Dict[Tuple[int, int], int] = {}
        self._of_function: Dict[int, int] = {}
        self._parts_left = _PARTS_LIMIT

    def enter(self, number: int, item: int, frame: Any) -> None:
        """A call of function `number` begins in test `item`."""
        made = self._made.get((number, item), 0)
        if frame.f_code.co_flags & _NOT_PLAIN or made >= CALLS_OF_TEST:
            return
        if self._of_function.get(number, 0) >= CALLS_LIMIT:
            return
        self._made[(number, item)] = made + 1
        self._of_function[number] = self._of_function.get(number, 0) + 1
        arguments = _arguments(frame)
        given = self._shape(arguments)
        if not given:
            return
        shown = bounded(", ".join(show(value) for _, value in arguments), TEXT_LIMIT)
        record = {"f": number, "item": item, "call": ADDRESS.sub("", shown)}
        key = _digest("%d in place %s %d %d %s" % (number, frame.f_code.co_name, item, made, given))[:24]
        self._open[id(frame)] = _OpenCall(frame, key, record, arguments)

    def leave(self, frame: Any, value: Any) -> None:
        """A call ends: with a value, or with None where it raised."""
        call = self._open.pop(id(frame), None)
        if call is None:
            return
        if value is None and frame.f_code.co_code[frame.f_lasti] not in _RETURNS:
            answer = {"k": "raised", "t": "raises", "d": _digest("raised")[:24], "r": _digest("raised")[:12]}
        else:
            said, left = self._shape(value), self._shape(call.arguments)
            if not said or not left:
                return
            text = bounded(ADDRESS.sub("", show(value)), TEXT_LIMIT)
            answer = {"k": "ok", "t": text, "d": _digest(said + " " + left)[:24], "r": _digest(said)[:12]}
        self.records[call.key] = {**call.record, "run": {**answer, "p": {}, "l": []}}

    def _shape(self, value: Any) -> str:
        """Its structure; "" where it is too large to be compared as a whole."""
        found, parts = whole_shape(value, self._parts_left)
        self._parts_left -= parts
        return found


def _arguments(frame: Any) -> List[Tuple[str, Any]]:
    """What a call was given, and what its function takes from the one that defines it."""
    code: types.CodeType = frame.f_code
    many = code.co_argcount + code.co_kwonlyargcount
    many += bool(code.co_flags & _VARIADIC) + bool(code.co_flags & _KEYWORDS)
    values = frame.f_locals
    names = code.co_varnames[:many] + code.co_freevars
    return [(name, values[name]) for name in names if name in values]
