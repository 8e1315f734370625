"""What one call of a function answers: what it returns or raises, how it leaves its arguments, the lines that it runs.

Standard library only, runs in the jail on the project's own Python. Not promised: that a function under test cannot
lie about its own answers.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import signal
import sys
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from .behaviour_probe import on_purpose
from .failures import bounded
from .safe_repr import ADDRESS, TEXT_LIMIT, show
from .structural_key import instance_dict

CALL_SECONDS = 0.05
LINES_LIMIT = 400
VALUES_LIMIT = 300  # of a generator
AWAITED_SECONDS = 0.5
CONSTRUCTOR = "__init__"
STATE_LIMIT = 40  # attributes of an object
_TRACED_TIMES = 4  # as long a call may take while its lines are noted
_COROUTINE, _ASYNC_GENERATOR = 0x80, 0x200  # inspect.CO_COROUTINE, CO_ASYNC_GENERATOR

Properties = Callable[[Any], Dict[str, bool]]


class TooLong(BaseException):
    """A call has used up its processor time."""


def digest(text: str) -> str:
    """Of a text that may hold lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class LineRecorder:
    """Notes the lines that a function, and what is defined inside it, runs; counted from its first line."""

    def __init__(self, function: types.FunctionType) -> None:
        self._first = function.__code__.co_firstlineno
        self._codes = set(family(function.__code__))
        self.lines: Set[int] = set()

    def enter(self, frame: Any, _event: str, _arg: Any) -> Any:
        """As `sys.settrace` wants it."""
        return self._line if frame.f_code in self._codes else None

    def _line(self, frame: Any, event: str, _arg: Any) -> Any:
        if event == "line" and len(self.lines) < LINES_LIMIT:
            self.lines.add(frame.f_lineno - self._first)
        return self._line


def family(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those defined inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from family(inner)


def hear_time_limit() -> None:
    """Have a call that runs over its processor time end with TooLong."""

    def late(_number: int, _frame: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, late)


SKIPPED: Dict[str, Any] = {"k": "skipped", "t": "", "d": "", "r": "", "p": {}, "l": [], "v": ""}


def call_answer(
    function: types.FunctionType,
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    look: Callable[[Any], str],
    *,
    traced: bool,
    own: int = 0,
    given: str = "",
    held_by: Optional[Properties] = None,
) -> Dict[str, Any]:
    """One record: `k` (ok, late, refused, raised, skipped), `t` what it says, `d` a digest, `p` properties.

    `r` is a digest of what was returned or raised alone, without what became of the arguments, `v` of the value alone,
    "" where there is none; `l` are the lines it ran, where they were noted; `s` is the `made_state` of what a
    constructor made. `look` tells a value's structure, "" where it is too large. `given` is what it told of the
    arguments; `held_by` tells the properties of a result. The call is made on these very arguments: `hear_time_limit`
    first.
    """
    way = LineRecorder(function) if traced else None
    held: Dict[str, bool] = {}
    state: Dict[str, str] = {}
    random.seed(0)
    said = value = ""
    try:
        signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS if way is None else _TRACED_TIMES * CALL_SECONDS)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")  # a project may have them raised, which would end every call that warns
            sys.settrace(None if way is None else way.enter)
            result = _made(function(*args, **kwargs))
            sys.settrace(None)
        warns = _warnings(warned)
        shapes = look(result), look((args, kwargs))
        value, said, changed = digest(shapes[0])[:12], shapes[0] + warns, shapes[1]
        hidden = isinstance(result, types.FunctionType) or not all(shapes)  # what that does is in none of its parts
        kind = "skipped" if hidden else "ok"
        text = bounded(show(result), TEXT_LIMIT - len(warns)) + warns
        signal.setitimer(signal.ITIMER_PROF, 2 * CALL_SECONDS)
        held = _held(held_by, result)
        answer = said + " " + changed
        if own and function.__name__ == CONSTRUCTOR:
            state = made_state(args[0], (args[1:], kwargs), look)
            text = bounded(text, TEXT_LIMIT // 2) + ", made " + bounded(show(args[0]), TEXT_LIMIT // 2)
        elif own and changed != given and result is None:
            text = bounded(text, TEXT_LIMIT // 2) + ", object then " + bounded(show(args[0]), TEXT_LIMIT // 2)
        if changed != given and not held.get("arguments unchanged", True):
            text = bounded(text, TEXT_LIMIT // 2) + ", arguments then " + bounded(show(args[own:]), TEXT_LIMIT // 2)
    except BaseException as fault:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.settrace(None)
        kind, text, answer = _ended(fault)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.settrace(None)
    whole, alone = digest(kind[:2] + answer)[:24], digest(kind[:2] + (said if kind == "ok" else answer))[:12]
    lines = [] if way is None else sorted(way.lines)
    shown = bounded(ADDRESS.sub("", text), TEXT_LIMIT)
    return {"k": kind, "t": shown, "d": whole, "r": alone, "p": held, "l": lines, "v": value, "s": state}


def _ended(fault: BaseException) -> Tuple[str, str, str]:
    """(kind, text, what is digested) of a call that an exception ended."""
    if isinstance(fault, TooLong):
        return "late", "does not end within %.2f s of processor time" % CALL_SECONDS, "late"
    if isinstance(fault, _Suspended):
        return "skipped", "", ""
    name = type(fault).__name__
    text = "raises " + bounded(name, 80) + bounded(_message(fault), TEXT_LIMIT // 2)
    return "refused" if on_purpose(fault) else "raised", text, name


def made_state(made: Any, others: Any, look: Callable[[Any], str]) -> Dict[str, str]:
    """Digests of an object's attributes by their names, and of all else by "". Empty where it cannot be told whole."""
    attributes = instance_dict(made)
    if type(attributes) is not dict or len(attributes) > STATE_LIMIT:
        return {}
    texts = {str(name): look(value) for name, value in attributes.items()}
    texts[""] = look((others, type(made).__qualname__))
    return {name: digest(text)[:12] for name, text in texts.items()} if all(texts.values()) else {}


class _Suspended(Exception):  # noqa: N818 - named for what happened
    """A coroutine waits for what nothing here brings."""


def _made(result: Any) -> Any:
    """What a call comes to: the values of a generator, what a coroutine returns, everything else as it is."""
    if hasattr(result, "__next__"):
        return list(itertools.islice(result, VALUES_LIMIT))
    if isinstance(result, types.CoroutineType):
        return _awaited(result)
    if isinstance(result, types.AsyncGeneratorType):
        return _awaited(_values(result))
    return result


async def _values(generator: Any) -> List[Any]:
    found: List[Any] = []
    async for value in generator:
        found.append(value)
        if len(found) >= VALUES_LIMIT:
            break
    return found


def _awaited(coroutine: Any) -> Any:
    """What a coroutine returns, in a loop of its own; one that waits without asyncio is given up."""
    asyncio = sys.modules.get("asyncio")  # nothing can wait for its futures where nobody imported it
    if asyncio is None:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        coroutine.close()
        raise _Suspended
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(coroutine)
        loop.run_until_complete(asyncio.wait({task}, timeout=AWAITED_SECONDS))
        if not task.done():
            raise TooLong
        return task.result()
    finally:
        loop.close()


def _held(held_by: Optional[Properties], result: Any) -> Dict[str, bool]:
    """The properties of one call; none where the calls that they take are too slow."""
    try:
        return held_by(result) if held_by is not None else {}
    except TooLong:
        return {}


def _warnings(warned: List[warnings.WarningMessage]) -> str:
    """What a call warned of: the kinds, once each."""
    kinds = sorted({one.category.__name__ for one in warned})
    return bounded(", warns " + ", ".join(kinds), TEXT_LIMIT // 2) if kinds else ""


def _message(fault: BaseException) -> str:
    try:
        said = str(fault)
    except BaseException:  # of the code under test
        return ""
    return ": " + said if said else ""
