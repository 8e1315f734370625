"""Starts one jail: decides its real uid, hands descriptors and the order to the launcher, and what will watch it.

The one place that starts jails. Everything opened here is closed here or owned by the watcher afterwards.
"""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localagent.domain.jailspec import Access, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail import host, mountpoints, seccomp
from localagent.jail.backend import Backend
from localagent.jail.bubblewrap import SYNTHETIC_ETC, Descriptors, bwrap_argv
from localagent.jail.disk_usage import DiskWatch
from localagent.jail.limits import rlimits
from localagent.jail.reports import BubblewrapReports
from localagent.jail.spawner import spawn
from localagent.jail.watch import Pipes, Watch

LAUNCHER = Path(__file__).with_name("launch.py")
CHANNEL = "{channel}"
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


def _memfd(name: str, content: bytes) -> int:
    number = os.memfd_create(name, os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(number, view) :]
    os.lseek(number, 0, os.SEEK_SET)
    return number


def _hidden(uid: int | None, sources: Sequence[str]) -> tuple[list[str], list[str]]:
    """(folders a stranger's uid cannot pass, sources below them); outermost ones only."""
    if uid is None:
        return [], []
    try:
        blocked = {source: folder for source in sources if (folder := host.blocking_folder(source))}
    except OSError as fault:
        raise CannotEnforce(f"the jail could not be made: {fault}", remedy=SETUP_REMEDY) from fault
    if "/" in blocked.values():
        raise CannotEnforce(
            "the root folder is closed to other users, so no unprivileged jail can start", remedy="chmod o+x /"
        )
    covers = _outermost(set(blocked.values()))
    return covers, _outermost(set(blocked))


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


def start(backend: Backend, spec: JailSpec, *, stdin: bytes, channel: bool) -> tuple[Watch, socket.socket | None]:
    """Start a jail; answers what watches it and our end of its channel. CannotEnforce when it cannot be started."""
    spec = mountpoints.resolved(spec)
    uid = uid_for(spec)
    _refuse_closed(uid, spec)
    covers, sources = _hidden(uid, [*(bind.source for bind in spec.binds), *backend.needs, backend.program])
    cgroup = backend.cgroups.make(spec.limits) if backend.cgroups else None
    passed: list[int] = []  # closed here once the child has them
    kept: list[int] = []
    ours: socket.socket | None = None
    try:
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        kept.append(status_read)
        passed.append(status_write)
        etc = tuple(_memfd("localagent-etc", content) for _, content in SYNTHETIC_ETC)
        passed += etc
        code = seccomp.program() if backend.seccomp else None
        filter_fd = None if code is None else _memfd("localagent-seccomp", code)
        passed += [] if filter_fd is None else [filter_fd]
        block_read, block_write = os.pipe2(os.O_CLOEXEC)
        passed.append(block_read)
        kept.append(block_write)
        if channel:
            ours, theirs = socket.socketpair()
            number = theirs.detach()
            passed.append(number)
            spec = replace(spec, argv=tuple(str(number) if word == CHANNEL else word for word in spec.argv))
        order = {
            "parent": os.getpid(),
            "status": status_write,
            "cgroups": list(cgroup.procs_files) if cgroup else [],
            "covers": covers,
            "sources": sources,
            "limits": rlimits(spec.limits, uid),
            "uid": uid,
            "argv": bwrap_argv(
                spec,
                host.system_layout(),
                Descriptors(status=status_write, etc=etc, seccomp=filter_fd, block=block_read),
                program=backend.program,
                cgroup_namespace=backend.cgroup_namespace,
            ),
        }
        order_fd = _memfd("localagent-order", json.dumps(order).encode())
        passed.append(order_fd)
        stdin_fd = _memfd("localagent-stdin", stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        argv = (sys.executable, "-I", "-S", "-B", str(LAUNCHER), str(order_fd))
        try:
            child = spawn(argv, stdin=stdin_fd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=passed)
        finally:
            os.close(stdin_fd)
        kept.clear()
    except OSError as fault:
        if cgroup:
            cgroup.remove()
        if ours is not None:
            ours.close()
        raise CannotEnforce(f"the jail could not be started: {fault}", remedy=SETUP_REMEDY) from fault
    finally:
        for number in (*passed, *kept):
            os.close(number)
    writable = [bind.source for bind in spec.binds if bind.access is Access.READ_WRITE]
    late = uid is None and host.counts_processes_per_namespace()
    pipes = Pipes(status=status_read, block=block_write, limit_processes_late=late)
    disk = DiskWatch(writable, spec.limits.tmp_bytes)
    return Watch(spec.limits, child, pipes, BubblewrapReports(), cgroup, disk), ours
