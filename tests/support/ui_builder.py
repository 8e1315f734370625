"""A daemon with a task whose every text is hostile, `localagent ui` before it, and a browser driven by a pipe."""

import errno
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from localagent.daemon.store.leases import Lease, append, finish
from localagent.daemon.store.task_store import Result
from localagent.domain.task import Event
from support.service_builder import Served, ordered

EVIL = "</td><script>document.title='owned'</script><img src=http://127.0.0.1:1/x onerror=alert(1)>\u202e\x1b[2J"
DIFF = (
    "diff --git a/adder.py b/adder.py\n--- a/adder.py\n+++ b/adder.py\n@@ -1,4 +1,4 @@\n def add(a, b):\n"
    '-    """<script>old()</script>"""\n-    return a - b\n+    """<script>new()</script>"""\n+    return a + b\n \n'
)


def report(text: str = EVIL) -> dict[str, Any]:
    """The report of an accepted task; `text` stands wherever a repository has a say."""
    return {
        "outcome": "accepted",
        "patch": DIFF,
        "patch_digest": "sha256:" + "0" * 64,
        "provenance": [{"edit": text, "operator": "x", "origin": "model", "model": text}],
        "confidence": {"probability": 0.62, "calibrated": False, "model": text, "for": [text], "against": [text]},
        "proposals": [],
        "failing": [{"id": text, "exception": text, "message": text, "where": [{"path": text, "line": 5}]}],
        "fail_to_pass": [text],
        "pass_to_pass": [text],
        "candidates_enumerated": 455,
        "candidates_denied": {text: 3},
        "candidates_verified": 60,
        "plausible": 2,
        "model": {"name": text, "digest": text},
        "seconds": {"baseline": 3.0, text: 1.0},
        "jail": {"backend": text, "level": "L4"},
        "limits_hit": {text: 1},
        "checks": {text: text},
        "python": text,
        "pytest": text,
        "ambiguity": {"call": text, "answers": {text: text}},
        "findings": [{"rule": text, "path": text, "line": 3, "test": None, "text": text}],
        "warnings": [text],
        "attestation": {"file": text, "key": text},
    }


def events(text: str = EVIL) -> list[Event]:
    """What a task says on the way."""
    told: tuple[tuple[str, dict[str, Any]], ...] = (
        ("stage", {"stage": "baseline"}),
        ("baseline", {"passing": 1, "failing": [text]}),
        ("localized", {"top": [text]}),
        ("denied", {"number": 2, "rule": text, "edit": text}),
        (
            "checked",
            {"number": 1, "edit": [text], "plausible": True, "turned": 1, "broken": 0, "cost": 1, "route": text},
        ),
        (
            "checked",
            {"number": 3, "edit": [text], "plausible": False, "turned": 0, "broken": 0, "cost": 2, "route": ""},
        ),
        ("full-check", {"number": 1, "accepted": True, "reasons": [text]}),
        ("warning", {"text": text}),
        ("stage", {"stage": text}),
    )
    return [Event(kind=kind, at_seconds=float(n), data=data) for n, (kind, data) in enumerate(told)]


def running(daemon: Served, text: str = EVIL) -> Lease:
    """A task of a daemon that holds everything, taken as by a worker."""
    task = ordered(daemon.client(), {"a.py": "x = 1\n"}, text=text)["id"]
    lease = Lease(task=task, token=secrets.token_hex(16), uid=os.getuid(), attempt=1)
    with daemon.rows() as rows:
        with rows.writing() as database:
            database.execute(
                "UPDATE tasks SET state = 'running', attempts = 1, started_at = ? WHERE id = ?", (1e9, task)
            )
            database.execute("INSERT INTO leases VALUES (?, ?, ?)", (task, lease.token, time.time()))
        append(rows, lease, events(text))
    return lease


def done(daemon: Served, text: str = EVIL) -> str:
    """A task that was accepted; its id."""
    lease = running(daemon, text)
    with daemon.rows() as rows:
        kept = json.dumps(report(text)).encode()
        finish(rows, lease, Result(report=kept, patch=None, proposals=b"[]"), answer=0, reason=text)
    return lease.task


@dataclass
class Page:
    """A running `localagent ui`."""

    process: "subprocess.Popen[str]"
    address: str

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def port(self) -> int:
        return int(self.host.partition(":")[2])

    @property
    def entry(self) -> str:
        return urlsplit(self.address).path

    def ask(self, path: str, *, method: str = "GET", host: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
        """One request over TCP; status, headers, body. Status 0 where nothing came back."""
        lines = [f"{method} {path} HTTP/1.1", f"host: {host or self.host}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        with socket.socket() as line:
            line.settimeout(20)
            answer = b""
            with suppress(OSError):
                line.connect(("127.0.0.1", self.port))
                line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
                while piece := line.recv(65536):
                    answer += piece
        if not answer:
            return 0, {}, ""
        head, _, body = answer.decode().partition("\r\n\r\n")
        first, *rest = head.split("\r\n")
        fields = (line.partition(": ") for line in rest)
        return int(first.split()[1]), {name.lower(): value for name, _, value in fields}, body

    def entered(self) -> str:
        """The cookie that the address gives out, once."""
        status, headers, _ = self.ask(self.entry)
        assert status == 303
        return headers["set-cookie"].partition(";")[0]


def needs_loopback() -> None:
    """Skip where the loopback of a network namespace is down: the relay refuses to serve there, which has a test."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        client.settimeout(5)
        if client.connect_ex(server.getsockname()) == errno.ENETUNREACH:
            pytest.skip("the loopback of this network namespace is down")


@contextmanager
def page_of(daemon: Served, *more: str) -> Iterator[Page]:
    needs_loopback()
    argv = [sys.executable, "-m", "localagent", "ui", "--daemon", str(daemon.socket), *more]
    process = subprocess.Popen(argv, cwd=daemon.root, env=daemon.environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Page(process=process, address=process.stdout.readline().strip())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        if process.stdout is not None:
            process.stdout.close()


class Chromium:
    """A headless browser, told what to do over a pair of pipes (DevTools, a JSON object and a NUL each)."""

    FLAGS = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        " --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
    )

    def __init__(self, program: str) -> None:
        self._home = tempfile.mkdtemp(prefix="la-chromium-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        ends = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        argv = [
            "bash",
            "-c",
            ends,
            "bash",
            program,
            *self.FLAGS.split(),
            f"--user-data-dir={self._home}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            argv,
            pass_fds=(theirs_in, theirs_out),
            env={"PATH": os.environ["PATH"], "HOME": self._home, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._asked = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """One command; its result. Events on the way are kept."""
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._asked:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser ended"
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def open(self, address: str) -> None:
        """Goes there and waits until it is loaded."""
        self.events.clear()
        self.do("Page.navigate", url=address)
        while not any(x.get("method") == "Page.loadEventFired" for x in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """What an expression is in the page; the page's own policy does not bind the debugger."""
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def requested(self) -> list[str]:
        """What was asked of anybody since the page was opened."""
        found = [x for x in self.events if x.get("method") == "Network.requestWillBeSent"]
        return [x["params"]["request"]["url"] for x in found]

    def complaints(self) -> list[str]:
        """What the browser's console says: violations of the policy, things that did not load."""
        found = [x["params"]["entry"] for x in self.events if x.get("method") == "Log.entryAdded"]
        return [x["text"] for x in found if "favicon" not in x.get("url", "")]

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._home, ignore_errors=True)


def installed_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def picture_path() -> Path | None:
    """Where the picture of docs/ is written anew, when LOCALAGENT_PICTURE names a file."""
    named = os.environ.get("LOCALAGENT_PICTURE", "")
    return Path(named) if named else None
