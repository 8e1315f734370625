"""Lock files of a repository: pylock.toml (PEP 751), uv.lock, poetry.lock, pdm.lock, Pipfile.lock, requirements files.

A file that is not wholly a lock (every distribution of an index at an exact version, with its SHA-256) counts for
nothing, with the reason. What a lock takes from elsewhere than an index lets no name in. Not promised: that a person
has looked at it; whoever may write a lock file lets names in, so it belongs under review (docs/dependencies.md).
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.pylock import Package, Pylock, PylockUnsupportedVersionError, PylockValidationError
from packaging.utils import canonicalize_name

from localagent.deps.sources import MOST_FILE_BYTES, MOST_REQUIREMENTS, parse_requirements, text_of
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import Locked, UnreadableRequirement, Wanted
from localagent.errors import UsageFault
from localagent.fs.bounded_read import matches_below, read_below
from localagent.text.strict_json import load
from localagent.text.visible_text import shortened

_PIN = re.compile(r"==([^*,\s]+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NO_POLICY = "not read: no pattern of the policy's `dependencies.lock_files` matches it"
_CONDA = "not read: a file of conda's tools; export its packages of PyPI as a requirements file with hashes"
_NOT_READ = {"environment.yml": _CONDA, "environment.yaml": _CONDA, "conda-lock.yml": _CONDA, "pixi.lock": _CONDA}
_BY_NAME = ("pylock.toml", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", *_NOT_READ)


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
    matching = dict.fromkeys(name for pattern in patterns for name in matches_below(repo, pattern))
    others = [name for one in _BY_NAME for name in matches_below(repo, one) if name not in matching]
    left_out += [f"{name}: {_NOT_READ.get(name, _NO_POLICY)}" for name in others]
    for name in matching:
        try:
            found = _entries(read_below(repo, name, MOST_FILE_BYTES), name, known)
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


def unread_files(repo: Path) -> tuple[str, ...]:
    """A line for each file of a repository that names dependencies in a form that is not read."""
    return tuple(f"{name} is {why}" for name, why in _NOT_READ.items() if name in matches_below(repo, name))


def _entries(data: bytes, name: str, known: KnownNames) -> list[Locked]:
    """What a lock file holds, read as its name says."""
    path = PurePosixPath(name)
    if path.name in _NOT_READ:
        raise _NoLockError(_NOT_READ[path.name])
    if path.name == "Pipfile.lock":
        return _pipfile(data, name)
    if path.suffix == ".lock":
        return _package_tables(data, name)
    return _pylock(data, name) if path.suffix == ".toml" else _pins(data, name, known)


def _pins(data: bytes, name: str, known: KnownNames) -> list[Locked]:
    found = []
    for item in parse_requirements(data, name, known):
        if isinstance(item, UnreadableRequirement):
            raise _NoLockError(f"not a lock: line {item.source.rpartition(':')[2]}: {item.why}")
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
    """A package of an index; None for one without a version or files."""
    if package.is_direct:
        return _locked(str(package.name), str(package.version or ""), None, name)
    files = [*(package.wheels or ()), *((package.sdist,) if package.sdist else ())]
    if package.version is None or not files:
        return None
    hashes = [f"sha256:{file.hashes.get('sha256', '')}" for file in files]
    return _locked(str(package.name), str(package.version), hashes, name)


def _package_tables(data: bytes, name: str) -> list[Locked]:
    """uv.lock, poetry.lock and pdm.lock: arrays of tables `[[package]]` whose files have a `hash`."""
    try:
        top = tomllib.loads(text_of(data, name))
    except (ValueError, RecursionError) as error:
        raise _NoLockError(f"not a lock: not TOML: {shortened(str(error), 200)}") from error
    packages = top.get("package")
    if not isinstance(packages, list) or not packages:
        raise _NoLockError("not a lock: no [[package]] stands there")
    if len(packages) > MOST_REQUIREMENTS:
        raise _NoLockError(f"more than {MOST_REQUIREMENTS:,} packages")
    files = _table(_table(top.get("metadata")).get("files"))  # where earlier versions of poetry and pdm have them
    return [_of_table(_table(package), files, name) for package in packages]


def _of_table(package: Mapping[str, Any], files: Mapping[str, Any], name: str) -> Locked:
    called, version = package.get("name"), package.get("version", "")
    if not isinstance(called, str) or not isinstance(version, str):
        raise _NoLockError("not a lock: a package without a name and a version")
    source = _table(package.get("source"))
    of_index = "registry" in source or source.get("type") == "legacy" if source else "source" not in package
    if not of_index or {"git", "url", "path"} & set(package):
        return replace(_locked(called, version, None, name), folder=_folder(source, package))
    listed = package.get("files", files.get(called, files.get(f"{called} {version}", [])))
    sdist = [package["sdist"]] if "sdist" in package else []
    found = [*_list(listed), *_list(package.get("wheels", [])), *sdist]
    return _locked(called, version, [_table(file).get("hash") for file in found], name)


def _folder(source: Mapping[str, Any], package: Mapping[str, Any]) -> str:
    """The folder that uv, poetry or pdm takes a package from; "" where it is none."""
    told = [source.get(key) for key in ("editable", "virtual", "directory")] + [package.get("path")]
    told += [source.get("url")] if source.get("type") == "directory" else []
    return next((one for one in told if isinstance(one, str)), "")


def _pipfile(data: bytes, name: str) -> list[Locked]:
    """Pipfile.lock: JSON, a table of packages for each category beside `_meta`."""
    try:
        top = load(data)
    except ValueError as error:
        raise _NoLockError(f"not a lock: not JSON: {error}") from error
    if not isinstance(top, dict) or "_meta" not in top:
        raise _NoLockError("not a lock: no `_meta` stands there")
    found = []
    for category, packages in top.items():
        for called, value in _table(packages).items() if category != "_meta" else ():
            package = _table(value)
            version, direct = package.get("version", ""), {"git", "path", "file", "hg", "svn", "bzr"} & set(package)
            pin = _PIN.fullmatch(version) if isinstance(version, str) else None
            if not direct and pin is None:
                raise _NoLockError(f"not a lock: {called} is not pinned by `==`")
            hashes = None if direct else _list(package.get("hashes", []))
            found.append(_locked(called, pin[1] if pin else "", hashes, name))
    if len(found) > MOST_REQUIREMENTS:
        raise _NoLockError(f"more than {MOST_REQUIREMENTS:,} packages")
    return found


def _locked(called: str, version: str, hashes: Sequence[object] | None, lock: str) -> Locked:
    """An entry; without digests, so that it lets nothing in, where `hashes` is None: not of an index."""
    digests = frozenset(str(one).removeprefix("sha256:") for one in hashes or ())
    if hashes is not None and not (digests and version and all(_SHA256.fullmatch(digest) for digest in digests)):
        raise _NoLockError(f"not a lock: {shortened(called, 80)}: a version or a file without a SHA-256")
    return Locked(name=canonicalize_name(called), version=version, hashes=digests, lock=lock)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
