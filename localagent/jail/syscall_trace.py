"""Runs a command under strace and reads back what it and all its children asked of the kernel.

One file a thread, so lines never interleave. Only what is named in CALLS is seen, and only on the processor's own call
numbers; io_uring, which would pass by, is seen by its setup. Not promised: that a traced program behaves as an untraced
one in time.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.errors import CannotEnforce

PROGRAMS = "/usr/local/bin:/usr/bin:/bin"
NETWORK = ("socket", "socketpair", "connect", "bind", "sendto", "sendmsg", "sendmmsg", "io_uring_setup")
OPENING = ("open", "openat", "openat2", "creat")
CHANGING = (
    "mkdir", "mkdirat", "mknod", "mknodat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir",
    "link", "linkat", "symlink", "symlinkat", "truncate",
)  # fmt: skip
CHILDREN = ("clone", "clone3", "fork", "vfork")
CALLS = (*NETWORK, *OPENING, *CHANGING, *CHILDREN, "unshare", "setns", "chdir", "fchdir")
MAX_TRACE_BYTES = 512 << 20
MAX_FILES = 100_000
_LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)(.*)", re.DOTALL)
_STRACE = re.compile(r"strace -- version (\d+)\.(\d+)")
_REMEDY = "install strace 5.9 or newer (apt install strace); kernel.yama.ptrace_scope must be below 3"


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
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


def traced(
    tracer: Tracer, argv: Sequence[str], *, environ: Mapping[str, str], cwd: Path, into: Path, seconds: float
) -> tuple[int, bytes]:
    """Runs the command to its end; (exit code, standard error). CannotEnforce when it does not end in time."""
    into.mkdir()
    options = ("-ff", "-qq", "-yy", "--decode-pids=pidns", "--seccomp-bpf", "-s", "1", "-e", "signal=none")
    full = (tracer.program, *options, "-e", f"trace={','.join(CALLS)}", "-o", str(into / "t"), "--", *argv)
    ended = _run(full, environ, str(cwd), seconds)
    return ended.returncode, ended.stderr


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


def read_calls(folder: Path) -> dict[int, list[Call]]:
    """Every call by thread. CannotEnforce when the trace is too large or holds what cannot be read."""
    files = sorted(folder.glob("t.*"))
    if len(files) > MAX_FILES or sum(path.stat().st_size for path in files) > MAX_TRACE_BYTES:
        raise CannotEnforce(f"the trace in {folder} is larger than can be judged")
    return {int(path.suffix[1:]): list(_calls(path)) for path in files}


def _calls(path: Path) -> Iterator[Call]:
    pid = int(path.suffix[1:])
    with path.open(encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            text = line.rstrip("\n")
            found = _LINE.fullmatch(text)
            if found is None:
                if text.endswith(("<unfinished ...>", "<detached ...>")) or text.startswith(("+++", "---")):
                    text = text.removesuffix(" <unfinished ...>")
                    name, bracket, rest = text.partition("(")
                    if bracket and name in NETWORK:  # it never came back, and was asked all the same
                        yield Call(pid=pid, name=name, arguments=rest, result=0, remark="")
                    continue
                raise CannotEnforce(f"the trace holds a line that cannot be read: {text[:200]!a}")
            result = -1 if found[3] == "?" else int(found[3], 0)
            yield Call(pid=pid, name=found[1], arguments=found[2], result=result, remark=found[4].strip())
