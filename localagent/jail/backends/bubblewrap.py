"""JailSpec -> bubblewrap command line. Pure: looks at nothing, starts nothing.

Order of what is mounted, later over earlier: read-only system folders and links; files of /etc; synthetic /etc files;
/proc; /dev; sized /tmp and /dev/shm; the spec's binds, parents before children; then / and /dev are made read-only.
Promises nothing about the sources: `mountpoints.faults_of` must have accepted the spec first. `open_walls` is for the
controls of the attack tests alone: it leaves out exactly the layers it names.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePosixPath

from localagent.domain.jailspec import Access, Bind, JailSpec
from localagent.jail.boundaries import CLOSED, Wall
from localagent.jail.files.host import SystemLayout

INSIDE_UID = 65534
HOSTNAME = "jail"
SYNTHETIC_ETC: tuple[tuple[str, bytes], ...] = (
    (
        "/etc/passwd",
        b"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("/etc/group", b"root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", b"127.0.0.1 localhost jail\n::1 localhost\n"),
    ("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Descriptors:
    """Numbers of open descriptors that bubblewrap reads or writes; `etc` in the order of SYNTHETIC_ETC.

    On `block` the jail's init waits for a byte before it starts the command. `init` is the image of our own init, which
    then takes bubblewrap's place as process 1.
    """

    status: int
    etc: tuple[int, ...]
    seccomp: int | None = None
    block: int | None = None
    init: int | None = None


def ordered(binds: Sequence[Bind]) -> tuple[Bind, ...]:
    """Parents before children, else as given."""
    return tuple(sorted(binds, key=lambda bind: len(PurePosixPath(bind.target).parts)))


def bwrap_argv(
    spec: JailSpec,
    layout: SystemLayout,
    descriptors: Descriptors,
    *,
    program: str = "bwrap",
    cgroup_namespace: bool = True,
    open_walls: AbstractSet[Wall] = CLOSED,
) -> tuple[str, ...]:
    """The whole command line, `program` first. Everything isolates; nothing here can be switched off by the spec."""
    return (
        program,
        *_namespaces(open_walls, cgroup_namespace=cgroup_namespace),
        *_identity(open_walls),
        *_environment(spec),
        *(("--ro-bind", "/", "/") if Wall.FILES in open_walls else _system(layout, open_walls)),
        *(() if Wall.FILES in open_walls else _synthetic_etc(descriptors)),
        *_private(spec, open_walls),
        *_binds(spec, open_walls),
        *(() if Wall.READ_ONLY in open_walls else ("--remount-ro", "/dev", "--remount-ro", "/")),
        "--chdir",
        spec.cwd,
        "--json-status-fd",
        str(descriptors.status),
        *(() if descriptors.block is None else ("--block-fd", str(descriptors.block))),
        *(() if descriptors.seccomp is None else ("--seccomp", str(descriptors.seccomp))),
        *(("--",) if descriptors.init is None else ("--as-pid-1", "--", f"/proc/self/fd/{descriptors.init}")),
        *spec.argv,
    )


def _namespaces(open_walls: AbstractSet[Wall], *, cgroup_namespace: bool) -> tuple[str, ...]:
    rows = (
        (Wall.USER, "--unshare-user"),
        (Wall.PROCESSES, "--unshare-pid"),
        (Wall.NETWORK, "--unshare-net"),
        (Wall.IPC, "--unshare-ipc"),
        (Wall.HOST_NAME, "--unshare-uts"),
        (Wall.CGROUP_PATH, "--unshare-cgroup" if cgroup_namespace else "--unshare-cgroup-try"),
    )
    return tuple(option for wall, option in rows if wall not in open_walls)


def _identity(open_walls: AbstractSet[Wall]) -> tuple[str, ...]:
    inside = "0" if Wall.CAPABILITIES in open_walls else str(INSIDE_UID)
    privileged = bool({Wall.CAPABILITIES, Wall.USER} & open_walls)
    return (
        *(() if Wall.USER in open_walls else ("--uid", inside, "--gid", inside)),
        *(() if Wall.HOST_NAME in open_walls else ("--hostname", HOSTNAME)),
        "--die-with-parent",
        "--new-session",
        *(("--cap-add", "ALL") if privileged else ("--cap-drop", "ALL")),
    )


def _environment(spec: JailSpec) -> tuple[str, ...]:
    return ("--clearenv", *(part for name, value in spec.env for part in ("--setenv", name, value)))


def _system(layout: SystemLayout, open_walls: AbstractSet[Wall]) -> tuple[str, ...]:
    out: list[str] = []
    for folder in layout.folders:
        out += ["--bind" if Wall.READ_ONLY in open_walls else "--ro-bind", folder, folder]
    for target, path in layout.links:
        out += ["--symlink", target, path]
    for path in layout.etc:
        out += ["--ro-bind", path, path]
    return tuple(out)


def _synthetic_etc(descriptors: Descriptors) -> tuple[str, ...]:
    out: list[str] = []
    for (path, _), number in zip(SYNTHETIC_ETC, descriptors.etc, strict=True):
        out += ["--perms", "0444", "--ro-bind-data", str(number), path]
    return tuple(out)


def _private(spec: JailSpec, open_walls: AbstractSet[Wall]) -> tuple[str, ...]:
    size = str(spec.limits.tmp_bytes)
    return (
        *(("--bind", "/proc", "/proc") if Wall.PROCESSES in open_walls else ("--proc", "/proc")),
        *(("--dev-bind", "/dev", "/dev") if Wall.DEVICES in open_walls else ("--dev", "/dev")),
        *("--perms", "1777", "--size", size, "--tmpfs", "/tmp"),  # noqa: S108 - the jail's own
        *("--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"),  # noqa: S108 - the jail's own
    )


def _binds(spec: JailSpec, open_walls: AbstractSet[Wall]) -> tuple[str, ...]:
    out: list[str] = []
    for bind in ordered(spec.binds):
        if bind.access is Access.DEVICE:
            out += ["--dev-bind", bind.source, bind.target]
            continue
        writable = bind.access is Access.READ_WRITE or Wall.READ_ONLY in open_walls
        out += ["--bind" if writable else "--ro-bind", bind.source, bind.target]
    return tuple(out)
