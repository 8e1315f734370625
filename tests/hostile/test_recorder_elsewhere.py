"""The recorder under a user of its own: a daemon's task is on the record, in files that are not the daemon's."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fix_builder import ADDER
from service_builder import CHECKOUT, become, ordered, served

from localagent.record.audit.check import check_audit

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="two users take root")
DAEMON, STRANGER = 47121, 47122


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder of the recorder's user, with a running recorder that takes entries of root's daemon and of DAEMON."""
    with tempfile.TemporaryDirectory(prefix="la-recorder-") as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "state").mkdir(mode=0o700)
        yield place


def started(place: Path, user: int) -> "subprocess.Popen[bytes]":
    path = place / f"{user}.sock"
    argv = [sys.executable, "-m", "localagent", "recorder", "--socket", str(path), "--state", str(place / "state")]
    process = subprocess.Popen([*argv, "--user", str(user)], cwd=CHECKOUT, stderr=subprocess.DEVNULL)
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.05)
    path.chmod(0o666)
    return process


def said(path: Path, data: bytes) -> str:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20)
        try:
            line.connect(str(path))
            line.sendall(data)
            return line.recv(4096).decode()
        except (BrokenPipeError, ConnectionResetError):
            return ""


def test_a_task_is_recorded_there_and_others_get_nothing(folder: Path) -> None:
    process = started(folder, 0)
    try:
        path = folder / "0.sock"
        with served(start=False) as daemon:
            daemon.options = ("--recorder", str(path))
            daemon.start()
            client = daemon.client()
            task = ordered(client, ADDER, max_candidates=5)["id"]
            while client.get(f"/v1/tasks/{task}").json()["state"] in ("queued", "running"):
                time.sleep(0.2)
            assert client.get(f"/v1/tasks/{task}").json()["state"] == "done", daemon.log()
            mine = [e for e in check_audit(folder / "state" / "audit").entries if e.data.get("ordered_task") == task]
            assert [e.kind.value for e in mine] == ["task-started", "task-ended", "reported"]
            assert not (daemon.state / "audit").exists()
            process.terminate()
            assert process.wait(20) == 0
            task = ordered(client, ADDER, max_candidates=5)["id"]
            time.sleep(1.0)
            assert client.get(f"/v1/tasks/{task}").json()["state"] == "queued"  # nothing is begun off the record
    finally:
        process.kill()
        process.wait()


def test_who_may_add_may_not_write_and_strangers_may_neither(folder: Path) -> None:
    process = started(folder, DAEMON)
    try:
        path, segments = folder / f"{DAEMON}.sock", folder / "state" / "audit"
        about = b'{"ordered_task":"20260101-000000-000000-aaaaaa","ordered_by":7}\n'
        entry = b'{"kind":"reported","data":{"ordered_by":0}}\n'
        assert '"fault":""' in become(DAEMON, lambda: said(path, about + entry))
        assert become(STRANGER, lambda: said(path, about + entry)) == ""
        assert become(DAEMON, lambda: said(path, b'{"ordered_task":"../x","ordered_by":7}\n' + entry)) == ""
        assert become(DAEMON, lambda: os.access(segments, os.W_OK) or os.access(folder / "state", os.R_OK)) is False
        assert [e.data["ordered_by"] for e in check_audit(segments).entries][-1] == 7
    finally:
        process.kill()
        process.wait()
