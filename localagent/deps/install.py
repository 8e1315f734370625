"""From requirements that may come in to files in their place: choose, judge, unpack in a jail, compare, land."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.deps.choose import ChosenWheel, NotInstallable, applies_here, choose, missing
from localagent.deps.site_packages import Environment, conflicts, land_fresh, land_in
from localagent.deps.unpack import merged, require_pip, unpack
from localagent.deps.wheelhouse import read_wheelhouse
from localagent.domain.dependency import Locked, Wanted
from localagent.jail.api import Workspace, fresh_uid, scratch_folder
from localagent.ports import Jail


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallOrder:
    """What to install: requirements that were allowed, from a folder, under whose digests, and where to.

    `place` is a folder to be made, an environment, or None for a trial that lands nowhere.
    """

    wanted: Sequence[Wanted]
    index: Path
    locked: Sequence[Locked]
    require_hashes: bool
    place: Path | Environment | None


def install(order: InstallOrder, jail: Jail, scratch: Path) -> list[ChosenWheel]:
    """Install, or try to; what was chosen. NotInstallable or CannotEnforce when nothing was installed."""
    require_pip()
    wanted = [item for item in order.wanted if applies_here(item)]
    if not wanted:
        raise NotInstallable("nothing to install: no requirement applies to this interpreter")
    present = order.place.present if isinstance(order.place, Environment) else {}
    with scratch_folder(scratch) as folder:
        wheels = folder / "wheels"
        wheels.mkdir()
        wheels.chmod(0o755)
        house = read_wheelhouse(order.index)
        chosen = choose(wanted, house, order.locked, wheels, require_hashes=order.require_hashes)
        faults = missing(chosen, wanted, present)
        if isinstance(order.place, Environment):
            faults += conflicts(chosen, order.place)
        if faults:
            raise NotInstallable(
                "nothing was installed: " + "; ".join(faults),
                remedy="ask for everything that is needed, dependencies too; each is checked like the others",
            )
        merged(chosen)
        with Workspace(folder, uid=fresh_uid()) as workspace:
            unpacked = unpack(jail, chosen, wheels, workspace.tree)
            if isinstance(order.place, Environment):
                land_in(unpacked, chosen, order.place)
            elif order.place is not None:
                land_fresh(unpacked, chosen, order.place)
    return chosen
