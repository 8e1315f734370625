"""Known faults of bubblewrap, as data, each with the question whether it reaches the options we pass.

A list of what was known when it was written; a version that is not in it is not thereby free of faults.
"""

from collections.abc import Callable
from dataclasses import dataclass

MINIMUM = (0, 8, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A bubblewrap as found: its version and whether its file is set-uid root."""

    version: tuple[int, int, int]
    setuid: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFault:
    """One known fault: whom it affects, and whether the options we pass can meet it."""

    name: str
    text: str
    affects: Callable[[Build], bool]
    reaches_us: bool
    because: str


FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        name="too-old",
        text="older than 0.8: no --size for tmpfs, no --perms, known faults not tracked",
        affects=lambda build: build.version < MINIMUM,
        reaches_us=True,
        because="the builder passes --size and --perms",
    ),
    KnownFault(
        name="CVE-2026-41163",
        text="set-uid bubblewrap from 0.11.0 before 0.11.2: overlay mounts with the installer's privileges",
        affects=lambda build: build.setuid and (0, 11, 0) <= build.version < (0, 11, 2),
        reaches_us=True,
        because="refused whatever the options: a set-uid program is not needed where user namespaces work",
    ),
    KnownFault(
        name="CVE-2026-87766",
        text="before 0.12: making a mount point follows links that an untrusted bind brought",
        affects=lambda build: build.version < (0, 12, 0),
        reaches_us=False,
        because="no mount point is made below an untrusted bind (mountpoints.faults_of refuses such binds)",
    ),
    KnownFault(
        name="CVE-2017-5226",
        text="input can be pushed into the caller's terminal (TIOCSTI)",
        affects=lambda _: True,
        reaches_us=False,
        because="--new-session is always passed, and no terminal is",
    ),
)


def known(build: Build) -> tuple[KnownFault, ...]:
    """Faults of this build, whether or not they reach us."""
    return tuple(fault for fault in FAULTS if fault.affects(build))


def refusing(build: Build) -> tuple[KnownFault, ...]:
    """Faults because of which this build is not used."""
    return tuple(fault for fault in known(build) if fault.reaches_us)
