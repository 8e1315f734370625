"""What an attack is: a program to run inside, the wall that holds it, and the reasons by which that wall is known.

Standard library only: read inside the jail. An attack must be harmless when it succeeds: it aims at stand-ins made for
it (a canary file, a listener, a victim process), or asks the kernel for what changes nothing.
"""

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ..boundaries import Wall

DID = "succeeded"
LACKS = "lacks"
FAULT = "fault"
STAYS = "-stays"  # after the token: the name of a process that means to outlive its jail


class Category(str, Enum):
    """What the attacker is after."""

    READS = "file reads"
    WRITES = "writes"
    NETWORK = "network"
    PROCESSES = "processes"
    RESOURCES = "resources"
    KERNEL = "kernel surface"
    INFORMATION = "information"
    VERDICT = "verdict forgery"
    STATE = "state across candidates"


class Witness(str, Enum):
    """What outside tells that an attack got through, whatever it says itself."""

    CANARY = "the canary file outside changed"
    LISTENER = "a listener outside was reached"
    VICTIM = "a process outside was ended"
    SURVIVOR = "a process outlived its jail"
    REST = "the workspace could not be removed"


@dataclass(frozen=True, kw_only=True)
class Bait:
    """What the host has put out for attacks to reach for. Paths ending in `_inside` are shown in the jail."""

    token: str = ""  # what a canary holds, and what marks our own processes
    home: str = ""
    canary: str = ""  # a file outside
    sibling: str = ""  # a folder beside the workspace
    workspace_inside: str = ""
    shown_inside: str = ""  # a folder bound read-only that belongs to the jail's own uid
    host_name: str = ""
    port4: int = 0
    port6: int = 0
    port_udp: int = 0
    abstract: str = ""
    unix_path: str = ""
    victim: int = 0
    shared_memory: int = 0
    interfaces: tuple[str, ...] = ()
    own_terminal: bool = False  # a control makes one first
    allowed: tuple[str, ...] = ()  # environment variables that were asked for
    interpreter: tuple[str, ...] = ()  # where the jail shows what belongs to its interpreter


Program = Callable[[Bait], str]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack. `reasons` are errno names, signal names, words of `Held`, or endings of the jail (`ending:memory`).

    Attacks with `limits` run under those; `alone` ones in a jail of their own. The rest is for the control: `opens` are
    the walls to open, `standin` aims it at targets inside the same jail, `shown` binds the canary's folder (ro, rw),
    `raised` are the limits to raise, `given` puts what is looked for where it must not be, and `open_reason` is what is
    seen then where that is not success (a further wall that is never opened; several are parted by `|`). `target` is a
    path that the machine must have (several likewise), else there is nothing to attack.
    """

    name: str
    category: Category
    wall: Wall
    reasons: frozenset[str]
    module: str
    program: Program
    text: str
    limits: tuple[tuple[str, float], ...] = ()
    alone: bool = False
    witness: "Witness | None" = None
    opens: "tuple[Wall, ...]" = ()
    standin: bool = False
    shown: str = ""
    raised: tuple[tuple[str, float], ...] = ()
    given: bool = False
    open_reason: str = DID
    target: str = ""

    @property
    def ends_jail(self) -> bool:
        """True when the jail's own ending is the reason to be seen."""
        return any(reason.startswith("ending:") for reason in self.reasons)


class Lacks(Exception):  # noqa: N818 - named for what happened
    """This machine has nothing to attack: no such call, no such device. The text says what is missing."""


class AttackStopped(Exception):  # noqa: N818 - named for what happened
    """The attack came to nothing in a way that has no errno; the text is the reason's word."""


class Register:
    """Collects the attacks of one category's module."""

    def __init__(self, category: Category) -> None:
        self._category = category
        self.attacks: list[Attack] = []

    def __call__(  # noqa: PLR0913 - one keyword for each column of the table
        self,
        name: str,
        wall: Wall,
        *reasons: str,
        opens: "tuple[Wall, ...] | None" = None,
        limits: "Mapping[str, float] | None" = None,
        raised: "Mapping[str, float] | None" = None,
        alone: bool = False,
        witness: "Witness | None" = None,
        standin: bool = False,
        shown: str = "",
        given: bool = False,
        open_reason: str = DID,
        target: str = "",
    ) -> Callable[[Program], Program]:
        """Declare the decorated program as an attack; its docstring says what is tried."""
        other_way = standin or shown or raised or given

        def declare(program: Program) -> Program:
            self.attacks.append(
                Attack(
                    name=name,
                    category=self._category,
                    wall=wall,
                    reasons=frozenset(reasons),
                    module=program.__module__.rpartition(".")[2],
                    program=program,
                    text=(program.__doc__ or "").strip(),
                    limits=tuple(sorted((limits or {}).items())),
                    raised=tuple(sorted((raised or {}).items())),
                    alone=alone,
                    witness=witness,
                    opens=(() if other_way else (wall,)) if opens is None else opens,
                    standin=standin,
                    shown=shown,
                    given=given,
                    open_reason=open_reason,
                    target=target,
                )
            )
            return program

        return declare


def failed(code: int) -> OSError:
    """The OSError of an errno."""
    return OSError(code, os.strerror(code))


def seen_of(fault: BaseException) -> "tuple[str, str]":
    """(reason, text) of what a program raised."""
    if isinstance(fault, AttackStopped):
        return str(fault), ""
    if isinstance(fault, Lacks):
        return LACKS, str(fault)
    if isinstance(fault, MemoryError):
        return "ENOMEM", str(fault)
    if isinstance(fault, OSError) and fault.errno:
        return errno.errorcode.get(fault.errno, str(fault.errno)), str(fault)
    return FAULT, "%s: %s" % (type(fault).__name__, fault)
