"""JailSpec -> nsjail configuration (protobuf text). Pure: looks at nothing, starts nothing.

The configuration is handed over by a descriptor: nothing of it can be read as an option, and a colon in a path means
nothing. The same promises in the same order as bubblewrap.py; what nsjail would add by itself (its rlimits, a niceness
of 19, a time limit of 600 s) is switched off, since the launcher and the watcher have those. The command is started by
our own init (init_stub.py), which also puts on the seccomp filter: nsjail's own (kafel) would need the rules twice.

Not promised: /dev/tty and a writable /proc, which bubblewrap has, are not there; /proc is read-only unless a device is
shown (a GPU's driver names its threads there).
"""

from dataclasses import dataclass
from functools import lru_cache

from localagent.domain.jailspec import Access, JailSpec
from localagent.jail.backends.bubblewrap import HOSTNAME, INSIDE_UID, SYNTHETIC_ETC, ordered
from localagent.jail.files.host import SystemLayout

DEVICES = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS = (
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
)
# Folders in which nsjail makes its own mount points on the host; the launcher covers them, so nothing is left there.
WORK_FOLDERS = ("/run/user", "/tmp")  # noqa: S108 - covered by an empty one


@dataclass(frozen=True, kw_only=True, slots=True)
class Handed:
    """Numbers of open descriptors: our init's image, nsjail's log, and those that go on into the jail."""

    init: int
    log: int
    passed: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """Facts of the host. `submounts` are, for a source, the mounts below it, which its bind brings along writable."""

    layout: SystemLayout
    submounts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    niceness: int = 0
    cgroup_namespace: bool = True


def nsjail_argv(program: str, config: int) -> tuple[str, ...]:
    """The whole command line; `config` is the descriptor of the configuration."""
    return (program, "--config", f"/proc/self/fd/{config}")


def nsjail_config(spec: JailSpec, around: Surroundings, handed: Handed) -> bytes:
    """The configuration. Everything isolates; nothing here can be switched off by the spec."""
    lines = [
        *_fixed(around, handed),
        *(f"pass_fd: {number}" for number in handed.passed),
        *(f"envar: {quoted(f'{name}={value}')}" for name, value in spec.env if name != "PWD"),
        f"envar: {quoted(f'PWD={spec.cwd}')}",
        *_system(around),
        *_private(spec),
        *_binds(spec, around),
        _exec(spec, handed),
    ]
    return "\n".join(lines).encode("ascii") + b"\n"


def quoted(text: str) -> str:
    """A protobuf text literal that stands for exactly these bytes."""
    plain = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"\"'\\" else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "surrogateescape")
    )
    return '"' + "".join(plain) + '"'


def _fixed(around: Surroundings, handed: Handed) -> tuple[str, ...]:
    namespaces = ("user", "ns", "pid", "net", "ipc", "uts")
    return (
        "mode: ONCE",
        f"hostname: {quoted(HOSTNAME)}",
        'cwd: "/"',
        "time_limit: 0",
        f"nice_level: {around.niceness}",
        "disable_rl: true",
        "keep_env: false",
        "keep_caps: false",
        "disable_no_new_privs: false",
        "skip_setsid: false",
        f"log_fd: {handed.log}",
        "log_level: WARNING",
        *(f"clone_new{name}: true" for name in namespaces),
        f"clone_newcgroup: {'true' if around.cgroup_namespace else 'false'}",
        *(f'{kind} {{ inside_id: "{INSIDE_UID}" outside_id: "" count: 1 }}' for kind in ("uidmap", "gidmap")),
    )


def _mount(**fields: str | bool) -> str:
    words = [
        f"{name}: {quoted(value) if isinstance(value, str) else str(value).lower()}" for name, value in fields.items()
    ]
    return "mount { " + " ".join(words) + " }"


def _bind(source: str, target: str, *, rw: bool) -> str:
    return _mount(src=source, dst=target, is_bind=True, rw=rw, nosuid=True, nodev=True)


def _bound(source: str, target: str, around: Surroundings, *, rw: bool) -> tuple[str, ...]:
    """A bind, and the mounts below it once more: nsjail makes only the top of a bind read-only."""
    below = dict(around.submounts).get(source, ())
    return (
        _bind(source, target, rw=rw),
        *(_bind(path, target + path[len(source) :], rw=rw) for path in below),
    )


@lru_cache(64)
def _system(around: Surroundings) -> tuple[str, ...]:
    out: list[str] = []
    for folder in around.layout.folders:
        out += _bound(folder, folder, around, rw=False)
    for target, path in around.layout.links:
        out.append(_mount(src=target, dst=path, is_symlink=True))
    for path in around.layout.etc:
        out += _bound(path, path, around, rw=False)
    for path, content in SYNTHETIC_ETC:
        out.append(_mount(src_content=content.decode(), dst=path, nosuid=True, nodev=True))
    return tuple(out)


def _private(spec: JailSpec) -> tuple[str, ...]:
    size = f"size={spec.limits.tmp_bytes},mode=1777"
    closed = {"nosuid": True, "nodev": True}
    return (
        _mount(dst="/proc", fstype="proc", rw=spec.shows_devices, noexec=True, **closed),
        _mount(dst="/dev", fstype="tmpfs", options="size=64k,mode=755", rw=False, noexec=True, **closed),
        *(_mount(src=f"/dev/{name}", dst=f"/dev/{name}", is_bind=True, rw=True, nosuid=True) for name in DEVICES),
        _mount(
            dst="/dev/pts",
            fstype="devpts",
            options="newinstance,ptmxmode=0666,mode=620",
            rw=True,
            nosuid=True,
            noexec=True,
        ),
        *(_mount(src=target, dst=path, is_symlink=True) for target, path in DEVICE_LINKS),
        _mount(dst="/tmp", fstype="tmpfs", options=size, rw=True, **closed),  # noqa: S108 - the jail's own
        _mount(dst="/dev/shm", fstype="tmpfs", options=size, rw=True, **closed),  # noqa: S108 - the jail's own
    )


def _binds(spec: JailSpec, around: Surroundings) -> tuple[str, ...]:
    out: list[str] = []
    for bind in ordered(spec.binds):
        if bind.access is Access.DEVICE:
            out.append(_mount(src=bind.source, dst=bind.target, is_bind=True, rw=True, nosuid=True))
            continue
        out += _bound(bind.source, bind.target, around, rw=bind.access is Access.READ_WRITE)
    return tuple(out)


def _exec(spec: JailSpec, handed: Handed) -> str:
    rest = "".join(f" arg: {quoted(word)}" for word in spec.argv[1:])
    return f'exec_bin {{ path: "/proc/self/fd/{handed.init}" arg0: {quoted(spec.argv[0])}{rest} exec_fd: true }}'
