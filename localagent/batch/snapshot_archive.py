"""A snapshot as bytes: a line of JSON that says what is where, then each content once, by its digest.

Read back as hostile: every name, size and digest is checked, and nothing is written but below a new folder. Not
promised: owners, times, or what the snapshot left out.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot, TreeEntry
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs import openat
from localagent.repo.snapshot import MAX_ENTRIES, MAX_FILE_BYTES, tree_digest
from localagent.text.strict_json import dump, load

SCHEMA = "localagent/batch-parcel/1"
MAX_BYTES = 512 << 20


class InvalidArchive(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes are not a parcel that we made."""


def pack(snapshot: Snapshot) -> bytes:
    """The bytes of a snapshot. AnswerIsNo where they are too many to be sent."""
    entries = [
        {"path": str(e.path), "kind": e.kind.value, "mode": e.mode, "size": e.size, "digest": e.digest, "to": e.target}
        for e in snapshot.entries.values()
    ]
    sizes = {e.digest: e.size for e in snapshot.entries.values() if e.kind is FileKind.REGULAR}
    if sum(sizes.values()) > MAX_BYTES:
        raise AnswerIsNo(
            f"the tree holds more than {MAX_BYTES >> 20} MiB, which is not sent to a cluster",
            remedy="work on it in a fleet without [cluster]",
        )
    first = {e.digest: e.path for e in snapshot.entries.values() if e.kind is FileKind.REGULAR}
    head = {"schema": SCHEMA, "entries": entries, "contents": sorted(sizes)}
    with openat.root_directory(Path(snapshot.store)) as root:
        contents = [_stored(root, first[digest]) for digest in sorted(sizes)]
    return b"".join((dump(head), *contents))


def _stored(root: int, path: RepoPath) -> bytes:
    with openat.parent_directory(root, path.parts) as parent:
        return openat.read_regular(path.name, parent, MAX_FILE_BYTES)[0]


def unpack(data: bytes, folder: Path) -> str:
    """Write an archive into a new folder; the digest of its tree. InvalidArchive where anything does not fit."""
    try:
        return _unpacked(data, folder)
    except (KeyError, TypeError, UsageFault, OSError) as fault:
        raise InvalidArchive(f"not a parcel: {fault}") from fault


def _unpacked(data: bytes, folder: Path) -> str:
    line, _, rest = data.partition(b"\n")
    head = load(line)
    if not isinstance(head, dict) or set(head) != {"schema", "entries", "contents"}:
        raise InvalidArchive("not a parcel")
    entries: list[dict[str, Any]] = head["entries"]
    if head["schema"] != SCHEMA or len(data) > 2 * MAX_BYTES or len(entries) > MAX_ENTRIES:
        raise InvalidArchive("another schema, or too large")
    regular = [e for e in entries if FileKind(e["kind"]) is FileKind.REGULAR]
    sizes = {str(e["digest"]): int(e["size"]) for e in regular}
    contents: dict[str, bytes] = {}
    at = 0
    for digest in head["contents"]:
        content = rest[at : at + sizes[digest]]
        at += len(content)
        if sha256(content).hexdigest() != digest.removeprefix("sha256:"):
            raise InvalidArchive(f"a content is not {digest}")
        contents[digest] = content
    if at != len(rest):
        raise InvalidArchive("bytes that belong to nothing")
    folder.mkdir(mode=0o700)
    for entry in regular:  # while there is no link yet, no name leads anywhere else
        place = folder / RepoPath(entry["path"])
        place.parent.mkdir(parents=True, exist_ok=True)
        openat.write_new(place, contents[str(entry["digest"])], mode=int(entry["mode"]) & 0o777)
    links = [e for e in entries if FileKind(e["kind"]) is FileKind.SYMLINK]
    for entry in links:
        (folder / RepoPath(entry["path"])).parent.mkdir(parents=True, exist_ok=True)
    for entry in links:
        (folder / RepoPath(entry["path"])).symlink_to(str(entry["to"]))
    return tree_digest(
        {
            (path := RepoPath(e["path"])): TreeEntry(
                path=path,
                kind=FileKind(e["kind"]),
                mode=int(e["mode"]),
                size=int(e["size"]),
                digest=str(e["digest"]),
                target=str(e["to"]),
            )
            for e in entries
        }
    )
