"""The recorder under a user of its own: a daemon's task is on the record, in files that are not the daemon's."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fix_builder import ADDER
from support.service_builder import CHECKOUT, become, ordered, served

from localagent.daemon.processes import recorder_service
from localagent.daemon.processes.recorder_service import MOST_LINES, RecorderElsewhere
from localagent.record.audit.log import AuditLog
from localagent.record.audit.verify_chain import check_audit

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


def started(place: Path, user: int, limits: str = "") -> "subprocess.Popen[bytes]":
    path = place / f"{user}.sock"
    argv = [sys.executable, "-m", "localagent", "recorder", "--socket", str(path), "--state", str(place / "state")]
    path.unlink(missing_ok=True)
    shell = ["/bin/bash", "-c", f'{limits}exec "$@"', "recorder"]
    process = subprocess.Popen([*shell, *argv, "--user", str(user)], cwd=CHECKOUT, stderr=subprocess.DEVNULL)
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


@pytest.mark.long
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


@pytest.mark.long
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


def entry_of(path: Path) -> str:
    about = b'{"ordered_task":"20260101-000000-000000-aaaaaa","ordered_by":7}\n'
    return said(path, about + b'{"kind":"reported","data":{}}\n')


@pytest.mark.long
def test_three_hundred_silent_lines_end_nothing(folder: Path) -> None:
    process = started(folder, 0, limits="ulimit -n 100; ")
    path, idle = folder / "0.sock", []
    try:
        for _ in range(300):
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(20)
            line.connect(str(path))
            idle.append(line)
        time.sleep(1.0)
        assert process.poll() is None
        for line in idle:
            line.close()
        told = ""
        while not told and process.poll() is None:
            told = entry_of(path)
        assert '"fault":""' in told
    finally:
        process.kill()
        process.wait()


def test_more_lines_than_it_serves_are_turned_away(folder: Path) -> None:
    process = started(folder, 0)
    path, idle = folder / "0.sock", []
    try:
        for _ in range(MOST_LINES + 20):
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(20)
            line.connect(str(path))
            idle.append(line)
        assert [line.recv(1) for line in idle[MOST_LINES:]] == [b""] * 20
        assert entry_of(path) == ""
        for line in idle:
            line.close()
        told = ""
        while not told and process.poll() is None:
            told = entry_of(path)
        assert '"fault":""' in told
    finally:
        process.kill()
        process.wait()


def test_a_daemon_s_line_that_was_given_up_is_opened_anew(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen(4)
        elsewhere = RecorderElsewhere(tmp_path / "s")
        assert elsewhere.ready()
        server.accept()[0].close()
        descriptor = elsewhere.line({"ordered_task": "t"})
        assert descriptor is not None
        os.close(descriptor)
        with server.accept()[0] as second:
            assert b"ordered_task" in second.recv(100)


@pytest.mark.long
def test_a_line_that_says_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_service, "FIRST_SECONDS", 1)
    ours, theirs = socket.socketpair()
    with theirs:
        free = threading.BoundedSemaphore(1)
        free.acquire()
        recorder_service._serve(ours, AuditLog(tmp_path), lambda: True, free)
        theirs.settimeout(20)
        assert theirs.recv(1) == b""
        assert free.acquire(blocking=False)


def test_want_of_threads_closes_the_line_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    ours, theirs = socket.socketpair()
    with theirs:
        free = threading.BoundedSemaphore(1)
        recorder_service._begin(ours, AuditLog(tmp_path), lambda: True, free)
        theirs.settimeout(20)
        assert theirs.recv(1) == b""
        assert free.acquire(blocking=False)


@pytest.mark.long
def test_its_key_signs_at_a_task_s_end(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="la-recorder-") as name:
        place, state = Path(name), str(Path(name) / "state")
        (place / "state").mkdir(mode=0o700)
        argv = [sys.executable, "-m", "localagent"]
        subprocess.run([*argv, "key", "new", "--state", state], cwd=CHECKOUT, check=True, capture_output=True)
        process = started(place, 0)
        try:
            assert '"fault":""' in entry_of(place / "0.sock")
            audit = place / "state" / "audit"
            while [e.kind.value for e in check_audit(audit).entries][-2:] != ["reported", "head-signed"]:
                assert process.poll() is None
                time.sleep(0.05)
            verify = [*argv, "audit", "verify", "--state", state, "--require-signed"]
            assert subprocess.run(verify, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0
        finally:
            process.kill()
            process.wait()
