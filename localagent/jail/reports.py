"""What the program that makes a jail tells while it runs: the jail's init, how the command ended, why there is none.

Only parses what comes from our own side of the jail (the launcher, the backend's program); still bounded.
"""

import json
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

LIMIT_BYTES = 1 << 16


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

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """Without an exit: why there is no jail, or "" when only the command could not be executed in it."""
        ...


class BubblewrapReports:
    """JSON lines of bubblewrap and the launcher. Not promised: exit codes above 128 are told apart from signals."""

    def __init__(self) -> None:
        self._text = bytearray()

    def take(self, piece: bytes) -> None:
        """See Reports."""
        self._text += piece[: max(0, LIMIT_BYTES - len(self._text))]

    def init_pid(self, outer: int) -> int | None:
        """See Reports."""
        del outer
        pid = self._told("child-pid")
        return pid if isinstance(pid, int) else None

    def exit(self) -> Exit | None:
        """See Reports."""
        code = self._told("exit-code")
        if not isinstance(code, int):
            return None
        return Exit(returncode=code, signal=code - 128 if 128 < code < 128 + signal.NSIG else 0)

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """See Reports."""
        told = self._told("launch-fault")
        if told is not None:
            return str(told)
        text = stderr.decode(errors="replace").strip()
        if text.startswith("bwrap: execvp") or "Can't chdir" in text:
            return ""
        return text or f"bubblewrap ended with {outer_returncode} before the command started"

    def _told(self, key: str) -> object:
        for line in bytes(self._text).splitlines():
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict) and key in value:
                    return value[key]
        return None
