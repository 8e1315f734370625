"""Calls that cannot be copied, made again in forks of the running test: on the very objects that the test calls with.

A fork holds all that a test has built, as it stands when the call begins: locks, parsers, half of the program. There
the call is made as it is, and with one value changed inside what it was given. The test itself goes on undisturbed but
for what a call does outside the process, such as writing files. Standard library only, runs in the jail on the
project's own Python. Not promised: calls that other threads have to answer; they run out of their time.
"""

from __future__ import annotations

import sys
import threading
import types
from functools import partial
from time import monotonic as _monotonic
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from .call_answers import call_answer, digest, hear_time_limit
from .call_capture import arguments_of, own_arguments, without_defaults
from .failures import bounded
from .fork_child import answer_of_child
from .nearby_inputs import neighbours
from .random_mutation import vary
from .rng import Chance
from .safe_repr import ADDRESS, TEXT_LIMIT, literal, show
from .structural_key import NODES_LIMIT, instance_dict, whole_shape

CALLS_OF_TEST = 4
CALLS_LIMIT = 16  # of one function
NEAR_OF_CALL = 6
FORKS_LIMIT = 200
LOST_LIMIT = 5  # forks of one function that come to no end
_CPU_SECONDS, _WALL_SECONDS = 1.0, 8.0  # of one fork
_PARTS_LIMIT = 3_000_000  # of all values looked at
_DEPTH_LIMIT, _LEAVES_LIMIT = 5, 400
_ATOMS = (str, int, float, bool, bytes)

Place = Tuple[Callable[[Any], None], Any]  # how to put another value there, and the value that stands there


class ForkedCalls:
    """Calls of some functions, by a key that the same call of another tree has too; the first of each test.

    `defaulted`: functions whose defaults are others in the other tree; their calls are told without what is a default.
    After `until` on the monotonic clock no more are made; each function has an equal share of the forks and of the
    time, so that what every test calls leaves some for what few of them do.
    """

    def __init__(
        self,
        functions: Mapping[int, Optional[types.FunctionType]],
        defaulted: FrozenSet[int],
        request: Dict[str, Any],
        until: float,
    ) -> None:
        self._functions, self._defaulted = functions, defaulted
        self._seed, self._until = int(request["seed"]), until
        self._share = max(1, len(functions))
        self._seconds = (until - _monotonic()) / self._share
        self._spent: Dict[int, float] = {}
        self._of_share: Dict[int, int] = {}
        self._letters = tuple(str(c) for c in request["letters"])
        self._numbers = tuple(int(n) for n in request["numbers"])
        self.records: Dict[str, Dict[str, Any]] = {}
        self._made: Dict[Tuple[int, int], int] = {}
        self._of_function: Dict[int, int] = {}
        self._lost: Dict[int, int] = {}
        self._forks = self._parts = 0

    @property
    def done(self) -> bool:
        """Whether no more can be made."""
        return self._forks >= FORKS_LIMIT or _monotonic() > self._until

    def enter(self, number: int, item: int, frame: Any) -> None:
        """A call of function `number` begins in test `item`."""
        function = self._functions.get(number)
        made = self._made.get((number, item), 0)
        if function is None or made >= CALLS_OF_TEST or self._of_function.get(number, 0) >= CALLS_LIMIT:
            return
        self._made[(number, item)] = made + 1
        self._of_function[number] = self._of_function.get(number, 0) + 1
        args, kwargs = arguments_of(frame)
        if number in self._defaulted:
            args, kwargs = without_defaults(function, args, kwargs)
        given = self._shape((args, kwargs))
        if not given:
            return
        for variation in range(1 + NEAR_OF_CALL):
            if self.done or self._used_up(number):
                return
            self._forks += 1
            self._of_share[number] = self._of_share.get(number, 0) + 1
            begin = _monotonic()
            key = digest("%d forked %d %d %d %s" % (number, item, made, variation, given))[:24]
            make = partial(self._answer, function, args, kwargs, key, variation)
            told = answer_of_child(make, _CPU_SECONDS, max(0.1, min(_WALL_SECONDS, self._until - _monotonic())))
            self._spent[number] = self._spent.get(number, 0.0) + _monotonic() - begin
            self._lost[number] = self._lost.get(number, 0) + (not told)
            if told.get("run"):
                self.records[key] = {"f": number, "item": item, "made": made, **told}

    def _used_up(self, number: int) -> bool:
        """Whether a function has had its share."""
        forks, seconds = self._of_share.get(number, 0), self._spent.get(number, 0.0)
        return forks * self._share >= FORKS_LIMIT or seconds >= self._seconds or self._lost.get(number, 0) >= LOST_LIMIT

    def _answer(
        self, function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any], key: str, variation: int
    ) -> Dict[str, Any]:
        """In the fork: what the call answers, with one value changed unless `variation` is 0; empty where none is."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type,unused-ignore]
        own = own_arguments(function, args)
        how = "seen"
        if variation:
            rng = Chance(int(digest("%d %s" % (self._seed, key))[:12], 16))
            rng.letters, rng.numbers = self._letters, self._numbers
            changed = _varied(args, kwargs, own, rng, inside=variation % 2 == 0)
            if changed is None:
                return {"run": {}}
            args, kwargs, kept = changed
            how = "near" if kept else "careless"
        named = [*enumerate(args), *kwargs.items()]
        parts = [[name, digest(self._shape(value))[:12]] for name, value in named[:20]]
        shown = ", ".join([show(a) for a in args] + ["%s=%s" % (k, show(v)) for k, v in kwargs.items()])
        hear_time_limit()
        # this runs inside a profile function, where nothing is traced unless one asks for it
        run = sys.call_tracing(partial(call_answer, function, args, kwargs, self._shape, traced=True, own=own), ())
        return {
            "run": run,
            "how": how,
            "own": own,
            "parts": parts,
            "call": bounded(ADDRESS.sub("", shown), 2 * TEXT_LIMIT),
        }

    def _shape(self, value: Any) -> str:
        """Its structure; "" where it is too large to be compared as a whole."""
        found, parts = whole_shape(value, min(NODES_LIMIT, _PARTS_LIMIT - self._parts))
        self._parts += parts
        return found


def _varied(
    args: Tuple[Any, ...], kwargs: Dict[str, Any], own: int, rng: Chance, *, inside: bool
) -> Optional[Tuple[Tuple[Any, ...], Dict[str, Any], bool]]:
    """The call with another argument, or with another value deep inside what it was given; None where there is none."""
    plain = [n for n in range(own, len(args)) if literal(args[n])]
    named = {name: value for name, value in kwargs.items() if literal(value)}
    if not inside and (plain or named):
        kept = rng.random() < 0.5
        made = [m for m in neighbours(tuple(args[n] for n in plain), named, rng, 2) if m[2] is kept]
        if made:
            values, others, _ = made[0]
            changed = list(args)
            for k, n in enumerate(plain):
                changed[n] = values[k]
            return tuple(changed), {**kwargs, **others}, kept
    places = list(_places([*args, *kwargs.values()]))
    rng.shuffle(places)
    for put, value in places:
        other = vary(value, rng)
        if other != value:
            try:
                put(other)
            except Exception:  # a slot or an attribute of the code under test that does not take it
                continue
            return args, kwargs, False
    return None


def _places(values: List[Any]) -> Iterator[Place]:
    """Plain values inside others, nearest first, in an order that the structure alone decides."""
    level, seen, found = values, set(map(id, values)), 0
    for _ in range(_DEPTH_LIMIT):
        inner: List[Any] = []
        for value in level:
            for put, part in _parts(value):
                if isinstance(part, _ATOMS):
                    found += 1
                    yield put, part
                elif id(part) not in seen:
                    seen.add(id(part))
                    inner.append(part)
                if found >= _LEAVES_LIMIT:
                    return
        level = inner


def _parts(value: Any) -> Iterator[Place]:
    if type(value) is dict:
        attributes: Any = value
    elif type(value) is list:
        for n, part in enumerate(value):
            yield _putter(value, n), part
        return
    elif type(value) is tuple:
        for part in value:
            yield _unchangeable, part
        return
    elif isinstance(value, (type, types.ModuleType, types.FunctionType, *_ATOMS)):
        return
    else:
        attributes = instance_dict(value)
        for kind in type(value).__mro__:
            for member in list(kind.__dict__.values()):
                if isinstance(member, types.MemberDescriptorType):
                    try:
                        yield _setter(member, value), member.__get__(value)
                    except AttributeError:  # nothing was put there yet
                        continue
    if type(attributes) is dict:
        for name, part in list(attributes.items()):
            yield _putter(attributes, name), part


def _putter(holder: Any, name: Any) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        holder[name] = value

    return put


def _setter(member: Any, value: Any) -> Callable[[Any], None]:
    return lambda new: member.__set__(value, new)


def _unchangeable(_value: Any) -> None:
    raise TypeError("a tuple keeps its parts")
