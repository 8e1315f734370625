"""One probed jail for the room's tests."""

import pytest

from localagent.jail.open import BubblewrapJail, open_jail


@pytest.fixture(scope="session")
def jail() -> BubblewrapJail:
    return open_jail()
