"""Which crashes on inputs near the tests' own speak against a program."""

import pytest

from localagent.domain.behaviour import Behaviours, crash_digest

KEY, INDEX = crash_digest("KeyError"), crash_digest("IndexError")


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        (("ok:1", "ok:2"), ("ok:3", KEY), True),  # a new crash
        (("ok:1", KEY), ("ok:3", KEY), False),  # nobody means such an input
        (("ok:1", KEY), ("ok:3", INDEX), True),
        (("ok:1", INDEX), ("ok:3", INDEX), True),  # a second fault
        ((KEY, KEY), ("ok:3", KEY), True),  # what the test failed of is mended for its input alone
        (("ok:1", "ok:2"), (KEY, KEY), False),  # the test asks for it
    ],
)
def test_what_crashed_before_and_fails_no_test_is_no_crash(
    old: tuple[str, ...], new: tuple[str, ...], counts: bool
) -> None:
    near = Behaviours(rows={0: old, 1: new}, kept=(False, True), seen=(True, False))
    assert near.crashed(1) == (frozenset({1}) if counts else frozenset())
