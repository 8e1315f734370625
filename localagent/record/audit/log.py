"""Writing the audit journal `<state>/audit/`: entries are only ever appended, one process at a time, synced each.

A line torn by a crash is cut when the next entry is written, and the cut is an entry of its own. Over any other damage
nothing is written: an entry behind it would look like evidence. It keeps out neither the user nor a program that runs
as the user outside a jail: who can write the folder can write another journal, which only a signed head tells.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, locked_folder, write_private
from localagent.fs.openat import closing, open_append, sync_directory, write_all
from localagent.record.audit.entry import BEFORE_FIRST, AuditKind, Entry, line_of, now_text, parse_line
from localagent.record.audit.segments import (
    Head,
    head_bytes,
    newest_signed,
    read_head,
    read_segment,
    segment_name,
    segments,
)

SEGMENT_BYTES = 4 << 20
_WHAT = "the audit journal"
_NO_PLACE = "free space, or set XDG_STATE_HOME to a directory that you may write to"
_REMEDY = (
    "`localagent audit verify` names the place; `localagent audit rotate --set-aside` keeps the damaged journal beside "
    "a new one, on the record"
)


class AuditLog:
    """The audit journal below one state directory. Creating the value touches nothing."""

    def __init__(self, state_dir: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = state_dir / "audit"
        self._segment_bytes = segment_bytes

    def append(self, kind: AuditKind, data: Mapping[str, Any]) -> Entry:
        """Put an event on the record; synced when it returns. CannotRecord, RecordDamaged."""
        with self._locked():
            return self._append(kind, data)

    def vouched(self, entry: Entry) -> tuple[int, str]:
        """Number and digest of an entry where others find it: in this journal."""
        return entry.seq, entry.digest

    def ready(self) -> None:
        """Raise what `append` would raise for the state the journal is in; cuts a torn line."""
        with self._locked():
            self._tail()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[Callable[[AuditKind, Mapping[str, Any]], Entry]]:
        """While inside nobody else writes; what is handed out appends. Raises what `append` would raise."""
        with self._locked():
            self._tail()
            yield self._append

    def rotate(self) -> Entry:
        """Begin a new segment; the chain goes on."""
        with self._locked():
            return self._append(AuditKind.SEGMENT, {"by": os.getuid()}, fresh=True)

    def set_aside(self, signed: Mapping[str, Any] | None = None) -> Entry:
        """Keep the journal as it is in a folder beside, and begin a new one that says so with the files' digests.

        `signed` is what its signer remembers of it: the new one says that too, or nothing more is signed here.
        """
        with self._locked():
            there = segments(self.folder)
            kept = {path.name: digest_of(read_segment(path)) for path in there}
            aside = self.folder / f"set-aside-{now_text().replace(':', '')}"
            try:
                aside.mkdir(mode=0o700)
                for name in (*kept, "head.json", "heads.jsonl"):
                    with contextlib.suppress(FileNotFoundError):
                        (self.folder / name).rename(aside / name)
            except OSError as error:
                raise self._cannot(error) from error
            sync_directory(self.folder)
            data = {"folder": aside.name, "files": kept, "signed": dict(signed or {}), "by": os.getuid()}
            return self._append(AuditKind.SET_ASIDE, data)

    def retire(self, before: str, to: Path) -> Entry | None:
        """Move whole segments to another folder, oldest first, while their newest entry is older than a time.

        They lie there before the journal says so, and are removed here after: a kill leaves them at both places, and
        the next call goes on. None where there is nothing so old. The segment in use stays. The caller has checked the
        journal, and the newest signed head's too: what is left holds by it. CannotRecord where a file of that name
        there is another one.
        """
        with self._locked():
            self._tail()
            there = segments(self.folder)
            signed = newest_signed(self.folder)
            old: list[Path] = []
            for path in there[:-1]:
                newest = parse_line(read_segment(path).splitlines()[-1])
                if newest.at >= before or (signed is not None and newest.seq >= signed):
                    break
                old.append(path)
            if not old:
                return None
            files = {path.name: digest_of(read_segment(path)) for path in old}
            for path in old:
                self._keep_copy(path, to / path.name)
            first = parse_line(read_segment(there[len(old)]).splitlines()[0])
            data = {"files": files, "first": first.seq, "prev": first.prev, "to": str(to), "by": os.getuid()}
            entry = self._append(AuditKind.RETIRED, data)
            for path in old:
                path.unlink()
            sync_directory(self.folder)
            return entry

    def _keep_copy(self, path: Path, target: Path) -> None:
        try:
            data = read_segment(path)
            if not target.exists():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(target, data)
            elif read_segment(target) != data:
                raise CannotRecord(f"{target} is there and is another file", remedy="name an empty folder with --to")
        except OSError as error:
            raise CannotRecord(
                f"cannot keep {path.name} in {target.parent}: {error.strerror or error}", remedy="nothing was removed"
            ) from error

    def _append(self, kind: AuditKind, data: Mapping[str, Any], *, fresh: bool = False) -> Entry:
        head, last, size = self._tail()
        seq = head.seq + 1
        try:
            line = line_of(seq=seq, prev=head.digest, kind=kind, data=data)
        except ValueError as error:
            raise CannotRecord(f"cannot keep the event {kind.value}: {error}") from error
        if not seq:  # or a first entry without a head would look like a cut one
            self._keep_head(head)
        if last is None or fresh or (size and size + len(line) > self._segment_bytes):
            last = self.folder / segment_name(seq)
        self._write(last, line)
        self._keep_head(Head(seq=seq, digest=digest_of(line)))
        return parse_line(line[:-1])

    def _tail(self) -> tuple[Head, Path | None, int]:
        """The newest entry, the segment to append to and its size, when they fit the kept head; torn bytes are cut."""
        try:
            head = read_head(self.folder)
        except RecordDamaged as damage:
            raise RecordDamaged(str(damage), remedy=_REMEDY) from damage
        there = segments(self.folder)
        if head is None:
            if there:
                raise RecordDamaged(f"{self.folder / 'head.json'} is missing", remedy=_REMEDY)
            head = Head(seq=-1, digest=BEFORE_FIRST)
        newest, torn, size = self._newest(there)
        if newest.seq == head.seq + 1 and there:  # written, then killed before the head was
            before, head = head, Head(seq=newest.seq, digest=newest.digest)
            if newest.prev != before.digest:
                raise RecordDamaged(f"{there[-1]}: the last entry does not follow from the head", remedy=_REMEDY)
            self._keep_head(head)
        elif (newest.seq, newest.digest) != (head.seq, head.digest):
            raise RecordDamaged(
                f"{self.folder}: the journal ends with entry {newest.seq}, the head names entry {head.seq}"
                if newest.seq != head.seq
                else f"{self.folder}: the last entry was altered",
                remedy=_REMEDY,
            )
        last = there[-1] if there else None
        if torn and last is not None:
            return self._cut(last, torn, head, size)
        return head, last, size

    def _newest(self, there: tuple[Path, ...]) -> tuple[Entry, bytes, int]:
        """The last whole entry, the bytes torn behind it, and the size of the last segment without them."""
        torn, size = b"", 0
        for path in reversed(there):
            data = read_segment(path)
            whole = data[: data.rfind(b"\n") + 1]
            if path == there[-1]:
                torn, size = data[len(whole) :], len(whole)
            elif whole != data:
                raise RecordDamaged(f"{path}: the last line is cut", remedy=_REMEDY)
            if whole:
                start = whole.rfind(b"\n", 0, len(whole) - 1) + 1
                try:
                    return parse_line(whole[start:-1]), torn, size
                except ValueError as error:
                    raise RecordDamaged(f"{path}: the last line: {error}", remedy=_REMEDY) from error
        nothing = Entry(seq=-1, prev="", at="", kind=AuditKind.SEGMENT, data={}, digest=BEFORE_FIRST)
        return nothing, torn, size

    def _cut(self, path: Path, torn: bytes, head: Head, size: int) -> tuple[Head, Path, int]:
        """Take torn bytes off and put that on the record."""
        try:
            with closing(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)) as descriptor:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
        except OSError as error:
            raise self._cannot(error) from error
        data = {"file": path.name, "bytes": len(torn), "digest": digest_of(torn)}
        line = line_of(seq=head.seq + 1, prev=head.digest, kind=AuditKind.TORN_LINE_CUT, data=data)
        self._write(path, line)
        cut = Head(seq=head.seq + 1, digest=digest_of(line))
        self._keep_head(cut)
        return cut, path, size + len(line)

    def _write(self, path: Path, line: bytes) -> None:
        try:
            with closing(open_append(path, new=False)) as descriptor:
                before = os.fstat(descriptor).st_size
                try:
                    write_all(descriptor, line)
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, before)
                    raise
        except OSError as error:
            raise self._cannot(error) from error
        if not before:
            sync_directory(self.folder)

    def _keep_head(self, head: Head) -> None:
        write_private(self.folder / "head.json", head_bytes(head))

    def _cannot(self, error: OSError) -> CannotRecord:
        return CannotRecord(f"cannot keep {_WHAT} in {self.folder}: {error.strerror or error}", remedy=_NO_PLACE)

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return locked_folder(self.folder, _WHAT, _NO_PLACE)
