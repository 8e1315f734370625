"""The interpreters that keep their state between steps: how each is started, given a step, interrupted, and heard.

What an interpreter says about its own step is believed no further than that step: a message with another step's number
is dropped.
"""

from __future__ import annotations

import array
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Tuple

CONTROL_LIMIT_BYTES = 1 << 12
START_SECONDS = 30.0
HIGH_DESCRIPTOR = 99
STREAMS = ("out", "err")
NAMESPACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_repl.py")


def _own_signals() -> None:
    """SIGINT as programs expect it: this process ignores it, and what is ignored stays so through exec."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


class InterpreterProcess:
    """One child that is an interpreter. `control` is the descriptor on which it says that a step ended."""

    control = -1
    exit_status = -1

    def __init__(self) -> None:
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._heard = bytearray()

    def _start(self, argv: List[str], cwd: str, stdin: Any, pass_fds: List[int], env: Dict[str, str]) -> None:
        self._child = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
            cwd=cwd,
            env=dict(os.environ, **env),
            start_new_session=True,
            preexec_fn=_own_signals,  # noqa: PLW1509 - one thread only
        )

    def streams(self, number: int) -> Tuple[List[int], List[int]]:
        """Descriptors of a step's stdout and stderr: those we read (never waiting), those that are written."""
        reading, writing = [], []
        for _ in STREAMS:
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            reading.append(ours)
            writing.append(theirs)
        return reading, writing

    def over(self, number: int) -> None:
        """A step has ended: forget what was made for it."""

    def begin(self, number: int, code: str, writing: List[int]) -> bool:
        """Give it a step, with the descriptors of stdout and stderr. False when it is gone."""
        raise NotImplementedError

    def interrupt(self, number: int) -> None:
        """SIGINT to it and to what it runs in the foreground."""
        if self._child is not None:
            try:
                os.killpg(self._child.pid, signal.SIGINT)
            except OSError:
                return

    def ended(self, number: int, ready: List[int]) -> Optional[int]:
        """The step's status when it said so; None while it has not."""
        if self.control in ready:
            try:
                piece = os.read(self.control, CONTROL_LIMIT_BYTES)
            except OSError:
                piece = b""
            self._heard += piece
            if not piece or len(self._heard) > 4 * CONTROL_LIMIT_BYTES:
                self.kill()
                return None
        while b"\n" in self._heard:
            line, _, rest = bytes(self._heard).partition(b"\n")
            self._heard = bytearray(rest)
            words = line.split()
            if len(words) == 2 and all(word.isdigit() and len(word) < 10 for word in words) and int(words[0]) == number:
                return int(words[1]) & 0xFF
        return None

    def gone(self) -> bool:
        """True when it has ended; leftovers of the steps that ended are reaped."""
        if self._child is None:
            return True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._child = None
                return True
            if pid == 0:
                return False
            if pid == self._child.pid:
                self._set_ended(status)
                return True

    def _set_ended(self, status: int) -> None:
        self.exit_status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        if self._child is not None:
            self._child.returncode = self.exit_status
        self._child = None

    def kill(self) -> None:
        """End it and its process group."""
        if self._child is None:
            return
        pid = self._child.pid
        for target in (-pid, pid):
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                continue
        try:
            self._set_ended(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            self._child = None


class PythonInterpreter(InterpreterProcess):
    """`python_repl.py` on the interpreter that was asked for; steps and descriptors travel over a socket pair."""

    def __init__(self, argv: List[str], cwd: str) -> None:
        super().__init__()
        ours, theirs = socket.socketpair()
        self._socket = ours
        self.control = ours.fileno()
        number = theirs.fileno()
        self._start([*argv, NAMESPACE, str(number)], cwd, subprocess.DEVNULL, [number], {})
        theirs.close()

    def begin(self, number: int, code: str, writing: List[int]) -> bool:
        """See Interpreter."""
        data = code.encode("utf-8", "surrogatepass")
        head = b"%d %d\n" % (number, len(data))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", writing).tobytes())]
        try:
            self._socket.settimeout(START_SECONDS)
            self._socket.sendmsg([head], rights)
            self._socket.sendall(data)
        except OSError:
            return False
        return True


class BashInterpreter(InterpreterProcess):
    """bash as an interactive shell without a terminal: only so does SIGINT end a step and leave the shell alive.

    Its commands come over its standard input; a step is a file that it reads, with named pipes of its own as streams
    (this process shows its descriptors to nobody, so the shell could not open them there).
    """

    def __init__(self, argv: List[str], cwd: str) -> None:
        super().__init__()
        self._folder = tempfile.mkdtemp(prefix=".steps-")
        self.control, theirs = os.pipe()
        try:  # out of the way of the numbers that scripts use
            self._inside = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        except OSError:
            self._inside = os.dup(theirs)
        os.close(theirs)
        options = ["--noprofile", "--norc", "--noediting", "-i"]
        self._start([*argv, *options], cwd, subprocess.PIPE, [self._inside], {"PS1": ""})
        os.close(self._inside)
        self._say("set +mH +o history; unset HISTFILE; PS1= PS2=")

    def _say(self, line: str) -> bool:
        stdin = None if self._child is None else self._child.stdin
        if stdin is None:
            return False
        try:
            os.write(stdin.fileno(), line.encode() + b"\n")
        except OSError:
            return False
        return True

    def _path(self, number: int, name: str) -> str:
        return os.path.join(self._folder, "%d-%s" % (number, name))

    def streams(self, number: int) -> Tuple[List[int], List[int]]:
        """See Interpreter."""
        reading, writing = [], []
        for name in STREAMS:
            os.mkfifo(self._path(number, name), 0o600)
            reading.append(os.open(self._path(number, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            writing.append(os.open(self._path(number, name), os.O_WRONLY | os.O_CLOEXEC))
        return reading, writing

    def begin(self, number: int, code: str, writing: List[int]) -> bool:
        """See Interpreter."""
        path = self._path(number, "step")
        with open(path, "wb") as file:
            file.write(code.encode("utf-8", "surrogatepass") + b"\n")
        names = (path, self._path(number, "out"), self._path(number, "err"), self._inside, number, self._inside)
        return self._say(". %s </dev/null >%s 2>%s %d>&-; printf '%d %%s\\n' \"$?\" >&%d" % names)

    def interrupt(self, number: int) -> None:
        """See Interpreter. The shell drops the rest of the step's line, so the end is told by a line of its own."""
        super().interrupt(number)
        self._say("printf '%d 130\\n' >&%d" % (number, self._inside))

    def over(self, number: int) -> None:
        """See Interpreter."""
        for name in (*STREAMS, "step"):
            try:
                os.unlink(self._path(number, name))
            except OSError:
                continue
