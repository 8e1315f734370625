"""`replay` of a session of `do`: every call again, without its model; what departs is named, altered ones refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import calls_in_turn, false_model_server
from support.git_builder import Repo

from localagent.agent.agent_ports import Answer, Review
from localagent.app.agent.change_review import GateReview
from localagent.cli.main import main

NEW = "from extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A!'\n"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "shop.py"}),
    ("edit", {"path": "shop.py", "old": "nowhere", "new": "x"}),
    ("create", {"path": "extra.py", "content": "def shout(text):\n    return text.upper() + '!'\n"}),
    ("create", {"path": "test_extra.py", "content": NEW}),
    ("run", {"code": "import time; print(time.time())"}),
    ("finish", {"summary": "done"}),
]


@pytest.mark.long
def test_a_session_is_done_again_and_what_departs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    repo.stage("shop.py", "def load(path):\n    return path.split(',')\n")
    repo.stage("test_shop.py", "from shop import load\n\n\ndef test_load():\n    assert load('a,b') == ['a', 'b']\n")
    repo.commit()
    with false_model_server(calls_in_turn(CALLS)) as server:
        words = ["--repo", str(repo.folder), "--model", f"unix:{server.socket}", "--trust", "auto", "--assume"]
        assert main(["do", "add shout to extra.py", *words, "--quiet"]) == 0
        asked = len(server.bodies)
    [task] = (tmp_path / "state/localagent/tasks").iterdir()
    kept = {path: path.read_bytes() for path in task.iterdir() if path.is_file()}
    capsys.readouterr()
    assert main(["replay", task.name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["calls"], told["left"], told["other_texts"], told["departures"]) == (5, 1, 1, [])
    assert (told["same_patch"], told["verified"]["check"], len(server.bodies)) == (True, "passes", asked)
    assert {path: path.read_bytes() for path in task.iterdir() if path.is_file()} == kept

    with monkeypatch.context() as stricter:
        stricter.setattr(GateReview, "of_change", lambda *_: Review(answer=Answer.DENY, reason="not any more"))
        assert main(["replay", task.name, "--json"]) == 1
    departures = json.loads(capsys.readouterr().out)["departures"]
    assert [(one["number"], one["tool"]) for one in departures] == [(3, "create"), (4, "create")]
    assert "not any more" in departures[0]["now"]

    repo.write("shop.py", "")
    assert main(["replay", task.name]) == 1
    assert "is not the tree that task" in capsys.readouterr().err
    journal = task / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"upper", b"lower"))
    assert main(["replay", task.name]) == 1
    assert "journal" in capsys.readouterr().err
