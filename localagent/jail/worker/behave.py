"""What do programs do on inputs near those the tests use? The evidence for choosing among plausible candidates.

In a forked child of a collected session: run the given tests once with a profile hook that copies the arguments of the
watched functions, vary the copies (seeded), then call the watched functions of each program, every program in a child
of its own, and answer one short digest per call. Nothing is asserted: programs that agree everywhere may all be wrong.
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import signal
import sys
import types
from typing import Any, Callable, Dict, List, Tuple

from . import confine
from .wire import Reader, WireClosed, WireFault, WireTimeout, send

CALLS_LIMIT = 12
VARIANTS_LIMIT = 8
_SIZE_LIMIT = 400
_SHAPE_LIMIT = 4000
_ITEMS_LIMIT = 300
_CALL_SECONDS = 0.05
_PLAIN = (int, float, str, bool, type(None), bytes, complex)
_exit = os._exit


class _TooLong(BaseException):
    pass


class Capture:
    """Copies the arguments of calls of the watched code objects."""

    def __init__(self, functions: List[types.FunctionType]) -> None:
        self._by_code = {f.__code__: n for n, f in enumerate(functions)}
        self.calls: List[Tuple[int, Tuple[Any, ...], Dict[str, Any]]] = []
        self._seen: set = set()  # type: ignore[type-arg]
        self._busy = False

    def start(self) -> None:
        sys.setprofile(self._event)

    def stop(self) -> None:
        sys.setprofile(None)

    def _event(self, frame: Any, event: str, _arg: Any) -> None:
        if event != "call" or self._busy or len(self.calls) >= CALLS_LIMIT:
            return
        number = self._by_code.get(frame.f_code)
        if number is None:
            return
        self._busy = True
        try:
            self._take(number, frame)
        except Exception:
            return
        finally:
            self._busy = False

    def _take(self, number: int, frame: Any) -> None:
        code = frame.f_code
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
        key = (number, shape((args, kwargs)))
        if key not in self._seen:
            self._seen.add(key)
            self.calls.append((number, args, kwargs))


def shape(value: Any, depth: int = 0) -> str:
    """A text that is equal for values of equal structure: attributes of objects instead of their addresses."""
    if depth > 60:
        return "..."
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
    attributes = getattr(value, "__dict__", None)
    name = type(value).__qualname__
    if isinstance(attributes, dict) and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return name + shape(attributes, depth + 1)
    return name


def vary(value: Any, rng: random.Random) -> Any:
    """A near neighbour of a plain value; anything else as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1 if value > 0 else value + 2, value * 2, 1, 2, max(0, value // 2)])
    if isinstance(value, float):
        return rng.choice([value + 1.0, value / 2, value * 2])
    if isinstance(value, str):
        return "".join(_vary_items(list(value), rng))
    if isinstance(value, (list, tuple)):
        items = _vary_items(list(value), rng)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict) and value:
        out = dict(value)
        key = rng.choice(list(out))
        if rng.random() < 0.5:
            del out[key]
        else:
            out[key] = vary(out[key], rng)
        return out
    return value


def _vary_items(items: List[Any], rng: random.Random) -> List[Any]:
    if not items:
        return items
    ordered = _is_sorted(items)
    at = rng.randrange(len(items))
    what = rng.randrange(5)
    if what == 0 and len(items) > 1:
        del items[at]
    elif what == 1:
        items.insert(at, copy.deepcopy(items[rng.randrange(len(items))]))
    elif what == 2 and len(items) > 1 and not ordered:
        other = rng.randrange(len(items))
        items[at], items[other] = items[other], items[at]
    elif what == 3 and len(items) > 2:
        items = items[: max(1, len(items) // 2)]
    elif not isinstance(items[at], str) or len(items[at]) != 1:
        items[at] = vary(items[at], rng)
    else:
        items[at] = items[rng.randrange(len(items))]
    return sorted(items) if ordered and len(items) > 1 else items


def _is_sorted(items: List[Any]) -> bool:
    try:
        return len(items) > 2 and all(items[i] <= items[i + 1] for i in range(len(items) - 1))
    except TypeError:
        return False


def variants(args: Tuple[Any, ...], kwargs: Dict[str, Any], rng: random.Random) -> List[Tuple[Any, Dict[str, Any]]]:
    """Neighbours of one call, one argument changed at a time; a count that equalled a length goes on doing so."""
    out = []
    places = [i for i, a in enumerate(args) if isinstance(a, _PLAIN + (list, tuple, dict)) and a is not None]
    keys = [k for k, a in kwargs.items() if isinstance(a, _PLAIN + (list, tuple, dict)) and a is not None]
    for _ in range(VARIANTS_LIMIT):
        if not places and not keys:
            break
        new, named = list(copy.deepcopy(args)), copy.deepcopy(kwargs)
        pick = rng.randrange(len(places) + len(keys))
        if pick < len(places):
            i = places[pick]
            new[i] = vary(new[i], rng)
            _keep_counts(args, new, i)
        else:
            key = keys[pick - len(places)]
            named[key] = vary(named[key], rng)
        if len(shape((new, named))) <= _SHAPE_LIMIT:
            out.append((tuple(new), named))
    return out


def _keep_counts(old: Tuple[Any, ...], new: List[Any], changed: int) -> None:
    if not hasattr(old[changed], "__len__"):
        return
    for i, value in enumerate(old):
        if i != changed and type(value) is int and value == len(old[changed]) and value > 1:
            new[i] = len(new[changed])


def call_all(functions: List[types.FunctionType], calls: List[Any]) -> List[str]:
    """One digest per call: what came back or was raised, and what became of the arguments."""

    def late(_number: int, _frame: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, late)
    out = []
    for number, first_args, first_kwargs in calls:
        args, kwargs = copy.deepcopy(first_args), copy.deepcopy(first_kwargs)
        try:
            signal.setitimer(signal.ITIMER_PROF, _CALL_SECONDS)
            answer = "ok " + shape(functions[number](*args, **kwargs)) + " " + shape((args, kwargs))
        except _TooLong:
            answer = "late"
        except RecursionError:
            answer = "raised RecursionError"
        except BaseException as fault:
            answer = "raised " + type(fault).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        kind = answer.split(" ", 1)[0]
        out.append(kind + ":" + hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()[:16])
    return out


def table(
    functions: List[types.FunctionType],
    run_tests: Callable[[], None],
    programs: List[Callable[[], None]],
    seed: int,
    program_seconds: float,
) -> Dict[str, Any]:
    """Rows of digests, one per program (empty when it could not be asked), columns are calls."""
    capture = Capture(functions)
    capture.start()
    try:
        run_tests()
    finally:
        capture.stop()
    rng = random.Random(seed)
    calls: List[Any] = []
    for number, args, kwargs in capture.calls:
        if len(shape((args, kwargs))) > _SHAPE_LIMIT:
            continue
        calls.append((number, args, kwargs))
        calls.extend((number, a, k) for a, k in variants(args, kwargs, rng))
    rows = [_ask(functions, calls, program, program_seconds) for program in programs] if calls else []
    return {"calls": len(calls), "captured": len(capture.calls), "rows": rows}


def _ask(
    functions: List[types.FunctionType], calls: List[Any], program: Callable[[], None], seconds: float
) -> List[str]:
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_fd)
            confine.guard_child()
            confine.limit_cpu(seconds)
            program()
            send(write_fd, {"row": call_all(functions, calls)})
        finally:
            _exit(0)
    os.close(write_fd)
    row: List[str] = []
    try:
        import time

        answer = Reader(read_fd).receive(time.monotonic() + 2 * seconds + 1).get("row")
        if isinstance(answer, list) and len(answer) == len(calls) and all(isinstance(x, str) for x in answer):
            row = answer
    except (WireClosed, WireFault, WireTimeout):
        row = []
    os.close(read_fd)
    os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    os.waitpid(pid, 0)
    return row
