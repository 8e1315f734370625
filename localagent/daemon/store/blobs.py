"""Contents by digest, each user's apart: knowing a digest opens nothing, one has to have uploaded the bytes.

A blob is there whole or not at all: written beside, synced, renamed, then entered in the database. What is read is
checked against its digest. Not promised: that equal contents of two users are kept once; that would tell one of them.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from localagent.daemon.store.schema import StoreFull
from localagent.daemon.store.task_store import QuotaReached, Rows
from localagent.errors import AnswerIsNo, InternalFault, UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.fs.openat import open_new, sync_directory, write_all
from localagent.protocol.snapshot_manifest import MAX_FILE_BYTES

FOLDER = "blobs"
BESIDE = ".part-"
_MANY = 500  # names in one statement


_HELD = (  # what a user takes up: contents, and what their tasks left
    "SELECT (SELECT coalesce(sum(size), 0) FROM blobs WHERE uid = ?) + (SELECT"
    " coalesce(sum(length(report) + coalesce(length(patch), 0) + length(proposals)), 0)"
    " FROM tasks JOIN results ON results.task = tasks.id WHERE uid = ?)"
)


class BlobWriter:
    """One upload: pieces in, then `Blobs.keep`; `abort` at any time, also after. Refuses more than was said at once."""

    def __init__(self, folder: Path, digest: str, size: int, most_bytes: int) -> None:
        self._folder, self.digest, self.size, self.most_bytes = folder, digest, size, most_bytes
        self._beside = folder / f"{BESIDE}{secrets.token_hex(8)}"
        self._hashed, self._written = hashlib.sha256(), 0
        try:
            self._descriptor = open_new(self._beside)
        except OSError as fault:
            raise _full(fault) from fault

    def write(self, piece: bytes) -> None:
        """StoreFull when there is no room; UsageFault when more comes than was announced."""
        self._written += len(piece)
        if self._written > self.size:
            raise UsageFault("more bytes came than Content-Length said")
        self._hashed.update(piece)
        try:
            write_all(self._descriptor, piece)
        except OSError as fault:
            raise _full(fault) from fault

    def check(self) -> None:
        """UsageFault when the bytes are not those of the digest; else they are on the disk, beside their place."""
        if self._written != self.size or f"sha256:{self._hashed.hexdigest()}" != self.digest:
            raise UsageFault("the bytes do not have the digest they were sent under")
        try:
            os.fsync(self._descriptor)
        except OSError as fault:
            raise _full(fault) from fault

    def commit(self) -> None:
        """Put what was checked into its place."""
        self._close()
        try:
            self._beside.rename(self._folder / self.digest.removeprefix("sha256:"))
        except OSError as fault:
            raise _full(fault) from fault
        sync_directory(self._folder)

    def abort(self) -> None:
        """Leaves nothing of what was not committed."""
        self._close()
        with suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class Blobs:
    """The contents below the daemon's folder."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self._folder = folder / FOLDER
        self._rows = rows

    def size(self, uid: int, digest: str) -> int | None:
        """Bytes of a user's blob, None when there is none; it counts as used."""
        with self._rows.reading() as database:
            found = database.execute("SELECT size FROM blobs WHERE uid = ? AND digest = ?", (uid, digest)).fetchone()
            return None if found is None else int(found[0])

    def missing(self, uid: int, digests: Iterable[str]) -> tuple[str, ...]:
        """Those that a user has not uploaded; the others count as used just now, so that none goes before the order."""
        wanted = list(dict.fromkeys(digests))
        known: set[str] = set()
        with self._rows.writing() as database:
            for start in range(0, len(wanted), _MANY):
                part = wanted[start : start + _MANY]
                marks = ",".join("?" * len(part))
                found = database.execute(
                    f"UPDATE blobs SET touched_at = ? WHERE uid = ? AND digest IN ({marks}) RETURNING digest",  # noqa: S608
                    (time.time(), uid, *part),
                )
                known.update(x[0] for x in found.fetchall())
        return tuple(digest for digest in wanted if digest not in known)

    def sizes(self, uid: int, digests: Mapping[str, int]) -> list[str]:
        """Digests that a user lacks, or whose size is not the one named."""
        lacking = []
        with self._rows.reading() as database:
            for digest, size in digests.items():
                found = database.execute(
                    "SELECT size FROM blobs WHERE uid = ? AND digest = ?", (uid, digest)
                ).fetchone()
                if found is None or found[0] != size:
                    lacking.append(digest)
        return lacking

    def writer(self, uid: int, digest: str, size: int, *, most_bytes: int) -> BlobWriter:
        """Room for an upload; QuotaReached when the user has too much already, StoreFull when nobody has room."""
        if not 0 <= size <= MAX_FILE_BYTES:
            raise UsageFault(f"a blob has at most {MAX_FILE_BYTES >> 20} MiB")
        self.require_quota(uid, size, most_bytes)
        folder = self._folder_of(uid, digest)
        try:
            for one in (self._folder, folder.parent, folder):  # each closed: a name of a folder tells as well
                one.mkdir(mode=0o700, exist_ok=True)
        except OSError as fault:
            raise _full(fault) from fault
        return BlobWriter(folder, digest, size, most_bytes)

    def require_quota(self, uid: int, more: int, most_bytes: int) -> None:
        """QuotaReached when a user's contents and results, with so many bytes more, are more than one may have."""
        with self._rows.reading() as database:
            held = database.execute(_HELD, (uid, uid)).fetchone()[0]
        if held + more > most_bytes:
            raise QuotaReached(
                f"you keep {held:,} bytes, and {most_bytes:,} are allowed",
                remedy="what no task uses is removed after some days; leave large files out of the snapshot",
                retry_seconds=3600,
            )

    def keep(self, uid: int, writer: BlobWriter) -> bool:
        """Take a whole upload in; False when it was there before. UsageFault when it is not what it was sent as.

        The quota is asked again: many uploads may have begun when each alone had room. File and row come and go under
        the database's write lock, so that no row is ever without its file.
        """
        writer.check()
        with self._rows.writing() as database:
            known = database.execute(
                "SELECT 1 FROM blobs WHERE uid = ? AND digest = ?", (uid, writer.digest)
            ).fetchone()
            self.require_quota(uid, 0 if known else writer.size, writer.most_bytes)
            writer.commit()
            database.execute("INSERT OR IGNORE INTO users (uid) VALUES (?)", (uid,))
            database.execute(
                "INSERT INTO blobs VALUES (?, ?, ?, ?)"
                " ON CONFLICT (uid, digest) DO UPDATE SET touched_at = excluded.touched_at",
                (uid, writer.digest, writer.size, time.time()),
            )
            return known is None

    def read(self, uid: int, digest: str) -> bytes:
        """A user's blob, checked. AnswerIsNo when there is none, InternalFault when it is not what was uploaded."""
        size = self.size(uid, digest)
        if size is None:
            raise AnswerIsNo(f"{digest} was not uploaded, or is gone", remedy="upload it again")
        try:
            data = read_bounded(self._folder_of(uid, digest) / digest.removeprefix("sha256:"), size)
        except (OSError, RecordDamaged) as fault:
            raise InternalFault(f"blob {digest} cannot be read: {fault}") from fault
        if "sha256:" + hashlib.sha256(data).hexdigest() != digest:
            raise InternalFault(f"blob {digest} was altered where the daemon keeps it")
        return data

    def forget(self, gone: Iterable[tuple[int, str]]) -> None:
        """Remove the files of users' digests that no row names any more."""
        with self._rows.writing() as database:
            for uid, digest in gone:
                found = database.execute("SELECT 1 FROM blobs WHERE uid = ? AND digest = ?", (uid, digest))
                if found.fetchone() is None:
                    with suppress(OSError):
                        (self._folder_of(uid, digest) / digest.removeprefix("sha256:")).unlink()

    def files(self) -> Iterator[tuple[int, str]]:
        """Users and digests of every file there is."""
        for path in self._folder.glob("*/*/*"):
            if path.parent.parent.name.isdigit() and not path.name.startswith(BESIDE):
                yield int(path.parent.parent.name), f"sha256:{path.name}"

    def sweep(self) -> None:
        """Remove what uploads left that a daemon's end cut short. Only before anybody can upload."""
        for part in self._folder.glob(f"*/*/{BESIDE}*"):
            with suppress(OSError):
                part.unlink()
        self.forget(self.files())

    def _folder_of(self, uid: int, digest: str) -> Path:
        bare = digest.removeprefix("sha256:")
        return self._folder / str(uid) / bare[:2]


def _full(fault: OSError) -> StoreFull:
    return StoreFull(
        f"the daemon cannot keep it: {fault.strerror}", remedy="free space where the daemon keeps its state"
    )
