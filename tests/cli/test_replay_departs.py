"""`replay` of a task that goes another way says what differs, what may have made it, and what it comes to."""

import json
from pathlib import Path

import pytest
from support.evidence_builder import keep_task, settings_below

from localagent.app.evidence.replay_task import PatchCheck, Replayed, Reverified
from localagent.cli.main import main
from localagent.record.replay_diff import Told, explained
from localagent.record.trajectory import first_departure, trajectory

THEN: list[Told] = [("ranked", {"order": [[6, 0.1], [9, 0.2]], "behaviours": {"6": ["ok:1"], "9": ["late:"]}})]
NOW: list[Told] = [("ranked", {"order": [[6, 0.1], [9, 0.4]], "behaviours": {"6": ["ok:1"], "9": ["ok:2"]}})]


def departs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, same_patch: bool, verified: PatchCheck = PatchCheck.PASSES
) -> str:
    """A kept task whose replay departs at its choice; its id."""
    record = keep_task(settings_below(tmp_path, monkeypatch), tmp_path / "repo")
    answer = Replayed(
        task=record.id,
        events=1,
        digest="sha256:" + "0" * 64,
        departure=first_departure(trajectory(THEN), trajectory(NOW)),
        same_patch=same_patch,
        verified=Reverified(check=verified, reasons=("a test fails",) if verified is PatchCheck.FAILS else ()),
        changed=("ruff: 1, now 2",),
        explanation=explained(THEN, NOW, 0),
    )
    monkeypatch.setattr("localagent.cli.replay.replay", lambda *_, **__: answer)
    return record.id


def test_it_tells_what_differs_and_why_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = departs(monkeypatch, tmp_path, same_patch=True)
    assert main(["replay", task]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "the patch of the record passes every check again",
        "departs at event 1 of 1 (ranked); the patch is the same",
        "  order[1][1]: 0.2, now 0.4",
        "  behaviours.9[0]: late:, now ok:2",
        "  may be: candidates are compared on inputs near the tests' within 40 s, 2 s each, 0.05 s a call: a machine "
        "that was busier in one of the two runs",
        "  changed since: ruff: 1, now 2",
    ]
    assert "found the same patch" in told.err
    assert "the load of this machine is" in told.err


def test_another_patch_names_what_to_do_and_json_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = departs(monkeypatch, tmp_path, same_patch=False)
    assert main(["replay", task]) == 1
    assert "replay it again on a quiet machine" in capsys.readouterr().err
    assert main(["replay", task, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["departure"]
    assert told["differs"][0] == "order[1][1]: 0.2, now 0.4"
    assert told["recorded"]["order"] == [[6, 0.1], [9, 0.2]]
    assert len(told["causes"]) == 1


def test_a_patch_that_fails_now_is_no_confirmation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = departs(monkeypatch, tmp_path, same_patch=True, verified=PatchCheck.FAILS)
    assert main(["replay", task]) == 1
    assert "the patch of the record fails now: a test fails" in capsys.readouterr().out
    assert main(["replay", task, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["confirmed"], told["same_patch"]) == (False, True)
    assert told["verified"] == {"check": "fails", "reasons": ["a test fails"]}
