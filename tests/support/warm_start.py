"""Verbs that run in a process of their own but for the imports, which a parent of theirs has done once.

A run is forked off that parent and gets its own arguments, environment, folder and streams; from there it goes the way
of `python -m localagent`. Not promised: that `localagent` starts at all. `Home.start`, and the tests that start it
themselves, show that in an interpreter of its own.
"""

import atexit
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

WARM = ("main", "fix", "verify", "remediate", "hook", "batch", "show", "apply", "undo", "replay", "audit")
_SECONDS = 300
_MOST_BYTES = 100_000


class Parent:
    """The process that has imported the verbs, and our line to it; it leaves when that line is closed."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(_SECONDS)
        self._free = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """Let it leave; to be called once or more."""
        self._line.close()
        self._process.wait()

    def run(
        self, arguments: Sequence[str], environ: Mapping[str, str], folder: Path
    ) -> "subprocess.CompletedProcess[bytes] | None":
        """One verb to its end; None while another one runs here."""
        asked = json.dumps({"arguments": list(arguments), "environ": dict(environ), "folder": str(folder)}).encode()
        assert len(asked) < _MOST_BYTES
        if not self._free.acquire(blocking=False):
            return None
        try:
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                socket.send_fds(self._line, [asked], [out.fileno(), err.fileno()])
                code = int(self._line.recv(100))
                out.seek(0)
                err.seek(0)
                return subprocess.CompletedProcess(arguments, code, out.read(), err.read())
        except (OSError, ValueError):  # no answer in time, or none any more: the next one gets a new parent
            self._process.kill()
            self.close()
            parent.cache_clear()
            raise
        finally:
            self._free.release()


@lru_cache(maxsize=1)
def parent() -> Parent:
    """The one of this process."""
    return Parent()


def serve(line: socket.socket) -> list[str]:
    """Fork a run for each request and tell how it ended. Returns in each run, with its arguments."""
    while True:
        asked, streams, _, _ = socket.recv_fds(line, _MOST_BYTES, 2)
        if not asked:
            os._exit(0)
        run = os.fork()
        if not run:
            line.close()
            return become(json.loads(asked), streams)
        for stream in streams:
            os.close(stream)
        line.send(str(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])).encode())


def become(asked: dict[str, object], streams: Sequence[int]) -> list[str]:
    """Put on the environment, folder and streams that were asked for; the arguments."""
    for place, stream in zip((1, 2), streams, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    environ, arguments, folder = asked["environ"], asked["arguments"], asked["folder"]
    assert isinstance(environ, dict)
    assert isinstance(arguments, list)
    assert isinstance(folder, str)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.path[0], sys.argv = folder, ["localagent", *arguments]
    tempfile.tempdir = None  # worked out anew, of this environment
    return arguments


if __name__ == "__main__":
    modules = [importlib.import_module(f"localagent.cli.{verb}") for verb in WARM]
    gc.collect()
    gc.freeze()  # what was imported stays shared with the runs
    taken = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(modules[0].main(taken))
