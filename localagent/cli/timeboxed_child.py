"""Work in a child of this process, which is ended when the time is up, wherever it stands.

The parent does nothing but wait, so that neither a long step in C nor clearing up keeps whoever waits for it: at the
end it kills the child and goes on with what was said until then. The kernel ends the child's jails with it, and what
it left in the scratch folder the next run removes. Not promised: that a machine lets the parent run on time; how late
it did so before is counted in.
"""

import contextlib
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localagent import errors
from localagent.errors import CannotEnforce, InternalFault, LocalagentError, UsageFault

Say = Callable[[dict[str, Any]], None]
_LOOK_SECONDS = 0.05
_PIECE_BYTES = 1 << 16
_GIVES_WAY = 5  # a jail full of programs that compute must not keep the one from running who ends it
_ENDED, _FAULT, _BUG = "ended", "fault", "bug"
_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}


class FailedApart(Exception):  # noqa: N818 - a bug of ours, told as any other
    """The child came to an end that is a bug; its traceback is a note."""


@dataclass(slots=True)
class Apart:
    """What a child said. `over`: it was killed for its time; `late_seconds`: the latest that we woke up."""

    said: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False
    late_seconds: float = 0.0


def work_apart(work: Callable[[Say], None], left: Callable[[float], float]) -> Apart:
    """Do the work in a child until it ends or `left(late_seconds)` is 0. Raises what the work raises of ours.

    Called before anything here has a second thread.
    """
    told = Apart()
    if left(0.0) <= 0:
        told.over = True
        return told
    read, write = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(read)
        _be_the_child(work, write, parent)
    os.close(write)
    handle = os.pidfd_open(child)
    try:
        _listen(told, read, left)
    except KeyboardInterrupt:
        _interrupted(handle, left)
        raise
    finally:
        signal.pidfd_send_signal(handle, signal.SIGKILL)  # one that has ended is not another's before we wait for it
        if not told.over:
            os.waitpid(child, 0)  # else it is not waited for: freeing its memory can take long
        os.close(handle)
        os.close(read)
    _raised(told)
    return told


def _be_the_child(work: Callable[[Say], None], write: int, parent: int) -> None:
    """Does not return. Whoever reads our output does not wait for us: it is nobody's here."""
    status = InternalFault.exit_code
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)

        def say(message: dict[str, Any]) -> None:
            _write_all(write, json.dumps(message).encode("ascii") + b"\n")

        try:
            os.nice(_GIVES_WAY)
            _die_with(parent)
            work(say)
            status = 0
        except LocalagentError as fault:
            faults = list(fault.faults) if isinstance(fault, UsageFault) else [str(fault)]
            say({_FAULT: type(fault).__name__, "faults": faults, "remedy": fault.remedy})
        except Exception as bug:  # noqa: BLE001 - the parent is the front end: it says so
            say({_BUG: f"{type(bug).__name__}: {bug}", "trace": traceback.format_exc()})
        say({_ENDED: True})
    finally:
        os._exit(status)


def _die_with(parent: int) -> None:
    from localagent.jail.launcher.launcher_main import die_with  # noqa: PLC0415 - the jail's room: the parent needs none of it

    die_with(parent)


def _write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def _listen(told: Apart, read: int, left: Callable[[float], float]) -> None:
    """Take what is said until the end of it, or of the time."""
    rest = b""
    while True:
        seconds = left(told.late_seconds)
        if seconds <= 0:
            told.over = True
            return
        due = time.monotonic() + min(seconds, _LOOK_SECONDS)
        ready, _, _ = select.select([read], [], [], max(0.0, due - time.monotonic()))
        if not ready:
            told.late_seconds = max(told.late_seconds, time.monotonic() - due)
            continue
        piece = os.read(read, _PIECE_BYTES)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        told.said += [json.loads(line) for line in lines]


def _interrupted(handle: int, left: Callable[[float], float]) -> None:
    """Let it end its jails itself, as far as there is time."""
    signal.pidfd_send_signal(handle, signal.SIGTERM)
    with contextlib.suppress(KeyboardInterrupt):
        select.select([handle], [], [], max(0.0, left(0.0)))


def _raised(told: Apart) -> None:
    """What the child raised, or that it ended without a word."""
    for message in told.said:
        if _BUG in message:
            failed = FailedApart(message[_BUG])
            failed.add_note(message["trace"])
            raise failed
        if _FAULT in message:
            kind, faults = _KINDS[message[_FAULT]], message["faults"]
            raise kind(faults if kind is UsageFault else "; ".join(faults), remedy=message["remedy"])
    if not told.over and {_ENDED: True} not in told.said:
        raise CannotEnforce("the search for suggestions was killed", remedy="check the machine's memory and limits")
    told.said = [message for message in told.said if _ENDED not in message]
