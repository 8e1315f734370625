"""Known vulnerabilities out of an OSV export, matched against installed versions. The file comes from outside: hostile.

An export is one record, a list of them, `{"vulns": [...]}`, one record a line, or a .zip of records, as OSV publishes
them for an ecosystem. Bounded in bytes and records. Where a record cannot be understood for a package that is installed
it counts as a finding. Not promised: that the export is complete or recent; the newest date in it is told.
"""

import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_named

MAX_EXPORT_BYTES = 512 << 20
MAX_RECORD_BYTES = 4 << 20
MAX_RECORDS = 500_000
MAX_TEXT = 200
_ECOSYSTEM = "PyPI"


@dataclass(frozen=True, kw_only=True, slots=True)
class Advisory:
    """A record that concerns an installed version; `certain` is False where it could not be fully understood."""

    id: str
    package: str
    version: str
    summary: str
    fixed: tuple[str, ...]
    certain: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Matched:
    """All findings, how many records were read, and the newest change among them ("" where none says)."""

    findings: tuple[Advisory, ...]
    records: int
    newest: str


def match_export(path: Path, installed: Mapping[str, str]) -> Matched:
    """Findings for (canonical name, version) pairs. UsageFault when the file is no OSV export."""
    found: list[Advisory] = []
    newest, count = "", 0
    for record in records(read_named(path, MAX_EXPORT_BYTES), str(path)):
        count += 1
        if count > MAX_RECORDS:
            raise UsageFault(f"{path}: more than {MAX_RECORDS:,} records")
        newest = max(newest, _text(record.get("modified"), 40))
        if not record.get("withdrawn"):
            found += _findings(record, installed)
    if not count:
        raise UsageFault(f"{path}: holds no OSV record", remedy="an export for the ecosystem PyPI is meant")
    return Matched(findings=tuple(sorted(found, key=lambda f: (f.package, f.id))), records=count, newest=newest)


def records(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    """Every record of an export. UsageFault names what is not one."""
    if data.startswith(b"PK\x03\x04"):
        yield from _zipped(data, name)
        return
    whole = _json(data, name, lines=True)
    listed = whole.get("vulns", [whole]) if isinstance(whole, dict) else whole
    yield from _records(listed, name)


def _zipped(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    with _archive_faults(name):
        archive = zipfile.ZipFile(io.BytesIO(data))
    with archive:
        if len(archive.infolist()) > MAX_RECORDS:
            raise UsageFault(f"{name}: more than {MAX_RECORDS:,} records")
        for member in archive.infolist():
            if member.is_dir() or not member.filename.endswith(".json"):
                continue
            with _archive_faults(name), archive.open(member) as stream:
                text = stream.read(MAX_RECORD_BYTES + 1)
            if len(text) > MAX_RECORD_BYTES:
                raise UsageFault(f"{name}: {member.filename!a} is larger than {MAX_RECORD_BYTES:,} bytes")
            yield from _records([_json(text, f"{name}: {member.filename!a}")], name)


@contextmanager
def _archive_faults(name: str) -> Iterator[None]:
    """Around the archive alone. What zipfile says to hostile bytes: names that are no UTF-8, places before the file."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OSError,
        ValueError,
        OverflowError,
    ) as fault:
        raise UsageFault(
            f"{name}: not a .zip that can be read: {str(fault)[:MAX_TEXT]!a}", remedy="fetch the export again"
        ) from None


def _json(data: bytes, name: str, *, lines: bool = False) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as fault:
        if lines and b"\n" in data.strip():
            return [_json(line, f"{name}, line {n}") for n, line in enumerate(data.splitlines(), 1) if line.strip()]
        raise UsageFault(f"{name}: not JSON: {str(fault)[:MAX_TEXT]}") from None


def _records(listed: object, name: str) -> Iterator[dict[str, Any]]:
    for record in listed if isinstance(listed, list) else [listed]:
        if not isinstance(record, dict) or not isinstance(record.get("id"), str):
            raise UsageFault(f"{name}: a record is no object with an id", remedy="see the OSV schema")
        yield record


def _findings(record: dict[str, Any], installed: Mapping[str, str]) -> Iterator[Advisory]:
    affected = record.get("affected")
    for entry in affected if isinstance(affected, list) else []:
        package = entry.get("package") if isinstance(entry, dict) else None
        if not isinstance(package, dict) or package.get("ecosystem") != _ECOSYSTEM:
            continue
        name = canonicalize_name(_text(package.get("name"), 200))
        if name not in installed:
            continue
        verdict = _affects(entry, installed[name])
        if verdict is not False:
            yield Advisory(
                id=_text(record["id"], 80),
                package=name,
                version=installed[name],
                summary=_text(record.get("summary") or record.get("details"), MAX_TEXT),
                fixed=tuple(dict.fromkeys(_text(e.get("fixed"), 60) for e in _events(entry) if e.get("fixed"))),
                certain=verdict is True,
            )


def _affects(entry: dict[str, Any], version: str) -> bool | None:
    """True or False as OSV's own evaluation has it; None where the entry cannot be understood."""
    listed = entry.get("versions", [])
    ranges = entry.get("ranges", [])
    if not isinstance(listed, list) or not isinstance(ranges, list):
        return None
    try:
        ours = Version(version)
        if version in listed or any(isinstance(v, str) and _same(v, ours) for v in listed):
            return True
        kinds = [r.get("type") if isinstance(r, dict) else None for r in ranges]
        judged = [_in_range(r, ours) for r, kind in zip(ranges, kinds, strict=True) if kind == "ECOSYSTEM"]
    except (InvalidVersion, KeyError, TypeError, AttributeError):
        return None
    if any(judged):
        return True
    return False if judged or listed else None  # commits alone, or nothing at all, tell nothing about a version


def _same(listed: str, ours: Version) -> bool:
    try:
        return Version(listed) == ours
    except InvalidVersion:
        return False  # an old spelling, which no installed version has


def _in_range(one: dict[str, Any], ours: Version) -> bool:
    """OSV's algorithm: walk the events in order of version, the last that applies decides."""
    steps: list[tuple[Version, int, bool]] = []
    inside = False
    for event in one["events"]:
        for kind, order, state in (("introduced", 0, True), ("fixed", 1, False), ("last_affected", 2, False)):
            if kind in event:
                steps.append((Version("0.dev0" if event[kind] == "0" else event[kind]), order, state))
    for version, order, state in sorted(steps):
        if ours > version or (ours == version and order != 2):
            inside = state
    return inside


def _events(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ranges = entry.get("ranges")
    for one in ranges if isinstance(ranges, list) else []:
        events = one.get("events") if isinstance(one, dict) else None
        yield from (e for e in (events if isinstance(events, list) else []) if isinstance(e, dict))


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""
