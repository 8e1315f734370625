"""The child of the jail's `compute_pool`: bounds itself, then answers jobs until its input ends.

Run as `python -I -c "..." MODULE:FUNCTION SECONDS BYTES` with frames on stdin and stdout: four bytes of length, then an
argument; four bytes of length, then a file's bytes. The answer is one frame: JSON of what the function returns, or
`{"failed": reason}`. Nothing that it is handed is ever run. A job that takes too long is ended by the kernel (SIGALRM
at its default), with the process. Not promised: Landlock on kernels without it; then the limits alone hold.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import sys
from typing import Any, BinaryIO, Callable, List, Optional, Tuple

_LENGTH = 4
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


Confine = Callable[[List[Tuple[str, str]], bool], int]


def main(arguments: list[str], confine: Confine) -> None:
    """Answer jobs; returns where the input ends. `confine` is that of `landlock`."""
    module, _, name = arguments[0].partition(":")
    function: Callable[[str, bytes], Any] = getattr(importlib.import_module(module), name)
    seconds, limit_bytes = float(arguments[1]), int(arguments[2])
    sys.setrecursionlimit(3_000)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)  # a syntax tree is many objects and no garbage
    _bound(limit_bytes, confine)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        argument = read_frame(asked)
        if argument is None:
            return
        data = read_frame(asked) or b""
        signal.setitimer(signal.ITIMER_REAL, seconds)
        answer = _answer(function, argument.decode("utf-8", "surrogateescape"), data)
        signal.setitimer(signal.ITIMER_REAL, 0)
        write_frame(answers, answer)


def read_frame(stream: BinaryIO) -> Optional[bytes]:
    """One frame; None where the stream ends, also within one."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    size = int.from_bytes(head, "big")
    data = stream.read(size)
    return data if len(data) == size else None


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write one frame and flush it."""
    stream.write(len(data).to_bytes(_LENGTH, "big"))
    stream.write(data)
    stream.flush()


def _answer(function: Callable[[str, bytes], Any], argument: str, data: bytes) -> bytes:
    try:
        return json.dumps(function(argument, data), separators=(",", ":")).encode("ascii")
    except MemoryError:
        return b'{"failed": "needs more memory than a file may take"}'
    except RecursionError:
        return b'{"failed": "nests too deeply"}'


def _bound(limit_bytes: int, confine: Confine) -> None:
    """No files but Python's own, no new ones, no network, no core dump; memory as given."""
    for which, most in (
        (resource.RLIMIT_AS, limit_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(which)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (bound, bound))
    try:
        confine([(place, "read") for place in sys.path if os.path.isdir(place)], False)
    except OSError:  # a kernel without it
        return
