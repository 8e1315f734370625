"""What hostile code tries inside a jail, and the reason why it fails. Real jails; each test asserts the reason."""

import errno
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from support.jail_backends import KINDS, jail_by

from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.api import BackendKind, NamespaceJail, Workspace, fresh_uid, interpreter_binds
from localagent.jail.launcher import x86_assembler
from localagent.jail.launcher.seccomp import program as seccomp_program
from localagent.jail.limits import process_usage

PYTHON, BINDS = interpreter_binds(sys.executable)
LIMITS = JailLimits(wall_seconds=20, cpu_seconds=10)
Run = Callable[..., JailResult]


@pytest.fixture(scope="module", params=KINDS)
def jail(request: pytest.FixtureRequest) -> NamespaceJail:
    return jail_by(BackendKind(request.param))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path, uid=fresh_uid()) as made:
        yield made


def spec_of(code: str, *, limits: JailLimits = LIMITS, binds: tuple[Bind, ...] = (), cwd: str = "/tmp") -> JailSpec:
    argv = (PYTHON, "-I", "-S", "-c", textwrap.dedent(code))
    return JailSpec(argv=argv, cwd=cwd, binds=(*BINDS, *binds), limits=limits)


@pytest.fixture
def python(jail: NamespaceJail) -> Run:
    return lambda code, **rest: jail.run(spec_of(code, **rest))


def said(result: JailResult) -> str:
    assert result.ending is JailOutcome.EXITED, result
    assert result.returncode == 0, result
    return result.stdout.decode().strip()


def alive(mark: str) -> list[int]:
    """Processes of this machine whose command line holds `mark`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = folder.name
        try:
            text = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in text and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 10
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(mark)


# -- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_fork_bomb_is_bounded_and_leaves_nothing(jail: NamespaceJail) -> None:
    code = """
    import os, time
    mark = "fork-bomb-7f3a"
    refused = 0
    while not refused:
        try:
            if os.fork() == 0:
                time.sleep(60)
        except OSError as fault:
            refused = fault.errno
    print(refused, flush=True)
    time.sleep(60)
    """
    limits = replace(LIMITS, processes=24, wall_seconds=1.2)
    process = jail.start(spec_of(code, limits=limits))
    result = process.wait()
    process.channel.close()
    assert result.ending is JailOutcome.WALL
    assert result.stdout.strip() == str(errno.EAGAIN).encode()
    assert gone("fork-bomb-7f3a")


@pytest.mark.long
def test_memory_hog_is_ended_as_memory(python: Run) -> None:
    code = """
    import os, time
    kept = []
    for _ in range(4):
        if os.fork() == 0:
            break
    while True:  # no one process holds much: the tree does
        kept.append(bytearray(b"x" * (8 << 20)))
        time.sleep(0.01)
        if len(kept) > 24: time.sleep(60)
    """
    result = python(code, limits=replace(LIMITS, resident_bytes=256 << 20, tmp_bytes=16 << 20))
    assert result.ending is JailOutcome.MEMORY


def test_memory_is_watched_without_a_cgroup(jail: NamespaceJail) -> None:
    plain = NamespaceJail(replace(jail._backend, cgroups=None))
    code = "import time; kept = bytearray(b'x' * (300 << 20)); time.sleep(60)"
    result = plain.run(spec_of(code, limits=replace(LIMITS, resident_bytes=128 << 20)))
    assert result.ending is JailOutcome.MEMORY


@pytest.mark.long
def test_shared_pages_are_counted_once(jail: NamespaceJail) -> None:
    plain = NamespaceJail(replace(jail._backend, cgroups=None))
    code = """
    import os, time
    kept = bytearray(b"x" * (64 << 20))
    for _ in range(5):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(0.7)
    print("whole")
    """
    assert said(plain.run(spec_of(code, limits=replace(LIMITS, resident_bytes=200 << 20)))) == "whole"


def test_address_space_is_limited(python: Run) -> None:
    result = python("""
    try:
        bytearray(8 << 30)
    except MemoryError:
        print("refused")
    """)
    assert said(result) == "refused"


@pytest.mark.parametrize("stream", [1, 2])
def test_output_flood_is_ended_as_output(python: Run, stream: int) -> None:
    code = f"import os\nwhile True: os.write({stream}, b'x' * 65536)"
    result = python(code, limits=replace(LIMITS, output_bytes=100_000))
    assert result.ending is JailOutcome.OUTPUT
    assert len(result.stdout) + len(result.stderr) == 100_000


@pytest.mark.long
def test_sleeping_past_the_wall_is_ended_as_wall(python: Run) -> None:
    result = python("import time; print('began', flush=True); time.sleep(600)", limits=replace(LIMITS, wall_seconds=1))
    assert (result.ending, result.stdout) == (JailOutcome.WALL, b"began\n")


@pytest.mark.long
def test_spinning_is_ended_as_cpu(python: Run) -> None:
    assert python("while True: pass", limits=replace(LIMITS, cpu_seconds=1)).ending is JailOutcome.CPU


@pytest.mark.long
def test_spinning_past_a_stalled_watcher_is_ended_as_cpu(python: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from localagent.jail.launcher import watchdog

    monkeypatch.setattr(watchdog.Watchdog, "_pause", lambda _: 60.0)  # the kernel's own limit ends it
    result = python("while True: pass", limits=replace(LIMITS, cpu_seconds=0.1))
    assert (result.ending, result.returncode) == (JailOutcome.CPU, 128 + signal.SIGXCPU)


@pytest.mark.long
def test_spinning_of_the_whole_tree_is_counted(python: Run) -> None:
    code = """
    import os, time
    for _ in range(40):  # each child uses little
        if os.fork() == 0:
            until = time.process_time() + 0.1
            while time.process_time() < until: pass
            os._exit(0)
        os.wait()
    """
    assert python(code, limits=replace(LIMITS, cpu_seconds=1)).ending is JailOutcome.CPU


TOLD_APART = pytest.mark.skipif(not x86_assembler.supported(), reason="bubblewrap's own init says 128+n for both")


@pytest.mark.long
@TOLD_APART
@pytest.mark.parametrize("code", [129, 128 + signal.SIGXCPU, 137, 143, 192, 255])
def test_exit_code_of_a_signal_is_not_taken_for_one(python: Run, code: int) -> None:
    result = python(f"import os; os._exit({code})", limits=replace(LIMITS, cpu_seconds=5))
    assert (result.ending, result.returncode) == (JailOutcome.EXITED, code)


@pytest.mark.long
@TOLD_APART
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL, signal.SIGTERM, signal.SIGRTMAX])
def test_a_signal_is_told_as_one(python: Run, number: signal.Signals) -> None:
    result = python(f"import os; os.kill(os.getpid(), {int(number)})")
    assert (result.ending, result.returncode) == (JailOutcome.SIGNALLED, 128 + number)


@TOLD_APART
def test_who_stands_as_process_one_tells_nothing_of_the_host(python: Run) -> None:
    """Its arguments are the command's, and whether that is so is not up to what runs inside."""
    code = """
    import os
    print(b"--chdir" + b"" in open("/proc/1/cmdline", "rb").read().replace(b'b"--chdir"', b""))
    for name in ("environ", "mem", "maps", "exe"):
        try:
            print(len(os.readlink(f"/proc/1/{name}") if name == "exe" else open(f"/proc/1/{name}", "rb").read(1)))
        except OSError as fault:
            print(type(fault).__name__)
    """
    assert said(python(code)).split() == ["False", *["PermissionError"] * 4]


def test_file_size_and_tmp_are_bounded(python: Run) -> None:
    code = """
    import errno, os, tempfile
    out = []
    one, two, three = (tempfile.mkdtemp(dir=folder) + "/" for folder in ("/tmp", "/tmp", "/dev/shm"))
    for limit, path in ((5, one), (99, two), (99, three)):
        number = 0
        try:
            while number < limit:
                with open(f"{path}{number}", "wb") as file:
                    file.write(b"x" * (2 << 20))
                number += 1
                if limit == 5: file = open(one + "0", "ab"); file.write(b"x" * (4 << 20)); file.close()
        except OSError as fault:
            out.append(errno.errorcode[fault.errno])
    print(*out)
    """
    limits = replace(LIMITS, file_bytes=3 << 20, tmp_bytes=16 << 20)
    assert said(python(code, limits=limits)) == "EFBIG ENOSPC ENOSPC"


@pytest.mark.long
def test_filling_the_disk_behind_a_writable_bind_is_ended(python: Run, workspace: Workspace) -> None:
    code = """
    import os, time
    for number in range(40):
        with open(f"{number}", "wb") as file:
            file.write(os.urandom(4 << 20))
            os.fsync(file.fileno())
    time.sleep(60)
    """
    bind = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    result = python(code, binds=(bind,), cwd="/w", limits=replace(LIMITS, tmp_bytes=48 << 20))
    assert result.ending is JailOutcome.DISK


def test_no_core_dump(python: Run, workspace: Workspace) -> None:
    bind = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    result = python("import os; os.abort()", binds=(bind,), cwd="/w")
    assert (result.ending, result.returncode) == (JailOutcome.SIGNALLED, 128 + signal.SIGABRT)
    assert list(workspace.tree.iterdir()) == []


# -- outliving ----------------------------------------------------------------------------------------------------


def test_double_fork_and_setsid_do_not_outlive(python: Run) -> None:
    result = python("""
    import os, subprocess, sys
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "61.000731"])
        os._exit(0)
    os.wait()
    import time; time.sleep(0.2)
    print("left")
    """)
    assert said(result) == "left"
    assert gone("61.000731")


def test_ignored_signals_do_not_help(jail: NamespaceJail) -> None:
    code = """
    import signal, socket, sys, time
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        try: signal.signal(number, signal.SIG_IGN)
        except OSError: pass
    print("ready", flush=True)
    time.sleep(61.000732)
    """
    process = jail.start(spec_of(code))
    began = time.monotonic()
    while b"ready" not in bytes(process._watch._out[process._watch._order[0]]) and time.monotonic() < began + 10:
        time.sleep(0.01)
    assert process.kill().ending is JailOutcome.CANCELLED
    assert not process.alive
    assert gone("61.000732")
    process.channel.close()


@pytest.mark.long
def test_killed_parent_leaves_no_orphan(jail: NamespaceJail) -> None:
    parent = textwrap.dedent(f"""
        import time
        from localagent.jail.api import BackendKind, open_jail
        from localagent.domain.jailspec import JailSpec
        script = "sleep 61.000733 & sleep 61.000733"
        jail = open_jail(backend=BackendKind({str(jail._backend.kind)!r}))
        process = jail.start(JailSpec(argv=("/bin/sh", "-c", script), cwd="/tmp"))
        time.sleep(0.6)
        print("started", flush=True)
        time.sleep(60)
    """)
    child = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert child.stdout is not None
    assert child.stdout.readline() == b"started\n"
    assert len(alive("61.000733")) >= 2
    child.kill()
    child.wait()
    child.stdout.close()
    assert gone("61.000733")


# -- looking out --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "path", ["/root", "/home", "/var", "/etc/shadow", "/etc/ssh", "/sys", "/run", "/boot", "/mnt", "/work", "/srv"]
)
def test_folder_of_the_host_is_not_there(jail: NamespaceJail, path: str) -> None:
    argv = ("/bin/sh", "-c", f"[ -e {path} ] && echo seen || echo absent")
    assert jail.run(JailSpec(argv=argv, cwd="/tmp")).stdout == b"absent\n"


def test_host_tmp_and_processes_are_hidden(python: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    result = python(f"""
    import os
    print(os.path.exists({str(tmp_path)!r}), os.listdir("/tmp"))
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    print(max(pids) < 20, {os.getpid()} in pids)
    try:
        print(open("/proc/1/environ", "rb").read())
    except OSError as fault:
        print(fault.strerror)
    """)
    first, second, third = said(result).splitlines()
    own = {prefix.split("/")[2] for prefix in (sys.prefix, sys.base_prefix) if prefix.startswith("/tmp/")}
    assert (first, second) == (f"False {sorted(own)}", "True False")  # the interpreter itself may lie there
    assert third in ("b''", "Permission denied")


def test_environment_is_exactly_what_was_asked(jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAGENT_TEST_SECRET", "secret")
    spec = JailSpec(argv=("/usr/bin/env",), cwd="/tmp", env=(("A", "b c"), ("PATH", "/usr/bin")))
    words = dict(line.split("=", 1) for line in said(jail.run(spec)).splitlines())
    assert words == {"A": "b c", "PATH": "/usr/bin", "PWD": "/tmp"}


def test_no_descriptor_of_ours_is_inherited(python: Run, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        text = said(python("import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"))
    assert text == "[0, 1, 2, 3]"  # 3 is the listing itself


def test_user_is_nobody_and_has_no_group(python: Run) -> None:
    text = said(python("import os; print(os.getresuid(), os.getresgid(), os.getgroups() in ([], [65534]))"))
    assert text == "(65534, 65534, 65534) (65534, 65534, 65534) True"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root switches to another uid")
def test_real_uid_outside_is_neither_root_nor_shared(jail: NamespaceJail) -> None:
    kept = os.getgroups()
    os.setgroups([4, 24])  # something to lose
    try:
        first, second = (jail.start(JailSpec(argv=("/bin/sleep", "60"), cwd="/tmp")) for _ in range(2))
    finally:
        os.setgroups(kept)
    try:
        deadline = time.monotonic() + 10
        owners: set[str] = set()
        groups: set[str] = set()
        while time.monotonic() < deadline:
            lines = [Path(f"/proc/{process.pid}/status").read_text() for process in (first, second)]
            owners = {next(row for row in text.splitlines() if row.startswith("Uid:")) for text in lines}
            groups = {next(row for row in text.splitlines() if row.startswith("Groups:")) for text in lines}
            if len(owners) == 2 and not any("\t0\t" in row for row in owners):
                break
            time.sleep(0.02)
        assert len(owners) == 2
        assert not any("\t0" in row for row in owners)
        assert {row.split() == ["Groups:"] for row in groups} == {True}
    finally:
        for process in (first, second):
            process.kill()
            process.channel.close()


# -- network ------------------------------------------------------------------------------------------------------


def test_no_network(python: Run) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    abstract.bind(f"\0localagent-test-{os.getpid()}")
    abstract.listen()
    with listener, abstract:
        result = python(f"""
        import errno, socket
        def reason(family, kind, address):
            with socket.socket(family, kind) as sock:
                try:
                    sock.connect(address); sock.send(b"x")
                    return "connected"
                except OSError as fault:
                    return errno.errorcode[fault.errno]
        print(reason(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {listener.getsockname()[1]})))
        print(reason(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)))
        print(reason(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
        print(reason(socket.AF_UNIX, socket.SOCK_STREAM, "\\0localagent-test-{os.getpid()}"))
        """)
    assert said(result).split() == ["ECONNREFUSED", "ENETUNREACH", "ENETUNREACH", "ECONNREFUSED"]


# -- writing out --------------------------------------------------------------------------------------------------


def test_nothing_but_tmp_and_the_workspace_is_writable(python: Run, workspace: Workspace, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir(mode=0o777)
    shown.chmod(0o777)
    binds = (
        Bind(source=str(workspace.tree), target="/home/u/proj", access=Access.READ_WRITE, untrusted=True),
        Bind(source=str(shown), target="/home/u/ro"),
    )
    name = f"localagent-test-{uuid4().hex}"  # the interpreter may lie anywhere, below /tmp too
    code = f"""
    import errno
    for folder in ("/home/u/proj", "/tmp", "/", "/usr", "/etc", "/dev", "/home/u", "/home/u/ro", "/proc"):
        try:
            open(folder + "/{name}", "w").close()
            print("ok", end=" ")
        except OSError as fault:
            print(errno.errorcode[fault.errno], end=" ")
    """
    words = said(python(code, binds=binds)).split()
    assert words[:2] == ["ok", "ok"]
    assert set(words[2:]) <= {"EROFS", "EACCES", "ENOENT"}
    assert [path.name for path in workspace.tree.iterdir()] == [name]
    assert list(shown.iterdir()) == []


def test_a_link_swapped_in_for_a_file_is_not_written_through(python: Run, workspace: Workspace, tmp_path: Path) -> None:
    from localagent.domain.paths import RepoPath

    victim = tmp_path / "victim"
    victim.write_text("untouched")
    workspace.write(RepoPath("pkg/a.py"), b"first")
    bind = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    code = f"""
    import os
    os.remove("/w/pkg/a.py"); os.symlink({str(victim)!r}, "/w/pkg/a.py")
    os.rename("/w/pkg", "/w/old"); os.symlink({str(tmp_path)!r}, "/w/pkg")
    print("swapped")
    """
    assert said(python(code, binds=(bind,))) == "swapped"
    with pytest.raises(CannotEnforce, match="not a real folder"):
        workspace.write(RepoPath("pkg/victim"), b"through the folder")
    workspace.write(RepoPath("old/a.py"), b"in its place")
    assert victim.read_text() == "untouched"
    assert not (workspace.tree / "old" / "a.py").is_symlink()
    workspace.remove()
    assert victim.read_text() == "untouched"


def test_mount_point_through_a_planted_link_is_refused(
    jail: NamespaceJail, workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.tree / "venv").symlink_to("/")
    binds = (
        Bind(source=str(workspace.tree), target="/w", untrusted=True),
        Bind(source=str(tmp_path), target="/w/venv/tmp"),
    )
    with pytest.raises(CannotEnforce, match="'venv' is not a real folder"):
        jail.run(JailSpec(argv=("/bin/true",), cwd="/", binds=binds))


# -- kernel interfaces --------------------------------------------------------------------------------------------

SYSCALLS = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def name(result):
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
calls = {
    "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    "umount": lambda: libc.umount2(b"/tmp", 2),
    "unshare": lambda: libc.unshare(0x10000000),
    "setns": lambda: libc.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "ptrace": lambda: libc.ptrace(0, 0, 0, 0),
    "keyctl": lambda: libc.syscall(250, 0, -3, 0, 0, 0) if os.uname().machine == "x86_64" else libc.unshare(0x10000000),
    "bpf": lambda: libc.syscall(321, 0, 0, 0) if os.uname().machine == "x86_64" else libc.unshare(0x10000000),
    "chroot": lambda: libc.chroot(b"/tmp"),
    "personality": lambda: libc.personality(0x0040000),
}
for word in sys.argv[1:]:
    ctypes.set_errno(0)
    print(word, name(calls[word]()))
"""


@pytest.mark.skipif(seccomp_program() is None, reason="libseccomp is not at hand; the level says so")
def test_kernel_interfaces_are_refused(jail: NamespaceJail) -> None:
    names = ("mount", "umount", "unshare", "setns", "ptrace", "keyctl", "bpf", "chroot", "personality")
    spec = JailSpec(argv=(PYTHON, "-I", "-S", "-c", SYSCALLS, *names), cwd="/tmp", binds=BINDS)
    assert said(jail.run(spec)).splitlines() == [f"{name} EPERM" for name in names]


def test_without_seccomp_the_namespaces_still_refuse(jail: NamespaceJail) -> None:
    plain = NamespaceJail(replace(jail._backend, seccomp=False))
    spec = JailSpec(argv=(PYTHON, "-I", "-S", "-c", SYSCALLS, "mount", "umount", "chroot"), cwd="/tmp", binds=BINDS)
    assert said(plain.run(spec)).splitlines() == ["mount EPERM", "umount EPERM", "chroot EPERM"]


@pytest.mark.skipif(seccomp_program() is None, reason="libseccomp is not at hand; the level says so")
@pytest.mark.parametrize("family", ["AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"])
def test_socket_family_is_refused(python: Run, family: str) -> None:
    result = python(f"""
    import socket
    try:
        socket.socket(socket.{family}, socket.SOCK_RAW)
        print("made")
    except PermissionError:
        print("refused")
    """)
    assert said(result) == "refused"


@pytest.mark.skipif(seccomp_program() is None, reason="libseccomp is not at hand; the level says so")
def test_no_room_is_taken_on_the_disk_at_once(python: Run) -> None:
    """Between two looks of the watch `fallocate` would take gigabytes; the C library writes instead."""
    result = python("""
    import ctypes, errno, os, tempfile
    with tempfile.TemporaryFile() as file:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate(file.fileno(), 0, ctypes.c_long(0), ctypes.c_long(1 << 20))
        print(ctypes.get_errno() == errno.EOPNOTSUPP)
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        print(os.fstat(file.fileno()).st_size >> 20)
    """)
    assert said(result).split() == ["True", "1"]


@pytest.mark.long
def test_ordinary_work_goes_on_under_the_filter(python: Run, jail: NamespaceJail) -> None:
    code = """
    import multiprocessing, subprocess, tempfile, threading, socket, asyncio
    out = []
    thread = threading.Thread(target=out.append, args=(1,)); thread.start(); thread.join()
    out.append(int(subprocess.run(["/bin/echo", "2"], capture_output=True).stdout))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        out += pool.map(abs, [-3])
    async def main():
        process = await asyncio.create_subprocess_exec("/bin/echo", "4", stdout=asyncio.subprocess.PIPE)
        return int((await process.communicate())[0])
    out.append(asyncio.run(main()))
    server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()).close()
    import numpy
    out.append(int(numpy.ones(5).sum()))
    print(out)
    """
    spec = spec_of(code)
    spec = replace(spec, argv=(PYTHON, "-I", *spec.argv[3:]), limits=replace(LIMITS, processes=64))
    assert said(jail.run(spec)) == "[1, 2, 3, 4, 5]"


def test_tree_of_a_dead_process_is_empty() -> None:
    assert process_usage.usage(2**22 - 1).processes == 0


def test_a_tree_is_not_opened_with_other_attributes(python: Run) -> None:
    call = "c.syscall(467, -100, b'/', 0, 0, 0)"
    code = f"import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint({call}, ctypes.get_errno())"
    assert said(python(code)) == "-1 1"  # EPERM of the filter, also where the kernel has no such call
