"""The record of one landing: what each file was and became, kept outside the repository until undone.

A directory of ours: `landing.json` and the bytes of every file before and after. Written whole or not at all, before
the repository is touched. Not protected against the user who owns it.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from localagent.domain.edit import digest_of
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.openat import closing, open_new, open_root, read_regular, write_all

ABSENT = ""  # in the place of a digest: no file stands there
_SCHEMA = "localagent/landing/1"
_NAME = "landing.json"
_MOST_BYTES = 64 << 20
_MOST_BLOB_BYTES = 256 << 20
_MOST_ID = 2**32 - 1
_MOST_TIME_NS = 2**63 - 1
_BY_HAND = "restore the files by hand, from git or a backup: what stood before can be taken from nothing else"


class LandingDamaged(AnswerIsNo):
    """The record does not hold what was written."""


class LandState(StrEnum):
    """How far a landing is. The two in between mean, when found by another run, that this one was killed."""

    NONE = "none"
    LANDING = "landing"
    LANDED = "landed"
    UNDOING = "undoing"
    UNDONE = "undone"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """One file: digests of both sides, and what must come back with the bytes. `temporary` is our name beside it.

    `before` is ABSENT where the landing makes the file; undoing takes it away.
    """

    path: RepoPath
    temporary: str
    before: str
    after: str
    mode: int
    uid: int
    gid: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplyRecord:
    """The whole record."""

    repo: str
    state: LandState
    files: tuple[FileRecord, ...]


def save_blobs(directory: Path, blobs: Mapping[str, bytes]) -> None:
    """Keep bytes under their digests, synced."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for digest, data in blobs.items():
        _write_beside(directory, _blob_name(digest), data)
        _commit_file(directory, _blob_name(digest))


def load_blob(directory: Path, digest: str) -> bytes:
    """Bytes kept under a digest, checked."""
    try:
        data = _read(directory, _blob_name(digest), _MOST_BLOB_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LandingDamaged(
            f"{directory / _blob_name(digest)}: {why}", remedy="restore the file by hand, from git or a backup"
        ) from error
    if digest_of(data) != digest:
        raise LandingDamaged(f"{directory / _blob_name(digest)} was altered", remedy="restore the file by hand")
    return data


def _blob_name(digest: str) -> str:
    return digest.removeprefix("sha256:") + ".bytes"


def save_landing(directory: Path, landing: ApplyRecord) -> None:
    """Keep the record in place of the one before, durably."""
    prepare_landing(directory, landing)
    commit_landing(directory)


def prepare_landing(directory: Path, landing: ApplyRecord) -> None:
    """Write the record beside the present one, so that `commit_landing` needs no more space."""
    value = {
        "schema": _SCHEMA,
        "repo": landing.repo,
        "state": landing.state.value,
        "files": [{name: getattr(x, name) for name in FileRecord.__slots__} for x in landing.files],
    }
    _write_beside(directory, _NAME, json.dumps(value, ensure_ascii=True, indent=1).encode("ascii"))


def commit_landing(directory: Path) -> None:
    """Put the prepared record in place."""
    _commit_file(directory, _NAME)


def _write_beside(directory: Path, name: str, data: bytes) -> None:
    beside = directory / f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    with closing(open_new(beside)) as descriptor:
        write_all(descriptor, data)
        os.fsync(descriptor)


def _commit_file(directory: Path, name: str) -> None:
    (directory / f".{name}.new").rename(directory / name)
    with closing(open_root(directory)) as synced:
        os.fsync(synced)


def load_landing(directory: Path) -> ApplyRecord | None:
    """The record, None if nothing was ever landed; LandingDamaged for anything else."""
    path = directory / _NAME
    try:
        found = json.loads(_read(directory, _NAME, _MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise LandingDamaged(f"{path} cannot be read: {error}", remedy=_BY_HAND) from error
    try:
        return _parsed(found)
    except (KeyError, TypeError, ValueError, OverflowError, UsageFault) as error:
        raise LandingDamaged(f"{path} is damaged: {error}", remedy=_BY_HAND) from error


def _read(directory: Path, name: str, limit_bytes: int) -> bytes:
    """A regular file of ours, through no link. OSError for anything else."""
    return read_regular(directory / name, None, limit_bytes)[0]


def _figure(value: object, most: int, *, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"a figure that is none: {value!r:.40}")
    return value


def _parsed(found: Any) -> ApplyRecord:
    if found["schema"] != _SCHEMA:
        raise ValueError("another schema")
    files = tuple(
        FileRecord(
            path=RepoPath(x["path"]),
            temporary=RepoPath(x["temporary"]).name,
            before=str(x["before"]),
            after=str(x["after"]),
            mode=_figure(x["mode"], 0o7777),
            uid=_figure(x["uid"], _MOST_ID),
            gid=_figure(x["gid"], _MOST_ID),
            mtime_ns=_figure(x["mtime_ns"], _MOST_TIME_NS, least=-_MOST_TIME_NS),
        )
        for x in found["files"]
    )
    return ApplyRecord(repo=str(found["repo"]), state=LandState(found["state"]), files=files)
