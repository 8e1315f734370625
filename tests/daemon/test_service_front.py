"""The front over its real socket: what OpenAPI says is there, contents, orders, events, limits, endings."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.schema_checker import check_schema, checker
from support.service_builder import Served, digest, ordered, put, served, talk, uploaded

from localagent.cli.main import main
from localagent.daemon.http.endpoints import ENDPOINTS, document
from localagent.daemon.http.openapi_schemas import SCHEMAS
from localagent.daemon.http.rate_limits import ConnectionLimiter
from localagent.daemon.http.request_context import depth_of
from localagent.daemon.processes.configuration import load_configuration
from localagent.daemon.store.leases import LeaseApproval, append, finish, release, take
from localagent.daemon.store.task_store import Result, Rows
from localagent.domain.task import Event
from localagent.errors import UsageFault
from localagent.protocol import http_client
from localagent.protocol.http_client import Client, DaemonGone, DaemonRefuses
from localagent.protocol.snapshot_manifest import pack_manifest
from localagent.protocol.task_order import TaskOrder, pack_order
from localagent.protocol.uploads import upload
from localagent.repo.snapshot import take_snapshot

FILES = {"a.py": "x = 1\n"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Served]:
    """Without workers' help: every task is held, so that this test alone moves it."""
    grant = f'[[grant]]\nusers = ["{os.getuid()}"]\nroles = ["submit", "read-all"]\n'
    with served(hold=True, more=grant) as made:
        yield made


@pytest.fixture
def client(daemon: Served) -> Iterator[Client]:
    made = Client(daemon.socket)
    yield made
    made.close()


def refused(client: Client, method: str, target: str, **more: Any) -> DaemonRefuses:
    with pytest.raises(DaemonRefuses) as fault:
        client.request(method, target, **more)
    return fault.value


@pytest.mark.long
def test_openapi_is_what_is_there(daemon: Served, client: Client) -> None:
    found = client.get("/v1/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    told = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert told == {(e.method, e.path) for e in ENDPOINTS}
    ids = [operation["operationId"] for methods in found["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
    for schema in found["components"]["schemas"].values():
        check_schema(schema)
    assert found == document(found["info"]["version"])


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_every_endpoint_answers_as_documented(daemon: Served, endpoint: Any) -> None:
    """With empty hands: a documented status or a fault of the one shape, and no other method."""
    target = endpoint.path.replace("{task}", "20260101-000000-000000-aaaaaa").replace("{digest}", digest(b"none"))
    head = f"{endpoint.method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n"
    answer = talk(daemon.socket, f"{head}\r\n".encode(), seconds=5)
    status = int(answer.split()[1])
    body = answer.partition(b"\r\n\r\n")[2]
    assert status < 500
    if status >= 400 and endpoint.method != "HEAD":
        checker(SCHEMAS["Fault"]).validate(json.loads(body))
    if status < 400:
        assert status in endpoint.answers
    other = talk(daemon.socket, head.replace(endpoint.method, "DELETE", 1).encode() + b"\r\n", seconds=5)
    assert int(other.split()[1]) == 405


def test_the_order_s_schema_takes_what_the_parser_takes() -> None:
    order_checker = checker(SCHEMAS["Order"])
    order = json.loads(json.dumps(pack_order(TaskOrder(snapshot=digest(b"")))))
    order_checker.validate(order)
    assert set(SCHEMAS["Order"]["properties"]) == set(order)
    for key, wrong in (("seed", "x"), ("jobs", 65), ("tests", [1]), ("snapshot", "x"), ("odd", 1)):
        assert not order_checker.is_valid({**order, key: wrong})


def test_contents_and_orders(client: Client) -> None:
    data = os.urandom(3 << 20)
    target = f"/v1/blobs/{digest(data)}"
    assert refused(client, "HEAD", target).status == 404
    assert client.put(target, data).status == 201
    assert client.put(target, data).status == 200
    assert client.request("HEAD", target).headers["x-size"] == str(len(data))
    with pytest.raises(UsageFault, match="do not have the digest"):
        client.put(target, data[1:])
    order = {"snapshot": uploaded(client, FILES)}
    first = client.post("/v1/tasks", order, headers={"idempotency-key": "one"})
    again = client.post("/v1/tasks", order, headers={"idempotency-key": "one"})
    assert (first.status, again.status) == (201, 200)
    assert first.json() == again.json()
    assert first.headers["location"] == f"/v1/tasks/{first.json()['id']}"
    with pytest.raises(DaemonRefuses, match="used for another order") as taken:
        client.post("/v1/tasks", {**order, "seed": 1}, headers={"idempotency-key": "one"})
    assert taken.value.status == 422
    assert client.get(f"/v1/tasks/{first.json()['id']}").json()["state"] == "held"
    assert refused(client, "GET", f"/v1/tasks/{first.json()['id']}/report").kind == "state"


def test_an_order_for_what_was_not_uploaded(client: Client) -> None:
    with pytest.raises(DaemonRefuses, match="not uploaded") as missing:
        client.post("/v1/tasks", {"snapshot": digest(b"nobody has this")})
    assert (missing.value.status, missing.value.kind) == (409, "missing")
    entry = {"path": "a", "kind": "regular", "mode": 0o644, "size": 9, "digest": put(client, b"eight by")}
    manifest = put(client, json.dumps({"schema": "localagent/snapshot/1", "entries": [entry]}).encode())
    with pytest.raises(DaemonRefuses, match="1 contents of the snapshot"):
        client.post("/v1/tasks", {"snapshot": manifest})


class Counting(Client):
    """Remembers what it uploads."""

    __slots__ = ("put_targets",)
    put_targets: list[str]

    def put(self, target: str, body: bytes) -> Any:
        self.put_targets.append(target)
        return super().put(target, body)


def test_only_what_is_missing_is_uploaded(daemon: Served, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for name in "abcd":
        (repo / name).write_text("same" if name in "cd" else name)
    counts = []
    for turn in range(3):
        if turn == 2:
            (repo / "a").write_text("changed")
        client = Counting(daemon.socket)
        client.put_targets = []
        snapshot = take_snapshot(repo, tmp_path / f"store-{turn}")
        data = pack_manifest(snapshot)
        upload(client, snapshot, digest(data), data)
        client.close()
        counts.append(len(client.put_targets))
    assert counts == [4, 0, 2]  # three contents and the manifest; nothing; one content and the manifest


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_seconds": 1e6}, "at most 1800 here"),
        ({"python": "python9"}, "no interpreter 'python9' here"),
        ({"model": "gpt"}, "no model 'gpt' here"),
        ({"repo": "/"}, "unknown: 'repo'"),
    ],
)
def test_orders_beyond_the_daemon_s_terms(client: Client, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageFault) as fault:
        client.post("/v1/tasks", {"snapshot": uploaded(client, FILES), **change})
    assert reason in str(fault.value)


def test_events_go_on_where_they_stopped_and_end(daemon: Served, client: Client) -> None:
    task = ordered(client, FILES)["id"]
    with daemon.rows() as rows:
        rows.approve(task, 4711)
        release(rows, LeaseApproval(task=task, uid=os.getuid(), by=4711))
        lease = lease_of(rows, task)
        append(rows, lease, [Event(kind="stage", at_seconds=0.5, data={"n": n}) for n in range(3)])
        stream = client.stream(f"/v1/tasks/{task}/events", after=1)
        first = [next(stream), next(stream)]
        append(rows, lease, [Event(kind="late", at_seconds=1.0, data={"text": "\n\nid: 99\n\n"})])
        late = next(stream)
        finish(rows, lease, Result(report=b"{}", patch=None, proposals=b"[]"), answer=0, reason="well")
        end = list(stream)
    assert [event.id for event in first] == [2, 3]
    assert json.loads(first[0].data) == {"kind": "stage", "at_seconds": 0.5, "data": {"n": 1}}
    assert (late.id, json.loads(late.data)["data"]["text"]) == (4, "\n\nid: 99\n\n")
    assert [event.kind for event in end] == ["end"]
    assert json.loads(end[0].data)["state"] == "done"
    after_end = list(client.stream(f"/v1/tasks/{task}/events", after=4))
    assert [event.kind for event in after_end] == ["end"]
    assert client.get(f"/v1/tasks/{task}/report").body == b"{}"
    assert refused(client, "GET", f"/v1/tasks/{task}/patch").kind == "no-patch"


def lease_of(rows: Rows, task: str) -> Any:
    """The daemon's own pool may be quicker: then its lease is taken over, as after a kill of the daemon."""
    for _ in range(200):
        lease = take(rows)
        if lease is not None and lease.task == task:
            return lease
        with rows.writing() as database:
            database.execute("DELETE FROM leases")
            database.execute("UPDATE tasks SET state = 'queued' WHERE id = ?", (task,))
    raise AssertionError("no lease")


def test_metrics_are_prometheus_s(client: Client) -> None:
    text = client.get("/metrics").body.decode()
    assert 'localagent_tasks{state="held"}' in text
    assert 'localagent_requests_total{route="/metrics"' in client.get("/metrics").body.decode()
    for line in text.splitlines():
        assert line.startswith("# TYPE localagent_") or len(line.rsplit(" ", 1)) == 2, line


def test_nobody_can_open_a_network_or_start_a_program_there(daemon: Served, client: Client) -> None:
    assert client.get("/version").json()["network_denied"] is True
    status = Path(f"/proc/{daemon.front()}/status").read_text()
    assert "Seccomp:\t2" in status
    assert daemon.process is not None
    for pid in (daemon.front(), daemon.process.pid):
        held = {link[8:-1] for link in map(link_of, Path(f"/proc/{pid}/fd").iterdir()) if link.startswith("socket:")}
        unix = {line.split()[6] for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
        assert held
        assert held <= unix


DENIED = """
import errno, os, socket
from localagent.daemon.http.app import deny_network
socket.socket(socket.AF_INET).close()
assert deny_network()
socket.socketpair()
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK):
    try:
        socket.socket(family, socket.SOCK_RAW if family == socket.AF_PACKET else socket.SOCK_DGRAM)
    except OSError as fault:
        assert fault.errno == errno.EAFNOSUPPORT, fault
    else:
        raise SystemExit(f"{family} was opened")
try:
    os.execv("/bin/true", ["true"])
except PermissionError:
    print("denied")
"""


def test_what_the_front_is_denied(daemon: Served) -> None:
    ran = run(daemon, "-c", DENIED)
    assert (ran.stdout, ran.stderr) == ("denied\n", "")


def link_of(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # it was closed meanwhile
        return ""


def test_the_socket_is_for_its_group_alone(daemon: Served) -> None:
    assert daemon.socket.stat().st_mode & 0o777 == 0o660


def test_a_front_that_is_killed_is_replaced_and_nobody_is_turned_away(daemon: Served, client: Client) -> None:
    task = ordered(client, FILES)["id"]
    old = daemon.front()
    os.kill(old, signal.SIGKILL)
    again = Client(daemon.socket)
    assert again.get(f"/v1/tasks/{task}").json()["id"] == task  # waits in the socket's backlog meanwhile
    assert daemon.front() != old
    again.close()


def refusing(capsys: pytest.CaptureFixture[str], *argv: Any) -> str:
    """What `serve` says when it serves nothing."""
    assert main(["serve", *map(str, argv)]) == 4
    return capsys.readouterr().err


def test_a_second_daemon_on_the_same_state_is_refused(daemon: Served, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusing(capsys, "--socket", daemon.root / "run" / "other.sock", "--state", daemon.state)
    assert "another daemon works in" in said


def test_an_unsafe_place_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("open", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "is open to other users" in refusing(capsys, "--socket", tmp_path / "open" / "s", "--state", tmp_path / "s")
    assert "not this user's alone" in refusing(capsys, "--socket", tmp_path / "s", "--state", tmp_path / "open")
    (tmp_path / "mine" / "file").write_text("")
    said = refusing(capsys, "--socket", tmp_path / "mine" / "file", "--state", tmp_path / "s")
    assert "is there, and no socket" in said


def test_no_socket_at_all_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no socket was handed over" in refusing(capsys, "--state", tmp_path / "s")
    monkeypatch.setenv("LISTEN_FDS", "1")
    monkeypatch.setenv("LISTEN_PID", "1")  # meant for another process
    assert "no socket was handed over" in refusing(capsys, "--state", tmp_path / "s")
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "2")
    assert "exactly one is served" in refusing(capsys, "--state", tmp_path / "s")


def run(daemon: Served, *argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *argv],
        env=daemon.environment(),
        capture_output=True,
        text=True,
        check=False,
        cwd=daemon.root,
    )


HAND_OVER = """
import os, socket, sys
s = socket.socket(getattr(socket, sys.argv[1])); s.bind(sys.argv[2] if sys.argv[1] == "AF_UNIX" else ("127.0.0.1", 0))
if sys.argv[3] == "listen": s.listen()
os.dup2(s.fileno(), 3); os.set_inheritable(3, True)
os.environ["LISTEN_PID"] = str(os.getpid()); os.environ["LISTEN_FDS"] = "1"
os.execv(sys.executable, [sys.executable, "-m", "localagent", "serve", *sys.argv[4:]])
"""


@pytest.mark.long
@pytest.mark.parametrize(("family", "how"), [("AF_INET", "listen"), ("AF_UNIX", "not")])
def test_another_socket_than_a_listening_unix_one_is_never_served(daemon: Served, family: str, how: str) -> None:
    name = str(daemon.root / "run" / "handed")
    ran = run(daemon, "-c", HAND_OVER, family, name, how, "--state", str(daemon.root / "s2"))
    Path(name).unlink(missing_ok=True)
    assert (ran.returncode, "not a listening Unix stream socket" in ran.stderr) == (4, True)


@pytest.mark.long
def test_systemd_hands_a_socket_over_and_hears_what_happens(tmp_path: Path) -> None:
    with served(start=False) as daemon, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        notify = daemon.root / "notify"
        heard.bind(str(notify))
        heard.settimeout(60)
        environment = {**daemon.environment(), "NOTIFY_SOCKET": str(notify), "WATCHDOG_USEC": "60000000"}
        argv = [sys.executable, "-c", HAND_OVER, "AF_UNIX", str(daemon.socket), "listen"]
        argv += ["--state", str(daemon.state), "--settings", str(daemon.settings)]
        daemon.process = subprocess.Popen(argv, env=environment, cwd=daemon.root, stderr=subprocess.PIPE)
        assert heard.recv(99).startswith(b"READY=1")
        assert daemon.answers()
        while (word := heard.recv(99)) != b"WATCHDOG=1":
            pass
        daemon.process.send_signal(signal.SIGTERM)
        while (word := heard.recv(99)) == b"WATCHDOG=1":
            pass
        assert word.startswith(b"STOPPING=1")
        assert daemon.process.wait(timeout=30) == 0
        assert daemon.socket.exists()  # it is systemd's


@pytest.mark.long
def test_a_full_disk_refuses_new_work_and_shows_what_there_is() -> None:
    with served(hold=True) as daemon:
        client = daemon.client()
        task = ordered(client, FILES)["id"]
        assert daemon.end() == 0
        assert not daemon.socket.exists()
        text = daemon.settings.read_text().replace("reserve_mib = 256", "reserve_mib = 1073741824")
        daemon.settings.write_text(text)
        daemon.start()
        client = daemon.client()
        for method, target, body in (("PUT", f"/v1/blobs/{digest(b'new')}", b"new"),):
            fault = refused(client, method, target, body=body)
            assert (fault.status, fault.kind, fault.retry_seconds) == (507, "full", 60)
        with pytest.raises(DaemonRefuses, match="disk is nearly full"):
            client.post("/v1/tasks", {"snapshot": uploaded_before(FILES)})
        assert refused(client, "GET", "/readyz").status == 503
        assert client.get(f"/v1/tasks/{task}").json()["state"] == "held"


def uploaded_before(files: dict[str, str]) -> str:
    entries = [
        {"path": n, "kind": "regular", "mode": 0o644, "size": len(t), "digest": digest(t.encode())}
        for n, t in files.items()
    ]
    return digest(json.dumps({"schema": "localagent/snapshot/1", "entries": entries}).encode())


@pytest.mark.long
def test_quotas_and_rates_say_when_to_come_back() -> None:
    with served(hold=True, open_tasks=1, stored_mib=1, burst=60, requests_a_second=5, connections=3) as daemon:
        client = daemon.client()
        ordered(client, FILES)
        with pytest.raises(DaemonRefuses, match="1 open tasks, and 1 are allowed") as quota:
            ordered(client, FILES)
        assert (quota.value.status, quota.value.kind, quota.value.retry_seconds) == (429, "quota", 10)
        big = os.urandom(1 << 20)
        fault = refused(client, "PUT", f"/v1/blobs/{digest(big)}", body=big)
        assert (fault.status, fault.kind) == (429, "quota")
        others = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for other in others:
            other.connect(str(daemon.socket))
        assert b"429" in talk(daemon.socket, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").split(b"\r\n")[0]
        for other in others:
            other.close()
        time.sleep(0.2)
        with pytest.raises(DaemonRefuses, match="too many requests") as rate:
            [client.get("/healthz") for _ in range(200)]
        assert (rate.value.status, rate.value.retry_seconds) == (429, 1)


def test_the_door_counts_each_user_apart(tmp_path: Path) -> None:
    now = 0.0
    with served(start=False, burst=2, requests_a_second=1, connections=2, all_connections=3) as daemon:
        door = ConnectionLimiter(load_configuration(daemon.settings).rates, clock=lambda: now)
    assert [door.ask(1), door.ask(1), door.ask(1) > 0, door.ask(2)] == [0.0, 0.0, True, 0.0]
    now = 1.0
    assert [door.ask(1), door.ask(1) > 0] == [0.0, True]
    assert [door.enter(1), door.enter(1), door.enter(1), door.enter(2), door.enter(3)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    door.leave(1)
    assert door.enter(3)
    now = 99.0
    door.forget_quiet()
    assert door.ask(1) == 0.0


def test_depth_is_counted_outside_strings() -> None:
    assert depth_of(b'{"a": [1, "[[[[", "\\"[["]}') == 2
    assert depth_of(b"[" * 50) == 50


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("workers = 0", "queue.workers: must be an integer from 1"),
        ("hold = 1", "queue.hold: must be true or false"),
        ("odd = 1", "queue.odd: unknown key"),
        ("", "queue.workers: is missing"),
    ],
)
def test_wrong_settings_are_refused_with_every_reason(change: str, reason: str) -> None:
    with served(start=False) as daemon:
        text = daemon.settings.read_text()
        line = next(line for line in text.splitlines() if line.startswith("hold" if "hold" in change else "workers"))
        daemon.settings.write_text(text.replace(line, change if "odd" not in change else f"{line}\n{change}"))
        with pytest.raises(UsageFault) as fault:
            load_configuration(daemon.settings)
        assert any(reason in line for line in fault.value.faults)


def test_a_grant_to_nobody_is_a_fault() -> None:
    with served(start=False, more='[[grant]]\nusers = ["no-such-user"]\nroles = ["fly"]\n') as daemon:
        with pytest.raises(UsageFault) as fault:
            load_configuration(daemon.settings)
        assert len(fault.value.faults) == 2


def test_chat_models_are_named_whole() -> None:
    more = '[[chat_model]]\nname = "a b"\nmodel = "unix:s"\n[[chat_model]]\nname = "x"\nmodel = "../x"\nodd = 1\n'
    with served(start=False, more=more) as daemon:
        with pytest.raises(UsageFault) as fault:
            load_configuration(daemon.settings)
        assert [line.split(":")[1].strip() for line in fault.value.faults] == [
            "chat_model[0].name",
            "chat_model[0].model",
            "chat_model[1].model",
            "chat_model[1].odd",
        ]


def test_no_daemon_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "none"
    for command in (f"localagent serve --socket {path}", "systemctl start localagent.socket"):
        with pytest.raises(DaemonGone, match="there is no daemon at") as gone:
            Client(path).get("/version")
        assert gone.value.remedy.startswith(f"start it (`{command}`)")
        monkeypatch.setattr(http_client, "DEFAULT_SOCKET", path)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    with pytest.raises(DaemonGone, match="nobody listens"):
        Client(tmp_path / "dead").get("/version")


@pytest.mark.long
def test_a_policy_is_named_as_everywhere() -> None:
    with served(start=False) as daemon:
        daemon.options = ("--policy", "permissive")
        daemon.start()
        client = daemon.client()
        assert 'name = "permissive"' in client.get("/v1/policy").json()["text"]
        client.close()
