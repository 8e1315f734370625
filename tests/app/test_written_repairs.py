"""Repairs of texts, end to end with the bundled model; the report says who wrote them."""

import shutil
import sys
from pathlib import Path

import pytest
from support.fix_builder import bundled_model, home, model_place

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import casefile
from bench.judge import Judgement, judge
from localagent.domain.edit import WRITTEN as OPERATORS

pytestmark = [pytest.mark.model, pytest.mark.slow]

SPANS = {case.id: case for case in casefile.read_all(casefile.CASES.parent / "spans")}
FORMATS = ["bill-total", "poll-share", "price-label"]
WRITTEN = ["greeting", "page-range", "price-tag"]
BUDGET = ("--max-candidates", "1000", "--max-seconds", "250", "--jobs", "1")


def written_by(name: str) -> tuple[str, str]:
    """Who made the accepted patch of a case, as the report says, and by which operator; it is a correct one."""
    case = SPANS[name]
    with home(case.project) as h:
        shutil.copy(bundled_model(), model_place(h))
        ran = h.fix(*BUDGET, model=())
        assert ran.code == 0, ran.reason
        assert judge(case, ran.report["patch"].encode()) is Judgement.CORRECT
        (origin,) = ran.report["provenance"]
        return origin["origin"], origin["operator"]


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_repaired_by_whoever_comes_first(name: str) -> None:
    """Span search wrote them before the edit space had `format-spec`; who made a patch, the report says either way."""
    origin, operator = written_by(name)
    assert (origin == "model") is (operator in OPERATORS)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_the_edit_space_lacks_is_written(name: str) -> None:
    """By the bundled model with its mender; not without writing."""
    assert written_by(name) == ("model", "span")
    with home(SPANS[name].project) as h:
        shutil.copy(bundled_model(), model_place(h))
        without = h.fix("--no-writing", *BUDGET, model=())
        assert without.report["outcome"] == "gave-up"
        assert without.report["candidates_written"] == 0


@pytest.mark.parametrize("way", ["function", "search"])
def test_asked_for_whole_answers_the_bundled_model_breaks_nothing(way: str) -> None:
    """It is not good at it; whatever it says is an edit that gates and tests judge, or refused."""
    with home(SPANS["bill-total"].project) as h:
        shutil.copy(bundled_model(), model_place(h))
        ran = h.fix("--write-by", way, "--max-candidates", "120", "--max-seconds", "60", "--jobs", "1", model=())
        assert ran.code in (0, 1), ran.err
        assert ran.report["outcome"] in ("accepted", "gave-up", "needs-person"), ran.reason
        assert not [w for w in ran.report["warnings"] if "dropped" in w]
        for origin in ran.report["provenance"]:
            assert (origin["origin"] == "model") is (origin["operator"] in OPERATORS)
