"""Brings the index of a tree up to date: what changed is seen by its stamp, told by its digest, and extracted once.

Pure of files and processes: the caller hands in the listing, how a file is read, and who extracts. Files are stored in
batches, each one transaction, so that an interrupted run goes on where it was. Law, tested: after any series of changes
the index of a tree answers as one built from nothing.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from localagent.code.index.extract import StoredChunk, stored_chunks, stored_facts, stored_note
from localagent.code.index.store import Member, NewFile, Store, compact, prune, put_file, set_members

BATCH_FILES = 200
BATCH_SECONDS = 2.0
_FEW = 20
KEPT_SHARE = 0.25  # of the tree's bytes: what no tree has any more is kept so far, for branches that come back
UNUSED_DAYS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeListing:
    """A tree: the stamp of each path ("" where it cannot be relied on), and what is left out with the reason."""

    root: str
    stamps: Mapping[str, str]
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extracted:
    """A file's bytes, and what was computed of them, or why it failed. `data` is None where it could not be read."""

    path: str
    data: bytes | None
    value: object
    failed: str


class Extractor(Protocol):
    """Computes `extract.extract` of files, somewhere hostile sources do no harm."""

    def __call__(self, files: Iterable[tuple[str, bytes]]) -> Iterator[Extracted]:
        """The answer for each file, in any order. The files may be asked for from other threads, one at a time."""
        ...


@dataclass(kw_only=True, slots=True)
class UpdateReport:
    """What an update did; `unreadable` names the files that are not searchable, with the reason."""

    files: int = 0
    added: int = 0
    removed: int = 0
    pruned: int = 0
    seconds: float = 0.0
    rebuilt: str = ""
    unreadable: dict[str, str] = field(default_factory=dict)


Progress = Callable[[int, int], None]
"""Files done, files to do."""


def update(
    store: Store, listing: TreeListing, read: Callable[[str], bytes], extractor: Extractor, progress: Progress
) -> UpdateReport:
    """Make the store say what the tree holds now. OSError of single files become reasons."""
    started = time.monotonic()
    tree = store.tree(listing.root)
    before = store.members(tree)
    changed = [p for p, stamp in listing.stamps.items() if not stamp or p not in before or before[p].stamp != stamp]
    gone = [path for path in before if path not in listing.stamps]
    report = UpdateReport(files=len(listing.stamps), unreadable=dict(listing.left_out), rebuilt=store.rebuilt)
    work = _Work(store=store, tree=tree, listing=listing, read=read, before=before, report=report)
    if changed or gone:
        work.run(changed, gone, extractor, progress)
    report.unreadable.update(store.failures(tree))
    report.seconds = time.monotonic() - started
    return report


@dataclass(kw_only=True, slots=True)
class _Work:
    store: Store
    tree: int
    listing: TreeListing
    read: Callable[[str], bytes]
    before: Mapping[str, Member]
    report: UpdateReport
    digests: dict[str, bytes] = field(default_factory=dict)
    same: list[Member] = field(default_factory=list)

    def run(self, changed: list[str], gone: list[str], extractor: Extractor, progress: Progress) -> None:
        known = self._known(changed)
        batch: list[NewFile] = []
        since = time.monotonic()
        for done, answer in enumerate(extractor(self._to_extract(changed, known, gone)), 1):
            batch.append(self._new_file(answer))
            if len(batch) >= BATCH_FILES or time.monotonic() - since > BATCH_SECONDS:
                self._write(batch)
                batch, since = [], time.monotonic()
            progress(done + len(self.same), len(changed))
        self._write(batch, gone)
        self._finish()

    def _known(self, changed: list[str]) -> dict[str, dict[bytes, int]]:
        known: dict[str, dict[bytes, int]] = {}
        for path in changed if len(changed) < BATCH_FILES else ():
            known[path] = self.store.known(path)
        return known if known else self.store.all_known()

    def _to_extract(
        self, changed: list[str], known: Mapping[str, Mapping[bytes, int]], gone: list[str]
    ) -> Iterator[tuple[str, bytes]]:
        """The changed files whose bytes are not stored yet; notes the others."""
        for path in changed:
            try:
                data = self.read(path)
            except OSError as error:
                self.report.unreadable[path] = f"cannot be read: {error.strerror or error}"
                if path in self.before:
                    gone.append(path)
                continue
            digest = sha256(data).digest()
            file = known.get(path, {}).get(digest)
            if file is not None:
                self.same.append(Member(path=path, file=file, stamp=self.listing.stamps[path]))
            else:
                self.digests[path] = digest
                yield path, data

    def _new_file(self, answer: Extracted) -> NewFile:
        data = answer.data or b""
        failed, facts = answer.failed, b""
        chunks: tuple[StoredChunk, ...] = ()
        if not failed:
            try:
                facts = stored_facts(answer.value)
                chunks = tuple(stored_chunks(answer.value, facts))
                failed = stored_note(answer.value)
            except ValueError as error:
                failed = f"the parser's answer is not understood: {error}"
        return NewFile(
            path=answer.path, digest=self.digests.pop(answer.path), size=len(data), lines=data.count(b"\n"),
            failed=failed, chunks=chunks, facts=facts,
        )  # fmt: skip

    def _write(self, batch: list[NewFile], gone: Iterable[str] = ()) -> None:
        with self.store.writing() as connection:
            stamps = self.listing.stamps
            members = [Member(path=n.path, file=put_file(connection, n), stamp=stamps[n.path]) for n in batch]
            same, self.same = self.same, []
            set_members(connection, self.tree, [*members, *same], gone)
            self.report.added += len(batch)

    def _finish(self) -> None:
        """Count the tree, forget trees that are gone, prune."""
        self.report.removed = sum(path not in self.listing.stamps for path in self.before)
        with self.store.writing() as connection:
            roots = connection.execute("SELECT id, root, used_at FROM tree WHERE id<>?", (self.tree,)).fetchall()
            for number, root, used_at in roots:
                if not Path(root).is_dir() or time.time() - used_at > UNUSED_DAYS * 86_400:
                    connection.execute("DELETE FROM member WHERE tree=?", (number,))
                    connection.execute("DELETE FROM tree WHERE id=?", (number,))
            connection.execute(
                "UPDATE tree SET used_at=?2, (files, chunks, terms)=(SELECT count(DISTINCT m.file), count(c.id),"
                " coalesce(sum(c.size), 0) FROM member m JOIN chunk c ON c.file=m.file WHERE m.tree=?1) WHERE id=?1",
                (self.tree, time.time()),
            )
            self.report.pruned = prune(connection, KEPT_SHARE)
        if self.report.pruned or self.report.added > _FEW:
            compact(self.store)
