"""The program that runs attacks inside a jail: `python inside.py BAIT MODULE:NAME ...`, the bait as JSON.

Each attack gets a process of its own and answers with one JSON line: name, what was seen, and a text. It refuses to run
where new privileges could be had, which is nowhere in a jail and nearly everywhere else.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
from typing import Any

ATTACK_SECONDS = 20.0


def in_a_jail() -> bool:
    """True where no new privileges can be had and this process cannot see the machine's first one."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        rows = dict(line.split(":", 1) for line in file if ":" in line)
    return rows.get("NoNewPrivs", "").strip() == "1" and os.environ.get("LOCALAGENT_ATTACK") == "inside"


def run(attack: Any, bait: Any) -> "tuple[str, str]":
    """(what was seen, text) of one attack in a child."""
    kinds = importlib.import_module("_la.attacks.attack")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            try:
                answer = (kinds.DID, str(attack.program(bait)))
            except BaseException as fault:
                answer = kinds.seen_of(fault)
            os.write(write, json.dumps([answer[0], answer[1][:300]]).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(write)
    data = _gather(read)
    os.close(read)
    with contextlib.suppress(ProcessLookupError):
        if not data:  # late, or it has ended already and is not reaped yet
            late = not select.select([os.pidfd_open(pid)], [], [], 0.2)[0]
            if late:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return kinds.FAULT, "no answer in %d s" % ATTACK_SECONDS
    status = os.waitpid(pid, 0)[1]
    if data:
        seen, text = json.loads(data)
        return str(seen), str(text)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name, ""
    return kinds.FAULT, "ended with %d and no answer" % os.WEXITSTATUS(status)


def _gather(read: int) -> bytes:
    data, until = b"", time.monotonic() + ATTACK_SECONDS
    while select.select([read], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(read, 1 << 14)
        data += piece
        if not piece or piece.endswith(b"\n"):  # what the attack has started may hold the pipe open
            break
    return data


def main(bait_text: str, names: "list[str]") -> int:
    """Run the named attacks in order."""
    if not in_a_jail():
        sys.stderr.write("attacks run in a jail only\n")
        return 2
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    kinds = importlib.import_module("_la.attacks.attack")
    told = json.loads(bait_text)
    with_standins = told.pop("standin", False)
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    bait = kinds.Bait(**fields)
    if with_standins:
        bait = importlib.import_module("_la.attacks.standin").inside(bait)
    for word in names:
        module, _, name = word.partition(":")
        listed = importlib.import_module("_la.attacks." + module).attack.attacks
        chosen = next(entry for entry in listed if entry.name == name)
        seen, text = run(chosen, bait)
        line = json.dumps({"name": name, "seen": seen, "text": text[:300]})
        os.write(1, line.encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
