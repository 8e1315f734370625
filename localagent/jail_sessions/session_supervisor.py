"""The process that holds kept sessions: one a user, started by the first `--keep`, gone soon after the last session.

It listens on a Unix socket only (see wire.connection), answers one question a connection, and never shows anything.
When it is killed, the kernel ends its jails; what it leaves on disk is swept by the next one.
"""

import fcntl
import json
import os
import select
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.domain.jailspec import LeftOut, Produced
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, LocalagentError, UsageFault
from localagent.fs.atomic_files import open_lock
from localagent.jail.api import BackendKind, open_jail, scratch_folder
from localagent.jail_sessions.session import PersistentSession
from localagent.jail_sessions.supervisor_messages import StepOrder, checked_name, order_of, pack_answer, pack_fault
from localagent.jail_sessions.supervisor_socket import SOCKET_NAME, listen, open_folder, same_user
from localagent.ports import Jail
from localagent.runner.json_frames import Reader, WireClosed, WireFault, WireTimeout, send

LOCK_NAME = "sessions.lock"
SESSIONS_LIMIT = 16
ASK_SECONDS = 10.0
TICK_SECONDS = 0.25


class SessionSupervisor:
    """The sessions of one user. `serve` returns when there have been none for `idle_seconds`, or after `stop`."""

    def __init__(self, jail: Jail, scratch: Path, *, idle_seconds: float = 3.0) -> None:
        self._jails: dict[tuple[str, bool], Jail] = {("", True): jail}
        self._scratch = scratch
        self._idle_seconds = idle_seconds
        self._sessions: dict[str, PersistentSession] = {}
        self._starting: set[str] = set()
        self._lock = threading.Lock()
        self._busy = 0
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End every session and return from `serve`."""
        self._stopping.set()

    def serve(self, server: socket.socket) -> None:
        """Answer until nobody needs it any more; ends what is left."""
        quiet_since = time.monotonic()
        try:
            while not self._stopping.is_set():
                if select.select([server], [], [], TICK_SECONDS)[0]:
                    connection, _ = server.accept()
                    with self._lock:
                        self._busy += 1
                    threading.Thread(
                        target=self._attend, args=(connection,), name="session-client", daemon=True
                    ).start()
                self._bury()
                with self._lock:
                    if self._sessions or self._busy:
                        quiet_since = time.monotonic()
                if time.monotonic() - quiet_since >= self._idle_seconds:
                    return
        finally:
            for session in self._taken():
                session.end()

    def _taken(self) -> list[PersistentSession]:
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        return sessions

    def _bury(self) -> None:
        """Remove sessions whose jail has ended by itself: their time to live, a limit, a kill from within."""
        with self._lock:
            dead = [name for name, session in self._sessions.items() if not session.alive and not session.busy]
            gone = [self._sessions.pop(name) for name in dead]
        for session in gone:
            session.end()

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection:
                if not same_user(connection):
                    return
                send(connection.fileno(), {"hello": "localagent"})
                self._converse(connection)
        except OSError:
            return  # the client is gone: nobody to be told
        finally:
            with self._lock:
                self._busy -= 1

    def _converse(self, connection: socket.socket) -> None:
        reader = Reader(connection.fileno())
        try:
            question = reader.receive(time.monotonic() + ASK_SECONDS)
            answer = self._answer(question, connection, reader)
        except (WireClosed, WireFault, WireTimeout) as fault:
            answer = pack_fault(UsageFault(f"not a question: {fault}"))
        except LocalagentError as fault:
            answer = pack_fault(fault)
        except Exception as bug:  # noqa: BLE001 - the front end: one line for the client
            answer = pack_fault(InternalFault(f"{type(bug).__name__}: {bug}"))
        send(connection.fileno(), answer)

    def _answer(self, question: dict[str, Any], connection: socket.socket, reader: Reader) -> dict[str, Any]:
        match question.get("op"):
            case "step":
                return self._step(order_of(question), connection, reader)
            case "list":
                with self._lock:
                    sessions = list(self._sessions.values())
                return {"sessions": [_plain(session) for session in sessions]}
            case "history":
                session = self._find(question)
                return {"session": _plain(session), "code": list(session.history())}
            case "end":
                return self._end(question)
        raise UsageFault(f"not a question: {question.get('op')!r}")

    def _find(self, question: dict[str, Any]) -> PersistentSession:
        name = checked_name(str(question.get("session")))
        with self._lock:
            session = self._sessions.get(name)
        if session is None:
            raise AnswerIsNo(f"there is no session {name}", remedy="`localagent jail list` shows those there are")
        return session

    def _end(self, question: dict[str, Any]) -> dict[str, Any]:
        session = self._find(question)
        session.stop()
        files: tuple[Produced, ...] = ()
        left_out: tuple[LeftOut, ...] = ()
        if out := str(question.get("out", "")):
            files, left_out = session.files(Path(out), force=question.get("force") is True)
        with self._lock:
            self._sessions.pop(session.name, None)
        session.end()
        return {
            "session": _plain(session),
            "files": [asdict(file) for file in files],
            "left_out": [asdict(one) for one in left_out],
        }

    def _step(self, order: StepOrder, connection: socket.socket, reader: Reader) -> dict[str, Any]:
        session = self._session(order)

        def heard() -> bool:
            try:
                return reader.receive(time.monotonic()).get("op") == "interrupt"
            except WireTimeout:
                return False
            except (WireClosed, WireFault):
                return True  # whoever asked is gone

        answer = session.step(order, connection.fileno(), heard)
        if not answer.session.alive:
            with self._lock:
                self._sessions.pop(session.name, None)
            session.end()
        return pack_answer(answer)

    def _session(self, order: StepOrder) -> PersistentSession:
        """The session of that name; started here when there is none."""
        with self._lock:
            session = self._sessions.get(order.session)
            if session is not None and (session.alive or session.busy):
                return session
            if order.session in self._starting:
                raise AnswerIsNo(f"session {order.session} is just being started", remedy="try again")
            if len(self._sessions) + len(self._starting) >= SESSIONS_LIMIT:
                raise AnswerIsNo(f"there are {SESSIONS_LIMIT} sessions already", remedy="`localagent jail end SESSION`")
            if order.after:
                raise AnswerIsNo(f"session {order.session} ended while the gates read: nothing ran")
            self._starting.add(order.session)
            dead = self._sessions.pop(order.session, None)
        try:
            if dead is not None:
                dead.end()
            session = PersistentSession(order, self._jail(order), self._scratch)
            with self._lock:
                self._sessions[order.session] = session
            return session
        finally:
            with self._lock:
                self._starting.discard(order.session)

    def _jail(self, order: StepOrder) -> Jail:
        """By what is asked for, tried when it is first asked for; CannotEnforce where that one is not sound."""
        asked = order.backend, order.third_party
        if asked not in self._jails:
            self._jails[asked] = open_jail(backend=_kind(order.backend), allow_third_party=order.third_party)
        return self._jails[asked]


def _kind(name: str) -> BackendKind | None:
    try:
        return BackendKind(name) if name else None
    except ValueError:
        raise UsageFault(f"{name!r} is no backend", remedy=f"one of {', '.join(BackendKind)}") from None


def _plain(session: PersistentSession) -> dict[str, Any]:
    return asdict(session.state())


def hold_lock(folder: int) -> int | None:
    """A descriptor that holds the folder's lock, or None when another process does."""
    while True:
        number = open_lock(LOCK_NAME, folder)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(number).st_ino == os.stat(LOCK_NAME, dir_fd=folder, follow_symlinks=False).st_ino:
                return number
        except FileNotFoundError:
            pass  # its holder left and took the file away between our two steps
        except BlockingIOError:
            os.close(number)
            return None
        os.close(number)


def main(argument: str) -> int:
    """The process: `argument` is JSON with `runtime_dir`, `scratch_dir` and `ready`, a descriptor to report to.

    One line is written there: `ready`, `taken` when another supervisor runs, or a fault as JSON.
    """
    order = json.loads(argument)
    ready = int(order["ready"])
    try:
        with ExitStack() as stack:
            folder = open_folder(Path(order["runtime_dir"]), make=True)
            stack.callback(os.close, folder)
            lock = hold_lock(folder)
            if lock is None:
                os.write(ready, b"taken\n")
                return 0
            stack.callback(os.close, lock)
            stack.callback(_remove, LOCK_NAME, folder)
            scratch = stack.enter_context(scratch_folder(Path(order["scratch_dir"])))
            supervisor = SessionSupervisor(open_jail(), scratch)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda *_: supervisor.stop())
            server = stack.enter_context(listen(folder))
            stack.callback(_remove, SOCKET_NAME, folder)
            os.write(ready, b"ready\n")
            os.close(ready)
            supervisor.serve(server)
    except LocalagentError as fault:
        os.write(ready, json.dumps(pack_fault(fault)).encode() + b"\n")
        return fault.exit_code
    except OSError as fault:
        os.write(ready, json.dumps(pack_fault(CannotEnforce(f"sessions cannot be kept: {fault}"))).encode() + b"\n")
        return CannotEnforce.exit_code
    return 0


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
