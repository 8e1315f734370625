"""What do some functions of this tree answer, input by input? One half of a comparison; the host holds the other.

In a forked child of a collected session: run the given tests once, copying the arguments of calls of the watched
functions; vary the copies (seeded by the call itself, so that another tree varies an equal call alike); add the inputs
that the host made; make all these calls twice, in two children. Each call has a key by which the host finds its twin in
the other tree. The second time the lines that the function runs are noted, which tells the way that a call took.
Nothing is asserted here. Not promised: that a function under test cannot lie about its own answers.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import itertools
import random
import signal
import sys
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from .behaviour_probe import on_purpose
from .call_capture import Capture, own_arguments
from .failures import bounded
from .fork_child import WaitingChild, answer_of_child
from .nearby_inputs import neighbours
from .observed_calls import ObservedCalls
from .observed_properties import properties
from .rng import Chance
from .safe_repr import ADDRESS, TEXT_LIMIT, literal, show
from .structural_key import SHAPE_LIMIT, shape

ASKED_LEAST = 5  # a function of which fewer calls can be made again is looked at where tests call it
CALLS_LIMIT = 24  # of one function, as the tests make them
NEAR_LIMIT = 12  # variations of one call
ARGUMENTS_LIMIT = 20
INPUTS_LIMIT = 160  # of one function, those of the host apart
CALL_SECONDS = 0.05
TRACED_TIMES = 4  # as long a call may take while its lines are noted
LINES_LIMIT = 400
LATE_LIMIT = 10
_GENERATOR, _ASYNC, _NEW_LOCALS = 0x20, 0x80 | 0x200, 0x2

Function = Optional[types.FunctionType]


class _TooLong(BaseException):
    pass


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Input:
    """One call to make. `item` is the number of the test that made it, -1 for none.

    `how`: seen, near (relations between the arguments kept), careless (not kept) or given. `parts` are digests of the
    single arguments.
    """

    def __init__(self, number: int, args: Tuple[Any, ...], kwargs: Dict[str, Any], item: int, how: str) -> None:
        self.number, self.args, self.kwargs, self.item, self.how = number, args, kwargs, item, how
        self.shape = shape((args, kwargs))
        self.key = _digest("%d %s" % (number, self.shape))[:24]

    def parts(self) -> List[List[Any]]:
        named = list(enumerate(self.args)) + list(self.kwargs.items())
        return [[name, _digest(shape(value))[:12]] for name, value in named[:ARGUMENTS_LIMIT]]


class Recorder(Capture):
    """Copies the arguments of the watched functions' calls. `item` is the test that runs now.

    Functions that a watched one defines are nobody's to call again: what they answer is looked at in place.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        live = [f for f in functions if f is not None]
        super().__init__(live, {f.__code__.co_filename for f in live}, lambda _code: None)
        outer = {f.__code__: n for n, f in enumerate(functions) if f is not None}
        self._numbers = {**{inner: n for code, n in outer.items() for inner in _functions_within(code)}, **outer}
        self._counts: Dict[int, int] = {}
        self.item = -1
        self.inputs: List[Input] = []
        self.missed: Dict[int, str] = {}
        self.in_place = ObservedCalls()

    def _event(self, frame: Any, event: str, argument: Any) -> None:
        number = None if self._busy or event not in ("call", "return") else self._numbers.get(frame.f_code)
        if number is None:
            return
        self._busy = True
        try:
            if event == "return":
                self.in_place.leave(frame, argument)
            else:
                self.in_place.enter(number, self.item, frame)
        except Exception as fault:  # what cannot be looked at is not compared
            self.missed.setdefault(number, "tests call it, and looking at a call failed (%s)" % type(fault).__name__)
        finally:
            self._busy = False
        if event == "call" and frame.f_code in self._watched and self._counts.get(number, 0) < CALLS_LIMIT:
            self._copy(number, frame)

    def _copy(self, number: int, frame: Any) -> None:
        if frame.f_code.co_flags & _GENERATOR:
            if any(frame is f for f in self._generators) or len(self._generators) >= CALLS_LIMIT:
                return
            self._generators.append(frame)
        self._busy = True
        try:
            made = self._take(frame.f_code, self._watched[frame.f_code], frame)
            if made is not None:
                found = Input(number, made.args, made.kwargs, self.item, "seen")
                if len(found.shape) <= SHAPE_LIMIT:
                    self._counts[number] = self._counts.get(number, 0) + 1
                    self.inputs.append(found)
                else:
                    self.missed[number] = "tests call it, with arguments too large to be compared"
        except Exception as fault:  # what cannot be copied is no input
            text = "tests call it, and what they call it with or on cannot be copied (%s)" % type(fault).__name__
            self.missed[number] = bounded(text, TEXT_LIMIT)
        finally:
            self._busy = False


def near(seen: List[Input], functions: Sequence[Function], request: Dict[str, Any]) -> List[Input]:
    """The calls and variations of them; a variation depends on nothing but its call, the seed and the dictionary."""
    letters = tuple(str(c) for c in request["letters"])
    numbers = tuple(int(n) for n in request["numbers"])
    found: Dict[str, Input] = {}
    counts: Dict[int, int] = {}
    for one in seen:
        found.setdefault(one.key, one)
    for one in seen:
        function = functions[one.number]
        if function is None:
            continue
        rng = Chance(int(hashlib.sha256(("%d %s" % (int(request["seed"]), one.key)).encode()).hexdigest()[:12], 16))
        rng.letters, rng.numbers = letters, numbers
        for args, kwargs, kept in _varied(one, own_arguments(function, one.args), rng):
            try:
                made = Input(one.number, args, kwargs, one.item, "near" if kept else "careless")
            except Exception:  # an object of the code under test that cannot be looked at
                continue
            if len(made.shape) <= SHAPE_LIMIT and counts.get(one.number, 0) < INPUTS_LIMIT and made.key not in found:
                counts[one.number] = counts.get(one.number, 0) + 1
                found[made.key] = made
    return list(found.values())


def _varied(one: Input, own: int, rng: Chance) -> List[Tuple[Tuple[Any, ...], Dict[str, Any], bool]]:
    """Other arguments; and, for a method, other states of its object."""
    try:
        return _neighbours_of(one, own, rng)
    except Exception:  # objects of the code under test: the call itself is asked all the same
        return []


def _neighbours_of(one: Input, own: int, rng: Chance) -> List[Tuple[Tuple[Any, ...], Dict[str, Any], bool]]:
    found: List[Tuple[Tuple[Any, ...], Dict[str, Any], bool]] = []
    for args, kwargs, kept in neighbours(one.args[own:], one.kwargs, rng, NEAR_LIMIT):
        found.append((one.args[:own] + args, kwargs, kept))
    state = getattr(one.args[0], "__dict__", None) if own else None
    if isinstance(state, dict) and state and not isinstance(one.args[0], type):
        for _args, attributes, _kept in neighbours((), state, rng, 2 * NEAR_LIMIT):
            other = copy.copy(one.args[0])
            other.__dict__.update(attributes)
            found.append(((other, *one.args[1:]), one.kwargs, False))  # no object need ever be in such a state
    return found


def given(request: Dict[str, Any]) -> List[Input]:
    """The host's inputs: literals, nothing else."""
    found = []
    for number, args, kwargs in request["given"]:
        found.append(Input(int(number), tuple(ast.literal_eval(args)), dict(ast.literal_eval(kwargs)), -1, "given"))
    return found


class LineRecorder:
    """Notes the lines that a function, and what is defined inside it, runs; counted from its first line."""

    def __init__(self, function: types.FunctionType) -> None:
        self._first = function.__code__.co_firstlineno
        self._codes = set(_family(function.__code__))
        self.lines: Set[int] = set()

    def enter(self, frame: Any, _event: str, _arg: Any) -> Any:
        return self._line if frame.f_code in self._codes else None

    def _line(self, frame: Any, event: str, _arg: Any) -> Any:
        if event == "line" and len(self.lines) < LINES_LIMIT:
            self.lines.add(frame.f_lineno - self._first)
        return self._line


def _functions_within(code: types.CodeType) -> Iterator[types.CodeType]:
    """Named functions that are defined inside one."""
    for inner in _family(code):
        if inner is not code and inner.co_name.isidentifier() and inner.co_flags & _NEW_LOCALS:
            yield inner


def _family(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _family(inner)


def answers(
    inputs: List[Input], functions: Sequence[Function], inverses: Dict[int, Function], traced: bool
) -> List[Dict[str, Any]]:
    """One record a call: `k` (ok, late, refused, raised, skipped), `t` what it says, `d` a digest, `p` properties.

    `r` is a digest of what was returned or raised alone, without what became of the arguments; `l` the lines it ran,
    where they were noted.
    """

    def late(_number: int, _frame: Any) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, late)
    out: List[Dict[str, Any]] = []
    slow = 0
    for one in inputs:
        function = functions[one.number]
        if function is None or slow >= LATE_LIMIT or function.__code__.co_flags & _ASYNC:
            out.append({"k": "skipped", "t": "", "d": "", "r": "", "p": {}, "l": []})
            continue
        out.append(_answer(one, function, inverses.get(one.number), LineRecorder(function) if traced else None))
        slow += out[-1]["k"] == "late"
    return out


def _answer(one: Input, function: types.FunctionType, inverse: Function, way: Optional[LineRecorder]) -> Dict[str, Any]:
    args, kwargs = copy.deepcopy(one.args), copy.deepcopy(one.kwargs)
    own = own_arguments(function, args)
    held: Dict[str, bool] = {}
    random.seed(0)
    said = ""
    try:
        signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS if way is None else TRACED_TIMES * CALL_SECONDS)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")  # a project may have them raised, which would end every call that warns
            sys.settrace(None if way is None else way.enter)
            result = function(*args, **kwargs)
            if hasattr(result, "__next__"):
                result = list(itertools.islice(result, 300))
            sys.settrace(None)
        warns = _warnings(warned)
        said, changed = shape(result) + warns, shape((args, kwargs))
        kind = "skipped" if isinstance(result, types.FunctionType) else "ok"  # what that does is in none of its parts
        text = bounded(show(result), TEXT_LIMIT - len(warns)) + warns
        signal.setitimer(signal.ITIMER_PROF, 2 * CALL_SECONDS)
        held = _call_properties(function, inverse, one, args, kwargs, result)
        answer = said + " " + changed
        if changed != one.shape and not held.get("arguments unchanged", True):
            text = bounded(text, TEXT_LIMIT // 2) + ", arguments then " + bounded(show(args[own:]), TEXT_LIMIT // 2)
    except _TooLong:
        kind, text, answer = "late", "does not end within %.2f s of processor time" % CALL_SECONDS, "late"
    except BaseException as fault:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.settrace(None)
        kind = "refused" if on_purpose(fault) else "raised"
        answer = type(fault).__name__
        text = "raises " + bounded(answer, 80) + bounded(_message(fault), TEXT_LIMIT // 2)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.settrace(None)
    digest, alone = _digest(kind[:2] + answer)[:24], _digest(kind[:2] + (said if kind == "ok" else answer))[:12]
    lines = [] if way is None else sorted(way.lines)
    return {"k": kind, "t": bounded(ADDRESS.sub("", text), TEXT_LIMIT), "d": digest, "r": alone, "p": held, "l": lines}


def _call_properties(
    function: types.FunctionType, inverse: Function, one: Input, args: Any, kwargs: Dict[str, Any], result: Any
) -> Dict[str, bool]:
    """The properties of one call; none where the calls that they take are too slow."""
    own = own_arguments(function, args)
    try:
        return properties(function, inverse, one.args[own:], one.kwargs, args[own:], kwargs, result, alone=not own)
    except _TooLong:
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


def table(
    functions: Sequence[Function],
    inverses: Dict[int, Function],
    run_test: Callable[[int], None],
    request: Dict[str, Any],
) -> Dict[str, Any]:
    """Every call with its two answers (None where the program did not come so far).

    `missed` says, by a function's number, why calls that tests make of it are not among them.
    """
    seconds = float(request["cpu_seconds"])
    again = WaitingChild(lambda: {"records": _recorded(functions, run_test, request).in_place.records}, 2 * seconds)
    recorder = _recorded(functions, run_test, request)
    inputs: Dict[str, Input] = {}
    for one in near(recorder.inputs, functions, request) + given(request):
        inputs.setdefault(one.key, one)
    calls = list(inputs.values())
    rows = [_ask(calls, functions, inverses, seconds, traced) for traced in (False, True)] if calls else [[], []]
    made = [_record(one, functions, [row[n] for row in rows if row]) for n, one in enumerate(calls)]
    return {
        "calls": made + _observed(recorder, _asked(calls, rows), again, 6 * seconds + 1),
        "missed": {str(number): why for number, why in recorder.missed.items()},
    }


def _recorded(functions: Sequence[Function], run_test: Callable[[int], None], request: Dict[str, Any]) -> Recorder:
    recorder = Recorder(functions)
    for item in request["items"]:
        recorder.item = int(item)
        recorder.start()
        try:
            run_test(int(item))
        finally:
            recorder.stop()
    return recorder


def _asked(calls: List[Input], rows: List[List[Dict[str, Any]]]) -> Set[int]:
    """Functions of which enough calls of tests, or near these, could be made again, and not every one was turned down.

    What answers a test and turns down every copy of its call was given something that a copy is not.
    """
    many: Dict[int, int] = {}
    answered: Set[int] = set()
    for n, one in enumerate(calls):
        if one.how != "given":
            many[one.number] = many.get(one.number, 0) + 1
            if any(row and row[n]["k"] == "ok" for row in rows):
                answered.add(one.number)
    return {number for number in answered if many[number] >= ASKED_LEAST}


def _observed(recorder: Recorder, asked: Set[int], again: WaitingChild, wall_seconds: float) -> List[Dict[str, Any]]:
    """Calls of functions that could not be asked again; the tests run once more, for what is unsteady."""
    wanted = {k: r for k, r in recorder.in_place.records.items() if r["f"] not in asked}
    if not wanted:
        again.end()
        return []
    second = again.answer(wall_seconds).get("records", {})
    return [
        {
            **{name: record[name] for name in ("f", "item", "call")},
            "key": key,
            "how": "in-place",
            "own": 0,
            "parts": [],
            "args": "",
            "kwargs": "",
            "runs": [record["run"], second[key]["run"]],
        }
        for key, record in wanted.items()
        if key in second
    ]


def _record(one: Input, functions: Sequence[Function], runs: List[Dict[str, Any]]) -> Dict[str, Any]:
    function = functions[one.number]
    own = own_arguments(function, one.args) if function is not None else 0
    shown = [show(a) for a in one.args] + ["%s=%s" % (k, show(v)) for k, v in one.kwargs.items()]
    plain = not own and literal(one.args) and literal(one.kwargs)
    return {
        "f": one.number,
        "key": one.key,
        "item": one.item,
        "how": one.how,
        "own": own,
        "parts": one.parts(),
        "call": bounded(", ".join(shown), 2 * TEXT_LIMIT),
        "args": repr(one.args) if plain else "",
        "kwargs": repr(one.kwargs) if plain else "",
        "runs": runs,
    }


def _ask(
    calls: List[Input], functions: Sequence[Function], inverses: Dict[int, Function], seconds: float, traced: bool
) -> List[Dict[str, Any]]:
    """The answers of one child; none when it did not come to its end."""
    limit = 2 * seconds if traced else seconds
    told = answer_of_child(lambda: {"row": answers(calls, functions, inverses, traced)}, limit, 3 * limit + 1)
    row = told.get("row")
    return row if isinstance(row, list) and len(row) == len(calls) else []
