"""One probed jail for the room's tests."""

import pytest

from localagent.jail.open import NamespaceJail, open_jail


@pytest.fixture(scope="session")
def jail() -> NamespaceJail:
    return open_jail()
