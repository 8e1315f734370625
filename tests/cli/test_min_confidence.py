"""`fix --min-confidence`: whole runs, from the command line to the record and the replay."""

import json
from pathlib import Path

import pytest
from support.fix_builder import ADDER, home

from localagent.cli.main import main


@pytest.mark.parametrize("text", ["0", "-0.5", "1.01", "nan", "inf"])
def test_what_is_no_probability_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--repo", str(tmp_path), f"--min-confidence={text}"]) == 2
    assert "--min-confidence: more than 0 and at most 1" in capsys.readouterr().err


@pytest.mark.slow
def test_more_can_be_asked_for_than_the_policy_does() -> None:
    with home(ADDER) as h:
        out = h.root / "out.patch"
        ran = h.fix("--min-confidence", "1", "--out", str(out))
        assert f"{out} was not written, because no patch was accepted" in ran.err
        assert not out.exists()
        assert (ran.code, ran.report["outcome"], ran.report["patch"]) == (1, "low-confidence", None)
        assert "where --min-confidence asks for 1.00" in ran.reason
        best = ran.report["proposals"][0]["confidence"]
        task = h.tasks / ran.report["task"]
        assert json.loads((task / "task.json").read_bytes())["min_confidence"] == 1
        facts = json.loads((task / "evidence.json").read_bytes())
        assert facts["asked"]["min_confidence"] == 1
        assert facts["confidence"] is None
        assert facts["proposals"][0]["confidence"] == {k: best[k] for k in ("probability", "calibrated", "model")}
        replayed = h.run("replay", ran.report["task"])
        assert replayed.code == 0, replayed.out + replayed.err

        taken = h.fix("--min-confidence", "1", "--assume")
        assert (taken.code, taken.report["outcome"]) == (0, "accepted")
        told = taken.report["confidence"]
        said = f"taken with confidence {told['probability']:.2f} because of --assume"
        assert f"{said}, where --min-confidence asks for 1.00" in taken.report["warnings"]
        facts = json.loads((h.tasks / taken.report["task"] / "evidence.json").read_bytes())
        assert facts["confidence"] == {name: told[name] for name in ("probability", "calibrated", "model")}
