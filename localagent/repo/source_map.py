"""The Python sources of a snapshot, read from its private store."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot, TreeEntry
from localagent.errors import InternalFault
from localagent.fs import openat

MAX_SOURCE_BYTES = 2 << 20
_CACHED_BYTES = 64 << 20


class SourceMap(Mapping[RepoPath, bytes]):
    """The Python sources of a snapshot by path: read from the store when asked for, checked, kept while there is room.

    Larger files than 2 MB, ignored files and links are not in it: they are not repaired.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._store = Path(snapshot.store)
        self._entries = {
            p: x
            for p, x in snapshot.entries.items()
            if p.is_python and x.kind is FileKind.REGULAR and x.size <= MAX_SOURCE_BYTES and not x.ignored
        }
        self._cache: OrderedDict[RepoPath, bytes] = OrderedDict()
        self._cached_bytes = 0

    def __getitem__(self, path: RepoPath) -> bytes:
        entry = self._entries[path]
        if path in self._cache:
            self._cache.move_to_end(path)
            return self._cache[path]
        data = self._read(entry)
        self._cache[path] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])
        return data

    def __iter__(self) -> Iterator[RepoPath]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def _read(self, entry: TreeEntry) -> bytes:
        parts = entry.path.parts
        try:
            with openat.root_directory(self._store) as root, openat.parent_directory(root, parts) as parent:
                data, _ = openat.read_regular(parts[-1], parent, MAX_SOURCE_BYTES)
        except OSError as error:
            raise InternalFault(f"the copy of {entry.path!r} cannot be read: {error.strerror}") from error
        if digest_of(data) != entry.digest:
            raise InternalFault(f"the copy of {entry.path!r} was altered")
        return data
