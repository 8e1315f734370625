"""What is left of jails: after very many of them, and after their parent was killed at a random moment."""

import concurrent.futures as cf
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.jail.api import BackendKind, NamespaceJail, Workspace, fresh_uid
from localagent.jail.backends.backend import Backend
from localagent.jail.backends.level import Layer
from localagent.jail.files.host import JAIL_UID_BASE
from localagent.jail.launcher.landlock_ruleset import Confiner
from localagent.jail.limits import process_usage

PR_SET_CHILD_SUBREAPER = 36
CLEAR_SECONDS = 2.0
TELL_RUNS, TELL_KILLS = 500, 20
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run/user", "/run")
SCRIPTS = (
    "true",
    "exit 3",
    "kill -9 $$",
    "sleep 60 & sleep 60 & exit 0",
    "(setsid sleep 60 &) ; head -c 100000 /dev/zero",
    "head -c 100000 /dev/zero > /tmp/a; echo x > /w/a",
)
# Run by `python -c`: starts jails for ever, one after the other, with a backend probed by the parent.
PARENT = """
import json, sys
sys.path[:0] = [{root!r}, {bench!r}]
from jail_leaks import backend_from
from localagent.jail.api import NamespaceJail
from localagent.domain.jailspec import JailSpec
jail = NamespaceJail(backend_from(sys.argv[1]))
print("ready", flush=True)
while True:
    process = jail.start(JailSpec(argv=("/bin/sh", "-c", "sleep 60 & (setsid sleep 60 &); sleep 0.02"), cwd="/tmp"))
    process.wait()
    process.channel.close()
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What there is more of after than before."""

    processes: int
    mounts: int
    cgroups: int
    files: int
    descriptors: int
    threads: int

    def __bool__(self) -> bool:
        return any(number > 0 for number in asdict(self).values())  # others on the machine may have ended meanwhile


def run_many(
    jails: Sequence[NamespaceJail], number: int, folder: Path, *, jobs: int = 2, tell: Callable[[str], None] = print
) -> Left:
    """`number` jails of changing kinds, `jobs` at once, the backends in turn; one in ten is killed from outside.

    `tell` gets a line now and then, with what is left so far: counted while no jail runs.
    """
    with Workspace(folder, uid=fresh_uid()) as made, cf.ThreadPoolExecutor(jobs) as pool:
        least = jobs * len(SCRIPTS) * len(jails)
        list(pool.map(lambda at: _one(jails, at, made), range(least)))
        before, began = _count(jails), time.monotonic()
        left = Left(**dict.fromkeys(before, 0))
        for first in range(0, number, TELL_RUNS):
            last = min(number, first + TELL_RUNS)
            list(pool.map(lambda at: _one(jails, at, made), range(first, last)))
            after = _count(jails)
            left = Left(**{name: after[name] - before[name] for name in after})
            words = ", ".join(f"{n} {name}" for name, n in asdict(left).items() if n) or "nothing"
            tell(f"{last} of {number} jails after {time.monotonic() - began:.0f} s, left: {words}")
    return left


def _one(jails: Sequence[NamespaceJail], at: int, made: Workspace) -> None:
    jail, script = jails[at % len(jails)], SCRIPTS[at // len(jails) % len(SCRIPTS)]
    bind = Bind(source=str(made.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
    limits = JailLimits(wall_seconds=20)
    process = jail.start(JailSpec(argv=("/bin/sh", "-c", script), cwd="/tmp", binds=(bind,), limits=limits))
    if at % 10 == 0:
        process.kill()
    process.wait()
    process.channel.close()


def _count(jails: Sequence[NamespaceJail]) -> dict[str, int]:
    ours = f"localagent-{os.getpid()}-*"
    roots = {folder for jail in jails if jail._backend.cgroups for folder in jail._backend.cgroups.folders}
    return {
        "processes": sum(1 for _ in process_usage.descendants(os.getpid())),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": sum(1 for root in roots for _ in root.glob(ours)),
        "files": sum(1 for folder in SHARED_FOLDERS for entry in _entries(folder) if _is_a_jails(entry)),
        "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
    }


def _entries(folder: str) -> list[os.DirEntry[str]]:
    return list(os.scandir(folder)) if Path(folder).is_dir() else []


def _is_a_jails(entry: os.DirEntry[str]) -> bool:
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:
        return False
    return entry.name.startswith("nsjail.") or owner >= JAIL_UID_BASE


def backend_as(jail: NamespaceJail) -> str:
    """The probed backend as text, without its cgroups, which belong to one process."""
    facts = asdict(jail._backend) | {"cgroups": None, "layers": sorted(jail._backend.layers)}
    del facts["open_walls"]  # none is open
    return json.dumps(facts)


def backend_from(text: str) -> Backend:
    facts = json.loads(text)
    facts |= {"kind": BackendKind(facts["kind"]), "needs": tuple(facts["needs"])}
    facts |= {"layers": frozenset(Layer(name) for name in facts["layers"])}
    if (wall := facts["landlock"]) is not None:
        binds = tuple(Bind(**bind | {"access": Access(bind["access"])}) for bind in wall["binds"])
        facts |= {"landlock": Confiner(**wall | {"binds": binds})}
    return Backend(**facts)


def kill_parents(
    jails: Sequence[NamespaceJail], number: int, seed: int, *, tell: Callable[[str], None] = print
) -> list[int]:
    """How many processes each killed parent left after two seconds, the backends in turn. All zero is right."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become ours: none can hide
    root = Path(__file__).resolve().parent
    script = PARENT.format(root=str(root.parent), bench=str(root))
    backends, chance, left = [backend_as(jail) for jail in jails], random.Random(seed), []
    before = set(process_usage.children(os.getpid()))
    for at in range(number):
        argv = (sys.executable, "-c", script, backends[at % len(backends)])
        parent = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd="/")
        parent.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        parent.kill()
        parent.wait()
        parent.stdout.close()
        left.append(_orphans(before))
        if len(left) % TELL_KILLS == 0:
            tell(f"{len(left)} of {number} parents killed, {sum(left)} orphans after {CLEAR_SECONDS:.0f} s")
    return left


def _orphans(before: set[int]) -> int:
    deadline = time.monotonic() + CLEAR_SECONDS
    while True:
        _reap(before)
        adopted = set(process_usage.children(os.getpid())) - before
        left = [pid for child in adopted for pid in process_usage.descendants(child)]
        if not left or time.monotonic() > deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return len(left)
        time.sleep(0.01)


def _reap(before: set[int]) -> None:
    for pid in set(process_usage.children(os.getpid())) - before:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
