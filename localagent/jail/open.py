"""The front door of the jail room: open a jail, make workspaces, read profiles, bind an interpreter."""

from pathlib import Path

from localagent.domain.jailspec import JailLimits
from localagent.jail import layers, probe, profile
from localagent.jail.backend import Kind
from localagent.jail.binds import interpreter_binds
from localagent.jail.host import fresh_uid
from localagent.jail.runner import NamespaceJail, NamespaceProcess
from localagent.jail.workspace import Workspace, scratch_folder, sweep


def open_jail(*, backend: Kind | None = None, allow_third_party: bool = True, least: str = "L1") -> NamespaceJail:
    """A sound jail, of one kind of backend or of the first that is sound; probed once per process.

    CannotEnforce with the reason and the remedy when there is none, or none of the level `least`.
    """
    found = probe.find_backend(backend, allow_third_party=allow_third_party)
    layers.require(found, least)
    return NamespaceJail(found)


def load_profile(path: Path) -> JailLimits:
    """The limits of a sandbox profile; UsageFault lists every fault of the file."""
    return profile.load(path).limits


__all__ = [
    "Kind",
    "NamespaceJail",
    "NamespaceProcess",
    "Workspace",
    "fresh_uid",
    "interpreter_binds",
    "load_profile",
    "open_jail",
    "scratch_folder",
    "sweep",
]
