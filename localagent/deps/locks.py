"""Lock files of a repository: pylock.toml (PEP 751) and requirements files in which every line is an exact, hashed pin.

A file that is not wholly a lock counts for nothing, with the reason. Not promised: that a person has looked at it;
whoever may write a lock file lets names in, so it belongs under review (docs/dependencies.md).
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.pylock import Package, Pylock, PylockUnsupportedVersionError, PylockValidationError

from localagent.deps.sources import MOST_FILE_BYTES, MOST_REQUIREMENTS, parse_requirements, text_of
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import Locked, UnreadableRequirement, Wanted
from localagent.errors import UsageFault
from localagent.fs.bounded_read import matches_below, read_below

_PIN = re.compile(r"==([^*,\s]+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _NoLockError(Exception):
    """Why a file is no lock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Locks:
    """What the accepted locks of a repository hold, and a line for each file that is none."""

    entries: tuple[Locked, ...] = ()
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_locks(repo: Path, patterns: Sequence[str], known: KnownNames) -> Locks:
    """The locks of a repository that match the policy's patterns."""
    entries: list[Locked] = []
    files: list[str] = []
    left_out: list[str] = []
    for name in dict.fromkeys(name for pattern in patterns for name in matches_below(repo, pattern)):
        try:
            data = read_below(repo, name, MOST_FILE_BYTES)
            found = _pylock(data, name) if PurePosixPath(name).suffix == ".toml" else _pins(data, name, known)
        except OSError as error:
            left_out.append(f"{name}: cannot be read: {error.strerror or error}")
        except UsageFault as fault:
            left_out.append(str(fault))
        except _NoLockError as why:
            left_out.append(f"{name}: {why}")
        else:
            entries += found
            files.append(name)
    return Locks(entries=tuple(entries), files=tuple(files), left_out=tuple(left_out))


def _pins(data: bytes, name: str, known: KnownNames) -> list[Locked]:
    found = []
    for item in parse_requirements(data, name, known):
        if isinstance(item, UnreadableRequirement):
            raise _NoLockError(f"not a lock: {item.source.rpartition(':')[2]}: {item.why}")
        found.append(_pin(item))
    if not found:
        raise _NoLockError("not a lock: no pin stands there")
    return found


def _pin(item: Wanted) -> Locked:
    version = _PIN.fullmatch(item.specifier)
    if version is None or not item.hashes:
        what = "not pinned by `==`" if version is None else "without a --hash"
        raise _NoLockError(f"not a lock: line {item.source.rpartition(':')[2]}: {item.name} is {what}")
    return Locked(name=item.name, version=version[1], hashes=item.hashes, lock=item.source.rpartition(":")[0])


def _pylock(data: bytes, name: str) -> list[Locked]:
    try:
        lock = Pylock.from_dict(tomllib.loads(text_of(data, name)))
    except (ValueError, RecursionError, PylockValidationError, PylockUnsupportedVersionError) as error:
        raise _NoLockError(
            f"not a pylock file (PEP 751): {str(error).splitlines()[0] if str(error) else error!r}"
        ) from error
    if len(lock.packages) > MOST_REQUIREMENTS:
        raise _NoLockError(f"more than {MOST_REQUIREMENTS:,} packages")
    return [found for package in lock.packages if (found := _package(package, name)) is not None]


def _package(package: Package, name: str) -> Locked | None:
    """A package that comes as wheels from an index; None for one that comes from elsewhere or as source alone."""
    if package.is_direct or package.version is None or not package.wheels:
        return None
    hashes = frozenset(str(wheel.hashes.get("sha256", "")) for wheel in package.wheels)
    if not all(_SHA256.fullmatch(digest) for digest in hashes):
        raise _NoLockError(f"not a lock: {package.name}: a wheel without a SHA-256")
    return Locked(name=str(package.name), version=str(package.version), hashes=hashes, lock=name)
