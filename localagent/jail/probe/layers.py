"""The layers of a jail one by one: how each is tried, what mends a missing one, and whether a level is reached.

`rows` really tries them, now, with one backend; `require` goes by what was tried when the backend was probed.
"""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Bind, JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.backends.backend import Backend
from localagent.jail.backends.level import Layer, at_least, missing
from localagent.jail.files import host
from localagent.jail.launcher import landlock_ruleset
from localagent.jail.launcher.runner import NamespaceJail
from localagent.jail.limits import cgroup
from localagent.jail.probe import selection

SECCOMP_REMEDY = (
    "libseccomp and its Python binding: apt install libseccomp2 (dnf install libseccomp), then `make setup` for "
    "pyseccomp; the kernel needs CONFIG_SECCOMP_FILTER=y"
)
CGROUP_REMEDY = (
    "start localagent in a group that is delegated to it: `systemd-run --user --scope -p Delegate=yes localagent ...`, "
    "in a service `Delegate=memory pids`; or as root where cgroup v1 has the memory controller"
)
PROCESS_REMEDY = "Linux 5.14 or later (it counts processes within a user namespace), or start as root, or a cgroup"
NAMESPACE_FILES = {  # a switch of the host -> (the value that forbids, what mends it)
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile that allows userns for bwrap",
    ),
    "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
    "/proc/sys/user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=15000"),
}
CONTAINER_REMEDY = (
    "in a container: --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or --privileged"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRow:
    """One layer as tried just now: by what, whether it held, what was seen, and what mends it where it is missing."""

    layer: Layer
    tried: str
    held: bool
    found: str
    remedy: str = ""


def rows(backend: Backend) -> Iterator[LayerRow]:
    """Every layer in the order of the levels, tried with this backend."""
    tries: tuple[Callable[[Backend], LayerRow], ...] = (_namespaces, _processes, _seccomp, _landlock, _memory)
    for attempt in tries:
        yield attempt(backend)


def namespaces_remedy(root: Path = Path("/")) -> str:
    """What keeps namespaces away on this host, as far as its switches tell."""
    found = []
    for name, (forbids, remedy) in NAMESPACE_FILES.items():
        try:
            value = (root / name.lstrip("/")).read_text().strip()
        except OSError:
            continue
        if value == forbids:
            found.append(remedy)
    return "; ".join(found) or CONTAINER_REMEDY


def remedy_of(layer: Layer) -> str:
    """What mends a missing layer."""
    remedies = {
        Layer.PROCESS_LIMIT: PROCESS_REMEDY,
        Layer.SECCOMP: SECCOMP_REMEDY,
        Layer.LANDLOCK: landlock_ruleset.REMEDY,
        Layer.CGROUP_MEMORY: CGROUP_REMEDY,
    }
    return remedies.get(layer) or namespaces_remedy()


def require(backend: Backend, least: str) -> None:
    """CannotEnforce, with the missing layers and what mends each, unless the backend reaches the level `least`."""
    if at_least(backend.level, least):
        return
    lacking = sorted(missing(least, backend.layers))
    raise CannotEnforce(
        f"this machine's jail ({backend.name}) reaches level {backend.level}, and {least} is asked for: "
        f"{', '.join(lacking)} missing; nothing was run",
        remedy="; ".join(f"{layer}: {remedy_of(layer)}" for layer in lacking)
        + "; `localagent doctor` tries each again",
    )


def _namespaces(backend: Backend) -> LayerRow:
    tried = "a trial jail told its namespaces, mounts, capabilities and user"
    try:
        faults = selection.faults_seen(selection.trial(backend), backend)
    except CannotEnforce as fault:
        faults = [str(fault)]
    found = "; ".join(faults) or "all its own; system read-only, no home, no capabilities"
    return _row(Layer.NAMESPACES, tried, not faults, found)


def _processes(backend: Backend) -> LayerRow:
    tried = "a jail limited to 6 processes started 12"
    if not selection.process_limit_binds(backend):
        why = f"all started (Linux {platform.release()}); the tree is watched four times a second instead"
        return _row(Layer.PROCESS_LIMIT, tried, False, why)
    alone = backend.cgroups is None or selection.process_limit_binds(replace(backend, cgroups=None))
    whose = "of a uid of its own" if host.may_switch_uid() else "within its user namespace"
    by = [f"RLIMIT_NPROC, counted {whose}"] * alone + ["pids.max"] * (backend.cgroups is not None)
    return _row(Layer.PROCESS_LIMIT, tried, True, "refused by " + ", and by ".join(by))


def _seccomp(backend: Backend) -> LayerRow:
    tried = "the trial jail read its own filter state"
    try:
        held = backend.seccomp and "Seccomp:2" in selection.trial(backend)
    except CannotEnforce as fault:
        return _row(Layer.SECCOMP, tried, False, str(fault))
    return _row(Layer.SECCOMP, tried, held, "deny-list active" if held else "no libseccomp or no pyseccomp")


def _landlock(backend: Backend) -> LayerRow:
    tried = "a trial jail opened a file that is shown but that no rule grants, with the wall and without"
    abi, why = landlock_ruleset.kernel()
    if not abi:
        return _row(Layer.LANDLOCK, tried, False, why)
    if backend.landlock is None:
        return _row(Layer.LANDLOCK, tried, False, "the kernel offers it, but inside nothing could put up the wall")
    try:
        held = _readable_without(backend) and "walled" in selection.trial(backend)
    except CannotEnforce as fault:
        return _row(Layer.LANDLOCK, tried, False, str(fault))
    parts = [
        "files",
        *(["TCP where asked"] if abi >= 4 else []),
        *(["signals and abstract sockets"] if abi >= 6 else []),
    ]
    return _row(Layer.LANDLOCK, tried, held, f"ABI {abi}: {', '.join(parts)}; put up by {backend.landlock.name}")


def _readable_without(backend: Backend) -> bool:
    """True when nothing but the wall is in the way of the file that trial jails may not read."""
    bait = Bind(source=str(landlock_ruleset.SOURCE), target=landlock_ruleset.UNGRANTED)
    spec = JailSpec(argv=("/bin/sh", "-c", f"read x <{landlock_ruleset.UNGRANTED}"), cwd="/", binds=(bait,))
    return NamespaceJail(replace(backend, landlock=None)).run(spec).returncode == 0


def _memory(backend: Backend) -> LayerRow:
    tried = "a jail filled memory beyond its limit"
    if backend.cgroups is None:
        why = cgroup.examined()[1] or "a jail with a group did not start"
        return _row(Layer.CGROUP_MEMORY, tried, False, f"{why}; the tree is watched four times a second instead")
    limits = JailLimits(wall_seconds=10, cpu_seconds=10, resident_bytes=32 << 20, tmp_bytes=1 << 20)
    result = NamespaceJail(backend).run(JailSpec(argv=("/usr/bin/tail", "/dev/zero"), cwd="/", limits=limits))
    held = result.ending is JailOutcome.MEMORY
    found = f"cgroup version {backend.cgroups.version}: {'ended by the kernel' if held else str(result.ending)}"
    return _row(Layer.CGROUP_MEMORY, tried, held, found)


def _row(layer: Layer, tried: str, held: bool, found: str) -> LayerRow:
    return LayerRow(layer=layer, tried=tried, held=held, found=found, remedy="" if held else remedy_of(layer))
