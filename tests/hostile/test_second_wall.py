"""What hostile code tries against the Landlock wall where the first walls would let it, and what must go on working."""

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.jail_backends import WAYS, walled_by

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.jail.api import NamespaceJail, Workspace, fresh_uid, interpreter_binds, open_jail
from localagent.jail.backends.level import Layer
from localagent.jail.files.host import SystemLayout
from localagent.jail.launcher import landlock_ruleset, x86_assembler
from localagent.runner import landlock as confiner

PYTHON, BINDS = interpreter_binds(sys.executable)
LIMITS = JailLimits(wall_seconds=30, cpu_seconds=15)
ABI = landlock_ruleset.kernel()[0]
pytestmark = pytest.mark.skipif(not ABI, reason="this kernel has no Landlock; the level and doctor say so")
REASON = """
import errno, os, socket, sys, tempfile
def reason(act):
    try:
        act()
        return "done"
    except OSError as fault:
        return errno.errorcode[fault.errno]
"""


@pytest.fixture(scope="module", params=WAYS)
def jail(request: pytest.FixtureRequest) -> NamespaceJail:
    found = open_jail()
    assert Layer.LANDLOCK in found._backend.layers
    return walled_by(found, request.param)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path, uid=fresh_uid()) as made:
        yield made


def said(jail: NamespaceJail, code: str, *, binds: tuple[Bind, ...] = (), loopback: bool = True) -> str:
    argv = (PYTHON, "-I", "-S", "-c", REASON + textwrap.dedent(code))
    spec = JailSpec(argv=argv, cwd="/tmp", binds=(*BINDS, *binds), limits=LIMITS, loopback=loopback)
    result = jail.run(spec)
    assert (result.ending, result.returncode, result.stderr) == (JailOutcome.EXITED, 0, b""), result
    return result.stdout.decode().strip()


def without(jail: NamespaceJail) -> NamespaceJail:
    return NamespaceJail(replace(jail._backend, landlock=None))


def test_what_no_rule_grants_cannot_be_read_or_executed_though_it_is_shown(jail: NamespaceJail, tmp_path: Path) -> None:
    """The launcher's own interpreter and the bait of the trial are such files."""
    assert jail._backend.landlock is not None
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    by = replace(jail._backend.landlock, binds=(Bind(source=str(tool), target="/run/tool"),))
    code = """
    print(os.stat("/run/tool").st_size > 0, reason(lambda: open("/run/tool")),
          reason(lambda: os.execv("/run/tool", ["tool"])))
    """
    assert said(NamespaceJail(replace(jail._backend, landlock=by)), code) == "True EACCES EACCES"
    shown = (Bind(source=str(tool), target="/run/tool"),)
    assert said(jail, 'print(open("/run/tool").read(2)); sys.stdout.flush(); os.execv("/run/tool", ["t"])', binds=shown)


def test_our_own_interpreter_puts_it_up_where_the_system_has_none_and_is_not_readable_then(
    jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock_ruleset, "SYSTEM_PYTHON", "/nonexistent/python3")
    monkeypatch.setattr(x86_assembler, "supported", lambda: False)
    (own,) = landlock_ruleset.candidates()
    assert own.python is not None
    if own.python.startswith("/usr/"):
        pytest.skip("our interpreter is the system's")
    argv = ("/bin/sh", "-c", f"[ -e {own.python} ] && echo shown; cat {own.python} >/dev/null; exec {own.python} -V")
    result = NamespaceJail(replace(jail._backend, landlock=own)).run(JailSpec(argv=argv, cwd="/", limits=LIMITS))
    assert (result.ending, result.returncode, result.stdout) == (JailOutcome.EXITED, 126, b"shown\n")
    assert result.stderr.count(b"Permission denied") == 2


def test_writing_is_refused_by_the_wall_where_a_mount_came_out_writable(
    jail: NamespaceJail, workspace: Workspace
) -> None:
    """As after a fault of the first wall: mounted writable, asked for read-only."""
    bind = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    asked = landlock_ruleset.rules_of

    def as_read_only(spec: JailSpec, layout: SystemLayout) -> tuple[tuple[str, str], ...]:
        return tuple((path, "run" if path == "/w" else grant) for path, grant in asked(spec, layout))

    code = """
    print(reason(lambda: open("/w/a", "w")), reason(lambda: os.mkdir("/w/d")), reason(lambda: os.symlink("a", "/w/l")))
    """
    assert said(jail, code, binds=(bind,)) == "done done done"
    for name in ("a", "l"):
        (workspace.tree / name).unlink()
    (workspace.tree / "d").rmdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landlock_ruleset, "rules_of", as_read_only)
        assert said(jail, code, binds=(bind,)) == "EACCES EACCES EACCES"
    assert list(workspace.tree.iterdir()) == []


def test_proc_is_not_written(jail: NamespaceJail) -> None:
    code = 'print(reason(lambda: os.write(os.open("/proc/self/comm", os.O_WRONLY), b"x")))'
    assert said(jail, code) in ("EACCES", "EROFS")


def test_the_wall_cannot_be_taken_down_or_widened(jail: NamespaceJail) -> None:
    source = landlock_ruleset.SOURCE.read_text()
    code = f"""
    space = {{"__name__": "walls"}}
    exec({source!r}, space)
    print(space["confine"]([["/", "write"]], True) >= 2)
    print(reason(lambda: open("/run/ungranted")), reason(lambda: tempfile.mkdtemp(dir="/tmp")))
    """
    assert jail._backend.landlock is not None
    baited = NamespaceJail(replace(jail._backend, landlock=landlock_ruleset.with_bait(jail._backend.landlock)))
    assert said(baited, code).split() == ["True", "EACCES", "done"]


@pytest.mark.skipif(ABI < 4, reason="network rules need ABI 4")
def test_tcp_is_forbidden_on_loopback_only_where_the_spec_says_so(jail: NamespaceJail) -> None:
    code = """
    server = socket.socket()
    print(reason(lambda: server.bind(("127.0.0.1", 0))))
    print(reason(lambda: socket.socket().connect(("127.0.0.1", 9))))
    """
    assert said(jail, code).split() == ["done", "ECONNREFUSED"]
    assert said(jail, code, loopback=False).split() == ["EACCES", "EACCES"]


@pytest.mark.skipif(ABI < 6, reason="scopes need ABI 6")
def test_signals_stay_inside_the_wall(jail: NamespaceJail) -> None:
    assert said(jail, "print(reason(lambda: os.kill(1, 0)))") == "EPERM"
    assert said(without(jail), "print(reason(lambda: os.kill(1, 0)))") == "done"


def test_what_tests_do_goes_on(jail: NamespaceJail, workspace: Workspace) -> None:
    """Servers, sockets, moves, links, own programs, terminals, shared memory: on both sides of the wall alike."""
    code = """
    import shutil, signal, subprocess, tempfile, threading, time
    def server():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=lambda: listener.accept()[0].sendall(b"tcp")); thread.start()
            with socket.create_connection(listener.getsockname()) as ours: print(ours.recv(9)); thread.join()
    def unix(name):
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as ours:
            listener.bind(name); listener.listen(); ours.connect(name)
            listener.accept()[0].sendall(b"unix"); print(ours.recv(9))
    server(); unix(tempfile.mktemp(dir="/tmp")); unix("\\0abstract")
    for base in [tempfile.mkdtemp(dir=folder) for folder in ("/tmp", "/w", "/dev/shm")]:
        os.makedirs(base + "/a/b"); os.makedirs(base + "/c")
        open(base + "/a/f", "w").write("x" * 9); os.truncate(base + "/a/f", 3)
        os.rename(base + "/a/f", base + "/c/f"); os.link(base + "/c/f", base + "/a/b/g")
        os.symlink("g", base + "/a/b/h"); os.mkfifo(base + "/p"); os.replace(base + "/c/f", base + "/a/b/g")
        open(base + "/tool", "w").write("#!/bin/sh\\necho tool\\n"); os.chmod(base + "/tool", 0o755)
        print(subprocess.run([base + "/tool"], capture_output=True).stdout, len(os.listdir(base)) > 3)
        shutil.rmtree(base + "/a")
    child = subprocess.Popen(["/bin/sleep", "60"]); child.send_signal(signal.SIGTERM); print(child.wait())
    with tempfile.TemporaryFile() as file:
        file.write(b"x"); file.flush(); print(open("/proc/self/fd/%d" % file.fileno(), "r+b").read())
    read, write = os.pipe(); open("/proc/self/fd/%d" % write, "wb").write(b"pipe"); print(os.read(read, 9))
    open("/dev/null", "w").write("x"); print(len(open("/dev/urandom", "rb").read(3)), len(os.listdir("/")) > 3)
    ours, theirs = os.openpty(); print(os.isatty(theirs), os.ttyname(theirs).startswith("/dev/pts"))
    print("said")
    """.replace("\\\\", "\\")
    bind = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    inside = said(jail, code, binds=(bind,))
    assert inside.endswith("said")
    for left in workspace.tree.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert inside == said(without(jail), code, binds=(bind,))


def test_the_abi_here_is_one_that_was_thought_about() -> None:
    assert confiner.LEAST_ABI <= ABI
