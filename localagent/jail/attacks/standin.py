"""Stand-ins inside the jail: targets that no wall separates from the attack, for controls. Started in tests alone."""

import contextlib
import ctypes
import dataclasses
import os
import signal
import socket
import time

from .attack import Bait
from .system_calls import libc

PR_SET_PTRACER = 0x59616D61


def inside(bait: Bait) -> Bait:
    """The bait with a victim of the same jail in place of the one outside."""
    pid = os.fork()
    if pid == 0:
        os.environ[bait.token] = "in sight"
        sink = socket.socket()  # something to be taken by whoever can
        os.dup2(sink.fileno(), 9)
        with contextlib.suppress(OSError):  # refused where Yama is not built in
            libc("prctl", PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
        signal.alarm(30)
        while True:
            time.sleep(1)
    return dataclasses.replace(bait, victim=pid, own_terminal=True)
