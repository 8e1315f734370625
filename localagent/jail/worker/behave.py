"""What do programs do on inputs near those the tests use? The evidence for choosing among plausible candidates.

In a forked child of a collected session: run the given tests once with a profile hook that copies the arguments of the
calls that lead to the watched functions, vary the copies (seeded), then make those calls in each program, every program
in a child of its own, and answer one short digest per call. Nothing is asserted: programs that agree everywhere may all
be wrong. A crash on an input that keeps the relations of a test's is told with its traceback (the implicit oracle:
Barr et al., "The Oracle Problem in Software Testing", 2015).
"""

from __future__ import annotations

import copy
import dis
import hashlib
import os
import signal
import sys
import time
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import confine
from .failures import bounded, describe, side
from .neighbours import Chance, neighbours
from .wire import Reader, WireClosed, WireFault, WireTimeout, send

CALLS_LIMIT = 12
INPUTS_LIMIT = 96
VARIANTS_LEAST = 8
CRASHES_LIMIT = 3
_ENOUGH = 12
_COPIES_LIMIT = 400
_SHAPE_LIMIT = 4000
_ITEMS_LIMIT = 300
_CALL_SECONDS = 0.05
_LATE_LIMIT = 10
_PLAIN = (int, float, str, bool, type(None), bytes, complex)
_TOLD_BY_REPR = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress"})  # values of the library
_GENERATOR, _ASYNC = 0x20, 0x80 | 0x200  # inspect.CO_GENERATOR; CO_COROUTINE, CO_ASYNC_GENERATOR
_RAISE = dis.opmap["RAISE_VARARGS"]
_exit = os._exit

Input = Tuple[types.FunctionType, Tuple[Any, ...], Dict[str, Any], bool]  # the last: relations kept


class _TooLong(BaseException):
    pass


class Call:
    """A call seen in a test: which function, with what, and whether it led to a watched function."""

    def __init__(self, function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.reaches = False


class Capture:
    """Copies the arguments of calls that enter the files of the watched functions, and of the watched calls themselves.

    An entry is a call into one of `files` from a file that is none of them: what the tests themselves ask of the code.
    `find` tells the function of a code object, None where that is not clear.
    """

    def __init__(
        self,
        functions: List[types.FunctionType],
        files: Set[str],
        find: Callable[[types.CodeType], Optional[types.FunctionType]],
    ) -> None:
        self._watched = {f.__code__: f for f in functions}
        self._files, self._find = files, find
        self.entries: List[Call] = []
        self.inner: List[Call] = []
        self._seen: Set[str] = set()
        self._copied = 0
        self._open: Optional[Call] = None
        self._busy = False
        self._generators: List[Any] = []

    def codes(self) -> List[types.CodeType]:
        """The watched functions' code."""
        return list(self._watched)

    def start(self) -> None:
        sys.setprofile(self._event)

    def stop(self) -> None:
        sys.setprofile(None)

    def _event(self, frame: Any, event: str, _arg: Any) -> None:
        if event != "call" or self._busy:
            return
        code = frame.f_code
        watched = self._watched.get(code)
        if code.co_filename not in self._files:
            return
        caller = frame.f_back
        entry = caller is None or caller.f_code.co_filename not in self._files
        if not entry and watched is None:
            return
        if code.co_flags & _GENERATOR:  # a generator's frame is entered again for each value
            if any(frame is f for f in self._generators) or len(self._generators) >= _COPIES_LIMIT:
                return
            self._generators.append(frame)
        self._busy = True
        try:
            if entry:
                self._open = self._take(code, self._find(code), frame)
            if watched is not None:
                if self._open is not None and not self._open.reaches and len(self.entries) < CALLS_LIMIT:
                    self._open.reaches = True
                    self.entries.append(self._open)
                if not entry and len(self.inner) < CALLS_LIMIT:
                    made = self._take(code, watched, frame)
                    if made is not None:
                        self.inner.append(made)
        except Exception:
            return
        finally:
            self._busy = False

    def _take(self, code: types.CodeType, function: Optional[types.FunctionType], frame: Any) -> Optional[Call]:
        if function is None or self._copied >= _COPIES_LIMIT or code.co_flags & _ASYNC:
            return None
        self._copied += 1
        n = code.co_argcount
        names = code.co_varnames
        values = frame.f_locals
        args = tuple(copy.deepcopy(values[name]) for name in names[:n])
        at = n + code.co_kwonlyargcount
        kwargs = {name: copy.deepcopy(values[name]) for name in names[n:at]}
        if code.co_flags & 0x04:
            args += tuple(copy.deepcopy(values[names[at]]))
            at += 1
        if code.co_flags & 0x08:
            kwargs.update(copy.deepcopy(values[names[at]]))
        key = "%s:%d %s" % (code.co_filename, code.co_firstlineno, shape((args, kwargs)))
        if key in self._seen:
            return None
        self._seen.add(key)
        return Call(function, args, kwargs)


def shape(value: Any, depth: int = 0) -> str:
    """A text that is equal for values of equal structure: attributes of objects instead of their addresses.

    `True`, `1` and `1.0` are equal here as they are to a test that compares with `==`.
    """
    if depth > 60:
        return "..."
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return repr(int(value))[:_SHAPE_LIMIT]
    if isinstance(value, _PLAIN):
        return repr(value)[:_SHAPE_LIMIT]
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ",".join(shape(v, depth + 1) for v in value[:_ITEMS_LIMIT]) + ")"
    if isinstance(value, (set, frozenset)):
        return "set(" + ",".join(sorted(shape(v, depth + 1) for v in list(value)[:_ITEMS_LIMIT])) + ")"
    if isinstance(value, dict):
        pairs = list(value.items())[:_ITEMS_LIMIT]
        return "dict(" + ",".join(shape(k, depth + 1) + ":" + shape(v, depth + 1) for k, v in pairs) + ")"
    if hasattr(value, "__next__"):
        taken = []
        for item in value:
            taken.append(shape(item, depth + 1))
            if len(taken) >= _ITEMS_LIMIT:
                break
        return "list(" + ",".join(taken) + ")"
    if type(value).__module__ in _TOLD_BY_REPR:
        return repr(value)[:_SHAPE_LIMIT]
    attributes = _attributes(value)
    name = type(value).__qualname__
    if isinstance(attributes, dict) and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return name + shape(attributes, depth + 1)
    return name


def _attributes(value: Any) -> Any:
    """What an object holds: its `__dict__`, and what its classes keep in slots."""
    attributes = getattr(value, "__dict__", None)
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return attributes
    slots: Dict[str, Any] = {}
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            private = name.startswith("__") and not name.endswith("__")
            real = "_%s%s" % (kind.__name__.lstrip("_"), name) if private else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, real):
                slots[real] = getattr(value, real)
    return {**slots, **attributes} if slots and isinstance(attributes, dict) else slots or attributes


def inputs(capture: Capture, rng: Chance) -> List[Input]:
    """The calls that were seen and neighbours of them; what the tests ask for themselves comes first."""
    found: List[Input] = []
    for heard, asked in ((capture.entries, True), (capture.inner, False)):
        calls = [c for c in heard if len(shape((c.args, c.kwargs))) <= _SHAPE_LIMIT]
        if not asked and sum(kept for _, _, _, kept in found) >= _ENOUGH:
            break
        count = max(VARIANTS_LEAST, INPUTS_LIMIT // max(1, len(calls)))
        for call in calls:
            found.append((call.function, call.args, call.kwargs, False))
            own = own_arguments(call.function, call.args)
            for made, kwargs, kept in neighbours(call.args[own:], call.kwargs, rng, count):
                args = call.args[:own] + made
                if len(shape((args, kwargs))) <= _SHAPE_LIMIT:
                    found.append((call.function, args, kwargs, kept and asked))
    seen: Set[str] = set()
    out = []
    for one in found:
        key = str(id(one[0])) + shape(one[1:3])
        if key not in seen:
            seen.add(key)
            out.append(one)
    return out


def own_arguments(function: types.FunctionType, args: Tuple[Any, ...]) -> int:
    """1 where the first argument is the object (or class) whose method is called: its state is nobody's input."""
    if not args:
        return 0
    first = args[0]
    return int(hasattr(first if isinstance(first, type) else type(first), function.__name__))


def call_all(root: str, calls: List[Input]) -> Tuple[List[str], List[Dict[str, Any]]]:
    """One digest per call (what came back or was raised, and what became of the arguments), and the first crashes.

    The kind before the digest: `ok`, `late`, `refused` (raised on purpose) or `raised` (the program crashed).
    """

    def late(_number: int, _frame: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, late)
    out: List[str] = []
    crashes: List[Dict[str, Any]] = []
    slow = 0
    for number, (function, first_args, first_kwargs, kept) in enumerate(calls):
        if slow >= _LATE_LIMIT:
            out.append("late:")
            continue
        args, kwargs = copy.deepcopy(first_args), copy.deepcopy(first_kwargs)
        try:
            signal.setitimer(signal.ITIMER_PROF, _CALL_SECONDS)
            answer = "ok " + shape(function(*args, **kwargs)) + " " + shape((args, kwargs))
        except _TooLong:
            answer = "late"
            slow += 1
        except BaseException as fault:
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer = ("refused " if on_purpose(fault) else "raised ") + type(fault).__name__
            if kept and answer.startswith("raised ") and len(crashes) < CRASHES_LIMIT:
                text = "%s(%s)" % (function.__name__, _shown(first_args, first_kwargs))
                crashes.append({"i": number, "call": bounded(text, 300), "failure": describe(root, fault)})
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        kind = answer.split(" ", 1)[0]
        out.append(kind + ":" + hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()[:16])
    return out, crashes


def _shown(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    plain = [side(a) for a in args if not hasattr(a, "__dict__")]
    return ", ".join(plain + ["%s=%s" % (k, side(v)) for k, v in kwargs.items()])


def on_purpose(fault: BaseException) -> bool:
    """Whether a `raise` or `assert` statement made the exception: the program turned the input down."""
    if isinstance(fault, AssertionError):
        return True
    traceback = fault.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code.co_code
    return 0 <= traceback.tb_lasti < len(code) and code[traceback.tb_lasti] == _RAISE


def table(
    capture: Capture,
    root: str,
    run_tests: Callable[[], None],
    programs: List[Callable[[], None]],
    seed: int,
    program_seconds: float,
) -> Dict[str, Any]:
    """Rows of digests, one per program (empty when it could not be asked), columns are calls.

    `kept` tells which columns are neighbours that keep the relations of a call the tests make; `seen` which are such
    calls themselves; `crashes` are a few per program, of kept columns.
    """
    capture.start()
    try:
        run_tests()
    finally:
        capture.stop()
    calls = inputs(capture, Chance.of(seed, capture.codes()))
    answers = [_ask(root, calls, program, program_seconds) for program in programs] if calls else []
    originals = {id(c.args) for c in (*capture.entries, *capture.inner)}
    return {
        "kept": [kept for _, _, _, kept in calls],
        "seen": [id(args) in originals for _, args, _, _ in calls],
        "rows": [row for row, _ in answers],
        "crashes": [crashes for _, crashes in answers],
    }


def _ask(
    root: str, calls: List[Input], program: Callable[[], None], seconds: float
) -> Tuple[List[str], List[Dict[str, Any]]]:
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_fd)
            confine.guard_child()
            confine.limit_cpu(seconds)
            program()
            row, crashes = call_all(root, calls)
            send(write_fd, {"row": row, "crashes": crashes})
        finally:
            _exit(0)
    os.close(write_fd)
    row, crashes = [], []
    try:
        answer = Reader(read_fd).receive(time.monotonic() + 2 * seconds + 1)
        got, told = answer.get("row"), answer.get("crashes")
        if isinstance(got, list) and len(got) == len(calls) and all(isinstance(x, str) for x in got):
            row, crashes = got, told if isinstance(told, list) else []
    except (WireClosed, WireFault, WireTimeout):
        row, crashes = [], []
    os.close(read_fd)
    os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    os.waitpid(pid, 0)
    return row, crashes
