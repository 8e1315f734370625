"""A dossier as text and as a page says the same, and what comes from outside is escaped."""

from localagent.debug.departure import Departure
from localagent.debug.dossier import Dossier, dossier_page, dossier_text
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath


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
