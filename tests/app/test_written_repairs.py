"""Repairs of texts, end to end with the bundled model; the report says who wrote them."""

import shutil
import sys
from pathlib import Path

import pytest
from fix_builder import CHECKOUT, Home, home

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import casefile
from bench.judge import Judgement, judge
from localagent.app import Settings
from localagent.domain.edit import WRITTEN as OPERATORS
from localagent.llm.registry import Registry

pytestmark = [pytest.mark.model, pytest.mark.slow]

SPANS = {case.id: case for case in casefile.read_all(casefile.CASES.parent / "spans")}
FORMATS = ["bill-total", "poll-share", "price-label"]
WRITTEN = ["greeting", "page-range", "price-tag"]
BUDGET = ("--max-candidates", "1000", "--max-seconds", "250", "--jobs", "1")


def brings_model(h: Home) -> None:
    """The bundled model, where this home looks for it."""
    found = Registry(CHECKOUT / "models", Settings.from_environ().data_dir).verify("")
    assert found.path is not None
    folder = h.root / "data" / "localagent" / "models"
    folder.mkdir(parents=True)
    shutil.copy(found.path, folder / found.path.name)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_repaired_by_whoever_comes_first(name: str) -> None:
    """Span search wrote them before the edit space had `format-spec`; who made a patch, the report says either way."""
    case = SPANS[name]
    with home(case.project) as h:
        brings_model(h)
        ran = h.fix(*BUDGET, model=())
        assert ran.code == 0, ran.reason
        assert judge(case, ran.report["patch"].encode()) is Judgement.CORRECT
        (origin,) = ran.report["provenance"]
        assert (origin["origin"] == "model") is (origin["operator"] in OPERATORS)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_the_edit_space_lacks_is_written(name: str) -> None:
    """By the bundled model with its mender; not without writing."""
    case = SPANS[name]
    with home(case.project) as h:
        brings_model(h)
        ran = h.fix(*BUDGET, model=())
        assert ran.code == 0, ran.reason
        assert judge(case, ran.report["patch"].encode()) is Judgement.CORRECT
        (origin,) = ran.report["provenance"]
        assert (origin["origin"], origin["operator"]) == ("model", "span")
    with home(case.project) as h:
        brings_model(h)
        without = h.fix("--no-writing", *BUDGET, model=())
        assert without.report["outcome"] == "gave-up"
        assert without.report["candidates_written"] == 0


@pytest.mark.parametrize("way", ["continue", "chat"])
def test_asked_for_whole_answers_the_bundled_model_breaks_nothing(way: str) -> None:
    """It is not good at it; whatever it says is an edit that gates and tests judge, or refused."""
    with home(SPANS["bill-total"].project) as h:
        brings_model(h)
        ran = h.fix("--write-by", way, "--max-candidates", "120", "--max-seconds", "60", "--jobs", "1", model=())
        assert ran.code in (0, 1), ran.err
        assert ran.report["outcome"] in ("accepted", "gave-up", "needs-person"), ran.reason
        assert not [w for w in ran.report["warnings"] if "dropped" in w]
        for origin in ran.report["provenance"]:
            assert (origin["origin"] == "model") is (origin["operator"] in OPERATORS)
