"""Probed jails for the room's tests, one for each kind of backend."""

import pytest
from support.jail_backends import KINDS, jail_by

from localagent.jail.api import BackendKind, NamespaceJail


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> BackendKind:
    return BackendKind(request.param)


@pytest.fixture(scope="session")
def jail(kind: BackendKind) -> NamespaceJail:
    return jail_by(kind)
