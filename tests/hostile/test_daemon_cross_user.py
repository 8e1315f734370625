"""Another user of the machine against the daemon: other people's tasks, contents and their existence; malformed HTTP.

The attacker is a process that has really become another user. A thing of somebody else must answer with the very bytes
that a thing which is not there answers with. Nothing may end the front, and the victim must lose nothing.
"""

import base64
import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.service_builder import Served, become, digest, ordered, put, served, talk, uploaded

from localagent.daemon.store.leases import LeaseApproval, finish, release, take
from localagent.daemon.store.task_store import Result
from localagent.protocol.http_client import Client

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
VICTIM, ATTACKER, STRANGER = 0, 47110, 47111
NOBODY_S = "20260101-000000-000000-aaaaaa"
GRANT = f'[[grant]]\nusers = ["{VICTIM}", "{ATTACKER}"]\nroles = ["submit"]\n'
SECRET = b"the victim's secret source\n"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A daemon and what the victim has there."""

    daemon: Served
    task: str
    held: str
    blob: str
    manifest: str
    order: dict[str, Any]

    def as_user(self, uid: int, requests: list[bytes], *, seconds: float = 10.0) -> list[bytes]:
        """What a process of that user gets for raw requests, each on a connection of its own."""
        return [base64.b64decode(one) for one in become(uid, lambda: [self._talk(one, seconds) for one in requests])]

    def _talk(self, data: bytes, seconds: float) -> str:
        return base64.b64encode(talk(self.daemon.socket, data, seconds=seconds)).decode()

    def attack(self, data: bytes, *, seconds: float = 10.0) -> bytes:
        return self.as_user(ATTACKER, [data], seconds=seconds)[0]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with served(hold=True, more=GRANT) as daemon:
        daemon.socket.chmod(0o666)
        client = daemon.client()
        body = {"snapshot": uploaded(client, {"a.py": SECRET.decode()}), "seed": 7}
        task = client.post("/v1/tasks", body, headers={"idempotency-key": "victim"}).json()["id"]
        with daemon.rows() as rows:
            rows.approve(task, STRANGER)
            release(rows, LeaseApproval(task=task, uid=os.getuid(), by=STRANGER))
            while (lease := take(rows)) is None or lease.task != task:
                with rows.writing() as database:
                    database.execute("DELETE FROM leases")
                    database.execute("UPDATE tasks SET state = 'queued' WHERE id = ?", (task,))
            report = b'{"patch": "the victim\'s patch", "schema": "x"}'
            finish(rows, lease, Result(report=report, patch=b'{"p": 1}', proposals=b"[]"), answer=0, reason="r")
        held = ordered(client, {"a.py": SECRET.decode()})["id"]
        yield Scene(
            daemon=daemon, task=task, held=held, blob=digest(SECRET), manifest=str(body["snapshot"]), order=body
        )


@pytest.fixture(autouse=True)
def nothing_is_lost(scene: Scene) -> Iterator[None]:
    """After every attack the front is the same process without a fault, and the victim has what it had."""
    before = scene.daemon.front()
    yield
    assert scene.daemon.front() == before
    assert "fault" not in scene.daemon.log()
    client = Client(scene.daemon.socket)
    assert client.get(f"/v1/tasks/{scene.task}").json()["state"] == "done"
    assert client.get(f"/v1/tasks/{scene.held}").json()["state"] == "held"
    assert client.request("HEAD", f"/v1/blobs/{scene.blob}").headers["x-size"] == str(len(SECRET))
    client.close()


def ask(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "host: x", "connection: close", *headers]
    if method in ("POST", "PUT") or body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def post(target: str, value: object, *headers: str) -> bytes:
    return ask("POST", target, "content-type: application/json", *headers, body=json.dumps(value).encode())


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


TASK_PROBES = [
    ("GET", "/v1/tasks/{}"),
    ("GET", "/v1/tasks/{}?uid=0"),
    ("GET", "/v1/tasks/{}?all=1"),
    ("GET", "/v1/tasks/{}/events"),
    ("GET", "/v1/tasks/{}/report"),
    ("GET", "/v1/tasks/{}/patch"),
    ("GET", "/v1/tasks/{}/patch?format=diff"),
    ("GET", "/v1/tasks/{}/patch?format=x"),
    ("GET", "/v1/tasks/{}/proposals"),
    ("GET", "/ui/tasks/{}"),
    ("GET", "/ui/tasks/{}?still=1"),
    ("POST", "/v1/tasks/{}/cancel"),
    ("POST", "/v1/tasks/{}/approve"),
    ("GET", "/v1/tasks/{}/approvals"),
    ("POST", "/v1/tasks/{}/approvals"),
    ("POST", "/v1/tasks/{}/approvals/withdraw"),
    ("GET", "/v1/tasks/./{}"),
    ("GET", "/v1/tasks/x/../{}"),
    ("GET", "/v1/tasks/%2e%2e/tasks/{}"),
    ("GET", "//v1//tasks//{}"),
    ("GET", "/v1/tasks/{}/"),
    ("GET", "/v1/tasks/{}%00"),
    ("GET", "/v1/tasks/{}%0a"),
    ("GET", "/v1/tasks/{};x"),
    ("GET", "/v1/tasks/%20{}"),
    ("GET", "/V1/TASKS/{}"),
    ("GET", "http://root@localagent/v1/tasks/{}"),
]


@pytest.mark.long
@pytest.mark.parametrize("which", ["task", "held"])
@pytest.mark.parametrize(("method", "target"), TASK_PROBES)
def test_somebody_else_s_task_answers_like_none(scene: Scene, which: str, method: str, target: str) -> None:
    theirs, none = scene.as_user(
        ATTACKER, [ask(method, target.format(name)) for name in (getattr(scene, which), NOBODY_S)]
    )
    assert theirs == none
    assert status(theirs) == 404
    assert b'"not-found"' in theirs


HEADER_PROBES = [
    "x-remote-user: root",
    "x-forwarded-user: 0",
    "x-forwarded-for: 127.0.0.1",
    "authorization: Basic cm9vdDpyb290",
    "cookie: uid=0",
    "forwarded: for=unix;by=root",
    "last-event-id: 0",
    "x-http-method-override: GET",
]


@pytest.mark.parametrize("header", HEADER_PROBES)
def test_no_header_makes_somebody_else(scene: Scene, header: str) -> None:
    answer, who = scene.as_user(
        ATTACKER, [ask("GET", f"/v1/tasks/{scene.task}/events", header), ask("GET", "/version", header)]
    )
    assert status(answer) == 404
    assert f'"uid":{ATTACKER}'.encode() in who


def test_lists_hold_one_s_own_alone(scene: Scene) -> None:
    listed, theirs, none, everybody = scene.as_user(
        ATTACKER,
        [
            ask("GET", "/v1/tasks"),
            ask("GET", f"/v1/tasks?before={scene.task}"),
            ask("GET", f"/v1/tasks?before={NOBODY_S}"),
            ask("GET", "/v1/tasks?all=1"),
        ],
    )
    assert scene.task.encode() not in listed
    assert scene.held.encode() not in listed
    assert theirs == none
    assert (status(everybody), b"read-all" in everybody) == (403, True)


def test_numbers_over_everybody_are_not_for_everybody(scene: Scene) -> None:
    assert status(scene.attack(ask("GET", "/metrics"))) == 403


BLOB_PROBES = [
    "/v1/blobs/{}",
    "/v1/blobs/{}?uid=0",
    "/v1/blobs/..%2f0%2f{}",
    "/v1/blobs/0/{}",
    "/v1/blobs/{}%00",
    "/v1/blobs/sha256:..%2f..%2f0",
]


@pytest.mark.parametrize("target", BLOB_PROBES)
def test_a_digest_opens_nothing(scene: Scene, target: str) -> None:
    theirs, none = scene.as_user(
        ATTACKER, [ask("HEAD", target.format(name)) for name in (scene.blob, digest(b"nobody's"))]
    )
    assert theirs == none
    assert status(theirs) == 404


def test_asking_what_is_missing_tells_nothing(scene: Scene) -> None:
    answer = scene.attack(post("/v1/blobs/missing", {"digests": [scene.blob, scene.manifest]}))
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"missing": [scene.blob, scene.manifest]}


def test_somebody_else_s_contents_cannot_be_ordered(scene: Scene) -> None:
    """Neither by their manifest, nor by naming their contents in one's own."""

    def try_both() -> list[str]:
        client = Client(scene.daemon.socket)
        entry = {"path": "a", "kind": "regular", "mode": 0o644, "size": len(SECRET)}
        found = []
        for content in (scene.blob, digest(b"nobody's")):
            entries = [{**entry, "digest": content}]
            text = json.dumps({"schema": "localagent/snapshot/1", "entries": entries}).encode()
            found.append(scene._talk(post("/v1/tasks", {"snapshot": put(client, text)}), 10))
        return found

    theirs, none = map(base64.b64decode, become(ATTACKER, try_both))
    assert theirs == none
    assert (status(theirs), b"were not uploaded" in theirs) == (409, True)
    by_manifest, unknown = scene.as_user(
        ATTACKER, [post("/v1/tasks", {"snapshot": name}) for name in (scene.manifest, digest(b"?"))]
    )
    assert (status(by_manifest), b'"missing"' in by_manifest) == (409, True)
    assert by_manifest.replace(scene.manifest.encode(), b"") == unknown.replace(digest(b"?").encode(), b"")


def test_somebody_else_s_idempotency_key_is_one_s_own(scene: Scene) -> None:
    answer = scene.attack(post("/v1/tasks", scene.order, "idempotency-key: victim"))
    assert status(answer) == 409
    assert scene.task.encode() not in answer


def test_somebody_else_s_content_cannot_be_replaced(scene: Scene) -> None:
    answer = scene.attack(ask("PUT", f"/v1/blobs/{scene.blob}", body=b"x" * len(SECRET)))
    assert (status(answer), b"do not have the digest" in answer) == (400, True)
    with scene.daemon.rows() as rows, rows.reading() as database:
        owners = database.execute("SELECT uid FROM blobs WHERE digest = ?", (scene.blob,)).fetchall()
    assert [x[0] for x in owners] == [VICTIM]


def test_uploading_the_same_does_not_tell_that_it_was_there(scene: Scene) -> None:
    answer = scene.attack(ask("PUT", f"/v1/blobs/{scene.blob}", body=SECRET))
    assert status(answer) == 201
    with scene.daemon.rows() as rows, rows.writing() as database:
        database.execute("DELETE FROM blobs WHERE uid = ?", (ATTACKER,))


def test_without_a_role_nothing_is_taken(scene: Scene) -> None:
    for request in (
        post("/v1/tasks", {"snapshot": scene.manifest}),
        post("/v1/blobs/missing", {"digests": [scene.blob]}),
        ask("PUT", f"/v1/blobs/{digest(b'')}"),
    ):
        answer = scene.as_user(STRANGER, [request])[0]
        assert (status(answer), b"role submit" in answer) == (403, True)


def test_the_state_is_closed_to_other_users(scene: Scene) -> None:
    def look() -> list[str]:
        found = []
        for base, folders, files in os.walk(scene.daemon.state):
            found += [str(Path(base, name)) for name in files if os.access(Path(base, name), os.R_OK)]
            found += [str(Path(base, name)) for name in folders if os.access(Path(base, name), os.R_OK)]
        return found

    assert (scene.daemon.state / "daemon.sqlite3-wal").exists()
    assert become(VICTIM, look)  # the control: root sees it all
    assert become(ATTACKER, look) == []
    for name in ("daemon.sqlite3", "daemon.sqlite3-wal", "daemon.sqlite3-shm", "daemon.lock", "blobs", "blobs/0"):
        assert (scene.daemon.state / name).stat().st_mode & 0o077 == 0, name


H = b" HTTP/1.1\r\nhost: x\r\n"
MALFORMED: list[tuple[str, bytes, set[int]]] = [
    ("nothing but noise", bytes(range(256)) * 8, {400}),
    ("a TLS hello", bytes.fromhex("1603010200010001fc0303") + b"\0" * 64 + b"\r\n\r\n", {400}),
    ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 405}),
    ("HTTP/0.9", b"GET /version\r\n\r\n", {400}),
    ("HTTP/1.1 without a host", b"GET /version HTTP/1.1\r\n\r\n", {400}),
    ("two hosts", b"GET /version" + H + b"host: y\r\n\r\n", {400}),
    ("a NUL in a header", b"GET /version" + H + b"a: b\0c\r\n\r\n", {400}),
    ("a bare CR in a header", b"GET /version" + H + b"a: b\rc\r\n\r\n", {400}),
    ("a space before the colon", b"GET /version" + H + b"content-length : 0\r\n\r\n", {400}),
    ("a header without a name", b"GET /version" + H + b": x\r\n\r\n", {400}),
    ("two different lengths", b"POST /v1/tasks" + H + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}", {400}),
    ("a negative length", b"POST /v1/tasks" + H + b"content-length: -1\r\n\r\n", {400}),
    ("a length with a sign", b"POST /v1/tasks" + H + b"content-length: +1\r\n\r\nx", {400}),
    (
        "a length in another alphabet",
        b"POST /v1/tasks" + H + b"content-length: \xd9\xa1\r\n\r\nx",
        {400},
    ),
    ("a length beyond all", b"POST /v1/tasks" + H + b"content-length: " + b"9" * 400 + b"\r\n\r\n", {400, 411, 413}),
    (
        "length and chunks",
        b"POST /v1/tasks" + H + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        {400, 411},
    ),
    ("chunks", b"POST /v1/tasks" + H + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", {411}),
    ("an unknown encoding", b"POST /v1/tasks" + H + b"transfer-encoding: gzip, chunked\r\n\r\n", {400, 411, 501}),
    ("no length", b"POST /v1/tasks" + H + b"content-type: application/json\r\n\r\n", {411}),
    ("a method of 64 KiB", b"A" * 65536 + b" / HTTP/1.1\r\n\r\n", {400, 414, 431}),
    ("a target of 4 KiB", b"GET /" + b"a" * 4096 + H + b"\r\n", {414}),
    ("a query of 4 KiB", b"GET /v1/tasks?" + b"a" * 4096 + H + b"\r\n", {414}),
    ("200 headers", b"GET /version" + H + b"".join(b"x-%d: y\r\n" % n for n in range(200)) + b"\r\n", {431}),
    ("a header of 15 KiB, twice", b"GET /version" + H + (b"x: " + b"y" * 15000 + b"\r\n") * 2 + b"\r\n", {400, 431}),
    ("a header without an end", b"GET /version" + H + b"x: " + b"y" * 200_000, {400, 431}),
    ("a target that is not ASCII", b"GET /v1/tasks/\xff\xfe" + H + b"\r\n", {400}),
    ("an upgrade", b"GET /version" + H + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n", {200}),
    ("CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\nhost: x\r\n\r\n", {400, 404, 405}),
    ("TRACE", b"TRACE /version" + H + b"\r\n", {405}),
    ("a star", b"OPTIONS *" + H + b"\r\n", {400, 404, 405}),
]
JSONS: list[tuple[str, bytes, int]] = [
    ("nesting", b"[" * 100_000, 400),
    ("nesting in an object", b'{"snapshot":' * 50 + b"1" + b"}" * 50, 400),
    ("a key twice", b'{"snapshot": "x", "snapshot": "y"}', 400),
    ("NaN", b'{"snapshot": NaN}', 400),
    ("not UTF-8", b'{"snapshot": "\xff"}', 400),
    ("a lone surrogate", b'{"snapshot": "\\ud800"}', 400),
    ("a huge number", b'{"seed": ' + b"9" * 10_000 + b"}", 400),
    ("nothing", b"", 400),
    ("a list", b"[]", 400),
    ("two values", b"{} {}", 400),
    ("a control character", b'{"text": "\x00"}', 400),
]


@pytest.mark.long
@pytest.mark.parametrize(("request_bytes", "allowed"), [x[1:] for x in MALFORMED], ids=[x[0] for x in MALFORMED])
def test_malformed_http(scene: Scene, request_bytes: bytes, allowed: set[int]) -> None:
    answer = scene.attack(request_bytes, seconds=1)
    assert status(answer) in allowed, answer[:300]


@pytest.mark.parametrize(("body", "wanted"), [x[1:] for x in JSONS], ids=[x[0] for x in JSONS])
def test_malformed_json(scene: Scene, body: bytes, wanted: int) -> None:
    answer = scene.attack(ask("POST", "/v1/tasks", "content-type: application/json", body=body))
    assert status(answer) == wanted
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["kind"] == "usage"


@pytest.mark.parametrize(
    ("request_head", "wanted"),
    [
        (f"PUT /v1/blobs/{digest(b'')} HTTP/1.1\r\nhost: x\r\ncontent-length: {1 << 40}\r\n\r\n", 413),
        (
            "POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9999999\r\n\r\n",
            413,
        ),
        (
            f"PUT /v1/blobs/{digest(b'')} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
            f"content-length: {1 << 40}\r\n\r\n",
            413,
        ),
    ],
)
def test_what_is_too_large_is_refused_before_it_comes(scene: Scene, request_head: str, wanted: int) -> None:
    answer = scene.attack(request_head.encode())
    assert status(answer) == wanted
    assert b"connection: close" in answer.lower()
    assert b"100 Continue" not in answer


def test_what_follows_a_body_is_its_sender_s_own_request(scene: Scene) -> None:
    """No smuggling: a request hidden behind a body is asked as the attacker, or not at all."""
    hidden = ask("GET", f"/v1/tasks/{scene.task}")
    answer = scene.attack(
        b"POST /v1/blobs/missing HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n"
        + b'{"digests":[]}'
        + hidden
    )
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 404" in answer


def test_requests_in_a_row_are_answered_in_order(scene: Scene) -> None:
    row = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 40 + ask("GET", f"/v1/tasks/{scene.task}")
    answer = scene.attack(row)
    assert answer.count(b"HTTP/1.1 200") == 40
    assert answer.count(b"HTTP/1.1 404") == 1


def test_who_is_slow_keeps_nobody_waiting(scene: Scene) -> None:
    """Two hundred connections that never finish their header, and followers that never read."""

    def hang() -> float:
        with ExitStack() as stack:
            for number in range(200):
                line = stack.enter_context(socket.socket(socket.AF_UNIX))
                line.connect(str(scene.daemon.socket))
                line.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\nx-" + str(number).encode())
            client = Client(scene.daemon.socket)
            return float(client.get("/version").json()["uid"])

    assert become(ATTACKER, hang) == ATTACKER


@pytest.mark.slow
def test_a_header_that_does_not_end_is_ended(scene: Scene) -> None:
    began = time.monotonic()
    answer = scene.attack(b"GET /version HTTP/1.1\r\nhost: x\r\nx: ", seconds=60)
    assert status(answer) == 408
    assert time.monotonic() - began > 5


@pytest.mark.slow
def test_a_body_that_does_not_come_is_ended(scene: Scene) -> None:
    head = f"PUT /v1/blobs/{digest(b'ab')} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na"
    assert status(scene.attack(head.encode(), seconds=90)) == 408
    assert list((scene.daemon.state / "blobs").rglob(".part-*")) == []


def test_a_connection_that_is_reset_in_the_middle_costs_nothing(scene: Scene) -> None:
    def reset() -> int:
        for cut in range(0, 200, 10):
            line = socket.socket(socket.AF_UNIX)
            line.connect(str(scene.daemon.socket))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.sendall(ask("PUT", f"/v1/blobs/{digest(b'x' * 99)}", body=b"x" * 99)[:cut])
            line.close()
        return 1

    assert become(ATTACKER, reset) == 1
    time.sleep(0.3)
    assert list((scene.daemon.state / "blobs").rglob(".part-*")) == []


@pytest.mark.long
def test_roles_reach_exactly_as_far_as_they_are_told() -> None:
    grants = f"""
[[grant]]
users = ["{VICTIM}", "{ATTACKER}"]
roles = ["submit"]
[[grant]]
groups = ["{STRANGER}"]
roles = ["approve"]
[[grant]]
users = ["{STRANGER + 1}"]
roles = ["read-all"]
[[grant]]
users = ["{STRANGER + 2}"]
roles = ["admin"]
"""
    with served(hold=True, workers=1, more=grants) as daemon:
        daemon.socket.chmod(0o666)
        task = ordered(daemon.client(), {"a.py": ""})["id"]
        look, approve, cancel, metrics = (
            ask("GET", f"/v1/tasks/{task}"),
            ask("POST", f"/v1/tasks/{task}/approve"),
            ask("POST", f"/v1/tasks/{task}/cancel"),
            ask("GET", "/metrics"),
        )
        report = ask("GET", f"/v1/tasks/{task}/report")
        expected = {
            VICTIM: [200, 409, 403, 403],  # sees it, has no report yet, approves nothing of one's own
            ATTACKER: [404, 404, 404, 403],
            STRANGER + 1: [200, 409, 404, 200],
        }
        for uid, wanted in expected.items():
            found = become(uid, lambda: [status(talk(daemon.socket, one)) for one in (look, report, approve, metrics)])
            assert found == wanted, uid
        assert become(
            STRANGER, lambda: [status(talk(daemon.socket, one)) for one in (cancel, report, look, approve)]
        ) == [
            404,
            404,
            200,
            200,
        ]
        assert become(STRANGER, lambda: status(talk(daemon.socket, approve))) == 409
        assert become(STRANGER + 2, lambda: status(talk(daemon.socket, cancel))) in (200, 202)
        with daemon.rows() as rows:
            row = rows.find(task, VICTIM)
        assert row is not None
        assert row.cancel or row.state.over


def test_there_are_forty_probes() -> None:
    probes = 2 * len(TASK_PROBES) + len(HEADER_PROBES) + len(BLOB_PROBES) + len(MALFORMED) + len(JSONS)
    assert probes >= 40
