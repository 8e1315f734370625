"""Runs a command under strace and reads back what it and all its children asked of the kernel.

The trace comes over a pipe as it is made: no file holds it that what is traced could remove or write anew. Who opens
the pipe is seen before a byte of theirs can be in it. Only what is named in CALLS is seen, and only on the processor's
own call numbers; io_uring, which would pass by, is seen by its setup. Not promised: that a traced program behaves as an
untraced one in time.
"""

import io
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from localagent.errors import CannotEnforce
from localagent.text.visible_text import shortened

PROGRAMS = "/usr/local/bin:/usr/bin:/bin"
NETWORK = ("socket", "socketpair", "connect", "bind", "sendto", "sendmsg", "sendmmsg", "io_uring_setup")
OPENING = ("open", "openat", "openat2", "creat", "open_by_handle_at")
CHANGING = (
    "mkdir", "mkdirat", "mknod", "mknodat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir",
    "link", "linkat", "symlink", "symlinkat", "truncate",
)  # fmt: skip
# what changes a file that stays where it is: its first path, or its descriptor, and nothing else, is a file's
TOUCHING = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat",
    "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
)  # fmt: skip
RUNNING = ("execve", "execveat")
REACHING = ("ptrace", "process_vm_writev", "pidfd_getfd")  # into another process, the tracer's for one
CHILDREN = ("clone", "clone3", "fork", "vfork")
CALLS = (
    *NETWORK, *OPENING, *CHANGING, *TOUCHING, *RUNNING, *REACHING, *CHILDREN,
    "unshare", "setns", "chdir", "fchdir", "mount", "move_mount", "open_tree",
)  # fmt: skip
_NEWER = frozenset({"fchmodat2"})  # than the oldest strace that will do
MAX_TRACE_BYTES = 512 << 20
MAX_THREADS = 100_000
_MOST_REACHED = 20
_END_SECONDS = 20.0
_THREAD = re.compile(r"(\d+) +(.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
_OTHERS_FILES = re.compile(r"/proc/\d+/(?:task/\d+/)?(?:fd|mem)\b")
_WRITING = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC)\b")
_LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)(.*)", re.DOTALL)
_STRACE = re.compile(r"strace -- version (\d+)\.(\d+)")
_REMEDY = "install strace 5.9 or newer (apt install strace); kernel.yama.ptrace_scope must be below 3"


@dataclass(frozen=True, kw_only=True, slots=True)
class Syscall:
    """One call that ended: its arguments as strace writes them, its result, and what strace says of the result."""

    pid: int
    name: str
    arguments: str
    result: int
    remark: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tracer:
    """A strace that works here."""

    program: str
    version: str


def find_tracer() -> Tracer:
    """The tracer, tried just now on a harmless program. CannotEnforce when there is none or it may not trace."""
    program = shutil.which("strace", path=PROGRAMS)
    if program is None:
        raise CannotEnforce("strace is missing, and nothing else here can see system calls", remedy=_REMEDY)
    told = _run((program, "-V"), {}, "/", 30.0)
    version = _STRACE.match(told.stdout.decode(errors="replace"))
    if version is None or (int(version[1]), int(version[2])) < (5, 9):
        raise CannotEnforce(f"{program} is too old or not strace", remedy=_REMEDY)
    tried = _run((program, "-f", "-qq", "-e", "trace=execve", "-o", "/dev/null", "/bin/true"), {}, "/", 30.0)
    if tried.returncode != 0:
        why = tried.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1][:300]
        raise CannotEnforce(f"strace may not trace here: {why}", remedy=_REMEDY)
    return Tracer(program=program, version=f"{version[1]}.{version[2]}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Traced:
    """A command that ended: its calls by thread, and lines where something reached for the trace or its keepers."""

    exit: int
    said: bytes
    calls: Mapping[int, Sequence[Syscall]]
    reached: tuple[str, ...]


def traced(
    tracer: Tracer, argv: Sequence[str], *, environ: Mapping[str, str], cwd: Path, scratch: Path, seconds: float
) -> Traced:
    """Runs the command to its end. CannotEnforce when it does not end in time, or its trace cannot be read.

    `scratch` is where the pipe lies, in a folder of its own: nowhere that the command may write to.
    """
    with (
        tempfile.TemporaryDirectory(prefix="localagent-trace-", dir=scratch) as name,
        TemporaryFile(dir=scratch) as kept,
    ):
        pipe = Path(name) / "calls"
        os.mkfifo(pipe, 0o600)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(reader, True)
        writer = os.open(pipe, os.O_WRONLY | os.O_CLOEXEC)  # or it would end before strace has opened it
        copying = threading.Thread(target=_copied, args=(reader, kept), name="trace", daemon=True)
        copying.start()
        try:
            options = ("-f", "--quiet=attach,personality", "-yy", "--decode-pids=pidns", "--seccomp-bpf", "-s", "1")
            calls = ",".join(f"?{call}" if call in _NEWER else call for call in CALLS)
            # signals are told: who is killed has a line of its end, and so a trace, in any case
            full = (tracer.program, *options, "-e", f"trace={calls}", "-o", str(pipe), "--", *argv)
            ended = _run(full, environ, str(cwd), seconds)
        finally:
            os.close(writer)
            copying.join(_END_SECONDS)
        if copying.is_alive():
            raise CannotEnforce("something that was traced holds the trace open", remedy="it is no proof of anything")
        if kept.tell() > MAX_TRACE_BYTES:
            raise CannotEnforce("the trace is larger than can be judged")
        kept.seek(0)
        lines = io.TextIOWrapper(kept, encoding="utf-8", errors="surrogateescape", newline="\n")
        reached: list[str] = []
        found = read_calls(_watched(lines, Path(name).name, reached))
        return Traced(exit=ended.returncode, said=ended.stderr, calls=found, reached=tuple(reached))


def _copied(reader: int, kept: IO[bytes]) -> None:
    """All that comes, and a byte too much at most: what is traced must not wait for us."""
    size = 0
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while data := pipe.read(1 << 16):
            kept.write(data[: max(0, MAX_TRACE_BYTES + 1 - size)])
            size += len(data)


def _watched(lines: Iterable[str], folder: str, reached: list[str]) -> Iterator[str]:
    """The lines; those that name the trace's folder, or write to what another process holds open, are noted."""
    for line in lines:
        named = folder in line or (
            _OTHERS_FILES.search(line) is not None and (_WRITING.search(line) is not None or "chdir(" in line)
        )
        if named and len(reached) < _MOST_REACHED:
            reached.append(line.strip()[:200])
        yield line


def _run(
    argv: Sequence[str], environ: Mapping[str, str], cwd: str, seconds: float
) -> "subprocess.CompletedProcess[bytes]":
    """To its end, or to that of everything it started: what a killed strace traced would go on without it."""
    try:
        process = subprocess.Popen(
            argv,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as fault:
        raise CannotEnforce(f"{argv[0]}: {fault}", remedy=_REMEDY) from None
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as ended:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(ended, subprocess.TimeoutExpired):
            raise CannotEnforce(f"{argv[0]} did not end within {seconds:.0f} seconds") from None
        raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def read_calls(lines: Iterable[str]) -> dict[int, list[Syscall]]:
    """Every call by thread, in order; threads that asked for nothing have an empty list.

    CannotEnforce when there are too many threads, or a line cannot be read.
    """
    calls: dict[int, list[Syscall]] = {}
    pending: dict[int, str] = {}
    for line in lines:
        whole = _THREAD.fullmatch(line.removesuffix("\n"))
        if whole is None:
            raise _unreadable(line)
        pid, text = int(whole[1]), whole[2]
        mine = calls.setdefault(pid, [])
        if len(calls) > MAX_THREADS:
            raise CannotEnforce("the trace is of more threads than can be judged")
        if text.startswith(("+++", "---")):
            if (by := _SUPERSEDED.fullmatch(text)) and int(by[1]) in pending:
                pending[pid] = pending.pop(int(by[1]))
            else:
                mine += _unfinished(pid, pending.pop(pid, ""))
            continue
        if resumed := _RESUMED.fullmatch(text):
            text = pending.pop(pid, "") + resumed[2]
            if not text.startswith(f"{resumed[1]}("):
                raise _unreadable(line)
        if text.endswith(("<unfinished ...>", "<detached ...>")):
            pending[pid] = text.removesuffix("<unfinished ...>").removesuffix("<detached ...>")
            continue
        mine.append(_call(pid, text))
    for pid, text in pending.items():
        calls[pid] += _unfinished(pid, text)
    return calls


def _unfinished(pid: int, text: str) -> list[Syscall]:
    """A call that never came back, where it was asked all the same."""
    name, bracket, rest = text.partition("(")
    return (
        [Syscall(pid=pid, name=name, arguments=rest.strip(), result=0, remark="")]
        if bracket and name in NETWORK
        else []
    )


def _call(pid: int, text: str) -> Syscall:
    found = _LINE.fullmatch(text)
    if found is None:
        raise _unreadable(text)
    result = -1 if found[3] == "?" else int(found[3], 0)
    return Syscall(pid=pid, name=found[1], arguments=found[2], result=result, remark=found[4].strip())


def _unreadable(line: str) -> CannotEnforce:
    return CannotEnforce(f"the trace holds a line that cannot be read: {shortened(ascii(line), 202)}")
