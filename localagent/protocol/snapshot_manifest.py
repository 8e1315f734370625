"""A snapshot as bytes: what every file is called, how large it is, what its digest is. The contents travel apart.

The reader believes nothing: names stay inside, no name is a file and a folder at once, no link leads out of the tree.
"""

import posixpath
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot, TreeEntry
from localagent.errors import UsageFault
from localagent.text.strict_json import dump, load

SCHEMA = "localagent/snapshot/1"
MAX_MANIFEST_BYTES = 32 << 20
MAX_ENTRIES = 100_000
MAX_FILE_BYTES = 64 << 20
MAX_DEPTH = 100
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 3000  # below PATH_MAX with the folder it is put into
_MAX_FAULTS = 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_KEYS = {FileKind.REGULAR: {"path", "kind", "mode", "size", "digest"}, FileKind.SYMLINK: {"path", "kind", "target"}}
_NEVER = {".git", ".hg", ".svn", ".bzr"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotManifest:
    """The entries by path, and the sizes of the contents they need by digest."""

    entries: Mapping[RepoPath, TreeEntry]

    @property
    def contents(self) -> dict[str, int]:
        """Digest to size, each content once."""
        return {x.digest: x.size for x in self.entries.values() if x.kind is FileKind.REGULAR}

    @property
    def total_bytes(self) -> int:
        """What the tree takes when it is laid out."""
        return sum(x.size for x in self.entries.values())


def pack_manifest(snapshot: Snapshot) -> bytes:
    """A snapshot's entries as canonical JSON: equal trees give equal bytes.

    Ignored files travel too, since tests need them. Links that the reader would refuse (absolute ones) stay away.
    """
    entries: list[dict[str, Any]] = []
    for path, x in sorted(snapshot.entries.items()):
        if x.kind is FileKind.SYMLINK:
            if _leaves(path, x.target):
                continue
            entries.append({"path": path, "kind": "symlink", "target": x.target})
        else:
            mode = 0o755 if x.mode & stat.S_IXUSR else 0o644
            entries.append({"path": path, "kind": "regular", "mode": mode, "size": x.size, "digest": x.digest})
    return dump({"schema": SCHEMA, "entries": entries})


def manifest_of(data: bytes) -> SnapshotManifest:
    """Parsed and believed in; UsageFault with what is wrong (the first twenty faults)."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise UsageFault(f"the snapshot's manifest is larger than {MAX_MANIFEST_BYTES >> 20} MiB")
    try:
        found = load(data)
    except ValueError as fault:
        raise UsageFault(f"the snapshot's manifest is not JSON: {fault}") from fault
    if not isinstance(found, dict) or set(found) != {"schema", "entries"} or found["schema"] != SCHEMA:
        raise UsageFault(f"not a manifest of schema {SCHEMA}")
    rows = found["entries"]
    if not isinstance(rows, list) or len(rows) > MAX_ENTRIES:
        raise UsageFault(f"a manifest has a list of at most {MAX_ENTRIES:,} entries")
    faults: list[str] = []
    entries: dict[RepoPath, TreeEntry] = {}
    for row in rows:
        try:
            entry = _entry(row)
            if entry.path in entries:
                raise UsageFault(f"{entry.path!r} stands twice")
            entries[entry.path] = entry
        except UsageFault as fault:
            faults += fault.faults
        if len(faults) >= _MAX_FAULTS:
            break
    faults += _clashes(entries)
    if faults:
        raise UsageFault(faults[:_MAX_FAULTS])
    return SnapshotManifest(entries=entries)


def _entry(row: object) -> TreeEntry:
    if not isinstance(row, dict) or not isinstance(row.get("path"), str):
        raise UsageFault("an entry of a manifest has a path")
    path = _path(row["path"])
    kind = next((kind for kind in FileKind if row.get("kind") == kind.value), None)
    if kind is None or set(row) != _KEYS[kind]:
        raise UsageFault(f"{path!r}: a regular file has mode, size and digest; a symlink has a target; nothing else")
    if kind is FileKind.SYMLINK:
        return TreeEntry(path=path, kind=kind, mode=0o777, size=0, target=_target(path, row["target"]))
    size, mode = row["size"], row["mode"]
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_FILE_BYTES:
        raise UsageFault(f"{path!r}: the size is a whole number of at most {MAX_FILE_BYTES >> 20} MiB")
    if isinstance(mode, bool) or mode not in (0o644, 0o755):
        raise UsageFault(f"{path!r}: the mode is {0o644} or {0o755} (0644, 0755)")
    if not isinstance(row["digest"], str) or not _DIGEST.fullmatch(row["digest"]):
        raise UsageFault(f"{path!r}: not a digest")
    return TreeEntry(path=path, kind=kind, mode=mode, size=size, digest=row["digest"])


def _path(text: str) -> RepoPath:
    path = RepoPath(text)
    names = [_bytes(name) for name in path.parts]
    if len(names) > MAX_DEPTH or max(map(len, names)) > _MAX_NAME_BYTES or sum(map(len, names)) > _MAX_PATH_BYTES:
        raise UsageFault(f"{text!r:.100}: too long or too deep for a file system")
    if _NEVER & set(path.parts):
        raise UsageFault(f"{text!r:.100}: version control is no part of a snapshot")
    return path


def _bytes(name: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageFault(f"{name!r:.100}: no name of a file") from None


def _target(path: RepoPath, target: object) -> str:
    """The link's text, when it stays inside by its letters; where other links lead it the snapshot of it looks at."""
    if not isinstance(target, str) or not target or "\0" in target or len(_bytes(target)) > _MAX_PATH_BYTES:
        raise UsageFault(f"{path!r}: not a link's target")
    if _leaves(path, target):
        raise UsageFault(f"{path!r}: a link out of the tree")
    return target


def _leaves(path: RepoPath, target: str) -> bool:
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return target.startswith("/") or place == ".." or place.startswith("../")


def _clashes(entries: Mapping[RepoPath, TreeEntry]) -> list[str]:
    """Paths below something that is no folder."""
    faults = []
    folders: set[str] = set()
    for path in entries:
        parts = path.split("/")
        for depth in range(len(parts) - 1, 0, -1):
            folder = "/".join(parts[:depth])
            if folder in folders:
                break
            folders.add(folder)
            if folder in entries:
                faults.append(f"{path!r} lies below {folder!r}, which is no folder")
    return faults
