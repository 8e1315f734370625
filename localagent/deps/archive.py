"""A ZIP file from a stranger: what stands in it is judged from its directory before anything is unpacked.

Refused: more members or bytes than the limits, compression that only a bomb has, members that overlap, names that lead
out or are not plain, links and devices, encryption, doubled names, ZIP64. Not promised: that other programs read the
same members out of it; pip's own reading happens in a jail and its result is compared with what was read here.
"""

import hashlib
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from localagent.errors import AnswerIsNo

MOST_MEMBERS = 50_000
MOST_DIRECTORY_BYTES = 16 << 20
MOST_MEMBER_BYTES = 2 << 30
MOST_TOTAL_BYTES = 4 << 30
MOST_RATIO = 200
RATIO_FROM_BYTES = 16 << 20
MOST_PATH_CHARACTERS = 400
MOST_DEPTH = 32
MOST_FAULTS = 20
_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\x05\x06"
_ZIP64_MARK = b"PK\x06\x07"
_LOCAL_HEADER_BYTES = 30
_CHUNK = 1 << 20
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError,
    OverflowError,
)  # fmt: skip


class WheelRefused(AnswerIsNo):
    """A wheel that must not come in, with every reason found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveMember:
    """One regular file of an archive."""

    size: int
    executable: bool
    info: zipfile.ZipInfo


class Archive:
    """An open archive whose directory was judged. `members` by path, relative and with `/`."""

    def __init__(self, name: str, archive: zipfile.ZipFile, members: dict[str, ArchiveMember]) -> None:
        self.name = name
        self.members = members
        self._archive = archive

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a member, piece by piece; WheelRefused if they are not what the directory says."""
        member = self.members[path]
        left = member.size
        try:
            with self._archive.open(member.info) as stream:
                while part := stream.read(_CHUNK):
                    left -= len(part)
                    if left < 0:
                        break
                    yield part
        except _DAMAGE as error:
            raise WheelRefused(f"{self.name}: {path} is damaged: {error}") from error
        if left:
            raise WheelRefused(f"{self.name}: {path} does not hold the {member.size} bytes that its directory says")

    def read(self, path: str, limit_bytes: int) -> bytes:
        """A whole member; WheelRefused when it is not there or larger than the limit."""
        member = self.members.get(path)
        if member is None:
            raise WheelRefused(f"{self.name}: {path} is missing")
        if member.size > limit_bytes:
            raise WheelRefused(f"{self.name}: {path} is larger than {limit_bytes:,} bytes")
        return b"".join(self.chunks(path))

    def digest(self, path: str, algorithm: str = "sha256") -> bytes:
        """The digest of a member."""
        hashed = hashlib.new(algorithm)
        for part in self.chunks(path):
            hashed.update(part)
        return hashed.digest()


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive in a file. WheelRefused with every reason why it is not taken."""
    name = path.name
    with path.open("rb") as stream:
        _judge_end(stream, name)
        try:
            archive = zipfile.ZipFile(stream)
        except _DAMAGE as error:
            raise WheelRefused(f"{name}: not a ZIP file: {error}") from error
        with archive:
            yield Archive(name, archive, _members(archive, name))


def refuse_all(name: str, faults: list[str]) -> None:
    """WheelRefused with the first MOST_FAULTS of some reasons; nothing when there are none."""
    if faults:
        more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
        raise WheelRefused(f"{name}: " + "; ".join(faults[:MOST_FAULTS] + more))


def _judge_end(stream: IO[bytes], name: str) -> None:
    """The directory's size and count, before it is read: from the same record that `zipfile` takes."""
    size = stream.seek(0, 2)
    start = max(0, size - (1 << 16) - _END.size)
    stream.seek(start)
    tail = stream.read()
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != _END_MARK or tail[-2:] != b"\0\0":
        at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END.size:
        raise WheelRefused(f"{name}: not a ZIP file: no end record")
    _, _, _, _, count, length, offset, _ = _END.unpack_from(tail, at)
    if _ZIP64_MARK in tail[max(0, at - 20) : at] or 0xFFFF in (count,) or 0xFFFFFFFF in (length, offset):
        raise WheelRefused(f"{name}: ZIP64: larger than a wheel may be here")
    if count > MOST_MEMBERS:
        raise WheelRefused(f"{name}: {count:,} members, more than {MOST_MEMBERS:,}")
    if length > MOST_DIRECTORY_BYTES:
        raise WheelRefused(f"{name}: a directory of {length:,} bytes, more than {MOST_DIRECTORY_BYTES:,}")
    stream.seek(0)


def _members(archive: zipfile.ZipFile, name: str) -> dict[str, ArchiveMember]:
    infos = archive.infolist()
    faults = [] if len(infos) <= MOST_MEMBERS else [f"{len(infos):,} members, more than {MOST_MEMBERS:,}"]
    faults += _bulk_faults(infos)
    members: dict[str, ArchiveMember] = {}
    folders: set[str] = set()
    for info in infos:
        fault = _member_fault(info)
        if fault:
            faults.append(f"{info.filename!r}: {fault}")
        elif info.is_dir():
            continue
        elif info.filename in members:
            faults.append(f"{info.filename!r}: stands twice")
        else:
            mode = info.external_attr >> 16
            members[info.filename] = ArchiveMember(size=info.file_size, executable=bool(mode & 0o111), info=info)
            parts = info.filename.split("/")
            folders.update("/".join(parts[:n]) for n in range(1, len(parts)))
    faults += [f"{path!r}: a file and a folder" for path in sorted(folders & members.keys())]
    refuse_all(name, faults)
    return members


def _bulk_faults(infos: list[zipfile.ZipInfo]) -> list[str]:
    total = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    faults = [] if total <= MOST_TOTAL_BYTES else [f"{total:,} bytes unpacked, more than {MOST_TOTAL_BYTES:,}"]
    if total > RATIO_FROM_BYTES and total > MOST_RATIO * packed:
        faults.append(f"unpacks to more than {MOST_RATIO} times its size, as only a bomb does")
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            faults.append(f"{info.filename!r}: lies over another member, as only a bomb does")
            break
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
    return faults


def _member_fault(info: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & 0x1:
        return "encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {info.compress_type}"
    if kind == stat.S_IFLNK:
        return "a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR) > info.is_dir():
        return "neither a regular file nor a folder"
    if info.file_size > MOST_MEMBER_BYTES:
        return f"{info.file_size:,} bytes, more than {MOST_MEMBER_BYTES:,}"
    if info.is_dir() and info.file_size:
        return "a folder that holds bytes"
    return path_fault(info.filename.removesuffix("/"), info.orig_filename.removesuffix("/"))


def path_fault(path: str, written: str = "") -> str:
    """Why a path inside an archive is not taken, "" if it is. `written` is it before the ZIP reader changed it."""
    if written and path != written:
        return "a name that readers understand differently"
    if not path or path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        return "an absolute path, or none"
    if "\\" in path or any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in path):
        return "a name with backslashes or control characters"
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of its folder, or is not plain"
    if len(path) > MOST_PATH_CHARACTERS or len(parts) > MOST_DEPTH or any(len(part.encode()) > 255 for part in parts):
        return "too long or too deep"
    return ""
