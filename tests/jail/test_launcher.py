"""The launcher: descriptors, signals, its own end, and that it leaves nothing of what it started."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localagent.domain.jailspec import JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail
from localagent.jail.backends.handoff import memfd
from localagent.jail.launcher import spawner
from localagent.jail.limits import process_usage

MARK = f"61.{os.getpid():07}"  # of this run alone
# A stand-in for a backend that dies with its parent and leaves a process of its own behind, in a session of its own.
PARENT = """
import json, os, time
from localagent.jail.backends.handoff import memfd
from localagent.jail.launcher.spawner import spawn
script = "(setsid sleep MARK &) ; sleep MARK"
status = os.open(os.devnull, os.O_WRONLY)
order = {"status": status, "cgroups": [], "covers": [], "sources": [], "limits": {}, "uid": None}
order["argv"] = ["/bin/sh", "-c", script]
spawn(memfd("order", json.dumps(order).encode()), stdin=os.open(os.devnull, os.O_RDONLY), passed=[status])
time.sleep(0.3)
print("ready", flush=True)
END
"""


def marked() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARK in (folder / "cmdline").read_text().split("\0")[1:]:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.long
@pytest.mark.parametrize("end", ["time.sleep(60)", "os._exit(0)", "raise SystemExit"])
def test_whatever_way_our_process_ends_the_launcher_leaves_nothing(end: str) -> None:
    parent = subprocess.Popen(
        (sys.executable, "-c", PARENT.replace("END", end).replace("MARK", MARK)), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    if "sleep" in end:
        assert len(marked()) == 2
        parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while marked() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked() == []


def test_a_killed_launcher_is_started_anew(jail: NamespaceJail) -> None:
    jail.run(JailSpec(argv=("/bin/true",), cwd="/"))
    launcher = spawner._spawners[os.getpid()]._launcher
    assert launcher is not None
    process = jail.start(JailSpec(argv=("/bin/sleep", "60"), cwd="/"))
    launcher.kill()
    launcher.wait()
    with pytest.raises(CannotEnforce):
        process.wait()  # what it had started is gone, and nobody can say how it ended
    process.channel.close()
    assert jail.run(JailSpec(argv=("/bin/sh", "-c", "exit 3"), cwd="/")).returncode == 3


def test_a_command_starts_with_signals_as_in_a_fresh_session(jail: NamespaceJail) -> None:
    script = "while read -r k v; do case $k in SigIgn:|SigBlk:) echo $v;; esac; done < /proc/self/status"
    told = jail.run(JailSpec(argv=("/bin/sh", "-c", script), cwd="/")).stdout.split()
    ignored = int(told[1], 16)
    assert int(told[0], 16) == 0
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        assert not ignored & 1 << number - 1


def test_an_order_that_cannot_be_carried_out_is_told_on_the_status_descriptor() -> None:
    read, status = os.pipe()
    order = {"status": status, "cgroups": ["/no/such/group"], "covers": [], "sources": [], "limits": {}, "uid": None}
    order_fd = memfd("order", json.dumps({**order, "argv": ["/bin/true"]}).encode())
    with Path(os.devnull).open() as nothing:
        child = spawner.spawn(order_fd, stdin=nothing.fileno(), passed=[status])
    os.close(order_fd)
    os.close(status)
    with os.fdopen(read) as stream:
        assert "/no/such/group" in json.loads(stream.read())["launch-fault"]
    while spawner._spawner().reap(child.pid) is None and child.pid in list(process_usage.descendants(os.getpid())):
        time.sleep(0.01)
    for number in (child.stdout, child.stderr):
        os.close(number)


def test_the_number_of_an_ended_jail_stands_until_it_is_reaped() -> None:
    status = os.open(os.devnull, os.O_WRONLY)
    order = {"status": status, "cgroups": [], "covers": [], "sources": [], "limits": {}, "uid": None}
    order_fd = memfd("order", json.dumps({**order, "argv": ["/bin/sh", "-c", "exit 5"]}).encode())
    with Path(os.devnull).open() as nothing:
        child = spawner.spawn(order_fd, stdin=nothing.fileno(), passed=[status])
    for number in (order_fd, status):
        os.close(number)
    with os.fdopen(child.stdout) as stream:
        stream.read()
    os.close(child.stderr)
    pidfd = os.pidfd_open(child.pid)
    import select

    select.select([pidfd], [], [])
    os.close(pidfd)
    assert Path("/proc", str(child.pid)).exists()
    assert spawner.reap(child) == 5
    assert not Path("/proc", str(child.pid)).exists()


def test_an_order_that_is_interrupted_answers_nobody_else(jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch) -> None:
    jail.run(JailSpec(argv=("/bin/true",), cwd="/"))
    told = json.loads

    def interrupted(text: bytes) -> object:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "loads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jail.run(JailSpec(argv=("/bin/true",), cwd="/"))
    assert spawner._spawners[os.getpid()]._orders is None
    assert json.loads is told
    assert jail.run(JailSpec(argv=("/bin/sh", "-c", "exit 4"), cwd="/")).returncode == 4
