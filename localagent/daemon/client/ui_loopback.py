"""Loopback ports for the invoking user alone: who is at the other end of a TCP connection, by the kernel's own table.

The one place of the package that listens on a network, and only while `localagent ui` runs. Not promised: anything
against other programs of the same user, or against root.
"""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from localagent.errors import CannotEnforce

_ESTABLISHED = "01"
_TRIES = 50
_BACKLOG = 64
_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
Address = tuple[str, int]


def loopback_ports(port: int) -> list[socket.socket]:
    """Listening sockets on 127.0.0.1 and, where there is IPv6, on ::1, of one number (`port` 0: a free one).

    Both, because browsers try both for one name: else another user could listen on the other. CannotEnforce where the
    number is taken on either, the loopback is down, or the kernel does not tell who connects.
    """
    for _ in range(1 if port else _TRIES):
        made = _both(port)
        if made:
            try:
                _proved(made)
            except BaseException:
                for one in made:
                    one.close()
                raise
            return made
    raise CannotEnforce(f"port {port or 'any'} of this machine's loopback is taken", remedy="name another: --port N")


def _both(port: int) -> list[socket.socket]:
    with ExitStack() as stack:
        first = stack.enter_context(_listening(socket.AF_INET, "127.0.0.1", port))
        found = [first]
        try:
            found.append(stack.enter_context(_listening(socket.AF_INET6, "::1", first.getsockname()[1])))
        except OSError as fault:
            if fault.errno == errno.EADDRINUSE:
                return []
            if fault.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
        stack.pop_all()
        return found


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as fault:
        made.close()
        if family == socket.AF_INET and port and fault.errno in (errno.EADDRINUSE, errno.EACCES):
            raise CannotEnforce(f"port {port}: {fault.strerror}", remedy="name another: --port N") from fault
        raise
    return made


def _proved(servers: Sequence[socket.socket]) -> None:
    """A connection of our own to each, recognised as ours."""
    for server in servers:
        with socket.socket(server.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as own:
            own.settimeout(5)
            try:
                own.connect(server.getsockname())
            except OSError as fault:
                raise CannotEnforce(
                    f"this machine's loopback does not answer ({fault.strerror or fault}): no page can be served",
                    remedy="in a network namespace say `ip link set lo up`; or use `localagent top`, without a port",
                ) from fault
            other, _ = server.accept()
            with other:
                if owner(other) != os.getuid():
                    raise CannotEnforce(
                        "the kernel does not tell whose a connection to the loopback is, so no page is served there",
                        remedy="see that /proc/net/tcp and /proc/net/tcp6 can be read",
                    )


def owner(connection: socket.socket) -> int | None:
    """The user at the other end of an accepted connection on the loopback; None when that cannot be told."""
    with suppress(OSError, ValueError, IndexError):
        ours, theirs = connection.getsockname()[:2], connection.getpeername()[:2]
        table = _TABLES[socket.AddressFamily(connection.family)].read_text(encoding="ascii")
        return owner_in(table, theirs, ours)
    return None


def owner_in(table: str, local: Address, remote: Address) -> int | None:
    """Whose socket of a table of the kernel's is at `local` and connected to `remote`; None when there is none.

    Only established ones count: what is on its way out belongs to root in that table.
    """
    wanted = [kernel_address(local), kernel_address(remote), _ESTABLISHED]
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[1:4] == wanted:
            return int(fields[7])
    return None


def kernel_address(address: Address) -> str:
    """An address as those tables write it: words of four bytes in the machine's order, then the port."""
    host, port = address
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
