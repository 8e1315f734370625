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
import types
from time import monotonic as _monotonic
from time import process_time as _process_time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from .call_answers import SKIPPED, call_answer, digest, family, hear_time_limit
from .call_capture import Capture, arguments_of, own_arguments, without_defaults
from .failures import bounded
from .fork_child import WaitingChild, answer_of_child
from .forked_calls import ForkedCalls
from .nearby_inputs import neighbours
from .observed_calls import ObservedCalls
from .observed_properties import properties
from .rng import Chance, seed_now
from .safe_repr import TEXT_LIMIT, literal, show
from .structural_key import SHAPE_LIMIT, shape

ASKED_LEAST = 5  # a function of which fewer calls can be made again is looked at where tests call it
CALLS_LIMIT = 24  # of one function, as the tests make them
NEAR_LIMIT = 12  # variations of one call
ARGUMENTS_LIMIT = 20
INPUTS_LIMIT = 160  # of one function, those of the host apart
COPY_SECONDS = 1.5  # of processor time, for the arguments of one function
LATE_LIMIT, LATE_AGAIN = 10, 3  # calls that do not end in time, and how many of them are made a second time
_NEW_LOCALS = 0x2

_SHARE = 0.85  # of the time for an answer, in which tests are run again
_FORKED_SHARE = 0.35  # of what is left of it, for each of the two runs with forks
_WATCHED_SHARE = 0.4  # of the time for an answer, in which calls are watched: afterwards tests run as if nobody looked
_EVENTS = 1024  # between two looks at the clock
_TIMES = 4  # as much processor time as for the copies, in which tests are run again
_NO_COPY: Dict[str, Any] = {"how": "in-place", "own": 0, "parts": [], "args": "", "kwargs": ""}

Function = Optional[types.FunctionType]


class Watched:
    """The functions that are compared, by number: the live ones, their code wherever it runs, and what undoes them.

    A function that stands more than once, or nowhere, is None: its code is looked at where it runs. `defaulted` are
    those whose defaults are others in the other tree.
    """

    def __init__(
        self,
        functions: Sequence[Function],
        codes: Sequence[Sequence[types.CodeType]],
        inverses: Dict[int, Function],
        defaulted: Sequence[int],
    ) -> None:
        self.functions, self.codes = functions, codes
        self.inverses, self.defaulted = inverses, frozenset(defaulted)


class Input:
    """One call to make. `item` is the number of the test that made it, -1 for none.

    `how`: seen, near (relations between the arguments kept), careless (not kept) or given. `parts` are digests of the
    single arguments.
    """

    def __init__(self, number: int, args: Tuple[Any, ...], kwargs: Dict[str, Any], item: int, how: str) -> None:
        self.number, self.args, self.kwargs, self.item, self.how = number, args, kwargs, item, how
        self.shape = shape((args, kwargs))
        self.key = digest("%d %s" % (number, self.shape))[:24]

    def parts(self) -> List[List[Any]]:
        named = list(enumerate(self.args)) + list(self.kwargs.items())
        return [[name, digest(shape(value))[:12]] for name, value in named[:ARGUMENTS_LIMIT]]


class Recorder(Capture):
    """Copies the arguments of the watched functions' calls. `item` is the test that runs now.

    Functions that a watched one defines are nobody's to call again, and neither are those of `codes` that stand more
    than once: what they answer is looked at in place. Of the functions in `defaulted` a call counts as it is
    written, without the arguments that are defaults. What is in `forks` is made again in forks, and nothing is copied.
    From `until` on (by the monotonic clock) no call is looked at: a test that calls much is many times slower watched.
    """

    awaits = True

    def __init__(self, watched: Watched, until: float, forks: Optional[ForkedCalls] = None) -> None:
        live = [f for f in watched.functions if f is not None]
        super().__init__(live, {f.__code__.co_filename for f in live}, lambda _code: None)
        outer = {code: n for n, codes in enumerate(watched.codes) for code in codes}
        self._numbers = {**{inner: n for code, n in outer.items() for inner in _functions_within(code)}, **outer}
        self._counts: Dict[int, int] = {}
        self._seconds: Dict[int, float] = {}
        self._defaulted = watched.defaulted
        self._until, self._events = until, 0
        self.item = -1
        self.inputs: List[Input] = []
        self.missed: Dict[int, str] = {}
        self.called: Set[int] = set()
        self.forks = forks
        self.in_place = ObservedCalls(watched.functions, watched.defaulted)

    @property
    def late(self) -> bool:
        """Whether nothing is watched any more."""
        return _monotonic() >= self._until

    def _event(self, frame: Any, event: str, argument: Any) -> None:
        self._events += 1
        if self._events % _EVENTS == 0 and self.late:
            self.stop()
            return
        number = None if self._busy or event not in ("call", "return") else self._numbers.get(frame.f_code)
        if number is None:
            return
        begins = event == "call" and self._begins(frame)
        self._busy = True
        try:
            if self.forks is not None:
                if begins and frame.f_code in self._watched:
                    self.forks.enter(number, self.item, frame)
            elif event == "return":
                self.in_place.leave(frame, argument)
            elif begins:
                self.in_place.enter(number, self.item, frame)
        except Exception as fault:  # what cannot be looked at is not compared
            self.missed.setdefault(number, "tests call it, and looking at a call failed (%s)" % type(fault).__name__)
        finally:
            self._busy = False
        if begins and self.forks is None and frame.f_code in self._watched:
            self.called.add(number)
            if self._counts.get(number, 0) < CALLS_LIMIT and self._seconds.get(number, 0.0) < COPY_SECONDS:
                self._copy(number, frame)

    def _copy(self, number: int, frame: Any) -> None:
        self._busy = True
        begin = _process_time()
        try:
            made = self._take(frame.f_code, self._watched[frame.f_code], frame)
            if made is not None:
                args, kwargs = made.args, made.kwargs
                if number in self._defaulted:
                    written, named = without_defaults(made.function, *arguments_of(frame))
                    args, kwargs = args[: len(written)], {name: kwargs[name] for name in named}
                self._note(Input(number, args, kwargs, self.item, "seen"))
        except Exception as fault:  # what cannot be copied is no input
            text = "tests call it, and what they call it with or on cannot be copied (%s)" % type(fault).__name__
            self.missed[number] = bounded(text, TEXT_LIMIT)
        finally:
            self._seconds[number] = self._seconds.get(number, 0.0) + _process_time() - begin
            self._busy = False

    def _note(self, found: Input) -> None:
        if len(found.shape) <= SHAPE_LIMIT:
            self._counts[found.number] = self._counts.get(found.number, 0) + 1
            self.inputs.append(found)
        else:
            self.missed[found.number] = "tests call it, with arguments too large to be compared"


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
        rng = Chance(int(digest("%d %s" % (int(request["seed"]), one.key))[:12], 16))
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


def _functions_within(code: types.CodeType) -> Iterator[types.CodeType]:
    """Named functions that are defined inside one."""
    for inner in family(code):
        if inner is not code and inner.co_name.isidentifier() and inner.co_flags & _NEW_LOCALS:
            yield inner


def answers(inputs: List[Input], watched: Watched, first: Sequence[Dict[str, Any]] = ()) -> List[Dict[str, Any]]:
    """One record a call, as `call_answer` makes them; `first` are those of the first time, then the lines are noted.

    A call that was late takes its whole time again: of many of these only the first are made a second time.
    """
    hear_time_limit()
    out: List[Dict[str, Any]] = []
    slow = 0
    for n, one in enumerate(inputs):
        function = watched.functions[one.number]
        spent = slow >= LATE_AGAIN and first[n]["k"] == "late" if first else slow >= LATE_LIMIT
        if function is None or spent:
            out.append(SKIPPED)
            continue
        out.append(_answer(one, function, watched.inverses.get(one.number), bool(first)))
        slow += out[-1]["k"] == "late"
    return out


def _answer(one: Input, function: types.FunctionType, inverse: Function, traced: bool) -> Dict[str, Any]:
    args, kwargs = copy.deepcopy((one.args, one.kwargs))
    own = own_arguments(function, args)

    def held(result: Any) -> Dict[str, bool]:
        return properties(function, inverse, one.args[own:], one.kwargs, args[own:], kwargs, result, alone=not own)

    return call_answer(function, args, kwargs, shape, traced=traced, own=own, given=one.shape, held_by=held)


def table(watched: Watched, run_test: Callable[[int], None], request: Dict[str, Any]) -> Dict[str, Any]:
    """Every call with its two answers (None where the program did not come so far).

    `missed` says, by a function's number, why calls that tests make of it are not among them. Calls of the functions in
    `every_way` are made in forks and looked at in place as well, though copies of them answer.
    """
    seconds, allowed = float(request["cpu_seconds"]), float(request["wall_seconds"])
    every_way = {int(number) for number in request["every_way"]}
    until = _monotonic() + _SHARE * allowed

    def forked(told: Dict[str, Any]) -> Dict[str, Any]:
        functions = {int(n): watched.functions[int(n)] for n in told["functions"]}
        end = _monotonic() + float(told["seconds"])
        forks = ForkedCalls(functions, watched.defaulted, request, end)
        _recorded(watched, run_test, request, end, forks)
        return {"records": forks.records}

    def observed(told: Dict[str, Any]) -> Dict[str, Any]:
        end = _monotonic() + float(told["seconds"])
        return {"records": _recorded(watched, run_test, request, end).in_place.records}

    with_tests = bool(request["items"])
    waiting = [WaitingChild(make, _TIMES * seconds) for make in (forked, forked, observed)] if with_tests else []
    try:
        recorder = _recorded(watched, run_test, request, _monotonic() + _WATCHED_SHARE * allowed)
        inputs: Dict[str, Input] = {}
        for one in near(recorder.inputs, watched.functions, request) + given(request):
            inputs.setdefault(one.key, one)
        calls = list(inputs.values())
        untraced = _ask(calls, watched, seconds) if calls else []
        rows = [untraced, _ask(calls, watched, 2 * seconds, untraced) if untraced else []]
        made = [_record(one, watched.functions, [row[n] for row in rows if row]) for n, one in enumerate(calls)]
        asked = _asked(made)
        forking = (recorder.called - asked) | (recorder.called & every_way)
        if waiting and forking:
            told = {"functions": sorted(forking), "seconds": _FORKED_SHARE * (until - _monotonic())}
            again = _paired([child.answer(max(0.1, until - _monotonic()), told) for child in waiting[:2]])
            instead = _asked(again) - _answering_otherwise(again, recorder.in_place.records.values())
            again = [record for record in again if record["f"] in instead]
            made = [record for record in made if record["f"] not in instead or record["how"] == "given"] + again
            asked |= instead
        wanted = {k: r for k, r in recorder.in_place.records.items() if r["f"] not in asked - every_way}
        if waiting and wanted:
            left = max(0.1, until - _monotonic())
            second = waiting[2].answer(left, {"seconds": _WATCHED_SHARE * left})
            made += _paired([{"records": wanted}, second])
    finally:
        for child in waiting:
            child.end()
    return {"calls": made, "missed": {str(number): why for number, why in recorder.missed.items()}}


def _recorded(
    watched: Watched,
    run_test: Callable[[int], None],
    request: Dict[str, Any],
    until: float,
    forks: Optional[ForkedCalls] = None,
) -> Recorder:
    recorder = Recorder(watched, until, forks)
    for item in request["items"]:
        if recorder.late or (forks is not None and forks.done):
            break
        recorder.item = int(item)
        seed_now(int(item))  # what a test draws, in this tree as in the other
        recorder.start()
        try:
            run_test(int(item))
        finally:
            recorder.stop()
    return recorder


def _asked(made: Sequence[Dict[str, Any]]) -> Set[int]:
    """Functions of which enough calls of tests, or near these, could be made again, and some call of a test answers.

    What answers a test and turns down every copy of its call was given something that a copy is not.
    """
    many: Dict[int, int] = {}
    answered: Set[int] = set()
    for record in made:
        if record["how"] != "given":
            number = int(record["f"])
            many[number] = many.get(number, 0) + 1
            if record["how"] == "seen" and any(run["k"] == "ok" for run in record["runs"]):
                answered.add(number)
    return {number for number in answered if many[number] >= ASKED_LEAST}


def _answering_otherwise(made: Sequence[Dict[str, Any]], observed: Iterable[Dict[str, Any]]) -> Set[int]:
    """Functions that answer a call in a fork otherwise than they answered the test: then a fork is not what it was."""
    known = {(r["f"], r["item"], r["made"]): r["run"] for r in observed if r["run"].get("v") or r["run"]["k"] != "ok"}
    found = set()
    for record in made:
        run = known.get((record["f"], record["item"], record["made"]))
        if run is None or record["how"] != "seen":
            continue
        for answer in record["runs"]:
            if (run["k"] == "ok") is not (answer["k"] == "ok") or (run["k"] == "ok" and run["v"] != answer["v"]):
                found.add(int(record["f"]))
    return found


def _paired(told: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Calls that two runs of the tests made alike, with both answers: what is unsteady shows."""
    first, second = (answer.get("records", {}) for answer in told)
    return [
        {**_NO_COPY, **record, "key": key, "runs": [record["run"], second[key]["run"]]}
        for key, record in first.items()
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
    calls: List[Input], watched: Watched, seconds: float, first: Sequence[Dict[str, Any]] = ()
) -> List[Dict[str, Any]]:
    """The answers of one child; none when it did not come to its end."""
    told = answer_of_child(lambda: {"row": answers(calls, watched, first)}, seconds, 3 * seconds + 1)
    row = told.get("row")
    return row if isinstance(row, list) and len(row) == len(calls) else []
