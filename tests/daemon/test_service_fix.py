"""`fix --daemon` against a real daemon: the same answer as without, at home as the user; ends, cancels, drains."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fix_builder import ADDED, ADDER, home, processes_with
from support.service_builder import Served, ordered, served

from localagent.protocol.http_client import DaemonRefuses
from localagent.record.audit.verify_chain import check_audit
from localagent.record.store import TaskStore

SLEEPER = {"test_a.py": "import time\n\n\ndef test_a():\n    time.sleep(300)\n    assert False\n"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Served]:
    with served(more=f'[[interpreter]]\nname = "this"\npath = "{sys.executable}"\n') as made:
        yield made


def key_of_the_daemon(daemon: Served) -> Path:
    """A signing key of the daemon's user; the public part."""
    made = daemon.root / "maker.pub"
    for arguments in (("key", "new"), ("key", "export", "--out", str(made))):
        argv = [sys.executable, "-m", "localagent", *arguments]
        subprocess.run(argv, env=daemon.environment(), check=True, capture_output=True)
    return made


def audit_of(bundle: Path) -> dict[str, object]:
    """What a patch review names in the audit journal."""
    statements = [json.loads(base64.b64decode(json.loads(line)["payload"])) for line in bundle.open()]
    (review,) = (s["predicate"] for s in statements if s["predicateType"].startswith("urn:localagent:"))
    found: dict[str, object] = review["audit"]
    return found


@pytest.mark.long
def test_what_needs_a_person_is_judged_where_it_was_made(daemon: Served) -> None:
    """The daemon keeps what the gates ask of a repair, under the digests that the client finds in its diff."""
    files = {name.replace("adder", "login"): text.replace("adder", "login") for name, text in ADDER.items()}
    with home(files) as place:
        ran = place.fix("--daemon", str(daemon.socket), "--python", "this")
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person"), (ran, daemon.log())
        task = ran.report["task"]
        assert f"localagent approve {task} --reason WHY" in ran.out
        shown = json.loads(place.run("tasks", "patches", task, "--daemon", str(daemon.socket), "--json").out)
        (patch,) = shown["patches"]
        assert (patch["number"], patch["verdict"], patch["approvals"]) == (1, "needs-person", [])
        assert "critical-file 'login.py'" in patch["asked"]
        diff = place.root / "made.patch"
        diff.write_text(patch["diff"])
        gate = json.loads(place.run("gate", str(diff), "--repo", str(place.repo), "--json").out)
        assert (gate["patch"], gate["change"]) == (patch["patch"], patch["change"])
        own = place.run("approve", task, "--daemon", str(daemon.socket), "--reason", "I ordered it")
        assert (own.code, "nobody approves a patch that they asked for" in own.err) == (1, True)


@pytest.mark.long
def test_a_repair_comes_home(daemon: Served) -> None:
    """With its patch, and with an attestation that names entries of the journal which the daemon keeps."""
    key = key_of_the_daemon(daemon)
    with home({**ADDER, "data/x.txt": "kept", "run.sh": b"#!/bin/sh\n"}) as place:
        (place.repo / "link").symlink_to("data/x.txt")
        out = place.root / "out.patch"
        ran = place.fix("--daemon", str(daemon.socket), "--python", "this", "--out", str(out))
        assert (ran.code, ran.report["outcome"]) == (0, "accepted"), (ran, daemon.log())
        assert "running the tests without a patch, in the jail" in ran.err
        assert b"+" + ADDED.rstrip() in out.read_bytes()
        assert (place.repo / "adder.py").read_text() == ADDER["adder.py"]  # nobody said apply
        assert ran.report["repo"] == str(place.repo)
        assert str(daemon.root) not in json.dumps(ran.report)
        task = ran.report["task"]
        shown = place.run("show", task)
        assert (shown.code, "accepted" in shown.out) == (0, True)
        assert place.run("apply", task).code == 0
        assert (place.repo / "adder.py").read_bytes().endswith(ADDED)
        assert place.run("undo", task).code == 0
        assert (place.repo / "adder.py").read_text() == ADDER["adder.py"]
        listed = place.run("tasks", "list", "--daemon", str(daemon.socket), "--json")
        newest = json.loads(listed.out)["tasks"][0]
        assert newest["id"] == task
        told = ran.report["confidence"]
        assert newest["confidence"] == {name: told[name] for name in ("probability", "calibrated", "model")}
        assert place.run("tasks", "show", task, "--daemon", str(daemon.socket)).out.startswith(f"{task}  done (0)")
        while list((daemon.state / "work").iterdir()):  # the worker clears up once it has told the end
            assert daemon.process is not None
            assert daemon.process.poll() is None
            time.sleep(0.05)
        check = check_audit(daemon.state / "audit")  # written by the recorder, kept when the task's folder is gone
        mine = [entry for entry in check.entries if entry.data.get("ordered_task") == task]
        assert [entry.kind.value for entry in mine] == ["task-started", "task-ended", "attested", "reported"]
        bundle = place.tasks / task / "attestation.intoto.jsonl"
        assert set(ran.report["attestation"]) == {"file", "key"}
        assert audit_of(bundle) == {"entry": mine[1].seq, "digest": mine[1].digest}
        verified = place.run("attest", "verify", str(bundle), "--patch", str(out), "--key", str(key))
        assert verified.code == 0, verified
        assert {entry.data["ordered_by"] for entry in mine} == {os.getuid()}
        assert list(place.scratch.iterdir()) == []
        record = TaskStore(place.root / "state" / "localagent").open(task)
        assert record.journal_path.read_bytes().count(b"\n") > 5


@pytest.mark.long
def test_what_only_works_without_the_daemon_is_said(daemon: Served) -> None:
    with home() as place:
        ran = place.run(*place.arguments("--daemon", str(daemon.socket), "--policy", "x", "--backend", "nsjail"))
        assert ran.code == 2
        assert "--policy: the daemon's policy holds" in ran.err
        assert "--backend: the daemon chooses" in ran.err
        ran = place.run(*place.arguments("--daemon", str(daemon.socket), "--python", "/usr/bin/python3"))
        assert (ran.code, "python: a name that the daemon knows, not a path" in ran.err) == (2, True)
        ran = place.run(*place.arguments("--daemon", str(place.root / "none")))
        assert (ran.code, "there is no daemon at" in ran.err) == (4, True)
        ran = place.run("tasks", "cancel", "20260101-000000-000000-aaaaaa", "--daemon", str(daemon.socket))
        assert (ran.code, "or it is not yours" in ran.err) == (1, True)


@pytest.mark.slow
def test_a_tree_that_changed_meanwhile_is_left_alone(daemon: Served) -> None:
    with home() as place:
        running = place.start(*place.arguments("--no-model", "--daemon", str(daemon.socket), "--apply"))
        while not list(place.tasks.glob("*/task.json")):
            time.sleep(0.05)
        (place.repo / "adder.py").write_text("# mine now\n")
        out, err = running.communicate()
        assert running.returncode == 1, (out, err)
        assert b"not applied" in out
        assert b"is not what the patch was made for" in out
        assert (place.repo / "adder.py").read_text() == "# mine now\n"


@pytest.mark.long
def test_ctrl_c_cancels_the_task_and_its_jails(daemon: Served) -> None:
    with home(SLEEPER) as place:
        running = place.start(*place.arguments("--no-model", "--daemon", str(daemon.socket)))
        while not list(place.tasks.glob("*/task.json")):
            time.sleep(0.05)
        task = next(place.tasks.iterdir()).name
        daemon.until(task, "running")
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
        assert (running.returncode, b"interrupted" in err) == (130, True)
        ended = daemon.until(task, "cancelled", "done", "failed")
        assert (ended["state"], ended["exit"]) == ("cancelled", 130)
        assert daemon.worker() is None
        assert list((daemon.state / "work").iterdir()) == []


def test_a_worker_that_is_killed_is_replaced_once(daemon: Served) -> None:
    task = ordered(daemon.client(), SLEEPER)["id"]
    for _ in range(2):
        while (worker := daemon.worker()) is None:
            time.sleep(0.02)
        os.kill(worker, signal.SIGKILL)
        while daemon.worker() == worker:
            time.sleep(0.02)
    ended = daemon.until(task, "failed")
    assert ended["reason"] == "its worker was ended by signal 9; it was tried 2 times"
    kinds = [
        json.loads(e.data) for e in daemon.client().stream(f"/v1/tasks/{task}/events", after=0) if e.kind == "event"
    ]
    assert [k["data"]["why"] for k in kinds if k["kind"] == "attempt"] == ["its worker was ended by signal 9"]


@pytest.mark.long
def test_a_fault_of_the_request_is_an_answer(daemon: Served) -> None:
    """Tests that do not exist: the report says so, as without the daemon."""
    client = daemon.client()
    task = ordered(client, ADDER, tests=["no_such_test.py"])["id"]
    ended = daemon.until(task, "done")
    report = client.get(f"/v1/tasks/{task}/report").json()
    assert ended["exit"] == report["exit"] != 0
    assert report["task"] == task


@pytest.mark.long
def test_ending_gives_back_what_runs_and_tells_followers() -> None:
    with served(drain_seconds=1) as daemon:
        client = daemon.client()
        task = ordered(client, SLEEPER)["id"]
        daemon.until(task, "running")
        stream = client.stream(f"/v1/tasks/{task}/events", after=0)
        next(stream)
        process = daemon.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(DaemonRefuses, match="the daemon is ending"):
            ordered(daemon.client(), {"b.py": ""})
        assert "end" not in [event.kind for event in stream]  # it ends without an end: the client comes again
        assert process.wait(timeout=60) == 0
        with daemon.rows() as rows:
            row = rows.find(task, os.getuid())
            assert row is not None
            assert (row.state.value, row.attempts, row.interruptions) == ("queued", 0, 1)
        assert not processes_with(str(daemon.root).encode())


@pytest.mark.slow
def test_the_client_waits_for_a_daemon_that_is_killed_and_comes_back() -> None:
    with served() as daemon, home() as place:
        running = place.start(*place.arguments("--no-model", "--daemon", str(daemon.socket)))
        while not list(place.tasks.glob("*/journal.jsonl")) or daemon.worker() is None:
            time.sleep(0.05)
        daemon.kill()
        daemon.start()
        out, err = running.communicate()
        assert running.returncode == 0, (out, err, daemon.log())
        assert b"+" + ADDED.rstrip() in out


@pytest.mark.slow
def test_homes_are_not_opened(tmp_path: Path) -> None:
    """Traced: no process of the daemon opens anything of the user's repository, and no socket but Unix ones."""
    if not Path("/usr/bin/strace").exists():
        pytest.skip("needs strace")
    with served(start=False) as daemon, home() as place:
        trace = tmp_path / "trace"
        daemon.start()
        assert daemon.process is not None
        pids = [daemon.process.pid, daemon.front()]
        argv = ["strace", "-f", "-qq", "-e", "trace=%file,socket", "-o", str(trace)]
        tracer = subprocess.Popen([*argv, *(word for pid in pids for word in ("-p", str(pid)))])
        time.sleep(1.0)
        try:
            ran = place.fix("--daemon", str(daemon.socket), candidates=1)
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
        text = trace.read_text(errors="replace")
        assert ran.report, ran
        assert "daemon.sqlite3" in text
        assert str(place.root) not in text
