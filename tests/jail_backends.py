"""Jails for tests, one of each kind of backend; a kind that is not sound on this machine is a visible skip."""

import pytest

from localagent.errors import CannotEnforce
from localagent.jail.open import Kind, NamespaceJail, open_jail

KINDS = [pytest.param(kind, id=str(kind)) for kind in Kind]


def jail_by(kind: Kind) -> NamespaceJail:
    """The jail of this kind, or a skip that says why there is none."""
    try:
        return open_jail(backend=kind)
    except CannotEnforce as fault:
        pytest.skip(f"{kind}: {fault}")
