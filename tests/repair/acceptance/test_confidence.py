"""The confidence: its weights as a file, its bounds, and what it says for and against."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.guard import GuardResult
from localagent.domain.outcome import FullResult
from localagent.domain.strength import Grade, Share, graded
from localagent.domain.verification import Assessment
from localagent.errors import UsageFault
from localagent.repair.acceptance.confidence_model import (
    SCHEMA,
    ConfidenceModel,
    grade_signals,
    guard_signals,
    load_confidence,
    progress_signals,
    strength_signals,
    with_strength,
)
from localagent.repair.acceptance.signals import Signal

BUNDLED = Path(__file__).resolve().parents[3] / "models" / "confidence.json"
NUMBERS = st.floats(min_value=-50, max_value=50)


def model(weights: dict[str, float], bias: float = 0.0, order: dict[str, float] | None = None) -> ConfidenceModel:
    centres = dict.fromkeys(weights, 0.0)
    return ConfidenceModel(
        name="t", bias=bias, weights=weights, centres=centres, order=order or {}, models=frozenset({"sha256:a"})
    )


@given(st.dictionaries(st.sampled_from("abcd"), NUMBERS), st.dictionaries(st.sampled_from("abcd"), NUMBERS), NUMBERS)
def test_a_probability_is_never_certain(weights: dict[str, float], values: dict[str, float], bias: float) -> None:
    signals = {name: Signal(value=value) for name, value in values.items()}
    found = model(weights, bias).judge(signals, language_model="sha256:a").probability
    assert 0.0 < found < 1.0


@given(NUMBERS, NUMBERS)
def test_more_of_what_speaks_for_it_is_never_less_likely(one: float, other: float) -> None:
    low, high = sorted((one, other))
    judged = [model({"a": 0.7}).judge({"a": Signal(value=v)}, language_model="").probability for v in (low, high)]
    assert judged[0] <= judged[1]


def test_reasons_are_told_by_what_they_weigh() -> None:
    signals = {
        "a": Signal(value=1.0, text="a speaks for it"),
        "b": Signal(value=1.0, text="b speaks against it"),
        "c": Signal(value=1.0, text="c weighs next to nothing"),
        "d": Signal(value=2.0, text="d speaks for it more"),
        "e": Signal(value=9.0),
    }
    found = model({"a": 0.5, "b": -0.5, "c": 0.01, "d": 0.5, "e": 1.0}).judge(signals, language_model="sha256:a")
    assert found.supporting == ("d speaks for it more", "a speaks for it")
    assert found.opposing == ("b speaks against it",)
    assert found.calibrated
    assert not model({}).judge({}, language_model="sha256:b").calibrated


def test_the_order_adds_nats_for_what_it_names() -> None:
    signals = {"new-crashes": Signal(value=0.5), "other": Signal(value=9.0)}
    assert model({}, order={"new-crashes": 4.0, "unknown": 1.0}).penalty(signals) == 2.0


def test_the_bundled_weights_can_be_read() -> None:
    assert load_confidence(BUNDLED).name


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": "other"}, "schema"),
        ({"weights": {"a": "x"}}, "weights.a must be a finite number"),
        ({"weights": {"a": 1e400}}, "weights.a must be a finite number"),
        ({"weights": {"a": True}}, "weights.a must be a finite number"),
        ({"order": []}, "order must be an object of numbers"),
        ({"weights": {"b": 1.0}}, "weights.b has no centre"),
        ({"models": [1]}, "models must be an array of texts"),
        ({"bias": None}, "bias must be a finite number"),
    ],
)
def test_wrong_weights_are_a_fault_that_says_what(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    right = {"schema": SCHEMA, "name": "t", "bias": 0, "models": [], "order": {}, "weights": {}, "centres": {}}
    path = tmp_path / "confidence.json"
    path.write_text(json.dumps({**right, **change}))
    with pytest.raises(UsageFault, match=told):
        load_confidence(path)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="cannot be read"):
        load_confidence(tmp_path / "none.json")


@pytest.mark.parametrize("doubt", ["hard-contradictions", "near-rival", "leaves-failing"])
def test_some_doubts_keep_a_repair_below_every_policy(doubt: str) -> None:
    signals = {"failing": Signal(value=1e9), doubt: Signal(value=1.0)}
    found = model({"failing": 1.0, doubt: -1.0}).judge(signals, language_model="")
    assert found.probability < 0.7
    assert model({"failing": 1.0}).judge({"failing": signals["failing"]}, language_model="").probability > 0.97


@pytest.mark.parametrize(
    ("guard", "value", "told"),
    [
        (None, 0.0, ""),
        (GuardResult(why="no tests found outside --test"), 0.0, ""),
        (GuardResult(why="the suite does not collect", unknown=True), 1.0, "was run: the suite does not collect"),
        (GuardResult(found=4, ran=4, passed=4), 0.0, "all 4 tests"),
        (GuardResult(found=4, ran=3, passed=2, not_run=1, undecided=("a",)), 0.5, "2 of 4 tests"),
        (GuardResult(found=4, not_run=4), 1.0, "4 of 4 tests"),
    ],
)
def test_a_guard_that_could_not_run_is_none_that_passed(guard: GuardResult | None, value: float, told: str) -> None:
    (found,) = guard_signals(guard).values()
    assert found.value == value
    assert told in found.text


def test_what_leaves_asked_tests_failing_is_believed_less() -> None:
    full = FullResult(
        accepted=True, reasons=(), fail_to_pass=("a",), pass_to_pass=(), pass_to_fail=(), still_failing=("b", "c")
    )
    found = progress_signals(full)
    assert found["leaves-failing"].text == "2 tests that should pass still fail"
    bundled = load_confidence(BUNDLED)
    told = [bundled.judge(progress_signals(f), language_model="").probability for f in (None, full)]
    assert told[0] > 2 * told[1]


def test_a_worse_grade_is_never_likelier() -> None:
    bundled = load_confidence(BUNDLED)
    told = [bundled.judge(grade_signals(grade), language_model="").probability for grade in Grade]
    assert told == sorted(told, reverse=True)
    assert told[0] > told[-1]


def test_strength_that_was_not_measured_says_so() -> None:
    assert strength_signals(None)["strength-unknown"].value == 1.0
    strength = graded(
        lines=Share(part=2, whole=2), mutants=Share(part=6, whole=8), functions=Share(part=1, whole=1), unknown={}
    )
    found = strength_signals(Assessment(strength=strength))
    assert [found[f"under-{g}"].value for g in "abcd"] == [1.0, 0.0, 0.0, 0.0]
    assert ("strength B" in found["under-a"].text, found["under-b"].text) == (True, "")
    assert found["strength-unknown"].value == 0.0
    assert found["mutants-killed"].value == 0.75
    assert "6 of 8 mutants" in found["mutants-killed"].text
    few = graded(lines=Share(part=2, whole=2), mutants=Share(part=1, whole=2), functions=None, unknown={})
    assert strength_signals(Assessment(strength=few))["mutants-known"].value == 0.0


@pytest.mark.parametrize(("killed", "watched"), [(10, True), (8, False)])
def test_strength_a_says_no_less_than_passing_tests_that_run_what_changes(killed: int, watched: bool) -> None:
    one = Share(part=1, whole=1)
    found = Assessment(
        strength=graded(lines=one, mutants=Share(part=killed, whole=10), functions=one, unknown={}),
    )
    unseen = {"unwatched": Signal(value=1.0, text="no passing test"), "collateral-known": Signal(value=0.0)}
    told = with_strength(unseen, found)
    assert (told["unwatched"].value, told["collateral-known"].value) == ((0.0, 1.0) if watched else (1.0, 0.0))
    seen = {"unwatched": Signal(value=0.0, text="3 passing tests run what it changes")}
    assert with_strength(seen, found)["unwatched"].text
    bundled = load_confidence(BUNDLED)
    beside = [bundled.judge(with_strength(x, found), language_model="").probability for x in (unseen, seen)]
    assert (beside[0] == pytest.approx(beside[1])) is watched


def test_what_the_tests_hardly_notice_and_one_answer_to_all_are_doubts() -> None:
    lines, functions = Share(part=1, whole=1), Share(part=1, whole=1)
    for killed, doubt in ((3, 1.0), (4, 0.0)):
        weak = graded(lines=lines, mutants=Share(part=killed, whole=10), functions=functions, unknown={})
        assert strength_signals(Assessment(strength=weak))["unnoticed"].value == doubt
        assert strength_signals(Assessment(strength=weak, same_answer=40))["same-answer"].value == 1.0
        assert strength_signals(Assessment(strength=weak))["same-answer"].value == 0.0
