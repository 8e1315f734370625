"""A folder of wheels: `DIR/*.whl`, or a simple index on disk, `DIR/NAME/*.whl`. Only names are looked at here."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from localagent.errors import UsageFault
from localagent.fs.bounded_read import MOST_ENTRIES

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILE_ADDRESS = re.compile(r"file:(?://(?:localhost)?)?(/[^/].*|/)", re.IGNORECASE)
_SOURCES = (".tar.gz", ".zip")


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelFile:
    """A file that is named like a wheel. `rank` says how well it fits this interpreter (0 best), None if not at all."""

    path: Path
    name: str
    version: Version
    build: tuple[int, str] | tuple[()]
    rank: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheelhouse:
    """What a folder holds, by normalised name; best wheels first."""

    wheels: dict[str, tuple[WheelFile, ...]]
    sources: dict[str, tuple[str, ...]]


def index_folder(given: str) -> Path:
    """The folder of --index. UsageFault for everything that is no folder of this machine."""
    path = given
    if local := _FILE_ADDRESS.fullmatch(given):
        path = local[1]
        if "%" in path:
            raise UsageFault(f"--index {given}: an escaped address", remedy="name the folder itself: --index DIR")
    elif _ADDRESS.match(given):
        raise UsageFault(
            f"--index {given}: nothing here reaches a network, and the jail has none",
            remedy="bring a folder of wheels and name it: --index DIR",
        )
    if not path or not Path(path).is_dir():
        raise UsageFault(f"--index {given}: not a directory", remedy="name a folder that holds wheels")
    return Path(path)


def read_wheelhouse(folder: Path) -> Wheelhouse:
    """Every wheel and source distribution by name; links and other files are let be."""
    tags = {tag: rank for rank, tag in enumerate(sys_tags())}
    wheels: dict[str, list[WheelFile]] = {}
    sources: dict[str, list[str]] = {}
    for path in _files(folder):
        try:
            if path.name.endswith(".whl"):
                found = _wheel_file(path, tags)
                wheels.setdefault(found.name, []).append(found)
            elif path.name.endswith(_SOURCES):
                name, _ = parse_sdist_filename(path.name)
                sources.setdefault(name, []).append(path.name)
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
    return Wheelhouse(
        wheels={name: tuple(sorted(found, key=_preference, reverse=True)) for name, found in wheels.items()},
        sources={name: tuple(sorted(found)) for name, found in sources.items()},
    )


def _files(folder: Path) -> Iterator[Path]:
    """The regular files of a folder and of those right below it."""
    count = 0
    folders = [(folder, True)]
    while folders:
        here, deeper = folders.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise UsageFault(f"--index: {here} cannot be read: {error.strerror or error}") from error
        for entry in found:
            count += 1
            if count > MOST_ENTRIES:
                raise UsageFault(f"--index: {folder} holds more than {MOST_ENTRIES:,} files")
            if entry.is_dir(follow_symlinks=False) and deeper:
                folders.append((Path(entry.path), False))
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _wheel_file(path: Path, supported: dict[Tag, int]) -> WheelFile:
    name, version, build, tags = parse_wheel_filename(path.name)
    rank = min((supported[tag] for tag in tags if tag in supported), default=None)
    return WheelFile(path=path, name=name, version=version, build=build, rank=rank)


def _preference(wheel: WheelFile) -> tuple[Version, int, tuple[int, str] | tuple[()], str]:
    return wheel.version, -(1 << 30 if wheel.rank is None else wheel.rank), wheel.build, str(wheel.path)
