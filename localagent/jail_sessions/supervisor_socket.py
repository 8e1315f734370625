"""The supervisor's socket: a Unix socket of mode 0600 in a folder of mode 0700, both ends checked by SO_PEERCRED.

The folder is held by descriptor and the socket reached below it, so that neither a long path nor a link decides where
the words go. No network is ever used.
"""

import os
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from localagent.errors import CannotEnforce
from localagent.fs.openat import open_directory
from localagent.runner.json_frames import Reader, WireClosed, WireFault, WireTimeout, send

SOCKET_NAME = "sessions.sock"
HELLO_SECONDS = 10.0
_CREDENTIALS = struct.Struct("3i")


class NobodyThere(Exception):  # noqa: N818 - named for what happened
    """No supervisor answers."""


def open_folder(folder: Path, *, make: bool) -> int:
    """A descriptor of the runtime folder. CannotEnforce when it is not the user's alone; NobodyThere when missing."""
    try:
        if make:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        number = open_directory(folder)
    except FileNotFoundError:
        raise NobodyThere from None
    except OSError as fault:
        raise CannotEnforce(f"{folder}: {fault.strerror}", remedy="make it a folder of yours, mode 0700") from fault
    facts = os.fstat(number)
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        os.close(number)
        raise CannotEnforce(
            f"{folder} is open to other users: sessions are not kept there", remedy=f"chmod 700 {folder}"
        )
    return number


def listen(folder: int) -> socket.socket:
    """A listening socket in the folder, in place of a stale one. Only the holder of the folder's lock calls this."""
    with suppress(FileNotFoundError):
        os.unlink(SOCKET_NAME, dir_fd=folder)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        server.bind(_path(folder))
    finally:
        os.umask(before)
    server.listen(16)
    return server


def connect(folder: int) -> socket.socket:
    """A connection to the supervisor; NobodyThere when none listens; CannotEnforce when another user's does."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        client.connect(_path(folder))
    except OSError:
        client.close()
        raise NobodyThere from None
    if not same_user(client):
        client.close()
        raise CannotEnforce("the supervisor of sessions belongs to another user: nothing was sent to it")
    return client


def same_user(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user; root is another user too, unless this is root."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(data)[1] == os.geteuid())


def _path(folder: int) -> str:
    return f"/proc/self/fd/{folder}/{SOCKET_NAME}"


class SupervisorConnection:
    """One connection of the command line: the supervisor's greeting, a question, an answer.

    NobodyThere, with no text, when there is no greeting: nothing was asked, so it may be tried again.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._asked = self._interrupted = False
        self._reader = Reader(connection.fileno())
        try:
            self._reader.receive(time.monotonic() + HELLO_SECONDS)
        except (OSError, WireClosed, WireFault, WireTimeout):
            connection.close()
            raise NobodyThere from None

    def __enter__(self) -> "SupervisorConnection":
        return self

    def __exit__(self, *ended: object) -> None:
        self._connection.close()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer; NobodyThere with the reason when the supervisor ended before it gave one."""
        try:
            send(self._connection.fileno(), message)
            self._asked = True
            if self._interrupted:
                self.interrupt()
            return self._reader.receive()
        except (OSError, WireClosed, WireFault, WireTimeout) as fault:
            raise NobodyThere(str(fault) or type(fault).__name__) from fault

    def interrupt(self) -> None:
        """Ask that the step which runs is interrupted; its answer still comes. Safe in a signal handler."""
        self._interrupted = True
        if self._asked:
            with suppress(OSError):
                send(self._connection.fileno(), {"op": "interrupt"})
