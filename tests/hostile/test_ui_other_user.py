"""Another user of the machine against `localagent ui`: knows port, host name, token and cookie, and gets nothing."""

import os

import pytest
from support.service_builder import become, served
from support.ui_builder import done, page_of

ATTACKER = 47110
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")


@pytest.mark.long
def test_another_user_s_connection_is_dropped() -> None:
    with served(hold=True) as daemon:
        task = done(daemon, "secret words")
        with page_of(daemon) as page:
            assert become(ATTACKER, lambda: page.ask(page.entry)) == [0, {}, ""]
            cookie = page.entered()  # the token was not used up
            target = f"/ui/tasks/{task}"
            assert become(ATTACKER, lambda: page.ask(target, cookie=cookie)) == [0, {}, ""]
            assert "secret words" in page.ask(target, cookie=cookie)[2]
