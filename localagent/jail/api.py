"""What other packages use of the jail: open a jail, make workspaces, read profiles, bind an interpreter."""

from pathlib import Path

from localagent.domain.jailspec import JailLimits
from localagent.jail.backends.backend import BackendKind
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.host import fresh_uid
from localagent.jail.files.workspace import Workspace, scratch_folder, sweep
from localagent.jail.launcher.runner import NamespaceJail, NamespaceProcess
from localagent.jail.limits import profile
from localagent.jail.probe import layers, selection


def open_jail(
    *, backend: BackendKind | None = None, allow_third_party: bool = True, least: str = "L1"
) -> NamespaceJail:
    """A sound jail, of one kind of backend or of the first that is sound; probed once per process.

    CannotEnforce with the reason and the remedy when there is none, or none of the level `least`.
    """
    found = selection.find_backend(backend, allow_third_party=allow_third_party)
    layers.require(found, least)
    return NamespaceJail(found)


def load_profile(path: Path) -> JailLimits:
    """The limits of a sandbox profile; UsageFault lists every fault of the file."""
    return profile.load(path).limits


__all__ = [
    "BackendKind",
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
