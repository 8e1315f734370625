"""What the model wrote, second chances, measured times and the clock's decisions come where the record has them."""

import concurrent.futures as cf
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Written
from localagent.domain.outcome import Baseline, CheckResult, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Event, Stage
from localagent.repair.search.replay_schedule import PATIENCE, Followed
from localagent.repair.search.scheduling import Live, milliseconds, traced


def mark(kind: str, at: float = 1.0, **data: Any) -> dict[str, Any]:
    return {"kind": kind, "at": at, "data": data}


def go(pace: Followed, kind: str, **data: Any) -> None:
    pace.emit(Event(kind=kind, at_seconds=0.0, data=data))


def done() -> "cf.Future[Sequence[Written]]":
    job: cf.Future[Sequence[Written]] = cf.Future()
    job.set_result(())
    return job


def timed(*seconds: float) -> Baseline:
    tests = tuple(TestResult(id=f"t{n}", outcome=Outcome.PASSED, seconds=s) for n, s in enumerate(seconds))
    return Baseline(tests=tests, checks=(CheckResult(command="c", outcome=Outcome.PASSED, seconds=0.5),))


def test_what_was_written_is_taken_where_it_was_taken_then() -> None:
    pace = Followed([mark("started", number=1), mark("written", edits=2, late=0), mark("started", number=2)])
    assert pace.writes_more()
    assert not pace.may_take(done())
    go(pace, "started", number=1)
    assert not pace.may_start()
    assert pace.answered({}) == ()
    assert pace.may_take(done())
    assert pace.goes_on()
    go(pace, "written", edits=2, late=0)
    assert not pace.writes_more()
    assert pace.may_start()
    assert pace.following


def test_what_is_read_on_is_asked_for_before_an_answer_that_came_after_that_is_taken() -> None:
    pace = Followed([mark("reading-on", edits=2), mark("ordered", edits=3), mark("read-on", scored=2, unread=[])])
    assert not pace.may_order(done())
    assert pace.reads_on(wanted=0) == 2
    go(pace, "reading-on", edits=2)
    assert pace.may_order(done())
    go(pace, "ordered", edits=3)
    assert pace.may_read_on(done())  # type: ignore[arg-type]
    assert pace.following


def test_without_a_writer_the_run_departs_where_the_record_has_something_written() -> None:
    pace = Followed([mark("written", edits=1, late=0)])
    assert not pace.may_take(None)
    assert not pace.following


def test_a_start_that_is_recorded_and_cannot_be_ends_the_following_instead_of_waiting_for_ever() -> None:
    pace = Followed([mark("started", number=1)])
    assert not pace.goes_on()
    assert not pace.following


def test_what_was_kept_for_the_writer_is_released_where_it_was_then() -> None:
    pace = Followed([mark("written", edits=0, late=0), mark("released"), mark("started", number=1)])
    assert pace.goes_on()
    go(pace, "written", edits=0, late=0)
    assert not pace.goes_on()
    assert not pace.may_start()
    go(pace, "released")
    assert pace.may_start()
    assert pace.following


def test_second_chances_are_those_of_the_record() -> None:
    record = [mark("retried", numbers=[4, 2]), mark("checked", number=2, late=0), mark("stage", stage="choose")]
    pace = Followed(record)
    assert pace.retried([2, 3]) == (4, 2)
    go(pace, "retried", numbers=[4, 2])
    assert pace.retried([2, 3]) == ()
    assert Live().retried([2, 3]) == [2, 3]


def test_a_candidate_that_was_not_cut_off_gets_more_time_and_the_others_the_same() -> None:
    record = [
        mark("checked", number=1, late=0),
        mark("checked", number=2, late=1),
        mark("checked", number=3, late=1),
        mark("checked", number=3, late=0),  # at its second chance
        mark("checked", number=4),  # by an older version
    ]
    pace = Followed(record)
    assert [pace.cpu_seconds(n, 0.5) for n in (1, 2, 3, 4, 5)] == [PATIENCE * 0.5, 0.5, 0.5, 0.5, 0.5]


@given(st.lists(st.floats(min_value=0, max_value=1e4), max_size=8), st.lists(st.floats(min_value=0, max_value=9)))
def test_times_are_used_as_they_are_recorded(then: list[float], now: list[float]) -> None:
    lived = Live().times(timed(*then))
    tests, checks = milliseconds(lived)
    pace = Followed([mark("timed", tests=tests, checks=checks)])
    again = pace.times(timed(*now))
    assert again == (lived if len(now) == len(then) else Live().times(timed(*now)))


@pytest.mark.parametrize("nats", [{}, {"3": -1.5}])
def test_an_answer_that_did_not_come_then_is_not_waited_for(nats: dict[str, float]) -> None:
    pace = Followed([mark("read", nats=nats)])
    assert pace.reads(wanted=False)
    assert pace.answers_reading() is bool(nats)
    assert not Followed([mark("ranked")]).reads(wanted=True)
    assert Live().reads(wanted=True)


def test_proposals_are_checked_as_often_as_then() -> None:
    pace = Followed([mark("stage", stage=Stage.FULL.value), mark("full-check", number=1)])
    assert pace.proposes(wanted=False)
    go(pace, "stage", stage=Stage.FULL.value)
    assert not pace.proposes(wanted=True)
    assert Live().proposes(wanted=True)


def test_seconds_told_before_the_loop_began_are_counted_from_another_moment() -> None:
    record = [mark("snapshot", 0.8), mark("stage", 0.01, stage="baseline"), mark("started", 5.0, number=1)]
    pace = Followed(record)
    assert pace.clock() == 0.0
    go(pace, "snapshot")
    go(pace, "stage", stage="baseline")
    assert pace.clock() == 0.01


def test_a_candidate_found_too_late_then_is_not_started_now_and_another_one_is() -> None:
    pace = Followed([mark("expanded", path="a.py", edits=3, asked=False), mark("drained"), mark("started", number=1)])
    assert pace.may_start()
    assert not pace.stops(wanted=True)
    go(pace, "expanded", path="a.py", edits=3, asked=False)
    assert pace.stops(wanted=False)
    go(pace, "drained")
    assert not pace.stops(wanted=True)
    assert Live().stops(wanted=True)
    assert not Live().stops(wanted=False)


@pytest.mark.parametrize("asked", [True, False])
def test_the_model_is_asked_about_edits_where_it_was_asked_then(asked: bool) -> None:
    pace = Followed([mark("expanded", path="a.py", edits=3, asked=asked)])
    assert pace.scores(wanted=not asked) is asked
    go(pace, "checked", number=1)
    assert not pace.following
    assert pace.scores(wanted=not asked) is not asked
    assert Live().scores(wanted=True)


def test_lines_are_of_the_tests_that_there_was_time_to_trace_then() -> None:
    baseline = timed(0.1, 0.2, 0.3)
    lines = {RepoPath("a.py"): frozenset({1})}
    baseline = replace(baseline, tests=tuple(replace(t, lines=lines) for t in baseline.tests))
    tests, checks = milliseconds(baseline)
    assert traced(baseline) == [0, 1, 2]
    again = Followed([mark("timed", tests=tests, checks=checks, traced=[0, 2])]).times(baseline)
    assert [t.lines is not None for t in again.tests] == [True, False, True]
    by_an_older_version = Followed([mark("timed", tests=tests, checks=checks)]).times(baseline)
    assert traced(by_an_older_version) == [0, 1, 2]


def test_an_order_that_was_put_back_then_is_put_back_where_it_was() -> None:
    pace = Followed([mark("checked", number=1), mark("unordered", edits=9), mark("started", number=2)])
    assert not pace.drops(wanted=True)
    go(pace, "checked", number=1)
    assert not pace.may_start()
    assert pace.answered({}) == ()
    assert pace.awaits_scores(coming=False)
    assert pace.drops(wanted=False)
    go(pace, "unordered", edits=9)
    assert pace.may_start()
    assert not pace.drops(wanted=True)
    assert pace.following
    assert Live().drops(wanted=True)
    assert not Live().drops(wanted=False)


def test_edits_are_read_on_where_they_were_then_and_those_that_were_late_are_passed_over() -> None:
    record = [
        mark("reading-on", edits=100),
        mark("checked", number=1),
        mark("read-on", scored=98, unread=[3, 7]),
        mark("started", number=2),
    ]
    pace, job = Followed(record), cf.Future[list[float | None]]()
    job.set_result([])
    assert pace.reads_on(wanted=0) == 100
    go(pace, "reading-on", edits=100)
    assert pace.reads_on(wanted=50) == 0
    assert not pace.may_read_on(job)
    assert list(pace.not_read()) == []
    go(pace, "checked", number=1)
    assert not pace.may_start()
    assert pace.answered({}) == ()
    assert pace.awaits_scores(coming=False, onward=True)
    assert pace.may_read_on(job)
    assert pace.not_read() == {3, 7}
    go(pace, "read-on", scored=98, unread=[3, 7])
    assert pace.may_start()
    assert not pace.awaits_scores(coming=True, onward=True)
    assert pace.following
    assert Live().reads_on(wanted=50) == 50
    assert list(Live().not_read()) == []
    assert Live().may_read_on(job)
    assert not Live().awaits_scores(coming=True, onward=True)


def test_an_answer_of_a_model_that_is_not_at_work_ends_the_following() -> None:
    pace = Followed([mark("read-on", scored=7)])
    assert not pace.awaits_scores(coming=True, onward=False)
    assert not pace.following


def test_where_the_record_had_looked_at_all_that_was_left_a_replay_does_too() -> None:
    for told, stops in (({"left": False}, False), ({"left": True}, True), ({}, True)):
        pace = Followed([mark("drained", **told), mark("started", number=1)])
        assert pace.stops(wanted=False) is stops
        go(pace, "drained", **told)
        assert pace.stops(wanted=True) is False  # the record goes on
