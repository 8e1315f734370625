"""The two words systemd understands: sockets it hands over, and what we tell it. No library, a few lines each."""

import os
import socket
from collections.abc import Mapping

from localagent.errors import CannotEnforce

FIRST_DESCRIPTOR = 3


def handed_socket(environ: Mapping[str, str]) -> socket.socket | None:
    """The one listening Unix socket that systemd handed to this very process; None when it handed none.

    CannotEnforce for anything else: several, another family, not listening. Nothing but a Unix socket is ever served.
    """
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return None  # meant for another process, or for nobody
    count = environ.get("LISTEN_FDS", "")
    if count != "1":
        raise CannotEnforce(
            f"systemd handed over {count or 'no'} sockets: exactly one is served",
            remedy="one ListenStream= in localagent.socket, and Accept=no",
        )
    try:
        found = socket.socket(fileno=os.dup(FIRST_DESCRIPTOR))
        listening = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as fault:
        raise CannotEnforce(f"what systemd handed over is no socket: {fault.strerror}") from fault
    os.set_inheritable(FIRST_DESCRIPTOR, False)
    os.close(FIRST_DESCRIPTOR)
    if found.family != socket.AF_UNIX or found.type != socket.SOCK_STREAM or not listening:
        found.close()
        raise CannotEnforce(
            "the socket that was handed over is not a listening Unix stream socket: it is not served",
            remedy="ListenStream= with a path in localagent.socket",
        )
    return found


class Notify:
    """Says READY, STOPPING, WATCHDOG to whom NOTIFY_SOCKET names; to nobody when it names nobody."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name if name.startswith("/") else ""
        meant = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micro = environ.get("WATCHDOG_USEC", "")
        self.watchdog_seconds = int(micro) / 1e6 if meant and micro.isascii() and micro.isdigit() else 0.0

    def say(self, *words: str) -> None:
        """Lines of NAME=VALUE. systemd not listening is its own affair."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            try:
                out.sendto("\n".join(words).encode(), self._address)
            except OSError:
                return
