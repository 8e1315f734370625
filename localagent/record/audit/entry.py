"""One line of the audit journal: canonical JSON, bound to the line before it by that line's digest.

Entries hold digests, counts and names of ours; never source text, never what a task was told in words. Times are the
machine's clock: order is shown by the chain, not by them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from localagent.domain.edit import digest_of
from localagent.text.strict_json import canonical, load

SCHEMA = "localagent/audit/1"
BEFORE_FIRST = "sha256:" + "0" * 64
MOST_LINE_BYTES = 64 << 10
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_KEYS = {"at", "data", "kind", "prev", "schema", "seq"}


class AuditKind(StrEnum):
    """What is put on the record."""

    TASK_STARTED = "task-started"
    TASK_ENDED = "task-ended"
    REPORTED = "reported"
    ATTESTED = "attested"
    APPLYING = "applying"
    APPLIED = "applied"
    UNDOING = "undoing"
    UNDONE = "undone"
    REJECTED = "rejected"
    NOTING = "noting"
    NOTED = "noted"
    REFUSED = "refused"
    APPROVED = "approved"
    WITHDRAWN = "withdrawn"
    REPLAYED = "replayed"
    KEY_MADE = "key-made"
    KEY_ROTATED = "key-rotated"
    TORN_LINE_CUT = "torn-line-cut"
    SEGMENT = "segment"
    SET_ASIDE = "set-aside"
    RETIRED = "retired"
    HEAD_SIGNED = "head-signed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A line that was read. `digest` is that of its bytes with the newline."""

    seq: int
    prev: str
    at: str
    kind: AuditKind
    data: Mapping[str, Any]
    digest: str


def now_text() -> str:
    """The time as entries write it: UTC, microseconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def line_of(*, seq: int, prev: str, kind: AuditKind, data: Mapping[str, Any], at: str = "") -> bytes:
    """The bytes of an entry, newline included. ValueError if they are too many."""
    entry = {"schema": SCHEMA, "seq": seq, "prev": prev, "at": at or now_text(), "kind": kind.value, "data": data}
    line = canonical(entry)
    if len(line) > MOST_LINE_BYTES:
        raise ValueError(f"an entry of {len(line):,} bytes: at most {MOST_LINE_BYTES:,} are kept")
    return line


def parse_line(line: bytes) -> Entry:
    """The entry in a line without its newline. ValueError says what is wrong, also where it is written otherwise."""
    found = load(line)
    if not isinstance(found, dict) or set(found) != _KEYS:
        raise ValueError("not an entry of an audit journal")
    if found["schema"] != SCHEMA:
        raise ValueError(f"schema {found['schema']!r}, expected {SCHEMA!r}")
    seq, prev, at, data = found["seq"], found["prev"], found["at"], found["data"]
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise ValueError("its number is not a count")
    if not isinstance(prev, str) or not DIGEST.fullmatch(prev):
        raise ValueError("it carries no digest of the line before")
    if not isinstance(at, str) or not _AT.fullmatch(at):
        raise ValueError("it carries no time")
    if not isinstance(data, dict):
        raise ValueError("its data are no object")
    if canonical(found) != line + b"\n":
        raise ValueError("not written as localagent writes")
    return Entry(seq=seq, prev=prev, at=at, kind=_kind(found["kind"]), data=data, digest=digest_of(line + b"\n"))


def _kind(value: Any) -> AuditKind:
    try:
        return AuditKind(value)
    except ValueError:
        raise ValueError(f"an unknown kind of entry: {value!r}") from None
