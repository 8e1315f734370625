"""Layers of a jail and the levels they add up to. Says what was probed; a kernel fault undoes it all."""

from collections.abc import Set as AbstractSet
from enum import StrEnum


class Layer(StrEnum):
    """One independently tried property of a jail."""

    NAMESPACES = "namespaces"
    PROCESS_LIMIT = "process-limit"
    SECCOMP = "seccomp"
    CGROUP_MEMORY = "cgroup-memory"
    LANDLOCK = "landlock"


LEVELS: tuple[tuple[str, frozenset[Layer], str], ...] = (
    ("L0", frozenset(), "nothing is confined; never used to run anything of a repository"),
    (
        "L1",
        frozenset({Layer.NAMESPACES}),
        "own user, pid, net, ipc, uts and cgroup namespaces, read-only system, no home, private /tmp and /proc, "
        "no network, cleared environment, no capabilities, per-process rlimits, wall clock, output cap, "
        "resident memory and processor time of the tree watched",
    ),
    (
        "L2",
        frozenset({Layer.NAMESPACES, Layer.PROCESS_LIMIT}),
        "L1, and the number of processes is bounded by the kernel (unprivileged real uid, or cgroup pids)",
    ),
    (
        "L3",
        frozenset({Layer.NAMESPACES, Layer.PROCESS_LIMIT, Layer.SECCOMP}),
        "L2, and a seccomp filter refuses kernel interfaces that tests do not need",
    ),
    (
        "L4",
        frozenset(Layer),
        "L3, and the memory of the whole tree is bounded by the kernel (cgroup), shared and temporary memory included; "
        "a second wall (Landlock) inside refuses files that were not asked for, and signals and sockets out",
    ),
)


def level_of(layers: AbstractSet[Layer]) -> str:
    """The highest level whose layers all hold."""
    return next(name for name, needed, _ in reversed(LEVELS) if needed <= layers)


def missing(level: str, layers: AbstractSet[Layer]) -> frozenset[Layer]:
    """The layers that `level`, a name of LEVELS, needs beyond these."""
    return next(needed for name, needed, _ in LEVELS if name == level) - layers


def at_least(level: str, minimum: str) -> bool:
    """True when `level` is `minimum` or above; both are names of LEVELS."""
    order = [name for name, _, _ in LEVELS]
    return order.index(level) >= order.index(minimum)
