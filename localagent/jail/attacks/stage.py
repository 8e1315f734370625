"""What the host puts out for attacks to reach for: a canary, listeners on its own loopback, a victim that sleeps.

All of it is made for the attacks and goes away with the stage. Nothing listens beyond the loopback. Witnesses look at
the stage afterwards: an attack that says it was refused and yet left a mark outside has escaped.
"""

import contextlib
import ctypes
import os
import secrets
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from localagent.jail.attacks.attack import STAYS, Bait, Witness
from localagent.jail.files import host
from localagent.jail.files.workspace import Workspace, remove_tree

LOOPBACK = "127.0.0.1"
IPC_PRIVATE, IPC_RMID = 0, 0
VICTIM_SECONDS = 600  # longer than any suite takes


class AttackStage:
    """Use as a context. `bait` is what attacks are told; `uid` owns the workspaces and the folder that is shown."""

    def __init__(self, scratch: Path, home: str) -> None:
        self.uid = host.fresh_uid()
        self._token = f"la{secrets.token_hex(8)}"
        self._scratch = scratch
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self.bait = Bait(token=self._token, home=home, host_name=os.uname().nodename)
        self.folder = scratch
        self._touched: set[str] = set()

    def __enter__(self) -> "AttackStage":
        try:
            self._set_up()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def inside(self) -> str:
        """Where jails have what is theirs: a name that nobody on the host can have put something at before."""
        return f"/tmp/{self._token}"

    @property
    def shown(self) -> Path:
        """The folder that jails see read-only; it belongs to their uid."""
        return self.folder / "shown"

    @property
    def outside(self) -> Path:
        """The folder of the canary that no jail sees; readable by anybody."""
        return self.folder / "outside"

    def workspace(self, *, own: bool = False) -> Workspace:
        """An empty workspace for one jail; with a uid of its own where `own`."""
        return Workspace(self._scratch, uid=host.fresh_uid() if own else self.uid)

    def witnessed(self, witness: Witness) -> bool:
        """True when outside something tells that an attack got through."""
        match witness:
            case Witness.CANARY:
                return not all(map(self._is_whole, (self.shown, self.outside)))
            case Witness.LISTENER:
                return self._reached()
            case Witness.VICTIM:
                return self._victim.poll() is not None
            case Witness.SURVIVOR:
                return self._survivor()
            case Witness.REST:
                return False  # told by the removal itself

    def _set_up(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="localagent-attack-", dir=self._scratch))
        self._open.callback(remove_tree, self.folder)
        self.folder.chmod(0o755)
        for folder in (self.shown, self.outside, self.folder / "neighbour"):
            folder.mkdir()
            for name in ("canary", ".canary"):
                (folder / name).write_text(self._token)
                self._own(folder / name)
            self._own(folder)
        self._victim = self._start_victim()
        self._listeners()
        self.bait = replace(
            self.bait,
            canary=str(self.outside / "canary"),
            sibling=str(self.folder / "neighbour"),
            workspace_inside=f"{self.inside}/w",
            shown_inside=f"{self.inside}/shown",
            victim=self._victim.pid,
            shared_memory=self._segment(),
            interfaces=tuple(name for _, name in socket.if_nameindex() if name != "lo"),
        )

    def _own(self, path: Path) -> None:
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)

    def _start_victim(self) -> "subprocess.Popen[bytes]":
        """A process of the jails' own uid that does nothing for a while."""
        victim = subprocess.Popen(
            ("/bin/sleep", str(VICTIM_SECONDS)),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self.uid,
            group=self.uid,
            extra_groups=None if self.uid is None else [],
        )
        self._open.callback(victim.wait)
        self._open.callback(victim.kill)
        return victim

    def _listeners(self) -> None:
        """TCP, UDP and Unix sockets that nobody else knows of; what arrives there is an escape."""
        self._sockets: list[socket.socket] = []
        tcp = self._bound(socket.AF_INET, socket.SOCK_STREAM, (LOOPBACK, 0))
        udp = self._bound(socket.AF_INET, socket.SOCK_DGRAM, (LOOPBACK, 0))
        port6 = 0
        with contextlib.suppress(OSError):
            port6 = self._bound(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)).getsockname()[1]
        self._bound(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self._token}")
        path = self.outside / "socket"
        self._bound(socket.AF_UNIX, socket.SOCK_STREAM, str(path))
        path.chmod(0o777)
        self.bait = replace(
            self.bait,
            port4=tcp.getsockname()[1],
            port_udp=udp.getsockname()[1],
            port6=port6,
            abstract=self._token,
            unix_path=str(path),
        )

    def _bound(self, family: int, kind: int, address: object) -> socket.socket:
        made = self._open.enter_context(socket.socket(family, kind))
        made.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            made.listen()
        made.setblocking(False)
        self._sockets.append(made)
        return made

    def _reached(self) -> bool:
        """True when anything came in since the last look."""
        found = False
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(BlockingIOError):
                    if one.type == socket.SOCK_STREAM:
                        one.accept()[0].close()
                    else:
                        one.recv(512)
                    found = True
        return found

    def _segment(self) -> int:
        """The id of a System V segment of ours, or -1 where the kernel has none."""
        libc = ctypes.CDLL(None, use_errno=True)
        number = int(libc.shmget(IPC_PRIVATE, ctypes.c_size_t(4096), 0o1600))
        if number >= 0:
            self._open.callback(libc.shmctl, number, IPC_RMID, None)
        return number

    def _is_whole(self, folder: Path) -> bool:
        """True while the folder holds what was put there, as it was put there."""
        expected = {"canary", ".canary"} | ({"socket"} if folder == self.outside else set())
        if {path.name for path in folder.iterdir()} != expected:
            return False
        facts = (folder / "canary").stat()
        return (folder / "canary").read_text() == self._token and facts.st_mode & 0o7777 == 0o644 and facts.st_mtime > 1

    def _survivor(self) -> bool:
        return any((self._token + STAYS).encode() in line for line in _command_lines())


def _command_lines() -> Iterator[bytes]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (folder / "cmdline").read_bytes()
