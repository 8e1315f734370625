"""`localagent top`: what it says of a daemon, as lines, JSON and a picture; hostile names drive no terminal."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from support.service_builder import Served, served
from support.ui_builder import EVIL, running

from localagent.cli.main import main
from localagent.cli.top import lines, picture
from localagent.daemon.store.leases import append
from localagent.domain.task import Event


@pytest.fixture(scope="module")
def daemon() -> Iterator[Served]:
    with served(hold=True) as made:
        yield made


@pytest.mark.long
def test_what_runs_and_how_fast(daemon: Served, capsys: pytest.CaptureFixture[str]) -> None:
    lease = running(daemon)
    steps = [{"verified": 10 * n, "open": 400 - n, "plausible": 1} for n in range(4)]
    with daemon.rows() as rows:
        append(rows, lease, [Event(kind="progress", at_seconds=10 + 0.5 * n, data=x) for n, x in enumerate(steps)])
    assert main(["top", "--daemon", str(daemon.socket), "--once", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [task] = found["running"]
    assert task["id"] == lease.task
    assert {k: task["pace"][k] for k in ("verified", "plausible", "open")} == steps[-1]
    assert task["pace"]["a_second"] == 20.0
    assert found["tasks"]["running"] == 1
    assert found["everybody"] is False
    assert main(["top", "--daemon", str(daemon.socket), "--once"]) == 0
    out = capsys.readouterr().out
    assert "1 running on 1 workers" in out
    assert "20.0 candidates/s" in out
    assert f"{lease.task}  " in out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert len(out.splitlines()) == 2


@pytest.mark.long
def test_everybody_s_takes_the_role(daemon: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--daemon", str(daemon.socket), "--once", "--all"]) == 1
    assert "read-all" in capsys.readouterr().err
    assert main(["top", "--daemon", str(daemon.socket), "--every", "0"]) == 2
    assert main(["top", "--daemon", f"{daemon.root}/none", "--once"]) == 4


def test_the_picture_reads_no_markup() -> None:
    order: dict[str, Any] = {"tests": ["[red]x[/red]" + EVIL], "text": ""}
    pace = {"stage": "\x1b[2J[bold]", "verified": 3, "plausible": 0, "open": 9, "a_second": 1.5}
    task = {"id": "t", "order": order, "cancelling": False, "started_at": None, "pace": pace, "uid": 7}
    counts = dict.fromkeys(("held", "queued", "running", "done", "failed", "cancelled"), 1)
    found = {"at": 1.0, "everybody": True, "tasks": counts, "running": [task], "workers": 2, "models": []}
    out = io.StringIO()
    Console(file=out, width=200, force_terminal=True).print(picture({"uid": 0}, found))
    text = out.getvalue()
    assert "[red]x[/red]" in text
    assert "\x1b[2J" not in text
    assert "user 7" in lines({"uid": 0}, found)[1]
