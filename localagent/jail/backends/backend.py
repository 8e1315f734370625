"""What makes jails here: a program of one kind that was seen to work. A value; starts nothing."""

from dataclasses import dataclass
from enum import StrEnum

from localagent.jail.backends.level import Layer
from localagent.jail.boundaries import CLOSED, Wall
from localagent.jail.launcher.landlock_ruleset import Confiner
from localagent.jail.limits.cgroup import CgroupRoot


class BackendKind(StrEnum):
    """The programs that can make a jail, the preferred one first."""

    BUBBLEWRAP = "bubblewrap"
    NSJAIL = "nsjail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """A program that was seen to work. `needs` are folders its loader reads; `level` is what was probed with it.

    `landlock` puts up the Landlock wall in each of its jails; None where there is none.
    `open_walls` is empty but for the controls of the attack tests (bubblewrap alone opens them).
    """

    kind: BackendKind
    program: str
    version: str
    needs: tuple[str, ...] = ()
    cgroup_namespace: bool = True
    seccomp: bool = True
    level: str = "L1"
    cgroups: CgroupRoot | None = None
    landlock: Confiner | None = None
    layers: frozenset[Layer] = frozenset()
    open_walls: frozenset[Wall] = CLOSED

    @property
    def name(self) -> str:
        """Kind and version, as results and reports say it."""
        return f"{self.kind} {self.version}"
