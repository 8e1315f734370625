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
from localagent.domain.outcome import Failure
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
        seconds=1.0,
    )
    text, page = dossier_text(dossier), dossier_page(dossier).decode()
    for shown in ("(and 1 other tests)", "after m.py:2 it goes on at m.py:3", "test_m.py::test_b goes on at m.py:9"):
        assert shown in text
        assert shown in page
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page


def test_where_to_look_first_is_what_an_experiment_confirmed_and_else_says_that_none_did() -> None:
    path, blank = RepoPath("m.py"), Failure(exception="KeyError", message="k")
    suspect = Suspect(suspicion=Suspicion(path=path, line=7, end_line=7, score=1.0, why="ran"), text="x = 1")
    shown = "the 1 failing tests pass"

    def edit(line: int, outcome: HypothesisOutcome) -> Hypothesis:
        return Hypothesis(path=path, line=line, experiment="+ -> -", outcome=outcome, shown=shown)

    def first(*hypotheses: Hypothesis) -> list[str]:
        dossier = Dossier(
            test="t", failure=blank, failing=1, run=None, sources={}, writes=(), departure=None,
            suspects=(suspect,), values=(), hypotheses=hypotheses, seconds=1.0,
        )  # fmt: skip
        return list(look_first(dossier))

    refuted, possible = edit(2, HypothesisOutcome.REFUTED), edit(3, HypothesisOutcome.POSSIBLE)
    assert first(refuted, edit(4, HypothesisOutcome.CONFIRMED), possible) == [f"m.py:4: with + -> - {shown}"]
    assert first(refuted, possible) == [
        "no experiment confirmed a cause; the best hints:",
        f"m.py:3: with + -> - {shown}",
        "m.py:7: x = 1",
    ]
