"""The learned order: its file is read strictly, its numbers are what they say, and knowing nothing changes nothing."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Edit, Reading, Splice
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import UsageFault
from localagent.repair.ordering.ranker import MOST_BYTES, Ranker, RankerModel, hand_scores, load_ranker, ranker_json
from localagent.repair.ordering.ranker_features import FEATURES, OF_MODEL, File, features
from localagent.repair.ordering.ranker_usage import USAGE
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.expansion import crowds_of

PATH = RepoPath("a.py")
SOURCE = b"""\
LIMIT = 3


def total(items, limit):
    found = 0
    for item in items:
        if item.price < limit:
            found = found + item.price
    return found
"""
TWO = (
    SOURCE
    + b"""

def least(items):
    return min(item.price for item in items if item.price > LIMIT)
"""
)
EDITS = tuple(open_edit_space({}).edits(PATH, {PATH: SOURCE}, lines=None, failures=()))
CROWDS = crowds_of(EDITS)
PLAIN = tuple(name for name in FEATURES if name not in OF_MODEL)


def model(names: tuple[str, ...], **operators: float) -> RankerModel:
    n = len(names)
    draw = np.random.default_rng(1)
    return RankerModel(
        features=names,
        mean=np.zeros(n),
        scale=np.ones(n),
        linear=draw.normal(size=n),
        hidden=draw.normal(size=(n, 3)),
        bias=draw.normal(size=3),
        out=draw.normal(size=3),
        operators={k.replace("_", "-"): v for k, v in operators.items()},
    )


RANKER = Ranker(name="test", with_model=model(FEATURES), without_model=model(PLAIN, compare_swap=1.5))
WRITTEN: dict[str, Any] = json.loads(ranker_json(RANKER, {"by": "hand"}))
ON = Weights(learned=1.0)


def edit_named(note: str) -> int:
    return next(k for k, e in enumerate(EDITS) if e.note == note)


def test_a_ranker_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "ranker.json"
    file.write_text(ranker_json(RANKER, {}))
    again = load_ranker(file)
    assert again is not None
    assert ranker_json(again, {}) == file.read_text()
    before, after = (r.corrections(File(SOURCE), EDITS, CROWDS, None, ON) for r in (RANKER, again))
    assert np.allclose(before, after, atol=2e-3)
    assert load_ranker(tmp_path / "none.json") is None


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"with-model": None}, "with-model: missing"),
    "unknown feature": ({"features": [*FEATURES[:-1], "luck"]}, "unknown feature 'luck'"),
    "feature twice": ({"features": [FEATURES[0], *FEATURES[:-1]]}, "'prior' twice"),
    "no features": ({"features": "prior"}, "not a list of names"),
    "too few numbers": ({"linear": [0.0]}, "linear is not"),
    "hidden is flat": ({"hidden": [0.0] * (3 * len(FEATURES))}, "hidden is not"),
    "not finite": ({"out": [0.0, math.inf, 0.0]}, "out is not 3 numbers"),
    "true is no number": ({"bias": [True, 0.0, 0.0]}, "bias is not"),
    "text": ({"mean": ["0"] * len(FEATURES)}, "mean is not"),
    "scale of nothing": ({"scale": [0.0] * len(FEATURES)}, "not above 0"),
    "operators are a list": ({"operators": [1.0]}, "operators are not"),
    "operator is text": ({"operators": {"wrap": "1"}}, "operators are not"),
}


@pytest.mark.parametrize(("change", "why"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    data = (
        {**WRITTEN, **change} if "with-model" in change else {**WRITTEN, "with-model": WRITTEN["with-model"] | change}
    )
    file = tmp_path / "ranker.json"
    file.write_text(json.dumps(data))
    with pytest.raises(UsageFault) as refused:
        load_ranker(file)
    assert any(why in fault and str(file) in fault for fault in refused.value.faults)


def test_a_file_that_is_no_ranker_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ranker.json"
    for text, why in (
        ("[1]", "schema 1"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (" " * (MOST_BYTES + 1), "larger"),
    ):
        file.write_text(text)
        with pytest.raises(UsageFault, match=why):
            load_ranker(file)
    leaning = {**WRITTEN, "without-model": WRITTEN["with-model"]}
    file.write_text(json.dumps(leaning))
    with pytest.raises(UsageFault, match="names features of the language model"):
        load_ranker(file)


def test_a_model_that_knows_nothing_and_a_switch_that_is_off_change_nothing() -> None:
    n = len(PLAIN)
    nothing = RankerModel(
        features=PLAIN, mean=np.zeros(n), scale=np.ones(n), linear=np.zeros(n),
        hidden=np.ones((n, 1)), bias=np.ones(1), out=np.zeros(1), operators={},
    )  # fmt: skip
    ranker = Ranker(name="x", with_model=nothing, without_model=nothing)
    assert set(ranker.corrections(File(SOURCE), EDITS, CROWDS, None, ON)) == {0.0}
    assert set(RANKER.corrections(File(SOURCE), EDITS, CROWDS, None, Weights(learned=0.0))) == {0.0}
    assert RANKER.corrections(File(SOURCE), [], [], None, ON) == []


def worth(scores: Iterable[float]) -> float:
    return math.log(sum(math.exp(each) for each in scores))


def test_corrections_share_out_anew_what_a_functions_edits_are_worth() -> None:
    edits = tuple(open_edit_space({}).edits(PATH, {PATH: TWO}, lines=None, failures=()))
    crowds = crowds_of(edits)
    readings = [None if k % 3 == 0 else Reading(ratio=-k / 10, stood=-1.0) for k in range(len(edits))]
    functions = {e.scope.qualname if e.scope else "" for e in edits}
    assert functions == {"", "total", "least"}
    for told in (None, readings):
        hand = hand_scores(edits, crowds, told, ON)
        corrections = np.array(RANKER.corrections(File(TWO), edits, crowds, told, ON))
        assert len(set(corrections)) > 100
        for name in functions:
            at = [k for k, e in enumerate(edits) if (e.scope.qualname if e.scope else "") == name]
            assert worth(hand[at] + corrections[at]) == pytest.approx(worth(hand[at]), abs=1e-3)


def test_a_function_is_ordered_the_same_whatever_else_its_file_opens() -> None:
    edits = tuple(open_edit_space({}).edits(PATH, {PATH: TWO}, lines=None, failures=()))
    crowds = crowds_of(edits)
    whole = RANKER.corrections(File(TWO), edits, crowds, None, ON)
    at = [k for k, e in enumerate(edits) if e.scope is not None and e.scope.qualname == "least"]
    assert 0 < len(at) < len(edits)
    alone = RANKER.corrections(File(TWO), [edits[k] for k in at], [crowds[k] for k in at], None, ON)
    assert alone == [whole[k] for k in at]


def test_an_operators_offset_lifts_its_edits_alone() -> None:
    without = Ranker(name="x", with_model=model(FEATURES), without_model=model(PLAIN))
    gained = np.subtract(
        RANKER.corrections(File(SOURCE), EDITS, CROWDS, None, ON),
        without.corrections(File(SOURCE), EDITS, CROWDS, None, ON),
    )
    swaps = np.array([e.operator == "compare-swap" for e in EDITS])
    others = np.array([e.scope is not None and e.operator != "compare-swap" for e in EDITS])
    assert swaps.any()
    assert np.allclose(gained[swaps] - gained[others][0], 1.5, atol=1e-3)
    assert np.allclose(gained[others], gained[others][0], atol=1e-3)
    assert not gained[[e.scope is None for e in EDITS]].any()  # another function's gain is nobody's loss


def test_features_say_what_they_are_called() -> None:
    readings = [Reading(ratio=0.7, stood=-2.0)] + [None] * (len(EDITS) - 1)
    told = features(File(SOURCE), EDITS, CROWDS, readings)
    assert told.shape == (len(EDITS), len(FEATURES))
    assert np.isfinite(told).all()

    def of(at: int, name: str) -> float:
        return float(told[at, FEATURES.index(name)])

    swap = edit_named("< -> <=")
    assert of(swap, "swap") == of(swap, "swap-operator") == of(swap, "head-if") == 1.0
    assert of(swap, "names") == of(swap, "added-text") == of(swap, "pair-rarest") == 0.0
    assert of(swap, "depth") == 2.0
    name = next(
        k for k, e in enumerate(EDITS) if e.operator == "name-swap" and e.splices[0].text == b"LIMIT" and e.line == 7
    )
    assert of(name, "names-in-file") == 1.0
    assert of(name, "names-in-function") == of(name, "swap-case") == 0.0
    assert of(name, "name-distance") == pytest.approx(math.log1p(6))
    assert (of(0, "score"), of(0, "excess"), of(0, "unread")) == (0.0, 0.7, 0.0)
    assert of(0, "fresh") == pytest.approx(-1.3)
    assert (of(1, "unread"), of(1, "excess")) == (1.0, 0.0)
    assert not features(File(SOURCE), EDITS, CROWDS, None)[:, [FEATURES.index(n) for n in OF_MODEL]].any()


def test_what_is_counted_in_an_edit_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[Edit]()
    plainly = File._counted

    def counting(self: File, edit: Edit) -> list[float]:
        counted.append(edit)
        return plainly(self, edit)

    monkeypatch.setattr(File, "_counted", counting)
    file, readings = File(SOURCE), [Reading(ratio=0.5, stood=-1.0)] * len(EDITS)
    bare = RANKER.corrections(file, EDITS, CROWDS, None, ON)
    read = RANKER.corrections(file, EDITS, CROWDS, readings, ON)
    assert len(counted) == len(EDITS)
    assert bare != read
    again = tuple(replace(e) for e in EDITS)  # equal ones, counted anew
    assert RANKER.corrections(file, again, CROWDS, readings, ON) == read
    assert len(counted) == 2 * len(EDITS)


def test_what_is_usual_in_a_program_is_what_was_usual_before_it_changed() -> None:
    changed = SOURCE.replace(b"found = found + item.price", b"found = limit")
    edits = tuple(open_edit_space({}).edits(PATH, {PATH: changed}, lines=None, failures=()))[:40]
    usual = [FEATURES.index(name) for name in USAGE]
    elder = File(SOURCE)
    heir, alone = File(changed, elder), File(changed)
    told = [features(file, edits, [0] * len(edits), None) for file in (heir, alone)]
    assert heir._usage is elder._usage
    assert not np.array_equal(told[0][:, usual], told[1][:, usual])
    rest = [k for k in range(len(FEATURES)) if k not in usual]
    assert np.array_equal(told[0][:, rest], told[1][:, rest])


@given(st.binary(max_size=200), st.data())
def test_any_text_and_any_splice_have_features(source: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    line = data.draw(st.integers(1, source.count(b"\n") + 1))
    edit = Edit(
        path=PATH,
        splices=(Splice(start=start, end=end, text=data.draw(st.binary(max_size=40))),),
        operator="x",
        line=line,
        end_line=line,
        prior=-1.0,
    )
    told = features(File(source), [edit], [0], None)
    assert told.shape == (1, len(FEATURES))
    assert np.isfinite(told).all()
