"""Tries each layer of the jail for `doctor` and says what works, what does not, and what to do about it.

Everything named "works" was tried just now on this machine; nothing of a repository is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from localagent.errors import CannotEnforce
from localagent.jail.backends.backend import Backend
from localagent.jail.backends.level import LEVELS, Layer, missing
from localagent.jail.files import host
from localagent.jail.probe import layers, selection
from localagent.jail.probe.selection import ProbeState

NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mnt", "cgroup")


@dataclass(frozen=True, kw_only=True, slots=True)
class DiagnosisRow:
    """One line of the report. `needed` rows that do not work mean that tasks cannot run.

    `tried` says how the state was found out, where that is not the row's name.
    """

    part: str
    name: str
    state: ProbeState
    detail: str = ""
    remedy: str = ""
    needed: bool = False
    tried: str = ""


def jail_rows() -> Iterator[DiagnosisRow]:
    """Backends first, then each layer of the one that would be used."""
    chosen: Backend | None = None
    for result in selection.every():
        chosen = chosen or result.backend
        detail = f"{result.program} {result.version}: {result.detail}" if result.version else result.program
        remedy = "" if result.state is ProbeState.WORKS else selection.REMEDIES[result.kind]
        yield DiagnosisRow(part="backend", name=result.name, state=result.state, detail=detail, remedy=remedy)
    if chosen is None:
        remedy = f"here: {layers.namespaces_remedy()}; else {selection.REMEDY}"
        yield DiagnosisRow(part="jail", name="jail", state=ProbeState.ABSENT, detail="none", remedy=remedy, needed=True)
        for layer in Layer:
            why, mend = "no jail could be made to try it in", layers.remedy_of(layer)
            yield DiagnosisRow(
                part="layers", name=layer, state=ProbeState.ABSENT, detail=why, remedy=mend, tried="not at all"
            )
        return
    yield DiagnosisRow(part="jail", name="level", state=ProbeState.WORKS, detail=_level(chosen), needed=True)
    yield from _layers(chosen)


def _level(backend: Backend) -> str:
    """The level, and what is between it and the next."""
    above = next((name for name, needed, _ in LEVELS if not needed <= backend.layers), "")
    lacking = f"; for {above} it lacks {', '.join(sorted(missing(above, backend.layers)))}" if above else ""
    return f"{backend.level} with {backend.name}{lacking}"


def _layers(backend: Backend) -> Iterator[DiagnosisRow]:
    try:
        words = selection.trial(backend)
    except CannotEnforce as fault:
        yield DiagnosisRow(
            part="jail", name="trial jail", state=ProbeState.FAULTY, detail=str(fault), remedy=fault.remedy, needed=True
        )
        return
    faults = selection.faults_seen(words, backend)
    for name in NAMESPACES:
        own = selection.own_namespace(words, name)
        state = ProbeState.WORKS if own else ProbeState.FAULTY
        yield DiagnosisRow(part="jail", name=f"{name} namespace", state=state, needed=name != "cgroup")
    state = ProbeState.FAULTY if faults else ProbeState.WORKS
    yield DiagnosisRow(part="jail", name="read-only system", state=state, detail="; ".join(faults), needed=True)
    yield _uid_switch()
    for tried in layers.rows(backend):
        yield DiagnosisRow(
            part="layers",
            name=tried.layer,
            state=ProbeState.WORKS if tried.held else ProbeState.ABSENT,
            detail=tried.found,
            remedy=tried.remedy,
            needed=tried.layer is Layer.NAMESPACES,
            tried=tried.tried,
        )


def _uid_switch() -> DiagnosisRow:
    if host.may_switch_uid():
        return DiagnosisRow(
            part="jail", name="uid switch", state=ProbeState.WORKS, detail="jails run as unprivileged uids of their own"
        )
    return DiagnosisRow(
        part="jail", name="uid switch", state=ProbeState.ABSENT, detail="not root: jails run as you, as nobody inside"
    )
