"""Code that attacks the session it runs in, the sessions beside it, and the supervisor's socket."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.session_builder import Kept, kept

from localagent.domain.execution import Language
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail_sessions import client
from localagent.jail_sessions.supervisor_messages import pack_order
from localagent.jail_sessions.supervisor_socket import NobodyThere, SupervisorConnection, open_folder
from localagent.runner.json_frames import Reader, send

SYSTEM_PYTHON = Path("/usr/bin/python3")
STRANGER = """
import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.settimeout(10)
data = b'{"op":"list"}'
try:
    s.sendall(struct.pack(">I", len(data)) + data)
    print(repr(s.recv(99)))
except (BrokenPipeError, ConnectionResetError):
    print("b''")
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Kept]:
    with kept() as it:
        yield it


@pytest.mark.long
def test_the_worker_shows_its_channel_and_memory_to_nobody(place: Kept) -> None:
    code = """
import os
for what in ("fd", "mem", "maps", "environ"):
    try:
        path = f"/proc/{os.getppid()}/{what}"
        print(what, os.listdir(path) if what == "fd" else len(open(path, "rb").read(9)))
    except OSError as fault:
        print(what, fault.strerror)
print([os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in sorted(map(int, os.listdir("/proc/self/fd")))[:3]])
"""
    shown = place.step(code, name="look")
    assert shown.stdout.splitlines()[:4] == [f"{what} Permission denied" for what in ("fd", "mem", "maps", "environ")]


def test_a_worker_that_is_killed_from_within_ends_the_session_and_this_is_said(place: Kept) -> None:
    place.step("1", name="kill")
    ended = place.step(
        "import os, signal\nprint('x')\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass", name="kill"
    )
    assert ended.ending is JailOutcome.SIGNALLED
    assert ended.session is not None
    assert (ended.session.alive, ended.session.ended) == (False, "its worker was ended from within")
    assert "kill" not in {one.name for one in client.sessions(place.settings)}


FORGE = """
import os, socket
def kind(n):
    return os.readlink(f"/proc/self/fd/{n}") if os.path.exists(f"/proc/self/fd/{n}") else ""
mine = [n for n in range(3, 200) if kind(n).startswith("socket")]
"""


@pytest.mark.long
def test_a_forged_end_is_believed_about_its_own_step_only(place: Kept) -> None:
    place.step(FORGE, name="forge")
    place.step("for n in mine: os.write(n, b'3 0\\n4 9\\n5 200\\n')", name="forge")  # steps to come
    assert place.step("raise SystemExit(6)", name="forge").returncode == 6
    early = place.step(
        "for n in mine: os.write(n, b'4 77\\n')\nimport time; time.sleep(0.5); print('LATE')", name="forge"
    )
    assert early.returncode == 77  # it may lie about itself
    after = place.step("'mine'", name="forge")
    assert (after.stdout, after.returncode) == ("'mine'\n", 0)  # what it printed afterwards is nobody's


def test_garbage_on_the_control_socket_ends_the_session(place: Kept) -> None:
    place.step(FORGE, name="garbage")
    ended = place.step("while True:\n    for n in mine: os.write(n, b'x' * 4096)", name="garbage")
    assert ended.session is not None
    assert not ended.session.alive


@pytest.mark.long
def test_a_step_that_minds_no_signal_is_killed_with_its_session(place: Kept) -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('on')\nwhile True: pass"
    ended = place.step(code, name="deaf", limits={"wall_seconds": 0.5})
    assert (ended.ending, ended.stdout) == (JailOutcome.WALL, "on\n")
    assert ended.session is not None
    assert (ended.session.alive, ended.session.ended) == (False, "it did not end: wall")


@pytest.mark.long
def test_a_fork_bomb_and_a_memory_hog_end_at_the_limits(place: Kept) -> None:
    bomb = """
made = 0
try:
    while True:
        if os.fork() == 0:
            os.read(os.pipe()[0], 1)
        made += 1
except OSError as fault:
    print(fault.strerror, made < 40)
"""
    place.step("import os", name="bomb")
    shown = place.step(bomb, name="bomb")
    assert shown.stdout == "Resource temporarily unavailable True\n"
    hog = place.step("x = []\nwhile True: x.append(bytes(10 ** 7).replace(b'\\0', b'1'))", name="hog")
    assert hog.ending is JailOutcome.MEMORY
    assert hog.session is not None
    assert not hog.session.alive


STRANGERS = """
import os
PLACES = {!r}  # an interpreter below /home or /tmp is shown where it is, and so is the way to it
def strangers(folder):
    found = []
    for path in (os.path.join(folder, name) for name in os.listdir(folder)):
        if any(place.startswith(path + "/") for place in PLACES):
            found += strangers(path)
        elif path not in PLACES:
            found.append(path)
    return found
if any(place.startswith("/home/") for place in PLACES):
    homes = strangers("/home")
else:
    homes = ["/home"] if os.path.exists("/home") else []

print(os.listdir("/workspace"), strangers("/tmp"), homes, len(os.listdir("/proc")) < 99)
"""


def test_a_session_sees_neither_the_other_nor_the_user(place: Kept) -> None:
    code = "import tempfile; [tempfile.mkstemp(dir=folder) for folder in ('/workspace', '/tmp')]"
    assert place.step(code, name="one").stderr == ""
    shown = place.step(STRANGERS.format((sys.prefix, sys.base_prefix)), name="two")
    assert shown.stdout == "[] [] [] True\n"
    assert place.step("ls -A; compgen -e | grep -c XDG", name="three", language=Language.BASH).stdout == "0\n"


def test_links_fifos_and_sparse_files_stay_inside(place: Kept, tmp_path: Path) -> None:
    code = """
import os
os.symlink("/etc/passwd", "link"); os.symlink("/", "root"); os.mkfifo("fifo"); os.mkdir("d"); os.symlink("..", "d/up")
try:
    with open("sparse", "wb") as f: f.truncate(10 << 30)
except OSError as fault: print(fault.strerror)
open("plain", "w").write("ok") and None
"""
    shown = place.step(code, name="links", out=str(tmp_path / "out"))
    assert [
        p.relative_to(tmp_path / "out").as_posix() for p in sorted((tmp_path / "out").rglob("*")) if p.name != "sparse"
    ] == ["plain"]
    assert {one.name for one in shown.left_out} == {"link", "root", "fifo", "d/up"}
    assert shown.stdout == "File too large\n"


def test_a_shell_that_shuts_its_streams_or_its_control_does_no_harm(place: Kept) -> None:
    assert place.step("exec >&- 2>&-; echo lost", name="shut", language=Language.BASH).returncode == 1
    assert place.step("echo back", name="shut", language=Language.BASH).stdout == "back\n"
    ended = place.step(
        'for n in $(ls /proc/$$/fd); do [ $n -gt 2 ] && eval "exec $n>&-"; done; echo end',
        name="shut2",
        language=Language.BASH,
    )
    assert ended.ending in (JailOutcome.EXITED, JailOutcome.SIGNALLED, JailOutcome.WALL)
    assert place.step("echo other", name="shut", language=Language.BASH).stdout == "other\n"


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON.exists(), reason="only root can be another user")
def test_another_user_is_not_answered_even_where_the_socket_is_open(place: Kept) -> None:
    place.step("1", name="peer")
    folder = place.settings.runtime_dir
    command = [str(SYSTEM_PYTHON), "-I", "-c", STRANGER, str(folder / "sessions.sock")]

    def ask() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, user=54321, group=54321, capture_output=True, text=True, check=False)

    assert "Permission denied" in ask().stderr
    folder.chmod(0o755)
    (folder / "sessions.sock").chmod(0o666)
    try:
        assert ask().stdout == "b''\n"
        with pytest.raises(CannotEnforce, match="open to other users"):
            place.step("1", name="peer")
    finally:
        folder.chmod(0o700)
    assert place.step("1", name="peer").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_supervisor_of_another_user_is_told_nothing(tmp_path: Path) -> None:
    from localagent.jail_sessions import supervisor_socket

    number = open_folder(tmp_path / "run", make=True)
    with supervisor_socket.listen(number):
        os.seteuid(54321)  # the folder was opened before: only the credentials are left to tell
        try:
            with pytest.raises((CannotEnforce, NobodyThere)):
                supervisor_socket.connect(number)
        finally:
            os.seteuid(0)
    os.close(number)


def test_nonsense_on_the_socket_is_answered_with_a_fault(place: Kept) -> None:
    place.step("1", name="line")
    from localagent.jail_sessions.supervisor_socket import connect

    folder = open_folder(place.settings.runtime_dir, make=False)
    good = pack_order(place.order("1"))
    for message in (
        {"op": "x"},
        {},
        {"op": "step"},
        {**good, "session": "../x"},
        {**good, "evil": 1},
        {**good, "request": 5},
    ):
        with SupervisorConnection(connect(folder)) as line:
            assert line.ask(message)["fault"] == "UsageFault"
    with connect(folder) as raw:
        raw.sendall(b"\xff\xff\xff\xffGET / HTTP/1.1")
        reader = Reader(raw.fileno())
        assert "hello" in reader.receive()
        assert reader.receive()["fault"] == "UsageFault"
    os.close(folder)
    assert place.step("1", name="line").returncode == 0


def test_a_link_in_place_of_the_runtime_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "real")
    with pytest.raises(CannotEnforce):
        open_folder(tmp_path / "run", make=True)


def test_one_who_listens_but_does_not_greet_is_nobody() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with pytest.raises(NobodyThere):
        SupervisorConnection(ours)
    ours, theirs = socket.socketpair()
    send(theirs.fileno(), {"hello": "x"})
    with theirs, SupervisorConnection(ours) as line:
        theirs.shutdown(socket.SHUT_RDWR)
        with pytest.raises(NobodyThere, match="Broken pipe"):
            line.ask({"op": "list"})
