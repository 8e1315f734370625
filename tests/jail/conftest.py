"""Probed jails for the room's tests, one for each kind of backend."""

import pytest
from jail_backends import KINDS, jail_by

from localagent.jail.api import Kind, NamespaceJail


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture(scope="session")
def jail(kind: Kind) -> NamespaceJail:
    return jail_by(kind)
