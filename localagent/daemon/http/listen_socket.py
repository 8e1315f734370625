"""The daemon's socket: systemd's, or one made at a path where nobody else could put another in its place."""

import grp
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from localagent.daemon.processes.systemd import handed_socket
from localagent.errors import CannotEnforce

BACKLOG = 1024


@contextmanager
def listening(path: Path | None, group: str, environ: Mapping[str, str]) -> Iterator[socket.socket]:
    """The socket to serve: systemd's, or one made at the path and removed at the end."""
    handed = handed_socket(environ)
    if handed is not None:
        if path is not None:
            handed.close()
            raise CannotEnforce("systemd handed a socket over, and --socket names another", remedy="leave one away")
        with handed:
            yield handed
        return
    if path is None:
        raise CannotEnforce("no socket was handed over by systemd", remedy="name one: localagent serve --socket PATH")
    server = bound(path, group)
    inode = path.lstat().st_ino
    try:
        with server:
            yield server
    finally:
        with suppress(OSError):
            if path.lstat().st_ino == inode:
                path.unlink()


def bound(path: Path, group: str) -> socket.socket:
    """A listening socket at `path`, mode 0660, in a folder that nobody else can write to; a stale one is replaced."""
    path = path.absolute()
    try:
        facts = path.parent.stat()
    except OSError as fault:
        raise CannotEnforce(f"{path.parent}: {fault.strerror}", remedy="make that folder first") from fault
    if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & 0o022:
        raise CannotEnforce(
            f"{path.parent} is open to other users: one of them could put a socket in place of ours",
            remedy="name a path in a folder that only you can write to",
        )
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise CannotEnforce(f"{path} is there, and no socket", remedy="name another path")
        path.unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)  # for nobody else until the group is right
    try:
        server.bind(str(path))
        if group:
            os.chown(path, -1, grp.getgrnam(group).gr_gid, follow_symlinks=False)
        path.chmod(0o660)
        server.listen(BACKLOG)
    except (OSError, KeyError) as fault:
        server.close()
        raise CannotEnforce(f"no socket at {path}: {fault}", remedy="name another path or group") from fault
    finally:
        os.umask(before)
    return server
