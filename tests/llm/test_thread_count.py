"""How many threads the model gets, and that its answers do not depend on how many help it read."""

import os
from collections.abc import Callable, Sequence

import pytest

from localagent.llm.model import thread_count as cores_module
from localagent.llm.model.registry import ModelFile
from localagent.llm.model.thread_count import (
    SEARCH_CORES,
    ThreadCount,
    free_threads,
    most_reading,
    usable_cores,
    worthwhile,
)
from localagent.llm.process.chunks import CHUNK_TOKENS
from localagent.llm.process.llama_engine import Answer, Ask, Engine

SOURCE = (
    b"def mean(values):\n    total = 0\n    for value in values:\n        total -= value\n    return total\n\n\n" * 30
)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Given(ThreadCount):
    """So many threads for one batch after the other."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__(1, 1)
        self.left = list(sizes)
        self.taken: list[int] = []

    def next(self) -> int:
        self.taken.append(self.left.pop(0))
        return self.taken[-1]


def test_threads_never_exceed_free_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = usable_cores()
    for load, reserved in ((0.0, 0), (0.0, 1), (1.0, 0), (50.0, 0), (0.0, 50)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        assert (
            1 <= free_threads(reserved_cores=reserved) <= max(1, cores - reserved, round(cores - max(load, reserved)))
        )
    monkeypatch.setattr(os, "getloadavg", lambda: (50.0, 50.0, 50.0))
    assert free_threads() == 1
    monkeypatch.setattr(os, "getloadavg", lambda: (2.0, 2.0, 2.0))
    monkeypatch.setattr(cores_module, "usable_cores", lambda: 16)
    assert free_threads() == 14 - SEARCH_CORES
    monkeypatch.setattr(cores_module, "usable_cores", lambda: 6)
    assert free_threads() == 2  # of four free ones


def test_one_more_thread_has_to_make_it_faster() -> None:
    tried: list[int] = []

    def rates(*by_threads: float) -> Callable[[int], float]:
        def rate(threads: int) -> float:
            tried.append(threads)
            return by_threads[threads - 1]

        return rate

    assert worthwhile(rates(100.0, 190.0), 2) == 2
    assert worthwhile(rates(100.0, 110.0), 2) == 1
    assert worthwhile(rates(100.0, 10.0, 900.0), 3) == 1
    assert worthwhile(rates(100.0, 150.0, 160.0), 3) == 2
    assert worthwhile(rates(100.0, 150.0, 170.0), 3) == 3
    tried.clear()
    assert worthwhile(rates(*(100.0 * k for k in range(1, 17))), 12) == 12
    assert tried == [1, 2, 4, 8, 12]
    assert worthwhile(rates(*(100.0 * min(k, 5) for k in range(1, 17))), 16) == 8
    tried.clear()
    assert worthwhile(rates(), 1) == 1
    assert tried == []  # nothing to choose from, nothing is tried


def test_idle_cores_help_up_to_what_a_search_keeps_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores_module, "usable_cores", lambda: 2)
    assert most_reading(1) == 2
    monkeypatch.setattr(cores_module, "usable_cores", lambda: 16)
    assert most_reading(1) == SEARCH_CORES
    assert most_reading(12) == 12


def test_threads_that_have_no_core_are_sent_away_and_called_again() -> None:
    clock = Clock()
    crew = ThreadCount(1, 4, clock=clock)
    assert crew.next() == 4
    crew.worked(wall_seconds=1.0, cpu_seconds=3.7)  # each had a core
    assert crew.next() == 4
    crew.worked(wall_seconds=1.0, cpu_seconds=2.7)  # once may be chance
    assert crew.next() == 4
    crew.worked(wall_seconds=1.0, cpu_seconds=2.7)
    assert crew.next() == 3
    crew.worked(wall_seconds=1.0, cpu_seconds=0.9)
    crew.worked(wall_seconds=1.0, cpu_seconds=0.9)
    assert crew.next() == 1
    crew.worked(wall_seconds=1.0, cpu_seconds=0.1)
    crew.worked(wall_seconds=1.0, cpu_seconds=0.1)
    assert crew.next() == 1  # one goes on whatever it gets
    clock.now = 60.0
    assert crew.next() == 4


def test_it_waits_longer_each_time_it_called_in_vain() -> None:
    clock = Clock()
    crew = ThreadCount(1, 2, clock=clock)
    pauses = []
    for _ in range(12):
        began = clock.now
        while crew.next() == 1:
            clock.now += 0.25
        pauses.append(clock.now - began)
        crew.worked(wall_seconds=1.0, cpu_seconds=1.2)
        crew.worked(wall_seconds=1.0, cpu_seconds=1.2)
    assert pauses[:5] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == max(pauses) == 60.0
    clock.now += 60.0
    assert crew.next() == 2
    crew.worked(wall_seconds=1.0, cpu_seconds=2.0)  # not in vain
    crew.worked(wall_seconds=1.0, cpu_seconds=1.0)
    crew.worked(wall_seconds=1.0, cpu_seconds=1.0)
    assert crew.next() == 1
    clock.now += 0.5
    assert crew.next() == 2


@pytest.mark.long
@pytest.mark.model
@pytest.mark.parametrize("last_tokens", [1, 2, 45])
def test_answers_do_not_depend_on_how_many_help(bundled_model: ModelFile, last_tokens: int) -> None:
    path = bundled_model.path
    assert path is not None

    def answers(crew: ThreadCount | None) -> list[Answer]:
        engine = Engine(os.open(path, os.O_RDONLY), threads=1, context_tokens=1024, cancelled=lambda: False)
        if crew is not None:
            engine.use_idle_cores(crew)
        tokens = [engine.front_token, *engine.tokenize(SOURCE)][: 3 * CHUNK_TOKENS + last_tokens]
        asks: dict[int, list[Ask]] = {at: [(at, tokens[at], 100 + at)] for at in range(1, len(tokens), 9)}
        asks[len(tokens)] = [(0, 17, 4)]
        return [answer for batch in engine.compare(tokens, asks) for answer in batch]

    alone = answers(None)
    crew = Given([2, 1, 4, 3])
    assert answers(crew) == alone
    assert crew.taken == [2, 1, 4, 3]
