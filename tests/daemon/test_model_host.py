"""The daemon's one model process with the real model: shared by tasks, replaced when killed, done without."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.fix_builder import ADDER, CHECKOUT
from support.service_builder import Served, ordered, served

from localagent.app import Settings
from localagent.llm.model.registry import Registry

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """The daemon's data directory, with the bundled model as it came."""
    weights = Registry(CHECKOUT / "models", Settings.from_environ().data_dir).verify("").path
    assert weights is not None
    place = tmp_path / "localagent" / "models"
    place.mkdir(parents=True)
    shutil.copy(weights, place)
    return {"XDG_DATA_HOME": str(tmp_path)}


def below(pid: int) -> list[int]:
    """All descendants."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            words = path.read_text().split()
        except OSError:  # a thread that ended meanwhile
            continue
        for word in words:
            found += [int(word), *below(int(word))]
    return found


def processes(daemon: Served, word: str) -> list[int]:
    assert daemon.process is not None
    found = []
    for pid in below(daemon.process.pid):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(os.fsencode(os.sys.executable)) and word.encode() in line:  # type: ignore[attr-defined]
            found.append(pid)
    return found


def ended(daemon: Served, task: str) -> dict[str, object]:
    client = daemon.client()
    while (found := client.get(f"/v1/tasks/{task}").json())["state"] in ("queued", "running"):
        time.sleep(0.2)
    assert found["state"] == "done", found
    report: dict[str, object] = client.get(f"/v1/tasks/{task}/report").json()
    return report


def test_two_tasks_share_one_child_and_live_without_it(data: dict[str, str]) -> None:
    with served(workers=2, start=False) as daemon:
        daemon.extra |= data
        daemon.start()
        client = daemon.client()
        tasks = [ordered(client, ADDER, use_model=True, seed=n, max_candidates=30)["id"] for n in range(2)]
        most = 0
        while any(client.get(f"/v1/tasks/{task}").json()["state"] in ("queued", "running") for task in tasks):
            most = max(most, len(processes(daemon, "localagent.llm.process.child")))
            assert len(processes(daemon, "processes.model_host")) <= 1
            time.sleep(0.3)
        assert most == 1
        for task in tasks:
            report = ended(daemon, task)
            assert report["outcome"] == "accepted", json.dumps(report)
            assert report["model"] is not None
            assert report["warnings"] == []  # no other weights than those asked for, no mender left behind
            assert int(str(report["model_tokens"])) > 0
        [host] = processes(daemon, "processes.model_host")
        task = ordered(client, ADDER, use_model=True, seed=7, max_candidates=30)["id"]
        while client.get(f"/v1/tasks/{task}").json()["state"] == "queued":
            time.sleep(0.05)
        os.kill(host, signal.SIGKILL)
        assert ended(daemon, task)["outcome"] == "accepted"
        task = ordered(client, ADDER, use_model=True, seed=8, max_candidates=30)["id"]
        report = ended(daemon, task)
        assert (report["outcome"], report["warnings"]) == ("accepted", [])
        assert int(str(report["model_tokens"])) > 0
        [again] = processes(daemon, "processes.model_host")
        assert again != host
        assert daemon.end() == 0
        assert not Path(f"/proc/{again}").exists()
