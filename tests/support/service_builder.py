"""A daemon of its own for tests, as a real process on a real socket, and small ways to speak to it."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localagent.daemon.store.task_store import Rows
from localagent.protocol.http_client import Client

CHECKOUT = Path(__file__).resolve().parents[2]
SETTINGS = (CHECKOUT / "systemd" / "daemon.toml").read_text(encoding="utf-8")


def _command(pid: int) -> bytes:
    """The command line of a process; empty when it has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@dataclass
class Served:
    """A daemon below `root`. `start` and `kill` as often as wanted."""

    root: Path
    workers: int = 1
    process: "subprocess.Popen[bytes] | None" = None
    options: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.root / "run" / "daemon.sock"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def settings(self) -> Path:
        return self.root / "daemon.toml"

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(CHECKOUT),
            **self.extra,
        }

    def start(self, *, wait: bool = True) -> None:
        argv = [sys.executable, "-m", "localagent", "serve", "--socket", str(self.socket), "--state", str(self.state)]
        argv += ["--settings", str(self.settings), "--workers", str(self.workers), *self.options]
        log = (self.root / "log").open("ab")
        self.process = subprocess.Popen(
            argv, cwd=self.root, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        log.close()
        while wait and not self.answers():
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(5)
                probe.connect(str(self.socket))
                probe.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                return probe.recv(15) == b"HTTP/1.1 200 OK"
        except OSError:
            return False

    def log(self) -> str:
        return (self.root / "log").read_text(encoding="utf-8")

    def children(self) -> list[int]:
        assert self.process is not None
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def front(self) -> int:
        return next(pid for pid in self.children() if b"http.app" in _command(pid))

    def worker(self) -> int | None:
        for pid in self.children():
            if b"processes.worker" in _command(pid):
                return pid
        return None

    def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """Not over before its children are: a front that has not yet noticed would answer in the next one's place."""
        assert self.process is not None
        children = self.children() if self.process.poll() is None else []
        self.process.kill()
        self.process.wait()
        while any(_command(pid) for pid in children):
            time.sleep(0.01)

    def client(self) -> Client:
        client = Client(self.socket)
        self.clients.append(client)
        return client

    def until(self, task: str, *states: str) -> dict[str, Any]:
        """The task, once it is in one of these states."""
        client = self.client()
        while True:
            found: dict[str, Any] = client.get(f"/v1/tasks/{task}").json()
            if found["state"] in states:
                return found
            time.sleep(0.1)

    @contextmanager
    def rows(self) -> Iterator[Rows]:
        rows = Rows(self.state)
        try:
            yield rows
        finally:
            rows.close()

    def close(self) -> None:
        for client in self.clients:
            client.close()
        if self.process is not None and self.process.poll() is None:
            self.kill()


@contextmanager
def served(*, workers: int = 1, start: bool = True, **changes: Any) -> Iterator[Served]:
    """A running daemon; `changes` are values of keys of its settings, `more` is text at the end of them."""
    root = Path(tempfile.mkdtemp(prefix="la-daemon-"))
    root.chmod(0o755)
    more = str(changes.pop("more", ""))
    text = "\n".join(line for line in SETTINGS.splitlines() if not line.startswith("#"))
    for key, value in changes.items():
        lines = [line for line in text.splitlines() if line.split("=")[0].strip() == key]
        assert len(lines) == 1, key
        text = text.replace(lines[0], f"{key} = {json.dumps(value)}")
    made = Served(root=root, workers=workers)
    try:
        for name in ("run", "tmp", "home"):
            (root / name).mkdir(mode=0o755)
        made.settings.write_text(f"{text}\n{more}\n", encoding="utf-8")
        made.settings.chmod(0o644)
        if start:
            made.start()
        yield made
    finally:
        made.close()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():
                break
            time.sleep(0.1)  # what was killed may still be letting go of its files


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def put(client: Client, data: bytes) -> str:
    client.put(f"/v1/blobs/{digest(data)}", data)
    return digest(data)


def uploaded(client: Client, files: Mapping[str, str]) -> str:
    """Uploads a small tree; the digest of its manifest."""
    entries = []
    for name, text in sorted(files.items()):
        data = text.encode()
        entries.append({"path": name, "kind": "regular", "mode": 0o644, "size": len(data), "digest": put(client, data)})
    return put(client, json.dumps({"schema": "localagent/snapshot/1", "entries": entries}).encode())


def ordered(client: Client, files: Mapping[str, str], **order: Any) -> dict[str, Any]:
    """Uploads and orders; the task."""
    body = {"snapshot": uploaded(client, files), "use_model": False, "max_seconds": 60, "max_candidates": 60, **order}
    found: dict[str, Any] = client.post("/v1/tasks", body).json()
    return found


def talk(path: Path, data: bytes, *, seconds: float = 10.0) -> bytes:
    """Raw bytes to the socket, everything that comes back until it is closed or silent."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(seconds)
        line.connect(str(path))
        answer = b""
        with suppress(OSError):  # refused in the middle of it
            line.sendall(data)
        with suppress(TimeoutError, ConnectionResetError):
            while piece := line.recv(65536):
                answer += piece
        return answer


def become(uid: int, act: Callable[[], Any]) -> Any:
    """The JSON value of `act`, done by a child that gave up everything but the user id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            data = json.dumps(act()).encode()
            while data:
                data = data[os.write(writing, data) :]
            code = 0
        except BaseException:  # noqa: BLE001 - told, and then the child ends
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        text = answers.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(text)
