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
import signal
import types
from typing import Any, Callable, Dict, List, Set, Tuple

from .capture import Capture, own_arguments
from .chance import Chance
from .child import answer_of_child
from .failures import bounded, describe, side
from .neighbours import neighbours
from .shapes import SHAPE_LIMIT, shape

INPUTS_LIMIT = 96
VARIANTS_LEAST = 8
CRASHES_LIMIT = 3
_ENOUGH = 12
_CALL_SECONDS = 0.05
_LATE_LIMIT = 10
_RAISE = dis.opmap["RAISE_VARARGS"]

Input = Tuple[types.FunctionType, Tuple[Any, ...], Dict[str, Any], bool]  # the last: relations kept


class _TooLong(BaseException):
    pass


def inputs(capture: Capture, rng: Chance) -> List[Input]:
    """The calls that were seen and neighbours of them; what the tests ask for themselves comes first."""
    found: List[Input] = []
    for heard, asked in ((capture.entries, True), (capture.inner, False)):
        calls = [c for c in heard if len(shape((c.args, c.kwargs))) <= SHAPE_LIMIT]
        if not asked and sum(kept for _, _, _, kept in found) >= _ENOUGH:
            break
        count = max(VARIANTS_LEAST, INPUTS_LIMIT // max(1, len(calls)))
        for call in calls:
            found.append((call.function, call.args, call.kwargs, False))
            own = own_arguments(call.function, call.args)
            for made, kwargs, kept in neighbours(call.args[own:], call.kwargs, rng, count):
                args = call.args[:own] + made
                if len(shape((args, kwargs))) <= SHAPE_LIMIT:
                    found.append((call.function, args, kwargs, kept and asked))
    seen: Set[str] = set()
    out = []
    for one in found:
        key = str(id(one[0])) + shape(one[1:3])
        if key not in seen:
            seen.add(key)
            out.append(one)
    return out


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
    def answers() -> Dict[str, Any]:
        program()
        row, crashes = call_all(root, calls)
        return {"row": row, "crashes": crashes}

    told = answer_of_child(answers, seconds, 2 * seconds + 1)
    row, crashes = told.get("row"), told.get("crashes")
    if isinstance(row, list) and len(row) == len(calls) and all(isinstance(x, str) for x in row):
        return row, crashes if isinstance(crashes, list) else []
    return [], []
