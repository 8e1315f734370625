"""Whatever a daemon answers `fix --daemon`, or does not, whoever asked is told what to do about it.

What answers here is a socket of the test's that says what it is told to say, as a daemon would on the wire.
"""

import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.fix_builder import Ran, home
from support.service_builder import served

from localagent import __version__
from localagent.protocol.http_client import Client, DaemonGone, DaemonRefuses

TASK = "20261125-120000-000000-abcdef"
DEMANDING = {
    "greet.py": "def greet(name):\n    return nmae\n",
    "test_greet.py": "from greet import greet\n\n\ndef test_greet():\n    assert greet('x') == 'x'\n",
    "pyproject.toml": '[tool.localagent.verification]\nmin_strength = "A"\n',
}
Said = tuple[int, object, Mapping[str, str]]
VERSION: Said = (200, {"version": __version__, "api": 1}, {})
OTHER: Said = (200, {"version": "0.0.1", "api": 1}, {})
NOTHING_MISSING: Said = (200, {"missing": []}, {})


def refusal(status: int, kind: str, remedy: str = "", **headers: str) -> Said:
    return status, {"error": {"kind": kind, "faults": ["no"], "remedy": remedy}}, headers


@contextmanager
def answering(folder: Path, says: Mapping[str, Said]) -> Iterator[Path]:
    """A socket at which each path has one answer; bytes are sent as they are, None ends the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", "0")))
            path = self.path.partition("?")[0]
            status, body, headers = next((says[p] for p in says if path.endswith(p)), refusal(404, "not-found"))
            if body is None:
                return
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(data)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PUT = do_GET

        def address_string(self) -> str:
            return "client"

        def log_message(self, *args: object) -> None:
            pass

    path = folder / "s"
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


def fixed(says: Mapping[str, Said]) -> Ran:
    with home({"a.py": "x = 1\n"}) as place, answering(place.root, {"/version": VERSION, **says}) as socket:
        return place.fix("--daemon", str(socket))


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (refusal(507, "full", "their remedy"), "their remedy"),
        (refusal(403, "role", "join the group"), "join the group"),
        (refusal(429, "quota"), "wait for a task of yours to end"),
        (refusal(429, "rate", retry_after="90"), "ask less often (in 90 s)"),
        (refusal(503, "ending", retry_after="90"), "ask again when it was started anew (in 90 s)"),
        (refusal(500, "internal"), "journalctl -u localagent"),
        (refusal(404, "not-found"), "`localagent tasks list`"),
        (refusal(418, "who-knows"), "another version"),
        ((502, b"<html>", {}), "another version"),
        ((429, {"error": {"kind": 7}}, {}), "another version"),
    ],
)
def test_each_refusal_comes_with_what_to_do(tmp_path: Path, said: Said, remedy: str) -> None:
    with answering(tmp_path, {"/x": said}) as socket, pytest.raises(DaemonRefuses) as no:
        Client(socket).get("/x")
    assert remedy in no.value.remedy


def test_a_daemon_that_breaks_off_says_where_to_look(tmp_path: Path) -> None:
    with answering(tmp_path, {"/x": (200, None, {})}) as socket, pytest.raises(DaemonGone) as gone:
        Client(socket).get("/x")
    assert "systemctl status localagent" in gone.value.remedy


@pytest.mark.long
def test_what_is_no_daemon_of_ours_is_said_and_nothing_is_sent() -> None:
    for version, told in (
        ((200, b"hello", {}), "is no daemon of localagent"),
        ((200, [1], {}), "interface this one"),
        ((200, {"version": "9.9", "api": 2}, {}), "is localagent 9.9, whose interface"),
    ):
        ran = fixed({"/version": version})
        assert (ran.code, told in ran.err) == (4, True), ran
        assert "what to do: bring daemon and client to the same version" in ran.err


@pytest.mark.long
def test_what_an_other_version_does_otherwise_is_no_bug_of_ours() -> None:
    """An answer that is not as agreed, and an order that it does not know."""
    for says, code in (
        ({"/missing": (200, {"lacks": []}, {})}, 4),
        ({"/missing": NOTHING_MISSING, "/v1/tasks": refusal(400, "usage", "leave it away")}, 2),
        ({"/missing": NOTHING_MISSING, "/v1/tasks": refusal(409, "no", "theirs")}, 1),
    ):
        ran = fixed({"/version": OTHER, **says})
        assert (ran.code, f"the daemon is localagent 0.0.1, this is {__version__}" in ran.err) == (code, True), ran
        assert "bring daemon and client to the same version" in ran.err
    same = fixed({"/missing": (200, {"lacks": []}, {})})
    assert (same.code, "0.0.1" in same.err) == (3, False)


@pytest.mark.long
def test_a_held_task_says_who_lets_it_run_and_a_cancelled_one_what_comes_next() -> None:
    over = {"state": "cancelled", "reason": "cancelled"}
    end = f"event: end\ndata: {json.dumps(over)}\n\n".encode()
    ran = fixed(
        {
            "/missing": NOTHING_MISSING,
            "/v1/tasks": (201, {"id": TASK, "state": "held"}, {}),
            "/events": (200, end, {"content-type": "text/event-stream"}),
        }
    )
    assert (ran.code, f"`localagent tasks approve {TASK}`" in ran.err) == (1, True), ran
    assert "what to do: order it again" in ran.err


@pytest.mark.long
def test_what_fix_says_to_do_comes_home_and_stays() -> None:
    """Under the id that the task has here, in the answer, in the report and in `show`."""
    with served() as daemon, home(DEMANDING) as place:
        ran = place.fix("--daemon", str(daemon.socket), "--assume")
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person"), (ran, daemon.log())
        remedy = ran.report["remedy"]
        assert remedy.startswith("add tests for what it changes")
        assert f"`localagent apply {ran.report['task']} --choose 1`" in remedy
        assert f"what to do: {remedy}" in ran.out + ran.err
        assert f"What to do: {remedy}" in place.run("show", ran.report["task"]).out
