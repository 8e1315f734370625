"""When a second edit may take the place of a plausible program that crashes near the tests' inputs."""

import concurrent.futures as cf
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from support.choice_builder import NO_OPINION

from localagent.domain.behaviour import Behaviours, Crash
from localagent.domain.edit import Candidate, Edit, EditEffect, FileChange, Patch, Splice
from localagent.domain.outcome import Failure, Frame, QuickResult, QuickRoute
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Event, Task
from localagent.ports import Lines, Sources
from localagent.repair.acceptance.crash_hardening import Hardening, ends_crashes
from localagent.repair.acceptance.ranking import crashes
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.state import Parts

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


M = RepoPath("m.py")
SOURCE = b"def f(xs, n):\n    while n <= len(xs):\n        n = n + 1\n    return xs[n]\n"


@dataclass
class Listed:
    """Space, gates, sink and verifier at once: three edits of SOURCE, all allowed; no program is sturdier."""

    effects: tuple[frozenset[EditEffect], ...]
    started: list[int] = field(default_factory=list)

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        del lines, failures
        cuts = ((4, b"[n]", b"[n - 1]", 0.0), (3, b"+ 1", b"+ 2", 0.0), (2, b"<=", b"<", 0.5))
        for effects, (line, old, new, prior) in zip(self.effects, cuts, strict=True):
            at = sources[path].index(old)
            cut = Splice(start=at, end=at + len(old), text=new)
            yield Edit(path=path, splices=(cut,), operator="o", line=line, end_line=line, prior=prior, effects=effects)

    def review(self, candidate: Candidate, *_: object) -> Sequence[Any]:
        return []

    def protection(self, *_: object) -> None:
        return None

    def emit(self, event: Event) -> None:
        pass

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool) -> QuickResult:
        del cpu_seconds, stop_early
        self.started.append(candidate.edits[-1].line)
        return QuickResult(
            outcomes={}, turned=(), broken=(), complete=True, plausible=False, route=QuickRoute.SWAP, failures={}
        )


def tried(*effects: frozenset[EditEffect]) -> list[int]:
    """The lines that are edited, in order, where SOURCE is plausible and crashes at its last line."""
    listed = Listed(effects=effects)
    parts = Parts(
        verifier=cast(Any, None),
        localizer=cast(Any, None),
        space=listed,
        gates=listed,
        scorer=None,
        sink=listed,
        sources={M: SOURCE},
        weights=Weights(),
        confidence=NO_OPINION,
        context=lambda *_: "",
    )
    run = RunContext(Task(id="t", repo="/r", budget=Budget(max_candidates=50, max_seconds=60, jobs=1)), parts)
    change = FileChange(path=M, before=b"", after=SOURCE)
    candidate = Candidate(number=1, patch=Patch(changes=(change,)), edits=(), cost=0.0)
    frames = (Frame(path=M, line=4, function="f"),)
    crash = Crash(call="f([], 0)", failure=Failure(exception="IndexError", message="out of range", frames=frames))
    with cf.ThreadPoolExecutor(1) as pool:
        assert Hardening(run, cast(Any, listed), pool, cpu_seconds=1.0).sturdier(candidate, [crash]) is None
    return listed.started


def test_an_index_moved_where_it_crashed_is_a_symptom_and_the_bound_comes_first() -> None:
    boundary, none = frozenset({EditEffect.MOVES_BOUNDARY}), frozenset[EditEffect]()
    shift = boundary | {EditEffect.SHIFTS_NUMBER}
    assert tried(shift, none, boundary) == [2, 4]  # what is no boundary is not tried
    assert tried(boundary, none, boundary) == [4, 2]  # where it crashed first
    assert tried(boundary, shift, none) == [4, 3]  # elsewhere it is no symptom, nor suspect
