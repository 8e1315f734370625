"""Turns at the one model: in the order they were asked for, whoever is quickest."""

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.llm.process.fair_lock import Turns

FOREVER = 600.0


def waiting(turns: Turns, count: int) -> None:
    while len(turns._waiting) < count:
        time.sleep(0.001)


def started(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_the_order_is_that_of_asking() -> None:
    turns, came = Turns(), list[int]()
    assert turns.acquire(timeout=0.0)

    def ask(number: int) -> None:
        assert turns.acquire(timeout=FOREVER)
        came.append(number)
        turns.release()

    threads = []
    for number in range(12):
        threads.append(started(lambda number=number: ask(number)))  # type: ignore[misc]
        waiting(turns, number + 1)
    turns.release()
    for thread in threads:
        thread.join()
    assert came == list(range(12))
    assert not turns.locked()


def test_who_asks_again_at_once_passes_nobody() -> None:
    """A task whose next request lies there already, and one that waits: they alternate."""
    turns, came = Turns(), list[str]()
    assert turns.acquire(timeout=0.0)

    def ask() -> None:
        assert turns.acquire(timeout=FOREVER)
        came.append("patient")
        turns.release()

    for _ in range(50):
        thread = started(ask)
        waiting(turns, 1)
        turns.release()
        assert turns.acquire(timeout=FOREVER)
        came.append("greedy")
        thread.join()
    assert came == ["patient", "greedy"] * 50


@pytest.mark.parametrize("held", [True, False])
def test_without_time_only_a_free_one_is_had(held: bool) -> None:
    turns = Turns()
    if held:
        assert turns.acquire(timeout=0.0)
    assert turns.acquire(timeout=0.0) is not held
    assert turns.locked()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_who_gives_up_holds_nobody_up(impatient: list[bool]) -> None:
    """Some give up while they wait; the others have it in their order."""
    turns, came = Turns(), list[int]()
    assert turns.acquire(timeout=0.0)

    def ask(number: int, seconds: float) -> None:
        if turns.acquire(timeout=seconds):
            came.append(number)
            turns.release()

    threads = []
    for number, gives_up in enumerate(impatient):
        seconds = 0.0 if gives_up else FOREVER
        threads.append(started(lambda number=number, seconds=seconds: ask(number, seconds)))  # type: ignore[misc]
        if gives_up:
            threads[-1].join()
        else:
            waiting(turns, sum(not one for one in impatient[: number + 1]))
    turns.release()
    for thread in threads:
        thread.join()
    assert came == [number for number, gives_up in enumerate(impatient) if not gives_up]
    assert not turns.locked()
