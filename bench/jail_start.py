"""What a jail costs at its start, against the bare program with the same namespaces and binds, in turn, one by one."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from localagent.domain.jailspec import JailSpec
from localagent.jail.api import BackendKind, NamespaceJail
from localagent.jail.backends.bubblewrap import SYNTHETIC_ETC, Descriptors, bwrap_argv
from localagent.jail.backends.handoff import memfd
from localagent.jail.backends.nsjail import WORK_FOLDERS, Handed, Surroundings, nsjail_argv, nsjail_config
from localagent.jail.files import host

SPEC = JailSpec(argv=("/bin/true",), cwd="/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Medians in milliseconds, and the median of the ratios of the pairs."""

    backend: str
    pairs: int
    ours_ms: float
    bare_ms: float
    ratio: float


def measure(jail: NamespaceJail, pairs: int) -> Start:
    """Alternated pairs; which of the two goes first changes from pair to pair."""
    bare = _bare_bubblewrap if jail._backend.kind is BackendKind.BUBBLEWRAP else _bare_nsjail
    uid = host.fresh_uid()
    ours_ms, bare_ms = [], []
    for number in range(pairs + 3):
        both = [(ours_ms, lambda: _ours(jail)), (bare_ms, lambda: bare(jail, uid))]
        for times, run in both if number % 2 else reversed(both):
            times.append(run())
    ours_ms, bare_ms = ours_ms[3:], bare_ms[3:]  # the first warm the caches
    _tidy(uid)
    return Start(
        backend=str(jail._backend.kind),
        pairs=pairs,
        ours_ms=round(median(ours_ms), 2),
        bare_ms=round(median(bare_ms), 2),
        ratio=round(median(ours / alone for ours, alone in zip(ours_ms, bare_ms, strict=True)), 2),
    )


def _ours(jail: NamespaceJail) -> float:
    began = time.perf_counter()
    result = jail.run(SPEC)
    taken = (time.perf_counter() - began) * 1000
    if result.returncode != 0:
        raise SystemExit(f"a jail failed: {result}")
    return taken


def _run(argv: tuple[str, ...], fds: list[int], uid: int | None) -> float:
    who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    began = time.perf_counter()
    child = subprocess.Popen(
        argv,
        pass_fds=fds,
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **who,
    )
    _, told = child.communicate()
    taken = (time.perf_counter() - began) * 1000
    for number in fds:
        os.close(number)
    if child.returncode != 0:
        raise SystemExit(f"{argv[0]} failed: {told.decode()}")
    return taken


def _bare_bubblewrap(jail: NamespaceJail, uid: int | None) -> float:
    etc = tuple(memfd("etc", content) for _, content in SYNTHETIC_ETC)
    status = os.open(os.devnull, os.O_WRONLY)
    argv = bwrap_argv(SPEC, host.system_layout(), Descriptors(status=status, etc=etc), program=jail._backend.program)
    return _run(argv, [*etc, status], uid)


def _bare_nsjail(jail: NamespaceJail, uid: int | None) -> float:
    layout = host.system_layout()
    around = Surroundings(layout=layout, submounts=host.submounts((*layout.folders, *layout.etc)))
    lines = nsjail_config(SPEC, around, Handed(init=0, log=2, passed=())).decode().splitlines()
    config = memfd("config", "\n".join([*lines[:-1], 'exec_bin { path: "/bin/true" }']).encode())
    return _run(nsjail_argv(jail._backend.program, config), [config], uid)


def _tidy(uid: int | None) -> None:
    """Bare nsjail leaves its mount points on the host; ours does not."""
    for folder in WORK_FOLDERS:
        for purpose in ("root", "tmp"):
            path = Path(folder, f"nsjail.{os.getuid() if uid is None else uid}.{purpose}")
            if path.is_dir():
                path.rmdir()
