"""Composes the attack suite: programs in jails, and forgeries through the worker, by every usable backend.

Not promised: that what holds here holds on another machine; each row says what was tried on this one, just now.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.app.settings import Settings
from localagent.errors import CannotEnforce
from localagent.jail.api import BackendKind, NamespaceJail, open_jail, scratch_folder
from localagent.jail.attacks import information, kernel, network, processes, reads, resources, writes
from localagent.jail.attacks import suite as programs
from localagent.jail.attacks.attack import Attack, Category
from localagent.jail.attacks.row import AttackRow
from localagent.jail.attacks.stage import AttackStage
from localagent.verify.attacks import forgery_suite as forgeries
from localagent.verify.attacks.forgery import FORGERIES
from localagent.verify.attacks.leftovers import LEFTOVERS

# All attacks that run as programs in a jail, in the order they are shown. Names are unique.

MODULES = (reads, writes, network, processes, resources, kernel, information)
ATTACKS: tuple[Attack, ...] = tuple(entry for module in MODULES for entry in module.attack.attacks)


NAMES: tuple[str, ...] = (*(attack.name for attack in ATTACKS), *forgeries.NAMES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kinds:
    """What the suite holds: how many attacks of each category, in the order shown."""

    counts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Of all categories."""
        return sum(count for _, count in self.counts)


def kinds() -> Kinds:
    """Counts by category."""
    counts = {category.value: 0 for category in Category}
    for attack in ATTACKS:
        counts[attack.category.value] += 1
    counts[Category.VERDICT.value] = len(FORGERIES)
    counts[Category.STATE.value] = len(LEFTOVERS)
    return Kinds(counts=tuple(counts.items()))


def usable(kind: BackendKind | None) -> tuple[NamespaceJail, ...]:
    """The jail of this kind, or one of every kind that is sound here. CannotEnforce when there is none."""
    if kind is not None:
        return (open_jail(backend=kind),)
    found, faults = [], []
    for one in BackendKind:
        try:
            found.append(open_jail(backend=one))
        except CannotEnforce as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    return tuple(found)


def attack(jails: Sequence[NamespaceJail], settings: Settings) -> Iterator[AttackRow]:
    """Rows as attacks are done: one for each attack and jail."""
    with scratch_folder(settings.scratch_dir) as scratch:
        for jail in jails:
            with AttackStage(scratch, os.environ.get("HOME") or "/root") as stage:
                yield from programs.run(jail, ATTACKS, stage)
            bench = forgeries.ForgeryBench(jail=jail, scratch=scratch, sandbox_dir=settings.sandbox_dir)
            yield from forgeries.run(bench)


def ordered(rows: Sequence[AttackRow]) -> tuple[AttackRow, ...]:
    """By backend, then category and attack in the order of the suite."""
    place = {name: number for number, name in enumerate(NAMES)}
    backends = list(dict.fromkeys(row.backend for row in rows))
    return tuple(sorted(rows, key=lambda row: (backends.index(row.backend), place[row.name])))
