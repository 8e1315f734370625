"""Old against new, in real jails: equal inputs on both sides, disagreements smallest first, the same for a seed."""

from collections.abc import Mapping

import pytest
from support.verify_builder import CALC, FIXED, TESTS, differ

from localagent.domain.outcome import Baseline
from localagent.domain.verification import Differential, InputOrigin

CART = (
    "class Cart:\n    def __init__(self):\n        self.items = []\n\n    def add(self, price):\n"
    "        self.items.append(price)\n\n    def total(self, rate):\n        return sum(self.items) * rate\n"
)
CART_TESTS = (
    "from cart import Cart\n\n\ndef test_total():\n    cart = Cart()\n"
    "    for price in (3, 5, 8):\n        cart.add(price)\n    assert cart.total(2) == 32\n"
)


def compared(
    before: Mapping[str, str], after: Mapping[str, str], *tests: str, turned: tuple[str, ...] = (), seed: int = 0
) -> Differential:
    baseline = Baseline(tests=()) if tests else None
    with differ(before, after, seed=seed) as made:
        return made.compare(baseline, tests, turned)


@pytest.mark.long
def test_inputs_come_from_tests_from_near_them_and_from_nowhere() -> None:
    tests = [f"test_calc.py::test_{name}" for name in ("in", "low", "high")]
    before, after = {"calc.py": CALC, "test_calc.py": TESTS}, {"calc.py": FIXED, "test_calc.py": TESTS}
    found = compared(before, after, *tests, turned=(tests[2],))
    assert found.demanded == 1
    assert {d.origin for d in found.differences} == {InputOrigin.NEAR, InputOrigin.GENERATED}
    assert [len(d.call) for d in found.differences] == sorted(len(d.call) for d in found.differences)
    assert [(f.function, f.reached) for f in found.functions] == [("clamp", True)]
    assert "clamp(50, 0, 10)" in [d.call for d in compared(before, after, *tests).differences]


@pytest.mark.slow
def test_the_seed_alone_decides() -> None:
    before, after = {"calc.py": CALC}, {"calc.py": FIXED}
    first, again, other = (compared(before, after, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.long
def test_an_import_may_change_and_objects_need_not_cross() -> None:
    after = "import math\n\n\n" + CART.replace(
        "sum(self.items) * rate", "int(math.fsum(self.items)) * (rate + (rate > 2))"
    )
    found = compared(
        {"cart.py": CART, "test_cart.py": CART_TESTS},
        {"cart.py": after, "test_cart.py": CART_TESTS},
        "test_cart.py::test_total",
    )
    assert [(f.function, f.reached) for f in found.functions] == [("Cart.total", True)], found
    assert found.differences
    assert all(d.call.startswith("Cart.total(Cart(items=[") for d in found.differences)


@pytest.mark.long
def test_what_a_method_does_to_its_object_is_told() -> None:
    after = CART.replace("append(price)", "append(price + 1)")
    found = compared(
        {"cart.py": CART, "test_cart.py": CART_TESTS},
        {"cart.py": after, "test_cart.py": CART_TESTS},
        "test_cart.py::test_total",
    )
    told = [(d.old, d.new) for d in found.differences]
    assert ("None, object then Cart(items=[3])", "None, object then Cart(items=[4])") in told, told


@pytest.mark.slow
def test_what_disagrees_with_itself_does_not_count() -> None:
    before = {"m.py": "import os\n\n\ndef f(n: int):\n    return os.urandom(4)\n"}
    after = {"m.py": "import os\n\n\ndef f(n: int):\n    return os.urandom(5)\n"}
    found = compared(before, after)
    assert (found.inputs, found.differences) == (0, ())


@pytest.mark.long
def test_broken_properties_come_with_an_input() -> None:
    before = {"m.py": "def tidy(items: list[int]) -> list[int]:\n    return sorted(items)\n"}
    after = {"m.py": "def tidy(items: list[int]) -> list[int]:\n    items.reverse()\n    return sorted(set(items))\n"}
    found = compared(before, after)
    broken = {b.name: b for b in found.broken_properties}
    assert set(broken) == {"arguments unchanged", "length kept", "elements kept"}
    assert broken["length kept"].held >= 5
    items = eval(broken["length kept"].call.removeprefix("tidy"))
    assert len(set(items)) < len(items)
    assert found.properties_held["idempotent"] >= 5


STEPS = "def percent(n):\n    if n >= 10:\n        return n // 10 * 5\n    return 0\n"
STEPS_TESTS = "import m\n\n\ndef test_ten():\n    assert m.percent(10) == 9\n"
SHARED = "def share(a, b):\n    return a // b * 100\n"
SHARED_TESTS = "import m\n\n\ndef test_share():\n    assert m.share(1, 2) == {}\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after", "tests", "name", "unasked"),
    [
        (STEPS, STEPS.replace("n >= 10:\n        return n // 10 * 5", "n == 10:\n        return 9"), STEPS_TESTS,
         "never falls", True),
        (SHARED, SHARED.replace("//", "/"), SHARED_TESTS.format(50), "result is an int", True),
        (SHARED, SHARED.replace("// b * 100", "/ b * 25"), SHARED_TESTS.format(12.5), "result is an int", False),
    ],
)  # fmt: skip
def test_what_a_turned_test_asks_breaks_a_property_or_does_not(
    before: str, after: str, tests: str, name: str, unasked: bool
) -> None:
    """A call's own answer, and no whole float, which is equal to the int that is asked for."""
    test = tests.partition("def ")[2].partition("(")[0]
    files = {"m.py": before, "test_m.py": tests}
    found = compared(files, {**files, "m.py": after}, f"test_m.py::{test}", turned=(f"test_m.py::{test}",))
    assert {b.name: b.unasked for b in found.broken_properties}.get(name) is unasked, found


@pytest.mark.long
@pytest.mark.parametrize(
    ("before_it_fails", "steady"),
    [("", 0), ("m.percent(9) == 0 == m.percent(8)", 0), ("m.percent(20) == 10 and m.percent(31) == 15", 2)],
)
def test_calls_of_a_turned_test_that_stay_run_what_changed_and_give_more_than_one_result(
    before_it_fails: str, steady: int
) -> None:
    tests = STEPS_TESTS.replace("assert", f"assert {before_it_fails}\n    assert" if before_it_fails else "assert")
    files = {"m.py": STEPS, "test_m.py": tests}
    after = {**files, "m.py": STEPS.replace("n // 10 * 5", "n // 10 * 5 + 4 * (n == 10)")}
    found = compared(files, after, "test_m.py::test_ten", turned=("test_m.py::test_ten",))
    assert (found.demanded, found.steady) == (1, steady), found


@pytest.mark.slow
def test_a_round_trip_that_broke() -> None:
    text = "def encode(n: int) -> list:\n    return [n, 0]\n\n\ndef decode(pair: list) -> int:\n    return pair[0]\n"
    found = compared({"m.py": text}, {"m.py": text.replace("[n, 0]", "[abs(n), 0]")})
    broken = [b for b in found.broken_properties if b.name == "round trip by decode"]
    assert broken
    assert "-" in broken[0].call


@pytest.mark.slow
def test_new_exceptions_are_told() -> None:
    before = {"m.py": "def f(n: int) -> int:\n    return n + 1\n"}
    after = {"m.py": "def f(n: int) -> int:\n    return 10 // n + n\n"}
    found = compared(before, after)
    crash = next(d for d in found.differences if d.crash)
    assert crash.call == "f(0)"
    assert "ZeroDivisionError" in crash.new
    assert "exception kinds" in {b.name for b in found.broken_properties}


@pytest.mark.slow
def test_what_cannot_be_imported_says_why() -> None:
    before = {"m.py": "import nowhere_at_all\n\n\ndef f(n: int):\n    return n\n"}
    found = compared(before, {"m.py": before["m.py"].replace("return n", "return -n")})
    assert not any(f.reached for f in found.functions)
    assert "nowhere_at_all" in " ".join(found.notes)


FROZEN = (
    "from dataclasses import dataclass\nfrom datetime import date\n\n\n@dataclass(frozen=True)\nclass Entry:\n"
    "    day: date\n    cents: int\n\n\nclass Book:\n"
    "    def __init__(self, entries):\n        self.entries = list(entries)\n\n"
    "    def before(self, day):\n        return [e.cents for e in self.entries if e.day < day]\n"
)
FROZEN_TESTS = (
    "from datetime import date\nfrom book import Book, Entry\n\n\ndef test_before():\n"
    "    book = Book([Entry(date(2024, 1, n), n) for n in range(1, 9)])\n"
    "    for n in range(1, 9):\n        assert len(book.before(date(2024, 1, n))) == n - 1\n"
)


@pytest.mark.long
def test_methods_of_objects_that_hold_frozen_ones_and_days_are_compared() -> None:
    after = FROZEN.replace("e.day < day", "e.day <= day")
    files = {"book.py": FROZEN, "test_book.py": FROZEN_TESTS}
    found = compared(files, {**files, "book.py": after}, "test_book.py::test_before")
    assert [(f.function, f.reached) for f in found.functions] == [("Book.before", True)], found
    assert found.differences
    assert "datetime.date(2024, 1, " in found.differences[0].call


LATE = """\
import warnings


class Guest:
    ready = False

    def __deepcopy__(self, memo):
        return Guest()


def by(factor):
    def scale(n):
        return n * factor

    return scale


TWICE = by(2)


def greet(guest, n):
    if not guest.ready:
        raise KeyError(n)
    return n + 1


def old(n):
    warnings.warn('old', DeprecationWarning)
    return n + 2
"""
LATE_TESTS = """\
import pytest


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('n', range(6))
def test_all(n):
    import late

    guest = late.Guest()
    guest.ready = True
    assert late.greet(guest, n) == n + 1
    assert late.TWICE(n) == 2 * n
    assert late.old(n) == n + 2
"""


@pytest.mark.long
def test_functions_are_reached_however_tests_come_to_them() -> None:
    """Imported by a test alone; made by another function; given what a copy is not; warning of what is an error."""
    files = {"late.py": LATE, "test_late.py": LATE_TESTS, "pytest.ini": "[pytest]\nfilterwarnings = error\n"}
    tests = [f"test_late.py::test_all[{n}]" for n in range(6)]
    changed = LATE.replace("n * factor", "n * factor + (n == 3)").replace("n + 1", "n + 1 + (n == 4)")
    found = compared(files, {**files, "late.py": changed.replace("n + 2", "n + 2 + (n == 4)")}, *tests)
    reach = {f.function: (f.reached, f.reached_by_inputs) for f in found.functions}
    assert reach == {"by": (True, False), "greet": (True, True), "old": (True, True)}, found
    told = {(d.function, d.old, d.new) for d in found.differences}
    warns = ", warns DeprecationWarning"
    assert told >= {("by", "6", "7"), ("greet", "5", "6"), ("old", f"6{warns}", f"7{warns}")}, told


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "read", "told"),
    [
        ("self.tax = tax", "", False),
        ("self.tax = tax", "def of(cart):\n    return getattr(cart, 'tax', 1)\n", True),  # which stood before
        ("self.tax = tax", "def of(cart):\n    return vars(cart)\n", True),
        ("self.items = [tax]", "", True),
        ("self.tax, self.items = tax, [1]", "", True),
    ],
)
def test_a_new_attribute_that_nobody_knew_is_no_other_answer(more: str, read: str, told: bool) -> None:
    after = CART.replace(
        "(self):\n        self.items = []", f"(self, *, tax=2):\n        self.items = []\n        {more}"
    )
    found = compared(
        {"cart.py": CART, "other.py": read, "test_cart.py": CART_TESTS},
        {"cart.py": after, "other.py": read, "test_cart.py": CART_TESTS},
        "test_cart.py::test_total",
    )
    assert bool(found.differences) is told, found
    assert all(d.old != d.new and "made Cart(items=[" in d.new for d in found.differences)
