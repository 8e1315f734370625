"""When a second edit may take the place of a plausible program that crashes near the tests' inputs."""

import pytest

from localagent.domain.behaviour import Behaviours
from localagent.repair.choice import crashes
from localagent.repair.hardening import ends_crashes

KEPT = (False, *(True,) * 9)
SEEN = (True, *(False,) * 9)
OLD = ("ok:a", *(f"ok:{n}" for n in range(4)), *("raised:i",) * 5)


def near(new: tuple[str, ...], old: tuple[str, ...] = OLD) -> Behaviours:
    return Behaviours(rows={1: old, 2: new}, kept=KEPT, seen=SEEN)


@pytest.mark.parametrize(
    ("new", "good"),
    [
        ((*OLD[:5], *("ok:z",) * 5), True),
        ((*OLD[:5], *("ok:z",) * 4, "raised:i"), True),
        ((*OLD[:5], *("ok:z",) * 3, *("raised:i",) * 2), False),  # too many crashes left
        ((*OLD[:4], "ok:other", *("ok:z",) * 5), False),  # another answer
        ((*OLD[:4], "raised:i", *("ok:z",) * 5), False),  # crashes where it did not
        ((*OLD[:5], *("late:",) * 5), False),  # hangs instead
        ((*OLD[:5], *("refused:v",) * 5), False),
        (OLD, False),
    ],
)
def test_it_may_only_say_more(new: tuple[str, ...], good: bool) -> None:
    assert ends_crashes(near(new), 1, 2) is good


def test_what_never_crashed_is_not_hardened_and_what_is_not_known_does_not_harden() -> None:
    assert not ends_crashes(near(("ok:a",) * 10, ("ok:a",) * 10), 1, 2)
    assert not ends_crashes(near((*OLD[:5], *("ok:z",) * 5)), 1, 3)


def test_a_crash_that_a_test_asks_for_is_none() -> None:
    row = ("raised:i", *("ok:1",) * 5, *("raised:i",) * 4)
    assert not crashes(Behaviours(rows={1: row}, kept=KEPT, seen=SEEN), 1)
    assert crashes(Behaviours(rows={1: ("ok:a", *row[1:])}, kept=KEPT, seen=SEEN), 1)


def test_one_stray_crash_or_one_on_a_careless_input_is_none() -> None:
    assert not crashes(Behaviours(rows={1: ("ok:a", *("ok:1",) * 8, "raised:i")}, kept=KEPT, seen=SEEN), 1)
    careless = Behaviours(rows={1: OLD}, kept=(False,) * 10, seen=SEEN)
    assert not crashes(careless, 1)


def test_careless_inputs_tell_nothing_where_there_are_enough_others() -> None:
    rows = {1: tuple(f"ok:{n}" for n in range(11))}
    enough = Behaviours(rows=rows, kept=(*KEPT, False), seen=(*SEEN, False))
    assert enough.telling() == {1: rows[1][:10]}
    few = Behaviours(rows=rows, kept=(True,) * 7 + (False,) * 4, seen=(False,) * 11)
    assert few.telling() == rows
