"""The web page in a real Chromium: it runs nothing of a hostile task, asks nobody else, and says what happened."""

import base64
import time
from collections.abc import Iterator

import pytest
from support.fix_builder import ADDER
from support.service_builder import ordered, served
from support.ui_builder import Chromium, done, installed_chromium, page_of, picture_path, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed_chromium() is None, reason="no Chromium here: install the package `chromium`"),
]


@pytest.fixture
def browser() -> Iterator[Chromium]:
    program = installed_chromium()
    assert program is not None
    made = Chromium(program)
    yield made
    made.close()


def test_hostile_task_in_a_browser(browser: Chromium) -> None:
    with served(hold=True) as daemon:
        task, at_work = done(daemon), running(daemon).task
        with page_of(daemon) as page:
            browser.open(page.address)
            home = f"http://{page.host}/ui/"
            assert browser.value("location.href") == home
            assert browser.value("document.title") == "Queue · localagent"
            assert browser.value("getComputedStyle(document.querySelector('.tiles')).display") == "flex"
            browser.open(f"{home}tasks/{task}")
            assert set(browser.requested()) == {f"{home}tasks/{task}", f"{home}style.css"}
            assert browser.complaints() == []
            assert browser.value("document.querySelectorAll('script, img, iframe, form, style, object').length") == 0
            assert "script" in browser.value("document.title")  # as text
            rows = browser.value(
                "[...document.querySelectorAll('.diff tr:not(.gap)')].map(r => [...r.cells].map(c => c.textContent))"
            )
            assert rows[1] == ["2", '    """<script>old()</script>"""', "2", '    """<script>new()</script>"""']
            assert rows[2] == ["3", "    return a - b", "3", "    return a + b"]
            assert browser.value("document.querySelector('.diff ins').textContent") == "new"
            assert "\\u202e" in browser.value("document.body.textContent")
            assert browser.value("[...document.body.textContent].some(c => c === '\\u202e' || c === '\\x1b')") is False
            # what would run is refused by the policy, should the escaping ever fail
            assert browser.value(
                "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
                " document.body.append(s); return window.ran === undefined })()"
            )
            browser.open(f"{home}tasks/{at_work}")
            began = browser.value("performance.timeOrigin")
            until = time.monotonic() + 30
            while browser.value("performance.timeOrigin") == began and time.monotonic() < until:
                time.sleep(0.2)
            assert browser.value("performance.timeOrigin") != began, "a task at work is renewed by itself"
            browser.open(page.address)
            assert "used already" in browser.value("document.body.textContent")


def test_a_repair_as_a_picture(browser: Chromium) -> None:
    """A true task, and a picture of it: with something on it, in both colours."""
    with served() as daemon:
        client = daemon.client()
        task = ordered(client, ADDER, max_candidates=24)["id"]
        while client.get(f"/v1/tasks/{task}").json()["state"] in ("queued", "running"):
            time.sleep(0.2)
        with page_of(daemon) as page:
            browser.open(page.address)
            browser.do("Emulation.setDeviceMetricsOverride", width=1000, height=1150, deviceScaleFactor=1, mobile=False)
            browser.open(f"http://{page.host}/ui/tasks/{task}")
            taken = {}
            for colours in ("dark", "light"):
                features = [{"name": "prefers-color-scheme", "value": colours}]
                browser.do("Emulation.setEmulatedMedia", features=features)
                taken[colours] = base64.b64decode(browser.do("Page.captureScreenshot", format="png")["data"])
            assert all(len(data) > 20_000 for data in taken.values())
            assert taken["dark"] != taken["light"]
            assert browser.complaints() == []
            if path := picture_path():
                path.write_bytes(taken["light"])
