"""A dossier as text and as a page says the same, and what comes from outside is escaped."""

import threading
from dataclasses import replace
from pathlib import Path

from support.traced_program import PATH, traced

from localagent.debug.departure import Departure
from localagent.debug.dossier import (
    Dossier,
    Hypothesis,
    HypothesisOutcome,
    Suspect,
    dossier_json,
    dossier_page,
    dossier_text,
    look_first,
)
from localagent.domain.bisection import HunkSummary
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
    at = text.index("  test_m.py:9, in t")
    assert text[at + 1 : at + 3] == ["  test_m.py:2, in f, 30 times in a row; the last one:", "      f()"]
    assert text[-1] == "  localagent fix --test test_m.py"


def test_a_change_since_the_last_commit_is_told_before_hints_and_what_to_do_next_at_the_end() -> None:
    hunk = HunkSummary(path=RepoPath("m.py"), line=4, before="x = 1\n", after="\n".join(map(str, range(12))))
    dossier = Dossier(
        test="t.py::test_a b", failure=Failure(exception="KeyError", message="k"), failing=1, run=None, sources={},
        writes=(), departure=None, suspects=(), values=(), hypotheses=(), tried=3, seconds=1.0, uncommitted=(hunk,),
    )  # fmt: skip
    first = list(look_first(dossier))
    assert first[:4] == [
        "what you changed since the last commit; without that the test passes:", "m.py:4", "  - x = 1", "  + 0",
    ]  # fmt: skip
    assert first[-1] == "  + ... 4 more lines"
    text = dossier_text(dossier)
    assert "localagent reproduce 't.py::test_a b' " in text
    assert "localagent bisect" not in text  # it is not committed
    assert "localagent bisect --test" in dossier_text(replace(dossier, uncommitted=()))


def test_an_exception_that_ends_a_thread_is_told_with_its_frames_and_values(tmp_path: Path) -> None:
    source = (
        "import threading\n"
        "heard = []\n"
        "threading.excepthook = heard.append\n"  # as pytest does, before a test's body
        "def work(parts):\n"
        "    return 6 // (parts - 1)\n"
        "for parts in (3, 1):\n"
        "    one = threading.Thread(target=work, args=(parts,), name=f'worker {parts}')\n"
        "    one.start()\n"
        "    one.join()\n"
        "assert not heard\n"
    )
    start, hook = threading.Thread.start, threading.excepthook
    try:
        run = traced(tmp_path, source)
    finally:
        left, threading.excepthook = threading.excepthook, hook
    assert threading.Thread.start is start
    assert left.__name__ == "append"  # what was there goes on hearing of it
    place = f"{PATH}:5"
    dossier = Dossier(
        test="t", failure=Failure(exception="AssertionError", message=""), failing=1, run=run, writes=(),
        departure=None, sources={place: "return 6 // (parts - 1)"}, suspects=(), values=(),
        hypotheses=(), tried=0, seconds=1.0,
    )  # fmt: skip
    (thread,) = dossier_json(dossier)["threads"]
    assert (thread["name"], thread["exception"]) == ("worker 1", "ZeroDivisionError")
    assert thread["frames"][-1]["locals"] == {"parts": "1"}
    text = dossier_text(dossier)
    assert "Threads of the test that an exception ended\n  worker 1: ZeroDivisionError: " in text
    assert f"{place}, in work\n        return 6 // (parts - 1)\n          parts = 1" in text
    assert [frame.line for frame in run.frames] == [10]
