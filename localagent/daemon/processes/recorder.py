"""The recorder: the one process that writes the daemon's audit journal. Workers ask it over a line each.

A line belongs to one task, by the first process's word, which is put into every entry: a worker can add entries about
its own task, of the few kinds that a task has, and can neither alter nor leave out what is there; nothing that it says
is a path. Not promised: that a program of the same user outside a jail keeps its hands off the files; what it alters
shows in the chain.
"""

import json
import os
import select
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from localagent.daemon.processes.logs import log_to_stderr
from localagent.daemon.processes.shared_process import MOST_ABOUT_BYTES
from localagent.record.audit.log import AuditLog
from localagent.record.audit.remote_log import serve_line


def main(argument: str) -> int:
    """The process. `control` of the order is a socket: descriptors of lines and whose they are come over it."""
    log_to_stderr()
    os.umask(0o077)
    order = json.loads(argument)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # workers that end still have something to say
    control = socket.socket(fileno=int(order["control"]))
    log = AuditLog(Path(order["folder"]))
    while True:
        select.select([control], [], [])
        data, lines, _, _ = socket.recv_fds(control, MOST_ABOUT_BYTES, 1)
        if not data:
            return 0  # our parent is gone, or wants us gone
        about: dict[str, Any] = json.loads(data)
        for number in lines:
            os.set_inheritable(number, False)
            threading.Thread(target=serve_line, args=(number, log, about), name="line", daemon=True).start()
