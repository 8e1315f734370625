"""What a jail is asked for and what it answers. Values only; `localagent.jail` builds argv from them."""

from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.outcome import JailOutcome


class Access(StrEnum):
    """How a bind is visible inside."""

    READ_ONLY = "ro"
    READ_WRITE = "rw"
    DEVICE = "dev"  # one device node below /dev, read and written


@dataclass(frozen=True, kw_only=True, slots=True)
class Bind:
    """Host `source` visible at `target` (both absolute). `untrusted` marks trees whose content the repository wrote."""

    source: str
    target: str
    access: Access = Access.READ_ONLY
    untrusted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class JailLimits:
    """Every limit, units in the names. `address_space_bytes` is RLIMIT_AS; `resident_bytes` is for the whole tree."""

    wall_seconds: float = 60.0
    cpu_seconds: float = 60.0
    address_space_bytes: int = 4 << 30
    resident_bytes: int = 1536 << 20
    file_bytes: int = 256 << 20
    tmp_bytes: int = 512 << 20
    open_files: int = 256
    processes: int = 128
    output_bytes: int = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class JailSpec:
    """One confined process. Defaults isolate: no network, nothing visible but the system's read-only parts and `binds`.

    `env` replaces the environment entirely. `cwd` is a path inside. File descriptors to pass are given to the runner.
    `loopback` False forbids TCP on the jail's own loopback as well (Landlock, where the kernel's ABI is 4 or later).
    `set_ids` False lets no file be made set-uid or set-gid, for folders that outlive the jail; it needs seccomp.
    """

    argv: tuple[str, ...]
    cwd: str
    binds: tuple[Bind, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    limits: JailLimits = field(default_factory=JailLimits)
    loopback: bool = True
    set_ids: bool = True

    @property
    def shows_devices(self) -> bool:
        """Whether a device is shown; then what runs may write below its own /proc, as drivers of GPUs do."""
        return any(bind.access is Access.DEVICE for bind in self.binds)


@dataclass(frozen=True, kw_only=True, slots=True)
class JailResult:
    """How a jailed process ended and the (bounded) output it left."""

    ending: JailOutcome
    returncode: int
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    backend: str
    level: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Produced:
    """A regular file that a jailed program made or altered. `name` is escaped, with `/` between its components."""

    name: str
    bytes: int
    digest: str
    copied: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """What was not carried over the jail's border, and why. `name` is escaped."""

    name: str
    why: str
