"""Kept sessions for tests: settings of their own, a supervisor that is ended with the test."""

import os
import shutil
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.domain.execution import Executed, Execution, Language
from localagent.domain.jailspec import JailLimits
from localagent.jail_sessions import client
from localagent.jail_sessions.supervisor_messages import StepOrder
from localagent.jail_sessions.supervisor_socket import NobodyThere, connect, open_folder
from localagent.text.secret_redaction import Sanitizer

LIMITS = JailLimits(wall_seconds=20.0, resident_bytes=256 << 20, processes=32, output_bytes=1 << 20)
SANITIZER = Sanitizer()


class Kept:
    """A place where sessions are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        env = {"HOME": str(folder), "TMPDIR": str(folder / "scratch"), "XDG_RUNTIME_DIR": str(folder / "runtime")}
        (folder / "scratch").mkdir(mode=0o711)
        (folder / "runtime").mkdir(mode=0o755)
        self.settings = Settings.from_environ(env)

    def order(self, code: str, *, name: str = "s", language: Language = Language.PYTHON, **more: Any) -> StepOrder:
        limits = replace(LIMITS, **more.pop("limits", {}))
        request = Execution(limits=limits, **more.pop("request", {}))
        return StepOrder(session=name, language=language, code=code, request=request, **more)

    def step(self, code: str, *, on_start: Any = None, **more: Any) -> Executed:
        return client.step(self.order(code, **more), self.settings, SANITIZER, on_start=on_start)

    def supervisor(self) -> int:
        """Its process id; 0 when there is none."""
        folder = open_folder(self.settings.runtime_dir, make=True)
        try:
            with connect(folder) as connection:
                data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                return int(struct.unpack("3i", data)[0])
        except NobodyThere:
            return 0
        finally:
            os.close(folder)

    def close(self) -> None:
        if pid := self.supervisor():
            os.kill(pid, signal.SIGTERM)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.02)


@contextmanager
def kept() -> Iterator[Kept]:
    folder = Path(tempfile.mkdtemp(prefix="la-kept-"))
    folder.chmod(0o755)  # another uid must be able to get as far as the socket's own folder
    place = Kept(folder)
    try:
        yield place
    finally:
        place.close()
        shutil.rmtree(folder)
