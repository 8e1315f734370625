"""Reports of a jail whose first program puts up the Landlock wall: what that program told comes before the rest.

Only our own first program ever has the other end of the descriptor: it is closed when the command begins.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from localagent.jail.launcher import landlock_stub, x86_assembler
from localagent.jail.launcher.landlock_stub import LandlockPlan, LandlockStatus
from localagent.jail.launcher.status_protocol import LIMIT_BYTES, Exit, Reports

_NO_FIRST = (b"bwrap: execvp", b"cannot execute")  # how bubblewrap and our init begin when the first program is refused


@dataclass(frozen=True, kw_only=True, slots=True)
class LandlockReport:
    """What the first program said: that the wall stands, else why not; and that the command could not be executed.

    `remark` belongs on the command's standard error and is not there yet.
    """

    walled: bool = False
    fault: str = ""
    no_exec: bool = False
    remark: bytes = b""


def by_interpreter(stream: bytes) -> LandlockReport:
    """Of `runner/landlock.py`, which writes its remark itself."""
    told: dict[str, str] = {}
    for line in stream.splitlines():
        told.update(json.loads(line))
    return LandlockReport(walled="landlock" in told, fault=told.get("landlock-fault", ""), no_exec="exec-fault" in told)


def by_code(plan: LandlockPlan, stream: bytes) -> LandlockReport:
    """Of `landlock_stub.py`, made by this plan, in the words of the other."""
    told = dict(x86_assembler.parse(stream))
    if LandlockStatus.NO_WALL in told:
        code, rule = told[LandlockStatus.NO_WALL], told.get(LandlockStatus.AT_RULE)
        where = () if rule is None else (landlock_stub.rule_at(plan, rule),)
        why = OSError(code, os.strerror(code), *where)
        return LandlockReport(fault=f"the Landlock wall could not be put up: {why}")
    if LandlockStatus.NO_EXEC in told:
        code = told[LandlockStatus.NO_EXEC]
        file = landlock_stub.file_at(plan, told[LandlockStatus.AT_FILE])
        why = OSError(code, os.strerror(code), file if file == plan.argv0 else os.fsencode(file))
        remark = f"cannot execute {plan.argv0}: {why}\n".encode(errors="surrogateescape")
        return LandlockReport(walled=True, no_exec=True, remark=remark)
    return LandlockReport(walled=LandlockStatus.WALLED in told)


class LandlockReports:
    """Reports of the backend, corrected by what the wall's descriptor says once the jail is over."""

    def __init__(self, inner: Reports, wall: int, read: Callable[[bytes], LandlockReport]) -> None:
        self._inner = inner
        self._wall = wall
        self._read = read
        self._told: LandlockReport | None = None
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
        return self._all_reports().remark or self._inner.remark()

    def exit(self) -> Exit | None:
        """See Reports. What ended before it became the command has no exit of a command."""
        told = self._all_reports()
        return None if told.no_exec or not told.walled else self._inner.exit()

    def start_fault(self, stderr: bytes, outer_returncode: int) -> str:
        """See Reports."""
        told = self._all_reports()
        if told.fault:
            return told.fault
        if not told.walled and (ended := self._inner.exit()) is not None:
            return f"the program that puts up the Landlock wall ended with {ended.returncode} before it stood"
        fault = "" if told.no_exec else self._inner.start_fault(stderr, outer_returncode)
        said = stderr + self._inner.remark()
        if not (fault or told.walled) and said.startswith(_NO_FIRST):
            return f"the program that puts up the Landlock wall was refused: {said.decode(errors='replace').strip()}"
        return fault

    def close(self) -> None:
        """See Reports."""
        self._inner.close()
        os.close(self._wall)

    def _all_reports(self) -> LandlockReport:
        """All that was told; asked for when nothing of the jail is left, so there is no more to come."""
        if self._told is None:
            text = b""
            with suppress(BlockingIOError):
                text = os.read(self._wall, LIMIT_BYTES)
            self._told = self._read(text)
        return self._told
