"""Reading on: which edits, when, and that only the order among them changes."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_repair_task import Laboratory, Oracle, repair

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, TaskResult
from localagent.ports import OnwardReader
from localagent.repair.ordering.model_rescoring import EDITS, STEPS, ReadingOn, permuted
from localagent.repair.search.search_node import Lineage, SearchStep

ROOT = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})


@dataclass
class Judge:
    """Reads edits on in no time: one note reads well, the others badly; `takes` seconds are said beforehand."""

    favourite: str
    takes: float = 0.0
    at_once: int = 1_000
    reads: int = 1_000
    better: float = 0.0
    others: float = -9.0
    pause: float = 0.0  # seconds that it really takes
    asked: list[list[Edit]] = field(default_factory=list)

    def seconds(self, source: bytes, edits: Sequence[Edit]) -> float:
        return self.takes if len(edits) <= self.at_once else float("inf")

    def read_on(self, source: bytes, edits: Sequence[Edit], *, timeout_seconds: float) -> Sequence[float | None]:
        self.asked.append(list(edits))
        time.sleep(self.pause)
        told = [self.better if e.note == self.favourite else self.others for e in edits]
        return [nats if k < self.reads else None for k, nats in enumerate(told)]


def step(at: int, cost: float) -> SearchStep:
    edit = Edit(
        path=RepoPath("m.py"),
        splices=(Splice(start=at, end=at, text=b""),),
        operator="o",
        line=1,
        end_line=1,
        prior=0.0,
    )
    return SearchStep(parent=ROOT, edit=edit, cost=cost, model_score=-1.0)


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), max_size=30))
def test_law_costs_are_shared_out_anew_and_none_is_made(rows: list[tuple[float, float]]) -> None:
    steps = [step(k, cost) for k, (cost, _) in enumerate(rows)]
    worth = {id(s.edit): w for s, (_, w) in zip(steps, rows, strict=True)}
    fresh = permuted(steps, [w for _, w in rows])
    assert Counter(s.cost for s in fresh) == Counter(s.cost for s in steps)
    assert {id(s.edit) for s in fresh} == set(worth)
    ordered = sorted(fresh, key=lambda s: s.cost)
    for a, b in pairwise(ordered):
        assert a.cost == b.cost or worth[id(a.edit)] <= worth[id(b.edit)]


SOURCE = b"a = 1\nb = 2\nc = 3\nd = 4\n"
LAST = "4 -> 9"  # of 36 edits that the scorer holds for equal, the last


def ran(judge: Judge | None, *, seconds: float = 300.0) -> tuple[TaskResult, list[tuple[str, object]]]:
    def passes(space: Mapping[str, object]) -> bool:
        time.sleep(0.005)  # candidates take their time, so that the reader's thread has its turn on any machine
        return space["a"] == 1 and space["d"] == 9

    lab = Laboratory(SOURCE, {"a": passes})
    budget = Budget(max_candidates=500, max_seconds=seconds, jobs=1)
    result, events = repair(lab, scorer=Oracle("none"), onward=judge, budget=budget)
    kinds = ("reading-on", "read-on")
    return result, [(e.kind, e.data.get("edits", e.data.get("scored"))) for e in events.seen if e.kind in kinds]


def test_the_edit_that_reads_best_comes_first() -> None:
    plain, nothing = ran(None)
    read, told = ran(Judge(LAST))
    assert nothing == []
    assert told[0][0] == "reading-on"
    assert told[1][0] == "read-on"
    assert told[0][1] == told[1][1]
    assert plain.rank_of_first_plausible is not None
    assert read.rank_of_first_plausible is not None
    assert plain.patch == read.patch
    assert read.rank_of_first_plausible < 10 < plain.rank_of_first_plausible


def test_what_reads_better_than_what_stood_there_earns_nothing_by_that() -> None:
    plain = ran(None)[0].rank_of_first_plausible
    assert ran(Judge(LAST, better=50.0, others=0.0))[0].rank_of_first_plausible == plain
    first = ran(Judge(LAST, better=-1.0))[0].rank_of_first_plausible
    assert first is not None
    assert plain is not None
    assert first < plain


def test_where_candidates_are_quicker_than_the_model_nothing_is_read_on() -> None:
    judge = Judge(LAST, takes=1_000.0)
    assert ran(judge, seconds=10_000.0)[1] == []
    assert judge.asked == []
    assert ran(Judge(LAST, takes=float("inf")))[1] == []


def test_where_there_is_no_time_for_many_the_half_or_a_quarter_of_them_are_read() -> None:
    source = b"".join(b"v%s = %d\n" % (bytes([97 + k]), k % 10) for k in range(26))  # some 230 edits
    lab = Laboratory(source, {"a": lambda _: False})
    budget = Budget(max_candidates=20, max_seconds=300, jobs=1)
    for at_once, first in ((EDITS, EDITS), (EDITS - 1, EDITS // 2), (EDITS // 4, EDITS // 4), (EDITS // 5, None)):
        judge = Judge("none", at_once=at_once)
        repair(lab, scorer=Oracle("none"), onward=judge, budget=budget)
        assert [len(some) for some in judge.asked[:1]] == ([] if first is None else [first])


def test_what_was_not_read_in_time_keeps_its_place() -> None:
    some = Judge(LAST, reads=3)
    result, told = ran(some)
    assert told[1] == ("read-on", 3)
    assert result.verdict.value == "accepted"
    none = Judge(LAST, reads=0)
    assert ran(none)[0].rank_of_first_plausible == ran(None)[0].rank_of_first_plausible


def test_the_record_says_how_many_were_read() -> None:
    lab = Laboratory(SOURCE, {"a": lambda _: False})
    _, events = repair(lab, scorer=Oracle("none"), onward=Judge(LAST, reads=3))
    asked = next(e.data["edits"] for e in events.seen if e.kind == "reading-on")
    told = next(e.data for e in events.seen if e.kind == "read-on")
    assert asked == 36
    assert told == {"scored": 3}


def test_no_edit_is_read_twice_and_there_are_only_so_many_steps() -> None:
    judge = Judge("none")
    source = b"".join(b"v%s = %d\n" % (bytes([97 + k]), k % 10) for k in range(26)) * 2  # some 500 edits
    lab = Laboratory(source, {"a": lambda _: False})
    repair(lab, scorer=Oracle("none"), onward=judge, budget=Budget(max_candidates=400, max_seconds=300, jobs=1))
    read = [id(e) for some in judge.asked for e in some]
    assert len(read) == len(set(read))
    assert 1 < len(judge.asked) <= STEPS
    assert all(len(some) <= EDITS for some in judge.asked)


def test_too_few_edits_are_not_read_on_and_cost_no_step() -> None:
    tried: list[int] = []

    class Patient(ReadingOn):
        def _worth_reading(self, reader: OnwardReader, each_seconds: float) -> int:
            self._weighs_at = float("-inf")
            tried.append(self._steps)
            return super()._worth_reading(reader, each_seconds)

    judge = Judge("none")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("localagent.repair.search.expansion.ReadingOn", Patient)
        repair(Laboratory(b"a = 1\n", {"a": lambda _: False}), scorer=Oracle("none"), onward=judge)
    assert judge.asked == []
    assert len(tried) > STEPS
    assert set(tried) == {0}


def test_once_a_candidate_is_plausible_nothing_more_is_read_on() -> None:
    source = b"a = 2\n" + b"".join(b"%s = 1\n" % bytes([98 + k]) for k in range(25))
    lab = Laboratory(source, {"a": lambda space: space["a"] == 7})
    judge = Judge("none")
    result, _ = repair(lab, scorer=Oracle("2 -> 7"), onward=judge)
    assert result.patch is not None
    assert result.verified > 5  # others are tried after it, and there were edits left to read
    assert len(judge.asked) == 1


def began_and_ended(candidates: int) -> tuple[int, int] | None:
    """After how many candidates the reading on began, and after how many it had ended; None where it did not begin."""
    lab = Laboratory(SOURCE, {"a": lambda _: False})
    budget = Budget(max_candidates=candidates, max_seconds=300, jobs=1)
    _, events = repair(lab, scorer=Oracle("none"), onward=Judge(LAST, takes=4.0, pause=0.3), budget=budget)
    kinds = [e.kind for e in events.seen if e.kind in ("started", "reading-on", "read-on")]
    if "reading-on" not in kinds:
        return None
    began, ended = kinds.index("reading-on"), kinds.index("read-on")
    return kinds[:began].count("started"), kinds[:ended].count("started")


def test_where_few_candidates_may_run_none_is_spent_while_the_likeliest_are_read_on() -> None:
    few = began_and_ended(30)
    assert few is not None
    assert few[0] == few[1] < 10
    assert began_and_ended(500) is None  # all of them will run, and sooner than they are read


@pytest.mark.parametrize(("candidates", "least", "most"), [(12, 25, 25), (30, 30, 60), (80, 100, 100)])
def test_where_they_wait_twice_as_many_edits_are_read_as_candidates_may_run(
    candidates: int, least: int, most: int
) -> None:
    lab = Laboratory(b"".join(b"v%s = 1\n" % bytes([97 + k]) for k in range(25)), {"va": lambda _: False})
    judge = Judge("none", takes=4.0)
    budget = Budget(max_candidates=candidates, max_seconds=300, jobs=1)
    repair(lab, scorer=Oracle("none"), onward=judge, budget=budget)
    assert least <= len(judge.asked[0]) <= most


@pytest.mark.parametrize("later", [False, True])
def test_what_was_read_on_holds_for_the_same_edits_of_a_kept_candidate(later: bool) -> None:
    """The second of two faults: its edits were read on when the first one was still there, or are at that moment."""
    source = b"".join(b"v%s = %d\n" % (bytes([97 + k]), k % 5) for k in range(9))

    def one(space: Mapping[str, object]) -> bool:
        time.sleep(0.02 if later else 0.0)
        return space["va"] == 7

    tests = {"one": one, "both": lambda space: space["va"] == 7 and space["vi"] == 9}

    def after_the_first(judge: Judge | None) -> int:
        lab = Laboratory(source, tests)
        result, events = repair(lab, scorer=Oracle("0 -> 7"), onward=judge)
        assert result.patch is not None
        checked = [e.data for e in events.seen if e.kind == "checked"]
        upon = [data["plausible"] for data in checked if len(data["edit"]) == 2]
        return upon.index(True)

    read, plain = after_the_first(Judge("3 -> 9", pause=0.2 if later else 0.0)), after_the_first(None)
    assert read < plain / 2


def test_where_the_snapshot_does_not_parse_the_edits_of_the_first_that_does_are_read_on() -> None:
    def upon_it(judge: Judge | None) -> int:
        lab = Laboratory(b"a = 01\nb = 2\nc = 3\nd = 4\n", {"d": lambda space: space["d"] == 9})
        result, events = repair(lab, scorer=Oracle("none"), onward=judge)
        assert result.rank_of_first_plausible is not None
        upon = [e.data["plausible"] for e in events.seen if e.kind == "checked" and len(e.data["edit"]) == 2]
        return upon.index(True)

    judge = Judge(LAST)
    read, plain = upon_it(judge), upon_it(None)
    assert read < plain / 2
    assert all(edit.operator == "digit" for edit in judge.asked[0])  # of a text that parses


def test_waiting_ends_once_a_candidate_is_plausible() -> None:
    """It flew already when the wait began."""

    def slow(space: Mapping[str, object]) -> bool:
        time.sleep(0.5 if space["a"] != 1 else 0.0)
        return space["a"] != 1

    budget = Budget(max_candidates=30, max_seconds=300, jobs=1)
    judge = Judge("none", takes=0.3, pause=2.0)
    scorer = Oracle("none", pause=0.1)  # the first ones fly meanwhile
    _, events = repair(Laboratory(SOURCE, {"a": slow}), scorer=scorer, onward=judge, budget=budget)
    kinds = [e.kind for e in events.seen]
    meanwhile = kinds[kinds.index("reading-on") :]
    assert "started" in meanwhile[: meanwhile.index("read-on") if "read-on" in meanwhile else None]


def test_waiting_ends_with_the_time() -> None:
    judge = Judge("none", takes=0.3, pause=5.0)
    budget = Budget(max_candidates=30, max_seconds=3.0, jobs=1)
    lab = Laboratory(SOURCE, {"a": lambda _: False})
    result, events = repair(lab, scorer=Oracle("none"), onward=judge, budget=budget)
    kinds = [e.kind for e in events.seen]
    assert "reading-on" in kinds
    assert "read-on" not in kinds
    assert result.verified < 10
