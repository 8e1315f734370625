"""Which failing test `debug` takes, and what it says where none is meant."""

import pytest

from localagent.app.debug.chosen_test import chosen_failure, traced_test
from localagent.domain.outcome import Baseline, Failure, Frame, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo

M = RepoPath("m.py")
SOURCES = {M: b"def total(x):\n    return 1 / x\n\n\ndef other():\n    return 2\n"}
TRACE = b"""Traceback (most recent call last):
  File "/srv/app/main.py", line 9, in <module>
    total(0)
  File "/srv/app/m.py", line 2, in total
    return 1 / x
ZeroDivisionError: division by zero
"""


def failed(name: str, exception: str, function: str) -> TestResult:
    frames = (Frame(path=RepoPath("t.py"), line=1, function=name), Frame(path=M, line=2, function=function))
    failure = Failure(exception=exception, message="", frames=frames)
    return TestResult(id=f"t.py::{name}", outcome=Outcome.FAILED, failure=failure, lines={M: frozenset({2})})


def test_a_test_that_fails_as_the_traceback_does_is_found() -> None:
    tests = (
        failed("test_type", "TypeError", "total"),
        failed("test_place", "ZeroDivisionError", "other"),
        failed("test_same", "ZeroDivisionError", "total"),
    )
    baseline = Baseline(tests=tests, failing=tuple(t.id for t in tests))
    assert traced_test(TRACE, baseline, SOURCES) == "t.py::test_same"
    with pytest.raises(AnswerIsNo, match=r"ZeroDivisionError in total \(m\.py\); it is run by t\.py::test_type, t"):
        traced_test(TRACE, Baseline(tests=tests, failing=("t.py::test_type", "t.py::test_place")), SOURCES)
    with pytest.raises(AnswerIsNo, match="no test runs total"):
        traced_test(TRACE, Baseline(tests=()), SOURCES)
    with pytest.raises(AnswerIsNo, match="no frame of the traceback lies in this repository"):
        traced_test(TRACE, baseline, {})


def test_what_fails_only_sometimes_is_no_pass() -> None:
    baseline = Baseline(tests=(TestResult(id="t.py::test_a", outcome=Outcome.PASSED),), flaky=("t.py::test_a",))
    for wanted in ("", "t.py", "t.py::test_a"):
        with pytest.raises(AnswerIsNo, match=r"t\.py::test_a fails only sometimes") as no:
            chosen_failure(baseline, wanted)
        assert "localagent reproduce t.py::test_a --flaky" in no.value.remedy
