"""What a jail tells while it runs: its init, how the command ended, why there is none.

Only parses what comes from our own side of the jail (the launcher, the backend's program); still bounded.
"""

import json
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from localagent.jail.launcher import x86_assembler
from localagent.jail.launcher.init_stub import InitStatus
from localagent.jail.limits import process_usage

LIMIT_BYTES = 1 << 16
_ANSWERS = (InitStatus.ENDED, InitStatus.NO_FOLDER, InitStatus.NO_EXEC, InitStatus.NO_FILTER, InitStatus.NO_FORK)
_WHY = {InitStatus.NO_FILTER: "the seccomp filter was refused", InitStatus.NO_FORK: "the init could not fork"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How the command ended. `returncode` is 128+n where a signal n ended it (`signal`, else 0)."""

    returncode: int
    signal: int = 0


class Reports(Protocol):
    """One jail's reports: bytes go in by `take`, what they say is asked for."""

    def take(self, piece: bytes) -> None:
        """More bytes of the status descriptor."""
        ...

    def init_pid(self, outer: int) -> int | None:
        """Our number of the jail's init once it exists; `outer` is the process that made the jail."""
        ...

    def exit(self) -> Exit | None:
        """The command's end once it is told."""
        ...

    def over(self) -> bool:
        """True when nothing more is to come, so that the outer process need not be waited for."""
        ...

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """Without an exit: why there is no jail, or "" when only the command could not be executed in it."""
        ...

    def remark(self) -> bytes:
        """What belongs on standard error and is not there yet: why the command could not be executed."""
        ...

    def close(self) -> None:
        """Close what the reports are read from."""
        ...


class BubblewrapReports:
    """JSON lines of bubblewrap and the launcher, and where our init stands in its jails the records of that.

    Not promised: without our init, that exit codes above 128 are told apart from signals.
    """

    def __init__(self, init: "InitRecords | None" = None) -> None:
        self._text = bytearray()
        self._init = init

    def take(self, piece: bytes) -> None:
        """See Reports."""
        self._text += piece[: max(0, LIMIT_BYTES - len(self._text))]

    def init_pid(self, outer: int) -> int | None:
        """See Reports."""
        del outer
        pid = self._reported("child-pid")
        return pid if isinstance(pid, int) else None

    def exit(self) -> Exit | None:
        """See Reports."""
        word, value = (0, 0) if self._init is None else self._init.answer()
        if word:
            return _exit_of(value) if word == InitStatus.ENDED else None
        code = self._reported("exit-code")
        if not isinstance(code, int):
            return None
        return Exit(returncode=code, signal=code - 128 if 128 < code < 128 + signal.NSIG else 0)

    def over(self) -> bool:
        """See Reports. Its outer process ends by itself at once."""
        return False

    def remark(self) -> bytes:
        """See Reports. It writes there itself where the init is its own."""
        return b"" if self._init is None else self._init.remark()

    def close(self) -> None:
        """See Reports."""
        if self._init is not None:
            self._init.close()

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """See Reports."""
        told = self._reported("launch-fault")
        if told is not None:
            return str(told)
        word, value = (0, 0) if self._init is None else self._init.answer()
        if word in _WHY:
            return f"{_WHY[InitStatus(word)]}: {os.strerror(value)}"
        if word:
            return ""
        text = stderr.decode(errors="replace").strip()
        if text.startswith("bwrap: execvp") or "Can't chdir" in text:
            return ""
        return text or f"bubblewrap ended with {outer_returncode} before the command started"

    def _reported(self, key: str) -> object:
        for line in bytes(self._text).splitlines():
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict) and key in value:
                    return value[key]
        return None


class InitRecords:
    """What our init in a bubblewrap jail told on a descriptor of its own; asked for when the jail is over."""

    def __init__(self, command: str, cwd: str, told: int) -> None:
        self._command, self._cwd, self._reported = command, cwd, told
        self._answer: tuple[int, int] | None = None
        os.set_blocking(told, False)

    def answer(self) -> tuple[int, int]:
        """The record that ends the jail, else (0, 0)."""
        if self._answer is None:
            stream = b""
            with suppress(BlockingIOError):
                stream = os.read(self._reported, LIMIT_BYTES)
            self._answer = _final_record(x86_assembler.parse(stream))
        return self._answer

    def remark(self) -> bytes:
        """Why the command could not be executed, or nothing."""
        return _remark(*self.answer(), self._command, self._cwd)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._reported)


def _final_record(records: Iterable[tuple[int, int]]) -> tuple[int, int]:
    return next((record for record in records if record[0] in _ANSWERS), (0, 0))


def _exit_of(status: int) -> Exit:
    if os.WIFSIGNALED(status):
        return Exit(returncode=128 + os.WTERMSIG(status), signal=os.WTERMSIG(status))
    return Exit(returncode=os.WEXITSTATUS(status))


def _remark(word: int, value: int, command: str, cwd: str) -> bytes:
    if word == InitStatus.NO_FOLDER:
        return f"cannot enter {cwd}: {os.strerror(value)}\n".encode(errors="surrogateescape")
    if word == InitStatus.NO_EXEC:
        return f"cannot execute {command}: {os.strerror(value)}\n".encode(errors="surrogateescape")
    return b""


class InitReports:
    """Records of our own init (see init_program) in nsjail's jails; `log` is a descriptor of what nsjail itself said.

    A fault of the launcher, which runs before any init, is a JSON line instead.
    """

    def __init__(self, command: str, cwd: str, log: int) -> None:
        self._stream = bytearray()
        self._command = command
        self._cwd = cwd
        self._log = log

    def take(self, piece: bytes) -> None:
        """See Reports."""
        self._stream += piece[: max(0, LIMIT_BYTES - len(self._stream))]

    def init_pid(self, outer: int) -> int | None:
        """See Reports. nsjail has one child: the init, which is there once it has said so."""
        if not any(word == InitStatus.READY for word, _ in self._records()):
            return None
        below = process_usage.children(outer)
        return below[0] if len(below) == 1 else None

    def exit(self) -> Exit | None:
        """See Reports."""
        word, value = self._answer()
        return _exit_of(value) if word == InitStatus.ENDED else None

    def over(self) -> bool:
        """See Reports."""
        return self._answer()[0] in _ANSWERS

    def remark(self) -> bytes:
        """See Reports."""
        return _remark(*self._answer(), self._command, self._cwd)

    def close(self) -> None:
        """See Reports."""
        os.close(self._log)

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """See Reports."""
        del stderr
        word, value = self._answer()
        if word in (InitStatus.NO_FOLDER, InitStatus.NO_EXEC):
            return ""
        if word in _WHY:
            return f"{_WHY[InitStatus(word)]}: {os.strerror(value)}"
        if self._stream.startswith(b"{"):
            with suppress(ValueError):
                return str(json.loads(self._stream)["launch-fault"])
        said = os.pread(self._log, LIMIT_BYTES, 0).decode(errors="replace").strip()
        return said or f"nsjail ended with {outer_returncode} before the command started"

    def _records(self) -> list[tuple[int, int]]:
        return [] if self._stream.startswith(b"{") else list(x86_assembler.parse(bytes(self._stream)))

    def _answer(self) -> tuple[int, int]:
        """The first record that ends the jail, else (0, 0)."""
        return _final_record(self._records())
