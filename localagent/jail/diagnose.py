"""Tries each layer of the jail for `doctor` and says what works, what does not, and what to do about it.

Everything named "works" was tried just now on this machine; nothing of a repository is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from localagent.domain.jailspec import JailLimits, JailSpec
from localagent.domain.outcome import Ending
from localagent.errors import CannotEnforce
from localagent.jail import host, probe
from localagent.jail.backend import Backend
from localagent.jail.probe import State
from localagent.jail.runner import NamespaceJail

NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mnt", "cgroup")
SECCOMP_REMEDY = "apt install libseccomp2 (and `make setup` for pyseccomp); jails work without it at a lower level"
CGROUP_REMEDY = (
    "optional: run as root or in a delegated cgroup (systemd-run --user --scope -p Delegate=yes); else watched"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the report. `needed` rows that do not work mean that tasks cannot run."""

    part: str
    name: str
    state: State
    detail: str = ""
    remedy: str = ""
    needed: bool = False


def jail_rows() -> Iterator[Row]:
    """Backends first, then each layer of the one that would be used."""
    chosen: Backend | None = None
    for result in probe.every():
        chosen = chosen or result.backend
        detail = f"{result.program} {result.version}: {result.detail}" if result.version else result.program
        remedy = "" if result.state is State.WORKS else probe.REMEDIES[result.kind]
        yield Row(part="backend", name=result.name, state=result.state, detail=detail, remedy=remedy)
    if chosen is None:
        yield Row(part="jail", name="jail", state=State.ABSENT, detail="none", remedy=probe.REMEDY, needed=True)
        return
    yield Row(part="jail", name="level", state=State.WORKS, detail=f"{chosen.level} with {chosen.name}", needed=True)
    yield from _layers(chosen)


def _layers(backend: Backend) -> Iterator[Row]:
    try:
        words = probe.trial(backend)
    except CannotEnforce as fault:
        yield Row(
            part="jail", name="trial jail", state=State.FAULTY, detail=str(fault), remedy=fault.remedy, needed=True
        )
        return
    faults = probe.faults_seen(words, backend)
    for name in NAMESPACES:
        own = probe.own_namespace(words, name)
        state = State.WORKS if own else State.FAULTY
        yield Row(part="jail", name=f"{name} namespace", state=state, needed=name != "cgroup")
    state = State.FAULTY if faults else State.WORKS
    yield Row(part="jail", name="read-only system", state=state, detail="; ".join(faults), needed=True)
    if "Seccomp:2" in words:
        yield Row(part="jail", name="seccomp", state=State.WORKS, detail="deny-list filter active in the trial jail")
    else:
        yield Row(part="jail", name="seccomp", state=State.ABSENT, detail="no libseccomp", remedy=SECCOMP_REMEDY)
    yield _uid_switch()
    yield _process_limit(backend)
    yield _cgroup(backend)


def _uid_switch() -> Row:
    if host.may_switch_uid():
        return Row(
            part="jail", name="uid switch", state=State.WORKS, detail="jails run as unprivileged uids of their own"
        )
    return Row(
        part="jail", name="uid switch", state=State.ABSENT, detail="not root: jails run as you, as nobody inside"
    )


def _process_limit(backend: Backend) -> Row:
    name = "RLIMIT_NPROC"
    if probe.process_limit_binds(replace(backend, cgroups=None)):
        return Row(part="jail", name=name, state=State.WORKS, detail="a jail was refused one process too many")
    return Row(
        part="jail", name=name, state=State.ABSENT, detail="does not bind here", remedy="Linux 5.14 or a user id"
    )


def _cgroup(backend: Backend) -> Row:
    if backend.cgroups is None:
        return Row(part="jail", name="cgroup", state=State.ABSENT, detail="memory is watched", remedy=CGROUP_REMEDY)
    limits = JailLimits(wall_seconds=10, cpu_seconds=10, resident_bytes=32 << 20, tmp_bytes=1 << 20)
    result = NamespaceJail(backend).run(JailSpec(argv=("/usr/bin/tail", "/dev/zero"), cwd="/", limits=limits))
    where = f"version {backend.cgroups.version}"
    if result.ending is Ending.MEMORY:
        return Row(part="jail", name="cgroup", state=State.WORKS, detail=f"{where}: ended a jail that took too much")
    return Row(part="jail", name="cgroup", state=State.FAULTY, detail=f"{where}: {result.ending}", remedy=CGROUP_REMEDY)
