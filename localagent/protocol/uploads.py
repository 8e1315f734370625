"""What a client sends of a snapshot: the contents that the daemon does not have from this user already, each once."""

from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot
from localagent.errors import InternalFault
from localagent.fs import openat
from localagent.protocol.http_client import Client
from localagent.repo.snapshot import MAX_FILE_BYTES

_ASKED_AT_ONCE = 5000


def upload(client: Client, snapshot: Snapshot, manifest: str, data: bytes) -> None:
    """Everything of the snapshot that the daemon lacks, each content once."""
    where = {x.digest: x for x in snapshot.entries.values() if x.kind is FileKind.REGULAR}
    digests = [manifest, *where]
    for start in range(0, len(digests), _ASKED_AT_ONCE):
        part = digests[start : start + _ASKED_AT_ONCE]
        missing = _missing(client.post("/v1/blobs/missing", {"digests": part}).json())
        for digest in (digest for digest in part if digest in missing):
            content = data if digest == manifest else _content(snapshot, where[digest].path)
            client.put(f"/v1/blobs/{digest}", content)


def _missing(found: object) -> frozenset[str]:
    missing = found.get("missing") if isinstance(found, dict) else None
    if not isinstance(missing, list) or not all(isinstance(digest, str) for digest in missing):
        raise InternalFault("the daemon does not say which contents it lacks")
    return frozenset(missing)


def _content(snapshot: Snapshot, path: RepoPath) -> bytes:
    """From our private copy: it is what the manifest says, whatever happens in the repository meanwhile."""
    try:
        with openat.root_directory(Path(snapshot.store)) as root, openat.parent_directory(root, path.parts) as parent:
            return openat.read_regular(path.name, parent, MAX_FILE_BYTES)[0]
    except OSError as fault:
        raise InternalFault(f"the copy of {path!r} cannot be read: {fault.strerror}") from fault
