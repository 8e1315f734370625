"""Runs a `--check` command: exit status from the kernel, bounded output, lines of Python processes as a hint.

The lines come from files that the command could forge; they steer the search and decide nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import tempfile
from select import POLLIN, poll
from time import monotonic as _monotonic
from typing import Any, Dict, List

from . import child_limits
from .line_trace import LineTracer  # noqa: F401  (the tracer in the command uses the same file)

OUTPUT_LIMIT = 64 << 10
_LINES_FILE_LIMIT = 4 << 20

_SITE = """
import atexit, json, os, sys
sys.path.insert(0, {package!r})
from _la_worker.line_trace import LineTracer
sys.path.remove({package!r})
def _start(tracer=LineTracer({root!r})):
    def leave():
        tracer.stop()
        try:
            with open(os.path.join({out!r}, "%d.json" % os.getpid()), "w") as file:
                json.dump(tracer.take(), file)
        except OSError:
            pass
    atexit.register(leave)
    tracer.start()
_start()
"""


def run_command(root: str, request: Dict[str, Any]) -> Dict[str, Any]:
    """Answer with status, output's end and lines."""
    argv = [str(a) for a in request["argv"]]
    env = dict(os.environ)
    places = [str(p) for p in request["pythonpath"]]
    folder = ""
    if request["trace"]:
        folder = _tracer_folder(root)
        places.insert(0, folder)
    if places:
        env["PYTHONPATH"] = os.pathsep.join(places)
    begin = _monotonic()
    cpu_seconds = float(request["cpu_seconds"])
    try:
        process = subprocess.Popen(
            argv,
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: _limits(cpu_seconds, int(request["memory_bytes"])),  # noqa: PLW1509 - no threads here
        )
    except (OSError, ValueError) as fault:
        return {
            "kind": "command",
            "outcome": "error",
            "status": -1,
            "output": str(fault),
            "seconds": 0.0,
            "lines": None,
        }
    output, late = _gather(process, begin + float(request["wall_seconds"]))
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    outcome = "passed" if status == 0 else "failed"
    if late or -status in child_limits.exit_signals():
        outcome = "timed-out"
    return {
        "kind": "command",
        "outcome": outcome,
        "status": status,
        "output": output.decode("utf-8", "replace"),
        "seconds": _monotonic() - begin,
        "lines": _lines(folder) if folder else None,
    }


def _limits(cpu_seconds: float, memory_bytes: int) -> None:
    child_limits.guard_session()
    child_limits.limit_cpu(cpu_seconds)
    child_limits.limit_data(memory_bytes)


def _gather(process: Any, deadline: float) -> Any:
    """The end of the output, and whether the command was still there at the deadline."""
    fd = process.stdout.fileno()
    waiting = poll()
    waiting.register(fd, POLLIN)
    output = b""
    while True:
        left = deadline - _monotonic()
        if left <= 0:
            return output, True
        if waiting.poll(min(50, int(left * 1000) + 1)):
            data = os.read(fd, 1 << 16)
            if not data:
                break
            output = (output + data)[-OUTPUT_LIMIT:]
        elif process.poll() is not None:
            return output, False  # a grandchild holds the pipe
    while process.poll() is None:
        if _monotonic() > deadline:
            return output, True
        waiting.poll(5)
    return output, False


def _tracer_folder(root: str) -> str:
    folder = tempfile.mkdtemp(prefix="la-lines-", dir="/tmp")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(_SITE.format(package=package, root=root, out=folder))
    return folder


def _lines(folder: str) -> Dict[str, List[int]]:
    import json

    found: Dict[str, List[int]] = {}
    for name in sorted(os.listdir(folder))[:64]:
        if not name.endswith(".json"):
            continue
        try:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _LINES_FILE_LIMIT:
                continue
            try:
                content = json.loads(file.read(_LINES_FILE_LIMIT))
            except ValueError:
                continue
        if isinstance(content, dict):
            for path, numbers in content.items():
                if isinstance(numbers, list) and all(type(n) is int for n in numbers):
                    found.setdefault(path, []).extend(numbers)
    return found
