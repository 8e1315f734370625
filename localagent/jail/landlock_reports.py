"""Reports of a jail whose first program puts up the Landlock wall: what that program told comes before the rest.

Only our own first program ever has the other end of the descriptor: it is closed when the command begins.
"""

import json
import os
from contextlib import suppress

from localagent.jail.reports import LIMIT_BYTES, Exit, Reports


class LandlockReports:
    """Reports of the backend, corrected by what the wall's descriptor says once the jail is over."""

    def __init__(self, inner: Reports, wall: int) -> None:
        self._inner = inner
        self._wall = wall
        self._told: dict[str, str] | None = None
        os.set_blocking(wall, False)

    def take(self, piece: bytes) -> None:
        """See Reports."""
        self._inner.take(piece)

    def init_pid(self, outer: int) -> int | None:
        """See Reports."""
        return self._inner.init_pid(outer)

    def over(self) -> bool:
        """See Reports."""
        return self._inner.over()

    def remark(self) -> bytes:
        """See Reports."""
        return self._inner.remark()

    def exit(self) -> Exit | None:
        """See Reports. What ended before it became the command has no exit of a command."""
        told = self._wall_told()
        return None if "landlock-fault" in told or "exec-fault" in told else self._inner.exit()

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """See Reports."""
        told = self._wall_told()
        if "landlock-fault" in told:
            return told["landlock-fault"]
        return "" if "exec-fault" in told else self._inner.start_fault(stderr, outer_returncode)

    def close(self) -> None:
        """See Reports."""
        self._inner.close()
        os.close(self._wall)

    def _wall_told(self) -> dict[str, str]:
        """All that was told; asked for when nothing of the jail is left, so there is no more to come."""
        if self._told is None:
            text = b""
            with suppress(BlockingIOError):
                text = os.read(self._wall, LIMIT_BYTES)
            self._told = {}
            for line in text.splitlines():
                self._told.update(json.loads(line))
        return self._told
