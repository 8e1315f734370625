"""The audit journal of a process that may not write it: entries are asked of a recorder over a line to it.

A request is one line of JSON, `{"kind", "data"}` with an empty kind for "would you?", an answer is one as well. Both
ends read bounded. Not promised: that an entry is not there when the answer was lost; it may be there twice, never not.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, read_bounded
from localagent.fs.openat import write_all
from localagent.record.audit.entry import DIGEST, MOST_LINE_BYTES, AuditKind, Entry
from localagent.record.audit.log import AuditLog
from localagent.text.strict_json import dump, load

KINDS = frozenset({AuditKind.TASK_STARTED, AuditKind.TASK_ENDED, AuditKind.REPORTED, AuditKind.ATTESTED})
OF_APPROVALS = frozenset(
    {AuditKind.APPROVED, AuditKind.WITHDRAWN}
)  # on a line that says who approved: the daemon's own, no worker's
MOST_ENTRIES = 16  # of one task's attempt
APPROVED_BY = "approved_by"
_FAULTS = {"damaged": RecordDamaged, "cannot": CannotRecord}


class RecordedLog(AuditLog):
    """Every entry goes to the recorder first, then into a journal of the task's own, which ends with its folder."""

    def __init__(self, state_dir: Path, descriptor: int) -> None:
        super().__init__(state_dir)
        self._descriptor = descriptor
        self._places = state_dir / "recorded.jsonl"  # of a process that ends with its task, like the journal beside it

    def append(self, kind: AuditKind, data: Mapping[str, Any]) -> Entry:
        """CannotRecord where the recorder does not confirm it."""
        answer = self._ask({"kind": kind.value, "data": dict(data)})
        entry = super().append(kind, data)
        with self._places.open("ab") as places:
            places.write(dump({"own": entry.digest, "entry": answer.get("seq"), "digest": answer.get("digest")}))
        return entry

    def vouched(self, entry: Entry) -> tuple[int, str]:
        """Number and digest in the recorder's journal. RecordDamaged where the recorder did not say them."""
        try:
            places = [load(line) for line in read_bounded(self._places, MOST_LINE_BYTES).splitlines()]
            found = next(place for place in reversed(places) if place["own"] == entry.digest)
            number, digest = found["entry"], found["digest"]
            if not isinstance(number, int) or not DIGEST.fullmatch(digest):
                raise ValueError("no number, or no digest")
        except (OSError, StopIteration, ValueError, TypeError, KeyError) as fault:
            raise RecordDamaged(f"{self._places} does not say where the recorder put entry {entry.seq}") from fault
        return number, digest

    def ready(self) -> None:
        """Raise what the recorder's journal would raise."""
        self._ask({"kind": "", "data": {}})
        super().ready()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return _request(self._descriptor, request)


def ask_recorder(descriptor: int, kind: AuditKind, data: Mapping[str, Any]) -> None:
    """One entry, asked of a recorder by who keeps no journal beside. CannotRecord where it does not confirm it."""
    _request(descriptor, {"kind": kind.value, "data": dict(data)})


def _request(descriptor: int, request: dict[str, Any]) -> dict[str, Any]:
    try:
        write_all(descriptor, dump(request))
        line = read_line(descriptor, b"")[0]
        answer = load(line) if line else {"fault": "cannot", "why": "the recorder is gone"}
    except (OSError, ValueError) as fault:
        raise CannotRecord(f"the recorder cannot be asked: {fault}", remedy="see the daemon's log") from fault
    if not isinstance(answer, dict) or answer.get("fault"):
        told = answer if isinstance(answer, dict) else {}
        kind = _FAULTS.get(str(told.get("fault")), CannotRecord)
        why = str(told.get("why", "an answer of the recorder that is none"))
        raise kind(why, remedy=str(told.get("remedy") or "see the daemon's log"))
    return answer


def serve_line(
    descriptor: int,
    log: AuditLog,
    about: Mapping[str, Any],
    rest: bytes = b"",
    *,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Write what one worker asks for, with `about` in every entry whatever it says, until it hangs up or errs.

    `rest` is what was read of the line already. `ended` is called at the end, where something was written.
    """
    left, written = MOST_ENTRIES, False
    try:
        while left:
            line, rest = read_line(descriptor, rest)
            if not line:
                return
            answer = _answered(line, log, about)
            left -= 1
            write_all(descriptor, dump(answer))
            written = written or "seq" in answer
            if answer.get("fault") == "request":
                return
    except (OSError, ValueError):
        return
    finally:
        os.close(descriptor)
        if written:
            ended()


def _answered(line: bytes, log: AuditLog, about: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found = load(line)
        if not isinstance(found, dict) or set(found) != {"kind", "data"} or not isinstance(found["data"], dict):
            raise ValueError("not a request")
        kind = AuditKind(found["kind"]) if found["kind"] else None
        if kind is not None and kind not in (OF_APPROVALS if APPROVED_BY in about else KINDS):
            raise ValueError(f"{kind.value}: a task has nothing to say about that")
    except (ValueError, TypeError, RecursionError) as fault:
        return {"fault": "request", "why": str(fault)}
    try:
        if kind is None:
            log.ready()
            return {"fault": ""}
        entry = log.append(kind, {**found["data"], **about})
    except AnswerIsNo as no:
        return {"fault": "damaged" if isinstance(no, RecordDamaged) else "cannot", "why": str(no), "remedy": no.remedy}
    return {"fault": "", "seq": entry.seq, "digest": entry.digest}


def read_line(descriptor: int, rest: bytes) -> tuple[bytes, bytes]:
    """A line without its end, and what came behind it; an empty one at the end. ValueError for one that is too long."""
    while b"\n" not in rest:
        if len(rest) > MOST_LINE_BYTES:
            raise ValueError("a line longer than any entry")
        piece = os.read(descriptor, 65536)
        if not piece:
            return b"", b""
        rest += piece
    line, _, rest = rest.partition(b"\n")
    return line, rest
