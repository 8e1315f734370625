"""Jails for tests, one of each kind of backend; a kind that is not sound on this machine is a visible skip.

And the two ways of putting up the wall inside, of which a machine's jails only ever use the first that works.
"""

from dataclasses import replace

import pytest

from localagent.errors import CannotEnforce
from localagent.jail.api import BackendKind, NamespaceJail, open_jail
from localagent.jail.launcher import landlock_ruleset

WAYS = ["machine code", "interpreter"]
KINDS = [pytest.param(kind, id=str(kind)) for kind in BackendKind]


def jail_by(kind: BackendKind) -> NamespaceJail:
    """The jail of this kind, or a skip that says why there is none."""
    try:
        return open_jail(backend=kind)
    except CannotEnforce as fault:
        pytest.skip(f"{kind}: {fault}")


def walled_by(jail: NamespaceJail, way: str) -> NamespaceJail:
    """The same jail with its wall put up in one of the WAYS, or a skip where this machine lacks that one."""
    for by in landlock_ruleset.candidates():
        if jail._backend.landlock is not None and (by.python is None) == (way == WAYS[0]):
            return NamespaceJail(replace(jail._backend, landlock=by))
    pytest.skip(f"no wall put up by {way} here")
