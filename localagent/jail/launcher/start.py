"""Starts one jail: decides its real uid, hands descriptors and the order to the launcher, and what will watch it.

The one place that starts jails. Everything opened here is closed here or owned by the watcher afterwards.
"""

import json
import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Access, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.backends.backend import Backend
from localagent.jail.backends.handoff import ChildPipes as Ends
from localagent.jail.backends.handoff import OpenDescriptors, hand_over, hand_wall, memfd
from localagent.jail.boundaries import Wall
from localagent.jail.files import host, mountpoints
from localagent.jail.launcher import landlock_ruleset
from localagent.jail.launcher.landlock_reports import LandlockReports
from localagent.jail.launcher.spawner import Child, spawn
from localagent.jail.launcher.watchdog import HostPipes, Watchdog
from localagent.jail.limits.disk_usage import DiskWatch
from localagent.jail.limits.rlimits import rlimits

CHANNEL = "{channel}"
PASSABLE, OPEN = 0o711, 0o1777  # modes of covers
SETUP_REMEDY = "run `localagent doctor` to see which layer fails on this machine"


def uid_for(spec: JailSpec) -> int | None:
    """The real uid a jail runs as: the owner of its writable binds, else one nobody uses; None when not root."""
    if not host.may_switch_uid():
        return None
    owners = {os.lstat(bind.source).st_uid for bind in spec.binds if bind.access is Access.READ_WRITE}
    if 0 in owners:
        raise CannotEnforce(
            "a writable bind belongs to root, whom a jail never runs as",
            remedy="use a workspace, or give the folder to an unprivileged user (chown)",
        )
    if len(owners) > 1:
        raise CannotEnforce("the writable binds of one jail belong to several users")
    return owners.pop() if owners else host.fresh_uid()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Covers:
    """Folders that the launcher covers by empty ones (with the mode given), and what it binds back below them."""

    folders: tuple[tuple[str, int], ...] = ()
    sources: tuple[str, ...] = ()


def _covers(uid: int | None, sources: Sequence[str], work_folders: Sequence[str]) -> _Covers:
    """Covers for what a stranger cannot pass and for where the backend would leave folders; outermost ones only."""
    try:
        blocked = (
            {folder for source in sources if (folder := host.blocking_folder(source))} if uid is not None else set()
        )
    except OSError as fault:
        raise CannotEnforce(f"the jail could not be made: {fault}", remedy=SETUP_REMEDY) from fault
    if "/" in blocked:
        raise CannotEnforce(
            "the root folder is closed to other users, so no unprivileged jail can start", remedy="chmod o+x /"
        )
    work_folders = [folder for folder in work_folders if uid is None or Path(folder).stat().st_mode & stat.S_IWOTH]
    folders = _outermost(blocked | set(work_folders))
    below = {os.path.realpath(source) for source in sources}
    hidden = {path for path in below if any(path.startswith(folder + "/") for folder in folders)}
    modes = tuple((folder, OPEN if folder in work_folders else PASSABLE) for folder in folders)
    return _Covers(folders=modes, sources=tuple(_outermost(hidden)))


def _refuse_closed(uid: int | None, spec: JailSpec) -> None:
    """CannotEnforce when a source itself shows nothing to the uid that the jail will have."""
    if uid is None:
        return
    for bind in spec.binds:
        facts = Path(bind.source).stat()
        wanted = 0o005 if stat.S_ISDIR(facts.st_mode) else 0o004
        if facts.st_uid != uid and facts.st_mode & wanted != wanted:
            raise CannotEnforce(
                f"{bind.source} is closed to the unprivileged user that jails run as",
                remedy=f"open it for reading: chmod -R o+rX {bind.source}",
            )


def _outermost(paths: set[str]) -> list[str]:
    return [path for path in sorted(paths) if not any(path.startswith(other + "/") for other in paths)]


def start(backend: Backend, spec: JailSpec, *, stdin: bytes, channel: bool) -> tuple[Watchdog, socket.socket | None]:
    """Start a jail; answers what watches it and our end of its channel. CannotEnforce when it cannot be started."""
    spec = mountpoints.resolved(spec)
    confiner = None if backend.open_walls else backend.landlock  # a control sees one wall opened, and only that one
    rules: tuple[tuple[str, str], ...] = ()
    if confiner is not None:
        rules = landlock_ruleset.rules_of(spec, host.system_layout())
        spec = mountpoints.resolved(landlock_ruleset.walled(spec, confiner, host.system_layout()))
    uid = None if Wall.USER in backend.open_walls else uid_for(spec)
    _refuse_closed(uid, spec)
    cgroup = backend.cgroups.make(spec.limits) if backend.cgroups else None
    opened = OpenDescriptors()
    ours: socket.socket | None = None
    try:
        status_read, status = os.pipe2(os.O_CLOEXEC)
        opened.kept.append(status_read)
        opened.passed.append(status)
        block, block_write = os.pipe2(os.O_CLOEXEC)
        opened.passed.append(block)
        opened.kept.append(block_write)
        number = None
        if channel:
            ours, theirs = socket.socketpair()
            number = theirs.detach()
            opened.passed.append(number)
            spec = replace(spec, argv=tuple(str(number) if word == CHANNEL else word for word in spec.argv))
        wall = hand_wall(confiner, spec, rules, opened) if confiner is not None else None
        spec = spec if wall is None else wall.spec
        ends = Ends(status=status, block=block, channel=number, landlock=() if wall is None else wall.inside)
        handover = hand_over(backend, spec, ends, opened)
        sources = [*(bind.source for bind in spec.binds), *backend.needs, backend.program]
        covers = _covers(uid, sources, handover.work_folders)
        order = {
            "status": status,
            "cgroups": list(cgroup.join_files) if cgroup else [],
            "covers": covers.folders,
            "sources": covers.sources,
            "limits": rlimits(spec.limits, uid, backend.open_walls),
            "uid": uid,
            "argv": handover.argv,
        }
        child = _launch(order, stdin, opened)
        opened.kept.clear()
    except BaseException as fault:  # Ctrl-C as well leaves nothing
        if cgroup:
            cgroup.remove()
        if ours is not None:
            ours.close()
        if isinstance(fault, OSError):
            raise CannotEnforce(f"the jail could not be started: {fault}", remedy=SETUP_REMEDY) from fault
        raise
    finally:
        opened.close()
    writable = [bind.source for bind in spec.binds if bind.access is Access.READ_WRITE]
    late = uid is None and host.counts_processes_per_namespace()
    pipes = HostPipes(status=status_read, block=block_write, limit_processes_late=late)
    disk = DiskWatch(writable, spec.limits.tmp_bytes)
    reports = handover.reports if wall is None else LandlockReports(handover.reports, wall.told, wall.read)
    return Watchdog(spec.limits, child, pipes, reports, cgroup, disk), ours


def _launch(order: dict[str, object], stdin: bytes, opened: OpenDescriptors) -> Child:
    order_fd = memfd("localagent-order", json.dumps(order).encode())
    stdin_fd = memfd("localagent-stdin", stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return spawn(order_fd, stdin=stdin_fd, passed=opened.passed)
    finally:
        os.close(order_fd)
        os.close(stdin_fd)
