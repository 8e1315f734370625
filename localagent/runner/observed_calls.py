"""What functions answer to the calls of tests, where the tests make them: for calls that cannot be made again.

Arguments that hold locks, files or half of the program cannot be copied, so nobody can ask a function with them twice.
What it returned there, and how it left its arguments, can still be compared between two trees, call by call.
Standard library only, runs in the jail on the project's own Python. Not promised: which exception a call ended with.
"""

from __future__ import annotations

import dis
import types
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from .call_answers import CONSTRUCTOR, digest, made_state
from .call_capture import RESUMED, arguments_of, without_defaults
from .failures import bounded
from .safe_repr import ADDRESS, TEXT_LIMIT, show
from .structural_key import whole_shape

CALLS_OF_TEST = 6
CALLS_LIMIT = 60  # of one function
_PARTS_LIMIT = 1_500_000  # of all values looked at
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)
_GIVES = frozenset(dis.opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM", "SEND") if name in dis.opmap)
_GENERATOR, _ASYNC_GENERATOR = 0x20, 0x200  # inspect.CO_GENERATOR, CO_ASYNC_GENERATOR
_YIELDS = 50  # of one generator


class _OpenCall:
    """A call that has not ended: its frame, which keeps its number from being given again, and its arguments.

    Behind these is what its function takes from the one that defines it: the other tree's may take something else.
    `values` are the structures of what it gave so far, where it is a generator's.
    """

    def __init__(self, frame: Any, key: str, record: Dict[str, Any], arguments: List[Tuple[str, Any]]) -> None:
        self.frame, self.key, self.record, self.arguments = frame, key, record, arguments
        self.values: List[str] = []


class ObservedCalls:
    """Calls of some functions, by a key that the same call of another tree has too; the first of each test.

    `functions` are those that stand once; of the `defaulted` ones what is a default is no part of the key.
    """

    def __init__(self, functions: Sequence[Optional[types.FunctionType]], defaulted: FrozenSet[int]) -> None:
        self._functions, self._defaulted = functions, defaulted
        self.records: Dict[str, Dict[str, Any]] = {}
        self._open: Dict[int, _OpenCall] = {}
        self._made: Dict[Tuple[int, int, types.CodeType], int] = {}
        self._of_function: Dict[int, int] = {}
        self._parts_left = _PARTS_LIMIT

    def enter(self, number: int, item: int, frame: Any) -> None:
        """A call of function `number` begins in test `item`."""
        made = self._made.get((number, item, frame.f_code), 0)
        if frame.f_code.co_flags & _ASYNC_GENERATOR or made >= CALLS_OF_TEST:
            return
        if self._of_function.get(number, 0) >= CALLS_LIMIT:
            return
        self._made[(number, item, frame.f_code)] = made + 1
        self._of_function[number] = self._of_function.get(number, 0) + 1
        arguments = self._arguments(number, frame)
        taken = [(name, frame.f_locals[name]) for name in frame.f_code.co_freevars if name in frame.f_locals]
        given = self._shape(arguments)
        if not given:
            return
        shown = bounded(", ".join(show(value) for _, value in arguments + taken), TEXT_LIMIT)
        record = {"f": number, "item": item, "call": ADDRESS.sub("", shown), "made": made}
        key = digest("%d in place %s %d %d %s" % (number, frame.f_code.co_name, item, made, given))[:24]
        self._open[id(frame)] = _OpenCall(frame, key, record, arguments + taken)

    def leave(self, frame: Any, value: Any) -> None:
        """A call ends: with a value, or with None where it raised."""
        call = self._open.pop(id(frame), None)
        if call is None:
            return
        at = frame.f_code.co_code[frame.f_lasti]
        if frame.f_code.co_flags & RESUMED and at in _GIVES:
            self._go_on(call, value)
            return
        answer: Dict[str, Any]
        if value is None and at not in _RETURNS:
            answer = {
                "k": "raised",
                "t": "raises",
                "d": digest("raised")[:24],
                "r": digest("raised")[:12],
            }
        else:
            said, left = self._shape(value), self._shape(call.arguments)
            if not said or not left:
                return
            single = "" if call.frame.f_code.co_flags & _GENERATOR else digest(said)[:12]
            said = "".join([*call.values, said])
            text = bounded(ADDRESS.sub("", show(value)), TEXT_LIMIT)
            answer = {
                "k": "ok",
                "t": text,
                "d": digest(said + " " + left)[:24],
                "r": digest(said)[:12],
                "v": single,
            }
            if call.frame.f_code.co_name == CONSTRUCTOR and call.arguments:
                made = ", made " + bounded(show(call.arguments[0][1]), TEXT_LIMIT // 2)
                answer["t"] = bounded(text, TEXT_LIMIT // 2) + ADDRESS.sub("", made)
                answer["s"] = made_state(call.arguments[0][1], call.arguments[1:], self._shape)
        self.records[call.key] = {**call.record, "run": {**answer, "p": {}, "l": []}}

    def _go_on(self, call: _OpenCall, value: Any) -> None:
        """A frame that gives a value or waits, and will be entered again; what it waits for is no value of it."""
        if not call.frame.f_code.co_flags & _GENERATOR:
            self._open[id(call.frame)] = call
            return
        said = self._shape(value)
        if said and len(call.values) < _YIELDS:
            call.values.append(said)
            self._open[id(call.frame)] = call

    def _arguments(self, number: int, frame: Any) -> List[Tuple[str, Any]]:
        """What a call was given; see `defaulted`."""
        args, kwargs = arguments_of(frame)
        function = self._functions[number]
        if number in self._defaulted and function is not None and frame.f_code is function.__code__:
            args, kwargs = without_defaults(function, args, kwargs)
        return [*((str(n), value) for n, value in enumerate(args)), *kwargs.items()]

    def _shape(self, value: Any) -> str:
        """Its structure; "" where it is too large to be compared as a whole."""
        found, parts = whole_shape(value, self._parts_left)
        self._parts_left -= parts
        return found
