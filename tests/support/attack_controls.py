"""Controls of the attack suite: the same program with exactly the walls open that are said to hold it.

Only tests import this. What is opened has a second bound around it: the rest of the jail, and targets made for it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.domain.jailspec import Access, Bind
from localagent.errors import CannotEnforce
from localagent.jail.api import BackendKind, NamespaceJail
from localagent.jail.attacks.attack import Attack
from localagent.jail.attacks.stage import AttackStage
from localagent.jail.attacks.suite import ENV, AttackOutcome, Cast, limits_of, play, spec_of
from localagent.jail.boundaries import OPENABLE, Wall
from localagent.jail.probe import selection

GIVEN_VARIABLE = ("LOCALAGENT_TEST_SECRET", "secret")


def open_jail_without(walls: frozenset[Wall]) -> NamespaceJail:
    """bubblewrap with these walls open, without Landlock, which repeats them, and the group that ends what is left."""
    assert walls <= OPENABLE
    if Wall.USER in walls and os.geteuid() != 0:
        pytest.skip("only root can be in a jail without a user namespace")
    try:
        backend = replace(selection.find_backend(BackendKind.BUBBLEWRAP), open_walls=walls, landlock=None)
        return NamespaceJail(replace(backend, cgroups=None) if Wall.PROCESSES in walls else backend)
    except CannotEnforce as fault:
        pytest.skip(f"walls are opened with bubblewrap: {fault}")


@contextmanager
def staged(scratch: Path) -> Iterator[AttackStage]:
    with AttackStage(scratch, "/nonexistent") as stage:
        yield stage


def control(attack: Attack, stage: AttackStage) -> AttackOutcome:
    """What the attack comes to without the wall that holds it."""
    jail = open_jail_without(frozenset(attack.opens))
    limits = limits_of(tuple({**dict(attack.limits), **dict(attack.raised)}.items()))
    cast = Cast(attacks=(attack,), limits=limits, standin=attack.standin)
    if attack.shown:
        access = Access.READ_WRITE if attack.shown == "rw" else Access.READ_ONLY
        folders = (stage.outside, stage.folder / "neighbour") if attack.shown == "ro" else (stage.outside,)
        cast = replace(cast, binds=tuple(Bind(source=str(f), target=str(f), access=access) for f in folders))
        stage.bait = replace(stage.bait, home=str(stage.outside))
    if attack.given:
        if attack.wall is Wall.DESCRIPTORS:
            return _with_a_descriptor(jail, cast, stage)
        cast = replace(cast, env=(*ENV, GIVEN_VARIABLE))
    return play(jail, cast, stage)[attack.name]


def _with_a_descriptor(jail: NamespaceJail, cast: Cast, stage: AttackStage) -> AttackOutcome:
    """A jail with a channel, whose descriptor is there for the taking."""
    from localagent.jail.attacks.suite import answers

    workspace = stage.workspace()
    try:
        process = jail.start(spec_of(cast, workspace, stage))
        result = process.wait()
        process.channel.close()
    finally:
        workspace.remove()
    return answers(result)[cast.attacks[0].name]
