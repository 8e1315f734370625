"""Who is at the other end of a connection, by the kernel's word, and what they may do.

Not promised: that a process which handed its connection on is still who it was; the kernel tells who connected.
"""

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_CREDENTIALS = struct.Struct("3i")
_SO_PEERGROUPS = 59  # Linux 4.13; socket has no name for it
_MOST_GROUPS = 65536


class PeerRole(StrEnum):
    """What somebody may do beside looking at what is their own."""

    SUBMIT = "submit"
    APPROVE = "approve"
    READ_ALL = "read-all"
    ADMIN = "admin"  # everything, also ending anybody's task


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """Who connected: the user, all groups, the process."""

    uid: int
    gids: frozenset[int]
    pid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """Users and groups and the roles they have."""

    uids: frozenset[int]
    gids: frozenset[int]
    roles: frozenset[PeerRole]


def peer_of(connection: socket.socket) -> Peer:
    """By SO_PEERCRED and SO_PEERGROUPS; OSError when the kernel does not say."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(data)
    if uid < 0:
        raise OSError("the kernel does not say who connected")
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 4 * _MOST_GROUPS)
        groups: Iterable[int] = struct.unpack(f"{len(raw) // 4}I", raw)
    except OSError:
        groups = ()  # an older kernel: the first group alone counts, which is less, never more
    return Peer(uid=uid, gids=frozenset((gid, *groups)), pid=pid)


def roles_of(peer: Peer, grants: Iterable[Grant]) -> frozenset[PeerRole]:
    """The union of all grants that name the user or one of the groups; an admin has every role."""
    found: set[PeerRole] = set()
    for grant in grants:
        if peer.uid in grant.uids or peer.gids & grant.gids:
            found |= grant.roles
    return frozenset(PeerRole) if PeerRole.ADMIN in found else frozenset(found)
