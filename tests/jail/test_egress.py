"""Traced calls are judged: real programs under a real strace where it is there, and lines as strace writes them."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from localagent.errors import CannotEnforce
from localagent.jail.trace import syscall_trace
from localagent.jail.trace.egress import AllowedPaths, EgressFinding, EgressReport, judge
from localagent.jail.trace.syscall_trace import Syscall, find_tracer, read_calls, traced

needs_strace = pytest.mark.skipif(shutil.which("strace", path=syscall_trace.PROGRAMS) is None, reason="no strace")


def ran(folder: Path, program: str, *before: str) -> EgressReport:
    work, home = folder / "work", folder / "home"
    for place in (work, home):
        place.mkdir(exist_ok=True)
    argv = (*before, sys.executable, "-I", "-S", "-B", "-c", program)
    environ = {"PATH": "/usr/bin:/bin", "OUT": str(folder)}
    (folder / "scratch").mkdir(exist_ok=True)
    done = traced(find_tracer(), argv, environ=environ, cwd=work, scratch=folder / "scratch", seconds=120)
    assert done.exit == 0, done.said
    ways = AllowedPaths(writable=(str(work),), home=str(home), readable=(str(home / ".config" / "localagent"),))
    return judge(done.calls, cwd=work, ways=ways, reached=done.reached)


CALLERS = {
    "tcp": "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', 9))",
    "udp": "import socket, contextlib; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "with contextlib.suppress(OSError): s.sendto(b'x', ('127.0.0.1', 9))",  # no loopback: asked for all the same
    "ipv6": "import socket; socket.socket(socket.AF_INET6)",
    "netlink": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "refused by the kernel": "import socket, contextlib\nwith contextlib.suppress(OSError): socket.socket(77)",
    "a child": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'])",
    "a thread": "import socket, threading; t = threading.Thread(target=socket.socket); t.start(); t.join()",
    "a fork that goes on alone": "import os, socket, time\nif not os.fork():\n time.sleep(0.3); socket.socket()",
}


@needs_strace
@pytest.mark.parametrize("name", CALLERS)
def test_a_caller_is_seen(tmp_path: Path, name: str) -> None:
    judged = ran(tmp_path, CALLERS[name])
    assert {finding.kind for finding in judged.findings} == {"egress"}
    assert "in the host's network namespace" in judged.findings[0].what


@needs_strace
def test_a_namespace_of_its_own_does_not_hide_a_caller(tmp_path: Path) -> None:
    judged = ran(tmp_path, "import socket; socket.socket(); socket.socket(16, 3, 0)", "unshare", "-rn")
    assert [f.what for f in judged.findings] == [
        "socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) in a jail's own network namespace"
    ]


@needs_strace
def test_files_outside_are_seen(tmp_path: Path) -> None:
    program = """
import os
home, out = os.environ["OUT"] + "/home", os.environ["OUT"]
open("inside.txt", "w").close()
os.mkdir("below"); os.chdir("below"); os.rename("../inside.txt", "moved"); os.unlink("moved")
open(out + "/outside.txt", "w").close()
open("../../by-relative.txt", "w").close()
folder = os.open(out, os.O_RDONLY); os.mkdir("by-descriptor", dir_fd=folder)
os.symlink("/etc/passwd", "link"); os.symlink("x", out + "/a link")
open(os.devnull, "w").close()
open(home + "/diary").read(); open(home + "/.config/localagent/policy.toml").read()
"""
    (tmp_path / "home" / ".config" / "localagent").mkdir(parents=True)
    (tmp_path / "home" / "diary").write_text("private")
    (tmp_path / "home" / ".config" / "localagent" / "policy.toml").write_text("")
    found = {(f.kind, os.path.relpath(f.what.split(" ", 1)[1], tmp_path)) for f in ran(tmp_path, program).findings}
    assert found == {
        ("write", "outside.txt"),
        ("write", "by-relative.txt"),
        ("write", "by-descriptor"),
        ("write", "a link"),
        ("read", "home/diary"),
    }


@needs_strace
def test_nothing_but_unix_sockets_is_offline(tmp_path: Path) -> None:
    program = "import socket; a, b = socket.socketpair(); a.sendall(b'x'); b.recv(1); socket.socket(socket.AF_UNIX)"
    judged = ran(tmp_path, program)
    assert judged.findings == ()
    assert judged.sockets["socketpair", "AF_UNIX", "the host's"] == 1


def one(name: str, arguments: str, result: int = 3, pid: int = 1) -> Syscall:
    return Syscall(pid=pid, name=name, arguments=arguments, result=result, remark="")


def kinds(*calls: Syscall) -> list[str]:
    threads: dict[int, list[Syscall]] = {}
    for call in calls:
        threads.setdefault(call.pid, []).append(call)
    ways = AllowedPaths(writable=("/w",), home="/home/me", readable=())
    return [f.kind for f in judge(threads, cwd=Path("/w"), ways=ways).findings]


def test_what_is_not_understood_is_a_finding() -> None:
    assert kinds(one("socket", "0x50 /* AF_??? */, SOCK_STREAM, 0")) == ["egress"]
    assert kinds(one("socket", "something new")) == ["egress"]
    assert kinds(one("io_uring_setup", "64, {flags=0}")) == ["egress"]
    assert kinds(one("setns", "3, CLONE_NEWNET", 0)) == ["egress"]
    assert kinds(one("connect", "3<UNIX-STREAM:[1]>, {sa_family=AF_UNSPEC}, 16", 0)) == ["egress"]


def test_a_thread_of_unknown_origin_is_the_hosts() -> None:
    """Only one that descends from a jail's own namespaces may do what a jail may."""
    write = one("openat", 'AT_FDCWD</>, "/etc/x", O_WRONLY', pid=9)
    netlink = one("socket", "AF_NETLINK, SOCK_RAW, NETLINK_ROUTE", pid=9)
    jail = Syscall(pid=1, name="clone", arguments="flags=CLONE_NEWNS|CLONE_NEWNET|SIGCHLD", result=9, remark="")
    plain = Syscall(pid=1, name="clone", arguments="flags=SIGCHLD", result=9, remark="")
    assert kinds(jail, write, netlink) == []
    assert kinds(plain, write, netlink) == ["write", "egress"]
    assert kinds(write, netlink) == ["write", "egress"]


def test_lines_of_threads_that_interleave_are_put_together() -> None:
    lines = """7     socket(AF_UNIX, SOCK_STREAM, 0) = 3<UNIX:[1]>
7     openat(AT_FDCWD</w>, "a", O_RDONLY <unfinished ...>
81234 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT <unfinished ...>
7     <... openat resumed>)             = 3</w/a>
81234 <... openat resumed>, 0666)       = 4</w/b>
81234 execve("/bin/x", ["x"], 0x1 /* 3 vars */ <unfinished ...>
7     +++ superseded by execve in pid 81234 +++
7     <... execve resumed>)             = 0
9     +++ exited with 0 +++
7     connect(3, {sa_family=AF_INET <unfinished ...>
"""
    calls = read_calls(lines.splitlines(keepends=True))
    assert [(c.name, c.result, c.remark) for c in calls[7]] == [
        ("socket", 3, "<UNIX:[1]>"),
        ("openat", 3, "</w/a>"),
        ("execve", 0, ""),
        ("connect", 0, ""),
    ]
    assert [(c.name, c.arguments) for c in calls[81234]] == [("openat", 'AT_FDCWD</w>, "b", O_WRONLY|O_CREAT , 0666')]
    assert calls[9] == []


@pytest.mark.parametrize("line", ["words", "7 words", "7 <... openat resumed>) = 3", "7 open(1 = 2"])
def test_a_line_that_cannot_be_read_ends_the_judging(line: str) -> None:
    with pytest.raises(CannotEnforce, match="cannot be read"):
        read_calls([line])


TRACES = """
import glob, os, socket
socket.socket()
for place in glob.glob(os.environ["OUT"] + "/*/localagent-trace-*"):
    for name in os.listdir(place):
        %s
"""


@needs_strace
@pytest.mark.parametrize(
    "act",
    [
        "os.unlink(os.path.join(place, name))",
        "os.chdir(place); os.rename(name, 'x')",
        "os.write(os.open(os.path.join(place, name), os.O_WRONLY | os.O_NONBLOCK), b'')",
    ],
)
def test_what_is_traced_cannot_take_its_trace_back(tmp_path: Path, act: str) -> None:
    found = {f.kind for f in ran(tmp_path, TRACES % act).findings}
    assert {"egress", "trace"} <= found


@needs_strace
def test_what_the_tracer_holds_open_is_out_of_reach_unseen(tmp_path: Path) -> None:
    program = """
import contextlib, os
tracer = os.getppid()
assert not any("localagent-trace" in os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if n > "2" and os.path.exists(f"/proc/self/fd/{n}"))
with contextlib.suppress(OSError):
    os.open(f"/proc/{tracer}/fd/3", os.O_WRONLY | os.O_NONBLOCK)
"""  # noqa: E501
    assert "trace" in {f.kind for f in ran(tmp_path, program).findings}


@needs_strace
def test_what_a_file_is_marked_with_is_seen(tmp_path: Path) -> None:
    program = """
import contextlib, os
out = os.environ["OUT"]
for name in ("a", "b", "c", "d", "e"):
    open(name, "w").close()
held = os.open(out + "/by-descriptor", os.O_RDONLY)
os.fchmod(held, 0o600)
os.utime(out + "/times")
os.chown(out + "/owner", os.getuid(), -1)
os.chmod(out + "/mode", 0o600)
with contextlib.suppress(OSError):
    os.setxattr(out + "/attribute", "user.localagent", b"/etc/passwd")
os.chmod("a", 0o600); os.utime("b"); os.utime(os.open("c", os.O_RDONLY))
"""
    for name in ("by-descriptor", "times", "owner", "mode", "attribute"):
        (tmp_path / name).write_text("")
    found = {os.path.relpath(f.what.split(" ", 1)[1], tmp_path) for f in ran(tmp_path, program).findings}
    assert found - {"attribute"} == {"by-descriptor", "times", "owner", "mode"}  # not every file system has those


@needs_strace
def test_a_program_of_the_home_that_is_run_is_seen(tmp_path: Path) -> None:
    tool = tmp_path / "home" / "tool"
    tool.parent.mkdir()
    shutil.copy("/bin/true", tool)
    judged = ran(tmp_path, "import os, subprocess; subprocess.run([os.environ['OUT'] + '/home/tool'], check=True)")
    assert EgressFinding(kind="read", what=f"execve {tool}") in judged.findings


def test_names_and_values_of_attributes_are_no_paths() -> None:
    assert kinds(one("setxattr", '"/w/a", "u"..., "/"..., 11, 0', 0)) == []
    assert kinds(one("setxattr", '"/etc/a", "u"..., "/"..., 11, 0', 0)) == ["write"]
    assert kinds(one("utimensat", "3</etc/a>, NULL, NULL, 0", 0)) == ["write"]
    assert kinds(one("fchownat", '3</etc/a>, "", 1, 1, AT_EMPTY_PATH', 0)) == ["write"]
    assert kinds(one("fchmodat", '3</etc>, "a", 0600', 0)) == ["write"]
    assert kinds(one("fchmodat", 'AT_FDCWD</w>, "a", 0600', 0)) == []
    assert kinds(one("fsetxattr", '3</etc/a>, "u"..., "/"..., 11, 0', 0)) == ["write"]
    assert kinds(one("open_by_handle_at", "5</w>, {handle_bytes=8}, O_RDWR", 4)) == []


def test_a_child_of_which_nothing_was_traced_is_a_finding() -> None:
    assert kinds(one("vfork", "", 9)) == ["trace"]
    assert kinds(one("vfork", "", 9), one("chdir", '"/w"', 0, pid=9)) == []
    assert kinds(one("ptrace", "PTRACE_SEIZE, 5", -1)) == ["trace"]


def test_without_a_tracer_there_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(syscall_trace, "PROGRAMS", str(tmp_path))
    with pytest.raises(CannotEnforce, match="strace is missing"):
        find_tracer()
    (tmp_path / "strace").write_text("#!/bin/sh\necho 'strace -- version 4.1'\n")
    (tmp_path / "strace").chmod(0o755)
    with pytest.raises(CannotEnforce, match="too old"):
        find_tracer()
    (tmp_path / "strace").write_text(
        "#!/bin/sh\n[ $1 = -V ] && echo 'strace -- version 6.1' || { echo 'not permitted' >&2; exit 1; }\n"
    )
    with pytest.raises(CannotEnforce, match="may not trace here: not permitted"):
        find_tracer()


@pytest.mark.slow
@needs_strace
def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    program = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    argv = ("/bin/sh", "-c", '"$0" -I -S -c "$1"; true', sys.executable, program)
    with pytest.raises(CannotEnforce, match="did not end within"):
        traced(find_tracer(), argv, environ={}, cwd=tmp_path, scratch=tmp_path, seconds=8)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail("it goes on")


def test_findings_have_an_end() -> None:
    calls = [one("openat", f'AT_FDCWD</>, "/etc/{n}", O_WRONLY') for n in range(1000)]
    assert len(kinds(*calls)) == 200
    assert EgressFinding(kind="write", what="x") == EgressFinding(kind="write", what="x")
