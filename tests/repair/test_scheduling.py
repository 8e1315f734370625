"""Following a record: the loop waits for what came then, sees the time of then, and goes on freely where it departs."""

import concurrent.futures as cf
from typing import Any

from localagent.domain.edit import Candidate, Patch
from localagent.domain.outcome import QuickResult, QuickRoute
from localagent.domain.task import Event
from localagent.repair.search.replay_schedule import Followed
from localagent.repair.search.scheduling import Flying, Live
from localagent.repair.search.search_node import Lineage, SearchStep

ANSWER = QuickResult(outcomes={}, turned=(), broken=(), complete=True, plausible=False, route=QuickRoute.SWAP)


def mark(kind: str, at: float, **data: Any) -> dict[str, Any]:
    return {"kind": kind, "at": at, "data": data}


RECORD = [
    mark("started", 1.0, number=1),
    mark("started", 1.5, number=2),
    mark("ordered", 1.7, edits=9),
    mark("checked", 2.0, number=2),
    mark("denied", 2.1, number=3),
    mark("checked", 3.0, number=1),
    mark("stage", 7.0, stage="choose"),
]


def flying(*numbers: int) -> Flying:
    found: Flying = {}
    for number in numbers:
        job: cf.Future[QuickResult] = cf.Future()
        job.set_result(ANSWER)
        candidate = Candidate(number=number, patch=Patch(changes=()), edits=(), cost=0.0)
        found[job] = (_step(), candidate)
    return found


def _step() -> SearchStep:
    parent = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})
    return SearchStep(parent=parent, edit=None, cost=0.0)  # type: ignore[arg-type]


def go(pace: Followed, kind: str, **data: Any) -> None:
    pace.emit(Event(kind=kind, at_seconds=0.0, data=data))


def test_the_record_decides_what_is_next() -> None:
    pace, scores = Followed(RECORD), cf.Future[list[SearchStep]]()
    scores.set_result([])
    assert pace.may_start()
    go(pace, "started", number=1)
    go(pace, "started", number=2)
    assert not pace.may_start()
    assert pace.awaits_scores(coming=True)
    jobs = flying(1, 2)
    assert pace.answered(jobs) == ()
    assert pace.may_order(scores)
    go(pace, "ordered", edits=9)
    assert not pace.may_order(scores)
    assert [jobs[j][1].number for j in pace.answered(jobs)] == [2]
    go(pace, "checked", number=2)
    assert pace.may_start()
    go(pace, "denied", number=3)
    assert [jobs[j][1].number for j in pace.answered(flying_only(jobs, 1))] == [1]
    go(pace, "checked", number=1)
    assert not pace.may_start()
    assert pace.following


def flying_only(jobs: Flying, number: int) -> Flying:
    for job in [j for j, (_, c) in jobs.items() if c.number != number]:
        del jobs[job]
    return jobs


def test_time_is_the_recorded_one_and_jumps_to_the_end_of_the_search() -> None:
    pace = Followed(RECORD)
    go(pace, "started", number=1)
    assert pace.clock() == 1.0
    go(pace, "started", number=2)
    assert pace.clock() == 1.5
    for event in RECORD[2:6]:
        go(pace, event["kind"], **event["data"])
    assert pace.clock() == 7.0


def test_progress_notes_do_not_count() -> None:
    pace = Followed(RECORD)
    go(pace, "progress", verified=1)
    go(pace, "started", number=1)
    assert pace.following


def test_a_run_that_departs_goes_on_freely_from_the_recorded_time() -> None:
    pace = Followed(RECORD)
    go(pace, "started", number=1)
    go(pace, "started", number=7)
    assert not pace.following
    assert pace.may_start()
    assert not pace.awaits_scores(coming=True)
    assert pace.clock() >= 1.0
    assert pace.clock() < 1000.0
    assert len(pace.answered(flying(7))) == 1


def test_an_answer_that_never_flew_or_scores_without_a_model_end_the_following() -> None:
    pace = Followed(RECORD[3:])
    assert len(pace.answered(flying(9))) == 1
    assert not pace.following
    pace = Followed(RECORD[2:])
    assert not pace.awaits_scores(coming=False)
    assert not pace.following


def test_live_judges_in_the_order_of_numbers() -> None:
    jobs = flying(5, 3, 4)
    assert [jobs[j][1].number for j in Live().answered(jobs)] == [3, 4, 5]
