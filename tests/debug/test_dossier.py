"""A dossier as text and as a page says the same, and what comes from outside is escaped."""

from localagent.debug.departure import Departure
from localagent.debug.dossier import (
    Dossier,
    Hypothesis,
    HypothesisOutcome,
    Suspect,
    dossier_page,
    dossier_text,
    look_first,
)
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion


def test_a_page_says_what_the_text_says_and_runs_nothing() -> None:
    line = (RepoPath("m.py"), 3)
    dossier = Dossier(
        test="test_m.py::test_<script>",
        failure=Failure(exception="KeyError", message="<img src=x onerror=alert(1)>\x1b[31m"),
        failing=2,
        run=None,
        sources={},
        writes=(),
        departure=Departure(test="test_m.py::test_b", after=(line[0], 2), line=line, passing_line=(line[0], 9)),
        suspects=(),
        values=(),
        hypotheses=(),
        tried=0,
        seconds=1.0,
    )
    text, page = dossier_text(dossier), dossier_page(dossier).decode()
    for shown in ("another test fails, too", "both run   m.py:2", "this test  m.py:3", "that test  m.py:9  (test_m.py"):
        assert shown in text
        assert shown in page
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page


def test_where_to_look_first_is_what_an_experiment_confirmed_and_else_says_that_none_did() -> None:
    path, blank = RepoPath("m.py"), Failure(exception="KeyError", message="k")
    suspect = Suspect(suspicion=Suspicion(path=path, line=7, end_line=7, score=1.0, why="ran"), text="x = 1")
    shown = "the failing test passes"

    def edit(line: int, outcome: HypothesisOutcome) -> Hypothesis:
        return Hypothesis(path=path, line=line, experiment="+ -> -", outcome=outcome, shown=shown)

    def first(*hypotheses: Hypothesis, tried: int | None = 3) -> list[str]:
        dossier = Dossier(
            test="t", failure=blank, failing=1, run=None, sources={"m.py:7": "x = 1"}, writes=(), departure=None,
            suspects=(suspect,), values=(), hypotheses=hypotheses, tried=tried, seconds=1.0,
        )  # fmt: skip
        return list(look_first(dossier))

    refuted, possible = edit(2, HypothesisOutcome.REFUTED), edit(3, HypothesisOutcome.POSSIBLE)
    told = f"    changed (+ -> -), {shown}"
    assert first(refuted, edit(4, HypothesisOutcome.CONFIRMED), possible) == ["m.py:4", told]
    assert first(refuted, possible) == [
        "no experiment confirmed a cause; the best hints:", "m.py:3", told, "m.py:7  x = 1", "    ran",
    ]  # fmt: skip
    assert first(refuted)[0] == "none of the 3 changes that were tried mends it; the best hints:"
    assert first(tried=0)[0] == "no change was tried; the best hints:"
    assert first(tried=None)[0].startswith("the time was over before a change was tried")


def test_where_nothing_can_be_blamed_the_place_in_the_tests_is_told_and_frames_that_repeat_once() -> None:
    path = RepoPath("test_m.py")
    frames = (Frame(path=path, line=9, function="t"), *[Frame(path=path, line=2, function="f")] * 30)
    dossier = Dossier(
        test="collect:test_m.py", failure=Failure(exception="RecursionError", message="m", frames=frames), failing=3,
        run=None, sources={"test_m.py:2": "f()"}, writes=(), departure=None, suspects=(), values=(), hypotheses=(),
        tried=0, seconds=1.0,
    )  # fmt: skip
    text = dossier_text(dossier).splitlines()
    assert text[0] == "test_m.py cannot be collected; 2 other tests fail, too"
    assert "  no statement outside the tests can be blamed; it fails here:" in text
    assert "  test_m.py:2  f()" in text
    assert text[-3:] == ["  test_m.py:9, in t", "  test_m.py:2, in f, 30 times in a row; the last one:", "      f()"]
