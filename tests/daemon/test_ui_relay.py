"""`localagent ui` before a real daemon: who gets in, what passes, what ends it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from support.service_builder import Served, served
from support.ui_builder import Page, done, needs_loopback, page_of

from localagent.cli.main import main
from localagent.daemon.client.ui_loopback import kernel_address, loopback_ports, owner, owner_in
from localagent.daemon.client.ui_relay import Entrance
from localagent.daemon.ui.page_headers import POLICY
from localagent.errors import CannotEnforce


@pytest.fixture(scope="module")
def daemon() -> Iterator[Served]:
    with served(hold=True) as made:
        yield made


@pytest.fixture(scope="module")
def page(daemon: Served) -> Iterator[Page]:
    with page_of(daemon) as made:
        yield made


@pytest.fixture(scope="module")
def cookie(page: Page) -> str:
    return page.entered()


@pytest.mark.long
def test_the_address_works_once_and_the_cookie_goes_on(daemon: Served, page: Page, cookie: str) -> None:
    again = page.ask(page.entry)
    assert (again[0], "used already" in again[2]) == (403, True)
    status, headers, body = page.ask("/ui/", cookie=f"other=1; {cookie}")
    assert (status, "Queue" in body) == (200, True)
    assert headers["content-security-policy"] == POLICY
    assert headers["referrer-policy"] == "no-referrer"
    assert page.ask("/", cookie=cookie)[1]["location"] == "/ui/"
    task = done(daemon, "a fair task")
    assert "return a <ins>+</ins> b" in page.ask(f"/ui/tasks/{task}", cookie=cookie)[2]
    assert page.ask("/ui/style.css", cookie=cookie)[1]["content-type"].startswith("text/css")


def test_what_the_cookie_says_is_said_strictly(page: Page, cookie: str) -> None:
    _, headers, _ = page.ask("/ui/", cookie=cookie)
    assert "set-cookie" not in headers  # given out once, with the token
    name, _, value = cookie.partition("=")
    for wrong in ("", name, f"{name}=", f"{name}={value[:-1]}", f"x{name}={value}", f"{name}={value}é"):
        assert page.ask("/ui/", cookie=wrong)[0] == 403, wrong


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "evil.example:{port}", "{label}.localhost", ""]
)
def test_another_host_name_is_not_answered(page: Page, cookie: str, host: str) -> None:
    """A name of somebody else's that points here (DNS rebinding) reaches nothing, the cookie notwithstanding."""
    named = host.format(port=page.port, label=page.host.partition(".")[0])
    if named:
        assert page.ask("/ui/", host=named, cookie=cookie)[0] == 421
    else:
        assert page.ask("/ui/", cookie=cookie, Host="evil.example")[0] in (400, 421)  # beside the right one


def test_read_only_and_nothing_but_the_page(page: Page, cookie: str) -> None:
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT"):
        assert page.ask("/ui/", method=method, cookie=cookie, content_length="0")[0] in (405, 414), method
    for path in ("/v1/tasks", "/metrics", "/ui", "//ui/", "/UI/", "http://x/ui/", "/v1/tasks?/ui/", "/%75i/"):
        assert page.ask(path, cookie=cookie)[0] in (404, 414), path
    for path in ("/ui/../v1/tasks", "/ui/%2e%2e/v1/tasks", "/ui/tasks/%2e%2e", "/ui/x?y=1", "/ui/\x7f"):
        status, _, body = page.ask(path, cookie=cookie)
        assert (status in (400, 404, 414), "next" in body) == (True, False), path


def test_other_sites_send_nobody_here(page: Page, cookie: str) -> None:
    for site in ("cross-site", "same-site"):
        assert page.ask("/ui/", cookie=cookie, sec_fetch_site=site)[0] == 403
    assert page.ask("/ui/", cookie=cookie, sec_fetch_site="same-origin")[0] == 200


def test_refusals_come_as_pages(page: Page, cookie: str) -> None:
    status, headers, body = page.ask("/ui/tasks/20260101-000000-000000-aaaaaa", cookie=cookie)
    assert (status, headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "or it is not yours" in body
    assert page.ask("/ui/?odd=<b>", cookie=cookie)[0] == 400


def test_a_wrong_token_uses_nothing_up() -> None:
    entrance = Entrance(port=1)
    token = entrance.token
    assert not entrance.enter("")
    assert not entrance.enter(token[:-1])
    assert not entrance.enter("é")
    assert entrance.enter(token)
    assert not entrance.enter(token)
    assert not entrance.enter("")
    assert Entrance(port=1).host != entrance.host


def test_ports_of_both_families_or_none() -> None:
    needs_loopback()
    servers = loopback_ports(0)
    port = servers[0].getsockname()[1]
    try:
        assert {server.getsockname()[0] for server in servers} <= {"127.0.0.1", "::1"}
        with pytest.raises(CannotEnforce, match="port"):
            loopback_ports(port)
        with socket.create_connection(("127.0.0.1", port)) as mine:
            other, _ = servers[0].accept()
            with other:
                assert owner(other) == os.getuid()
                mine.shutdown(socket.SHUT_RDWR)
    finally:
        for server in servers:
            server.close()


def test_a_loopback_that_is_down_is_named() -> None:
    asked = (
        "from localagent.daemon.client.ui_loopback import loopback_ports\n"
        "from localagent.errors import CannotEnforce\n"
        "try:\n    loopback_ports(0)\nexcept CannotEnforce as fault:\n    print(fault, '|', fault.remedy)"
    )
    apart = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", asked]
    said = subprocess.run(apart, capture_output=True, text=True, check=True).stdout
    assert "loopback does not answer" in said
    assert "ip link set lo up" in said


def test_the_kernel_s_table_is_read_as_it_is() -> None:
    ends = ("127.0.0.1", 54321), ("127.0.0.1", 80)
    local, remote = map(kernel_address, ends)
    line = f"  0: {local} {remote} {{}} 00000000:00000000 00:00000000 00000000  1000        0 1 1\n"
    assert owner_in("head\n" + line.format("01"), *ends) == 1000
    assert owner_in("head\n" + line.format("06"), *ends) is None  # on its way out: root's, whoever it was
    assert owner_in("head\n", *ends) is None
    assert owner_in("head\n" + line.format("01"), *reversed(ends)) is None
    assert len(kernel_address(("::1", 1))) == 37


def test_faults_of_the_verb(daemon: Served, capsys: pytest.CaptureFixture[str], tmp_path: os.PathLike[str]) -> None:
    assert main(["ui", "--daemon", str(daemon.socket), "--port", "80", "--idle-minutes", "0"]) == 2
    told = capsys.readouterr().err
    assert "--port" in told
    assert "--idle-minutes" in told
    assert main(["ui", "--daemon", f"{tmp_path}/none"]) == 4
    assert "no daemon" in capsys.readouterr().err


@pytest.mark.long
def test_it_ends_when_told_and_says_when_the_daemon_is_gone(daemon: Served) -> None:
    with page_of(daemon) as page:
        cookie = page.entered()
        daemon.kill()
        until = time.monotonic() + 20
        while (found := page.ask("/ui/", cookie=cookie))[0] == 200 and time.monotonic() < until:
            time.sleep(0.1)  # its front sees the end of its parent, and ends
        assert (found[0], "daemon" in found[2]) == (502, True)
        page.process.send_signal(signal.SIGINT)
        assert page.process.wait(timeout=20) == 0
