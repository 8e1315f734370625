"""What do programs do on inputs near those the tests use? The evidence for choosing among plausible candidates.

In a forked child of a collected session: run the given tests once with a profile hook that copies the arguments of the
calls that lead to the watched functions, vary the copies (seeded), then make those calls in each program, every program
in a child of its own, and answer one short digest per call; of calls on which programs differ, some with the answers in
words. Nothing is asserted: programs that agree everywhere may all be wrong, and what a hostile `repr` says may be. A
crash on an input that keeps the relations of a test's is told with its traceback (the implicit oracle: Barr et al.,
"The Oracle Problem in Software Testing", 2015).
"""

from __future__ import annotations

import builtins
import copy
import dis
import hashlib
import signal
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .call_capture import Capture, own_arguments
from .failures import bounded, describe, relative_path, side
from .fork_child import answer_of_child
from .nearby_inputs import neighbours
from .rng import Chance
from .safe_repr import literal, show
from .structural_key import SHAPE_LIMIT, shape

INPUTS_LIMIT = 96
VARIANTS_LEAST = 8
CRASHES_LIMIT = 3
SHOWN_LIMIT, SHOWN_ALIKE = 60, 3
_CALL_TEXT, _ANSWER_TEXT = 300, 160
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


Told = Tuple[List[str], List[Dict[str, Any]], List[str], List[bool]]
"""A digest per call, the first crashes, a text per call ("" where nothing can be said), and whether it is exact.

Exact: nothing is left out, and it is a literal, or an exception that every module knows by its name.
"""


def call_all(root: str, calls: List[Input]) -> Told:
    """One digest per call: what came back or was raised, and what became of the arguments.

    The kind before the digest: `ok`, `late`, `refused` (raised on purpose) or `raised` (the program crashed). Behind
    that of `ok` stands a short one of what came back alone, where anything did.
    """

    def late(_number: int, _frame: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, late)
    out: List[str] = []
    crashes: List[Dict[str, Any]] = []
    texts: List[str] = []
    exact: List[bool] = []
    slow = 0
    for number, (function, first_args, first_kwargs, kept) in enumerate(calls):
        if slow >= _LATE_LIMIT:
            out.append("late:")
            texts.append("")
            exact.append(False)
            continue
        args, kwargs = copy.deepcopy((first_args, first_kwargs))
        text, whole, alone = "", False, ""
        try:
            signal.setitimer(signal.ITIMER_PROF, _CALL_SECONDS)
            result = function(*args, **kwargs)
            came = shape(result)
            answer = "ok " + came + " " + shape((args, kwargs))
            signal.setitimer(signal.ITIMER_PROF, 0)
            alone = "" if result is None else ":" + _digest(came)[:8]
            text, whole = _describe(result, came, (first_args, first_kwargs), (args, kwargs))
        except _TooLong:
            answer = text = "late"
            slow += 1
        except BaseException as fault:
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer = ("refused " if on_purpose(fault) else "raised ") + type(fault).__name__
            if kept and answer.startswith("raised ") and len(crashes) < CRASHES_LIMIT:
                crashes.append(
                    {
                        "i": number,
                        "call": _call_text(function, first_args, first_kwargs),
                        "failure": describe(root, fault),
                    }
                )
            text = "raises %s" % bounded(type(fault).__name__, _ANSWER_TEXT)
            whole = getattr(builtins, type(fault).__name__, None) is type(fault)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        kind = answer.split(" ", 1)[0]
        out.append(kind + ":" + _digest(answer)[:16] + alone)
        texts.append("does not end in time" if text == "late" else text)
        exact.append(whole)
    return out, crashes, texts, exact


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _describe(result: Any, came: str, before: Tuple[Any, Any], after: Tuple[Any, Any]) -> Tuple[str, bool]:
    """What came back, and the arguments where they are others now; "" where showing it takes too long or fails.

    And whether that is a literal, whole, of a call that left its arguments alone.
    """
    try:
        signal.setitimer(signal.ITIMER_PROF, _CALL_SECONDS)
        text = bounded(came if hasattr(result, "__next__") else show(result), _ANSWER_TEXT)
        if shape(before) != shape(after):
            text += ", its arguments then: " + bounded(_shown(*after), _ANSWER_TEXT)
        return text, literal(result) and text == repr(result)
    except BaseException:
        return "", False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _call_text(function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    return bounded(_whole(function, args, kwargs), _CALL_TEXT)


def _whole(function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    return "%s(%s)" % (function.__name__, _shown(args, kwargs))


def _shown(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    plain = [_value(a) for a in args if not hasattr(a, "__dict__")]
    return ", ".join(plain + ["%s=%s" % (k, _value(v)) for k, v in kwargs.items()])


def _value(value: Any) -> str:
    return repr(value) if literal(value) else side(value)


def locate(root: str, function: types.FunctionType) -> Optional[List[str]]:
    """Path, module and qualified name of a function to which its name leads; None of any other."""
    try:
        path = relative_path(root, function.__code__.co_filename)
        found: Any = sys.modules[function.__module__]
        for name in function.__qualname__.split("."):
            found = getattr(found, name)
    except Exception:
        return None
    return [path, function.__module__, function.__qualname__] if path is not None and found is function else None


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
    calls themselves; `crashes` are a few per program, of kept columns; `shown` are columns in which programs differ,
    with the call and each program's answer in words, where the function is found, and which answers to it are exact.
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
        "rows": [row for row, _, _, _ in answers],
        "crashes": [crashes for _, crashes, _, _ in answers],
        "shown": _telling(root, calls, answers),
    }


def _telling(root: str, calls: List[Input], answers: List[Told]) -> List[Dict[str, Any]]:
    """Columns in which programs differ: those that keep a test's relations first, then the shortest calls.

    Only a few of those that divide the programs alike, so that every division is shown.
    """
    rows = [row for row, _, _, _ in answers if row]
    found = []
    for number, (function, args, kwargs, kept) in enumerate(calls):
        cells = [row[number] for row in rows]
        if len(set(cells)) > 1:
            text = _call_text(function, args, kwargs)
            found.append((not kept, len(text), text, number, tuple(map(cells.index, cells))))
    shown: List[Dict[str, Any]] = []
    divided: Dict[Tuple[int, ...], int] = {}
    for _, _, text, number, division in sorted(found):
        divided[division] = divided.get(division, 0) + 1
        if divided[division] <= SHOWN_ALIKE and len(shown) < SHOWN_LIMIT:
            told = [texts[number] if row else "" for row, _, texts, _ in answers]
            function, args, kwargs, _ = calls[number]
            whole = all(map(literal, [*args, *kwargs.values()])) and text == _whole(function, args, kwargs)
            exact = [whole and bool(row) and exact[number] for row, _, _, exact in answers]
            shown.append(
                {"i": number, "call": text, "answers": told, "function": locate(root, function), "exact": exact}
            )
    return shown


def _ask(root: str, calls: List[Input], program: Callable[[], None], seconds: float) -> Told:
    def answers() -> Dict[str, Any]:
        program()
        row, crashes, texts, exact = call_all(root, calls)
        return {"row": row, "crashes": crashes, "texts": texts, "exact": exact}

    told = answer_of_child(answers, seconds, 2 * seconds + 1)
    row, crashes, texts, exact = (told.get(k) for k in ("row", "crashes", "texts", "exact"))
    if isinstance(row, list) and len(row) == len(calls) and all(isinstance(x, str) for x in row):
        if not isinstance(texts, list) or len(texts) != len(row) or not all(isinstance(x, str) for x in texts):
            texts = [""] * len(row)
        if not isinstance(exact, list) or len(exact) != len(row):
            exact = [False] * len(row)
        return row, crashes if isinstance(crashes, list) else [], texts, [x is True for x in exact]
    return [], [], [], []
