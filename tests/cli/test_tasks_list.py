"""`tasks list`: the likeliest first, what is not known last, as the daemon lists it. A part of an id is enough."""

import json
from typing import Any

import pytest
from support.false_daemon import TASK, false_daemon

from localagent.cli.main import main


def task(number: int, probability: float | None, *, calibrated: bool = True) -> dict[str, Any]:
    told = None if probability is None else {"probability": probability, "calibrated": calibrated, "model": "t"}
    order = {"tests": [f"t{number}"], "text": ""}
    return {"id": f"id-{number}", "state": "done", "exit": 0, "reason": "why", "order": order, "confidence": told}


def test_the_likeliest_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    older = {k: v for k, v in task(5, None).items() if k != "confidence"}  # of a daemon of before there was one
    tasks = [task(1, None), task(2, 0.5, calibrated=False), task(3, 0.97), task(4, 0.6), older]
    with false_daemon(**{"GET /v1/tasks?limit=50": {"tasks": tasks, "next": None}}) as daemon:
        assert main(["tasks", "list", "--daemon", str(daemon.socket)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == ["id-3", "id-4", "id-2", "id-1", "id-5"]
        assert lines[0] == "id-3  done (0)  t3  confidence 0.97  why"
        assert lines[2] == "id-2  done (0)  t2  confidence 0.50, not calibrated for this search  why"
        assert lines[3] == "id-1  done (0)  t1  why"
        assert main(["tasks", "list", "--daemon", str(daemon.socket), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["tasks"] == tasks


def test_the_first_characters_of_an_id_are_enough_where_one_task_begins_so(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [{**task(1, None), "id": name} for name in (TASK, f"{TASK[:-1]}0", "../../version")]
    answers = {"GET /v1/tasks?limit=50": {"tasks": tasks, "next": None}, f"GET /v1/tasks/{TASK}": tasks[0]}
    with false_daemon(**answers) as daemon:
        assert main(["tasks", "show", TASK, "--daemon", str(daemon.socket)]) == 0
        daemon.answers["GET /v1/tasks?limit=50"] = {"tasks": tasks[::2], "next": None}
        assert main(["tasks", "show", "20260101-0", "--daemon", str(daemon.socket)]) == 0
        assert capsys.readouterr().out.count(TASK) == 2
        daemon.answers["GET /v1/tasks?limit=50"] = {"tasks": tasks, "next": None}
        assert main(["tasks", "show", TASK[:-1], "--daemon", str(daemon.socket)]) == 2
        assert "begins the ids of 2 tasks" in capsys.readouterr().err
        for part in ("", "2027", "../"):
            assert main(["tasks", "show", part, "--daemon", str(daemon.socket)]) == 2
            assert "begins none of your tasks'" in capsys.readouterr().err
        assert not any(".." in asked for asked in daemon.asked)
