"""Finds a sound bubblewrap or nsjail by starting a trivial jail with it and looking at what that jail sees.

The answer is kept for the life of the process. Nothing of a repository is involved. A binary that does not start
counts as absent, one with a known fault that reaches our options as faulty.
"""

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from localagent.domain.jailspec import JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.backends.backend import Backend, BackendKind
from localagent.jail.backends.level import Layer, level_of
from localagent.jail.launcher import landlock_ruleset, seccomp, x86_assembler
from localagent.jail.launcher.runner import NamespaceJail
from localagent.jail.limits import cgroup
from localagent.jail.probe.discovery import build_of, candidates, nsjail_version
from localagent.jail.probe.known_vulnerabilities import Build, known, refusing

_NAMESPACES = (
    "user namespaces must be allowed: "
    "on Ubuntu 24.04+ set kernel.apparmor_restrict_unprivileged_userns=0 or add an AppArmor profile for the program, "
    "on old Debian kernel.unprivileged_userns_clone=1, in a container start it with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined (or --privileged); `localagent doctor` shows what fails"
)
REMEDY = f"install bubblewrap (Debian/Ubuntu: apt install bubblewrap) or run `make setup`; {_NAMESPACES}"
REMEDIES: dict[BackendKind | None, str] = {
    None: REMEDY,
    BackendKind.BUBBLEWRAP: f"{REMEDY}; or let `--backend auto` choose",
    BackendKind.NSJAIL: (
        "install nsjail 3.2 or later (Debian/Ubuntu: apt install nsjail) or run `make setup`, which brings one; "
        f"or let `--backend auto` choose; {_NAMESPACES}"
    ),
}
# A shell that every Debian has says what the jail looks like: its own pid, uid, links of its namespaces, interfaces.
QUESTION = (
    'echo pid=$$; read u x </proc/self/uid_map; echo uid=$u; for n in user pid net ipc uts cgroup mnt; do echo "$n="'
    "$(readlink /proc/self/ns/$n); done; while read -r k v; do case $k in CapEff:|CapBnd:|NoNewPrivs:|Seccomp:) "
    "echo $k$v;; esac; done </proc/self/status; ulimit -c; [ -e /root ] && echo root; [ -e /home ] && echo home; "
    "[ -e /etc/shadow ] && echo shadow; touch /usr/x /x /dev/x 2>/dev/null && echo writable; "
    f"[ -e {landlock_ruleset.UNGRANTED} ] && "
    f"{{ read x <{landlock_ruleset.UNGRANTED} && echo unwalled || echo walled; }}; echo end"
)


class ProbeState(StrEnum):
    """What a probed thing is."""

    WORKS = "works"
    ABSENT = "absent"
    FAULTY = "faulty"


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """One binary that was tried. `backend` is set only when it works."""

    kind: BackendKind
    name: str
    program: str
    version: str
    state: ProbeState
    detail: str
    backend: Backend | None = None


@cache
def probed(kind: BackendKind | None = None, *, allow_third_party: bool = True) -> tuple[Probed, ...]:
    """Every candidate (of one kind), tried; stops at the first that works."""
    out: list[Probed] = []
    for found in candidates(kind, allow_third_party=allow_third_party):
        out.append(try_binary(found.name, found.program, found.needs, kind=found.kind))
        if out[-1].state is ProbeState.WORKS:
            break
    return tuple(out)


def every() -> tuple[Probed, ...]:
    """Every candidate, tried anew, also those after the first that works; for reports."""
    return tuple(
        try_binary(found.name, found.program, found.needs, kind=found.kind)
        for found in candidates(allow_third_party=True)
    )


def find_backend(kind: BackendKind | None = None, *, allow_third_party: bool = True) -> Backend:
    """The first sound backend (of one kind); CannotEnforce telling why each candidate is not."""
    results = probed(kind, allow_third_party=allow_third_party)
    for result in results:
        if result.backend is not None:
            return result.backend
    wanted = f"{'' if allow_third_party else 'system '}{kind or 'bubblewrap or nsjail'}"
    why = "; ".join(f"{result.name} {result.version}: {result.detail}" for result in results) or f"no {wanted} found"
    if allow_third_party:
        raise CannotEnforce(f"no sound jail on this machine: {why}", remedy=REMEDIES[kind])
    raise CannotEnforce(
        f"no sound jail on this machine: {why}; the policy takes none out of a Python package "
        "(jail.third_party_binaries = deny)",
        remedy=f"install the system's own (Debian/Ubuntu: apt install {kind or BackendKind.BUBBLEWRAP}), or choose a "
        f"policy that takes one out of a package; {_NAMESPACES}",
    )


def try_binary(
    name: str, program: str, needs: tuple[str, ...] = (), *, kind: BackendKind = BackendKind.BUBBLEWRAP
) -> Probed:
    """Version, known faults, then a real jail."""
    build = build_of(program, kind)
    if build is None:
        return Probed(
            kind=kind, name=name, program=program, version="", state=ProbeState.ABSENT, detail="does not start"
        )
    version = (
        ".".join(str(part) for part in build.version) if kind is BackendKind.BUBBLEWRAP else nsjail_version(program)
    )
    bad, harmless = _faults(kind, build)
    if bad:
        return Probed(kind=kind, name=name, program=program, version=version, state=ProbeState.FAULTY, detail=bad)
    backend = Backend(kind=kind, program=program, version=version, needs=needs)
    try:
        backend = _sound(backend)
    except CannotEnforce as fault:
        return Probed(
            kind=kind, name=name, program=program, version=version, state=ProbeState.FAULTY, detail=str(fault)
        )
    return Probed(
        kind=kind,
        name=name,
        program=program,
        version=version,
        state=ProbeState.WORKS,
        detail=f"level {backend.level}{harmless}",
        backend=backend,
    )


def _faults(kind: BackendKind, build: Build) -> tuple[str, str]:
    """(why the build is not used or "", what to say about its known but harmless faults)."""
    if kind is BackendKind.NSJAIL:
        if build.setuid:
            return "set-uid: refused whatever its version, it is not needed where user namespaces work", ""
        if not x86_assembler.supported():
            return f"the init of its jails is written for x86-64, this is {os.uname().machine}", ""
        return "", ""
    names = ", ".join(fault.name for fault in known(build)) or "none"
    bad = "; ".join(f"{fault.name}: {fault.text}" for fault in refusing(build))
    return bad, f"; known faults that do not reach the options passed: {names}"


def _sound(backend: Backend) -> Backend:
    """The backend with the layers that hold; CannotEnforce when what the jail sees is not what it should see."""
    backend = replace(backend, cgroup_namespace=Path("/proc/self/ns/cgroup").exists(), cgroups=cgroup.find())
    backend = replace(backend, seccomp=seccomp.program() is not None)
    backend, seen = _most(backend)
    faults = faults_seen(seen, backend)
    if faults:
        raise CannotEnforce("the trial jail is not sound: " + "; ".join(faults))
    layers = {Layer.NAMESPACES}
    if backend.cgroups is not None:
        layers |= {Layer.CGROUP_MEMORY, Layer.PROCESS_LIMIT}
    elif process_limit_binds(backend):
        layers |= {Layer.PROCESS_LIMIT}
    if "Seccomp:2" in seen and backend.seccomp:
        layers |= {Layer.SECCOMP}
    if "walled" in seen and backend.landlock is not None:
        layers |= {Layer.LANDLOCK}
    return replace(backend, level=level_of(layers), layers=frozenset(layers))


def _most(backend: Backend) -> tuple[Backend, list[str]]:
    """The backend with as few optional layers dropped as lets a trial jail run, and what that jail saw."""
    confiners = [*landlock_ruleset.candidates(), None] if landlock_ruleset.kernel()[0] else [None]
    choices = [
        (number + (groups is not backend.cgroups) + (filtered is not backend.seccomp), by, groups, filtered)
        for number, by in enumerate(confiners)
        for groups in dict.fromkeys((backend.cgroups, None))
        for filtered in dict.fromkeys((backend.seccomp, False))
    ]
    fault: CannotEnforce | None = None
    for _, by, groups, filtered in sorted(choices, key=lambda choice: choice[0]):
        tried = replace(backend, landlock=by, cgroups=groups, seccomp=filtered)
        try:
            seen = trial(tried)
        except CannotEnforce as why:
            fault = why
            continue
        if by is None or "walled" in seen:
            return tried, seen
    raise fault or CannotEnforce("no trial jail was made")


def trial(backend: Backend) -> list[str]:
    """What a trivial jail sees, in words; CannotEnforce when it does not come to its end."""
    spec = JailSpec(
        argv=("/bin/sh", "-c", QUESTION),
        cwd="/",
        limits=JailLimits(wall_seconds=10, cpu_seconds=5),
    )
    trying = replace(backend, landlock=landlock_ruleset.with_bait(backend.landlock)) if backend.landlock else backend
    result = NamespaceJail(trying).run(spec)
    words = result.stdout.decode(errors="replace").split()
    if result.ending is not JailOutcome.EXITED or result.returncode != 0 or words[-1:] != ["end"]:
        raise CannotEnforce(
            f"the trial jail ended as {result.ending}: {result.stderr.decode(errors='replace').strip()}"
        )
    return words


def faults_seen(words: list[str], backend: Backend) -> list[str]:
    """What of the trial jail's answer is not as it must be."""
    faults = []
    for name in ("user", "pid", "net", "ipc", "uts", "mnt", *(("cgroup",) if backend.cgroup_namespace else ())):
        if not own_namespace(words, name):
            faults.append(f"the {name} namespace is the host's")
    for wanted in ("CapEff:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1", "0", "uid=65534"):
        if wanted not in words:
            faults.append(f"{wanted!r} does not hold")
    for bad in ("root", "home", "shadow", "writable"):
        if bad in words:
            faults.append(f"the jail sees or has what it must not: {bad}")
    return faults


def own_namespace(words: list[str], name: str) -> bool:
    """True when the trial jail told a namespace that is not ours."""
    ours = str(Path(f"/proc/self/ns/{name}").readlink())
    told = next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), "")
    return bool(told) and told != ours


def process_limit_binds(backend: Backend) -> bool:
    """True when a jail limited to a few processes is refused more: tried, because RLIMIT_NPROC does not bind root."""
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; echo started"
    limits = JailLimits(wall_seconds=5, cpu_seconds=5, processes=6)
    spec = JailSpec(argv=("/bin/sh", "-c", script), cwd="/", limits=limits)
    result = NamespaceJail(backend).run(spec)
    return b"started" not in result.stdout and b"ork" in result.stderr
