"""Old against new of what cannot be copied, waits, gives values one by one, or has another default; in real jails."""

from collections.abc import Mapping

import pytest
from support.verify_builder import differ

from localagent.domain.claim import DifferenceKind
from localagent.domain.outcome import Baseline
from localagent.domain.verification import Differential

BOX = """\
import threading


class Box:
    def __init__(self):
        self.lock, self.seen, self.limits = threading.Lock(), [], {"high": 70}

    def twice(self, n):
        self.seen.append(n)
        return n + n if n < self.limits["high"] else 0
"""
BOX_TESTS = """\
import pytest
from m import Box


@pytest.mark.parametrize('n', range(6))
def test_twice(n):
    assert Box().twice(n) == 2 * n
"""
TESTS = [f"test_m.py::test_twice[{n}]" for n in range(6)]


def compared(before: Mapping[str, str], after: Mapping[str, str], *tests: str) -> Differential:
    with differ(before, after) as made:
        return made.compare(Baseline(tests=()), tests, ())


@pytest.mark.long
def test_calls_on_what_cannot_be_copied_are_made_again_in_forks() -> None:
    """With near inputs, so that one test is enough; with another value inside what they are given; with its state."""
    files = {"m.py": BOX, "test_m.py": BOX_TESTS}

    def after(old: str, new: str, *names: str) -> Differential:
        return compared(files, {**files, "m.py": BOX.replace(old, new)}, *names)

    same = after("n + n", "2 * n", TESTS[3])
    assert [(f.reached, f.reached_by_inputs) for f in same.functions] == [(True, True)], same
    assert not same.differences
    changed = after('n + n if n < self.limits["high"]', 'n + n + (n == 4) if n <= self.limits["high"] - 40', *TESTS)
    told = {(d.old, d.new, d.effect) for d in changed.differences}
    assert ("8", "9", DifferenceKind.TESTED) in told, changed
    assert any(new == "0" for _, new, _ in told), "no test has such a limit: only a value changed inside shows it"
    state = after("append(n)", "append(n + (n == 4))", *TESTS)
    assert DifferenceKind.TESTED in [d.effect for d in state.differences]
    assert all(d.old == d.new for d in state.differences)


KINDS = """\
import asyncio
import threading


async def later(n):
    await asyncio.sleep(0)
    return n + 1


def cut(text, size=3):
    return text[:size]


def joined(words):
    return ' '.join(words)


class Counter:
    def __init__(self):
        self.lock = threading.Lock()

    def upto(self, n):
        with self.lock:
            yield from range(n)


def made():
    def counting(n):
        yield n
        yield n + 1

    return counting


FIRST, SECOND = made(), made()
"""
KINDS_TESTS = """\
import asyncio
import pytest
import m


@pytest.mark.parametrize('n', range(1, 7))
def test_all(n):
    assert asyncio.run(m.later(n)) > n
    assert m.cut('x' * n)
    assert m.joined(['a'] * n)
    assert list(m.Counter().upto(n))
    assert list(m.FIRST(n))
"""


@pytest.mark.long
def test_what_waits_gives_values_or_has_another_default_is_compared() -> None:
    files = {"m.py": KINDS, "test_m.py": KINDS_TESTS}
    after = KINDS.replace("size=3", "size=4").replace("joined(words)", "joined(words, by=' ')").replace("' '.j", "by.j")
    after = after.replace("n + 1\n\n\ndef cut", "n + 1 + (n == 4)\n\n\ndef cut").replace(
        "range(n)", "range(n + (n == 5))"
    )
    found = compared(
        files,
        {**files, "m.py": after.replace("yield n + 1", "yield n + 1 + (n == 6)")},
        *(f"test_m.py::test_all[{n}]" for n in range(1, 7)),
    )
    reach = {f.function: (f.reached, f.in_place) for f in found.functions}
    assert reach == {
        "later": (True, False), "cut": (True, False), "joined": (True, False), "Counter.upto": (True, False),
        "made": (True, True),
    }, found  # fmt: skip
    told = {(d.function, d.old, d.new) for d in found.differences}
    assert ("cut", "'xxx'", "'xxxx'") in told, "the calls that leave the argument out are calls of that default"
    assert ("later", "5", "6") in told
    assert ("Counter.upto", "[0, 1, 2, 3, 4]", "[0, 1, 2, 3, 4, 5]") in told
    assert not [d for d in found.differences if d.function == "joined"], "a new parameter that no call gives"
    assert [d.function for d in found.differences].count("made") == 1


@pytest.mark.long
def test_both_trees_are_asked_in_the_same_way() -> None:
    """Copies do in the tree after, and in the one before there are none: both are asked in forks then."""
    single = BOX.replace("threading.Lock()", "None").replace("    def twice", COPY_REFUSED + "    def twice")
    files = {"m.py": single, "test_m.py": BOX_TESTS}
    found = compared(files, {**files, "m.py": single.replace(COPY_REFUSED, "").replace("n + n", "2 * n")}, *TESTS)
    (reach,) = found.functions
    assert (reach.function, reach.reached_by_inputs) == ("Box.twice", True), found


COPY_REFUSED = """\
    def __deepcopy__(self, memo):
        raise TypeError("there is but one")

"""


@pytest.mark.long
def test_the_lines_that_a_call_in_a_fork_runs_tell_its_way() -> None:
    """Turned tests ask for another answer below three; of the rest only one that passes shows what is to stay."""
    ways = BOX.replace('        return n + n if n < self.limits["high"] else 0\n', FORKED_WAYS)
    tests = BOX_TESTS.replace("range(6)", "(1, 2, 80)").replace("Box().twice(n) == 2 * n", "Box().twice(n) is not None")
    files = {"m.py": ways, "test_m.py": tests}
    after = ways.replace("return n + n", "return n * 9").replace("return n - 5", "return n - 6")
    with differ(files, {**files, "m.py": after}) as made:
        names = [f"test_m.py::test_twice[{n}]" for n in (1, 2, 80)]
        found = made.compare(Baseline(tests=()), names, names[:2])
    assert found.demanded == 2, found
    explained = {d.new for d in found.differences if d.explained}
    beside = {d.old: d.explained for d in found.differences if d.effect is DifferenceKind.ANSWER and not d.explained}
    assert explained, found
    assert beside, found


FORKED_WAYS = """\
        if n < 3:
            return n + n
        if n < self.limits["high"]:
            return n - 5
        return 0
"""

EVENTS = """\
class Events:
    def __init__(self):
        self.heard = {}

    def on(self, event, listener):
        self.heard.setdefault(event, []).append(listener)

    def once(self, event, listener):
        def wrapper(*values):
            self.heard[event].remove(wrapper)
            listener(*values)

        if event == "never":
            listener = print
        self.on(event, wrapper)

    def emit(self, event, *values):
        for listener in list(self.heard.get(event, [])):
            listener(*values)
"""
EVENTS_TESTS = """\
import pytest
from m import Events


@pytest.mark.parametrize('n', range(6))
def test_once(n):
    heard, events = [], Events()
    events.once(str(n), heard.append)
    events.on('other', print)
    events.emit(str(n), n)
    assert heard == [n]
"""


@pytest.mark.long
def test_answers_of_calls_that_run_nothing_of_a_change_do_not_compare_it() -> None:
    """What is defined inside a function is called by others, and seen where they call it."""
    files = {"m.py": EVENTS, "test_m.py": EVENTS_TESTS}
    tests = [f"test_m.py::test_once[{n}]" for n in range(6)]

    def after(old: str, new: str) -> Differential:
        return compared(files, {**files, "m.py": EVENTS.replace(old, new)}, *tests)

    emptied = after("self.heard[event].remove(wrapper)", "self.heard = {}")
    assert [(f.reached, f.in_place) for f in emptied.functions] == [(True, True)], emptied
    assert {d.effect for d in emptied.differences} == {DifferenceKind.TESTED}, emptied
    unrun = after("listener = print", "listener = repr")
    assert [f.reached_by_inputs for f in unrun.functions] == [False], unrun


@pytest.mark.long
def test_copies_that_turn_down_every_call_of_a_test_are_none() -> None:
    """Though some variation of these calls, which needs nothing of the object, is answered."""
    files = {"m.py": FIELD, "test_m.py": FIELD_TESTS}
    after = FIELD.replace("n + self.wide()", "self.wide() + n + (n == 4)")
    found = compared(files, {**files, "m.py": after}, *(f"test_m.py::test_padded[{n}]" for n in range(6)))
    assert [(f.function, f.reached_by_inputs) for f in found.functions] == [("Field.padded", True)], found
    assert DifferenceKind.TESTED in [d.effect for d in found.differences], found


FIELD = """\
class Unbound:
    pass


class Field:
    def __new__(cls, *args):
        return object.__new__(cls) if args else Unbound()

    def __init__(self, width):
        self.width = width

    def wide(self):
        return self.width

    def padded(self, n):
        if not 0 <= n <= 5:
            return 0
        return n + self.wide()
"""
FIELD_TESTS = """\
import pytest
from m import Field


@pytest.mark.parametrize('n', range(6))
def test_padded(n):
    assert Field(3).padded(n) >= 0
"""


@pytest.mark.long
def test_what_few_tests_call_has_its_share_of_the_forks() -> None:
    """Though every test calls other functions, before and often enough to use them all up."""
    files = {"m.py": SHARED, "test_m.py": SHARED_TESTS}
    tests = [f"test_m.py::test_each[{n}]" for n in range(6)]
    found = compared(files, {**files, "m.py": SHARED.replace("n + n", "2 * n")}, *tests)
    assert {f.function: f.reached_by_inputs for f in found.functions} == {
        "Box.first": True, "Box.second": True, "Box.seldom": True,
    }, found  # fmt: skip


SHARED = """\
import threading


class Box:
    def __init__(self):
        self.lock = threading.Lock()

    def first(self, n):
        return n + n

    def second(self, n):
        return n + n + 1

    def seldom(self, n):
        return n + n + 2
"""
SHARED_TESTS = """\
import pytest
from m import Box


@pytest.mark.parametrize('n', range(6))
def test_each(n):
    for k in range(n, n + 4):
        assert Box().first(k) == 2 * k
        assert Box().second(k) == 2 * k + 1
        if n == 5:
            assert Box().seldom(k) == 2 * k + 2
"""


@pytest.mark.long
def test_what_tests_draw_is_drawn_alike_in_both_trees() -> None:
    """Else no call of one tree has its twin in the other; what a function gives that it defines shows in place."""
    files = {"m.py": DRAWN, "test_m.py": DRAWN_TESTS}
    tests = [f"test_m.py::test_log[{n}]" for n in range(6)]
    found = compared(files, {**files, "m.py": DRAWN.replace("n + n", "2 * n + (n > 0)")}, *tests)
    assert [f.compared >= 5 for f in found.functions] == [True], found
    assert {d.effect for d in found.differences} == {DifferenceKind.TESTED}, found


DRAWN = """\
def log(lock):
    def told(n):
        with lock:
            return n + n

    return told
"""
DRAWN_TESTS = """\
import random
import threading
import pytest
from m import log


@pytest.mark.parametrize('n', range(6))
def test_log(n):
    drawn = random.randint(1, 1 << 60)
    assert log(threading.Lock())(drawn) >= 2 * drawn
"""
