"""A wheel judged whole before anybody unpacks it: its name, metadata, RECORD and where each of its files would go.

Nothing of it is executed. Refused beside what `archive` refuses: a RECORD that does not name every file with its
digest, metadata that contradicts the file's name, files that would shadow the standard library or run at each start of
Python, compiled files beside their source. Not promised: that the code is harmless; that is for whoever approved it.
"""

import base64
import binascii
import configparser
import csv
import email
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import parse_email
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from localagent.deps.archive import Archive, WheelRefused, open_archive, path_fault, refuse_all
from localagent.text.visible_text import shortened

MOST_METADATA_BYTES = 8 << 20
_RECORD_ALGORITHMS = ("sha256", "sha384", "sha512")
_NOT_RECORDED = ("RECORD", "RECORD.jws", "RECORD.p7s")
_INSTALLERS_OWN = ("INSTALLER", "REQUESTED", "direct_url.json")
_AT_EACH_START = ("sitecustomize", "usercustomize")
_DATA_FOLDERS = ("share", "etc")
_DATA = re.compile(r"[^/]+\.data")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTarget:
    """Where one file goes. `outside` marks what does not belong to site-packages: scripts and data."""

    path: str
    sha256: str
    size: int
    executable: bool
    outside: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel that was judged. `requires` are PEP 508; `scripts` entry points as `name = module:function`.

    `files` go to the target, `left_out` do not, `startup` are files that the `site` module of Python would run.
    """

    name: str
    version: str
    dist_info: str
    requires: tuple[str, ...]
    files: tuple[FileTarget, ...]
    scripts: tuple[str, ...]
    left_out: tuple[str, ...]
    startup: tuple[str, ...]


def read_wheel(path: Path) -> Wheel:
    """Judge a wheel. WheelRefused with the reasons; the file must not change meanwhile."""
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise WheelRefused(f"{path.name}: not the name of a wheel: {error}") from error
    with open_archive(path) as archive:
        dist_info = _dist_info(archive, name, version)
        requires = _metadata(archive, dist_info, name, version)
        digests = _record(archive, dist_info)
        files, left_out, faults = _landings(archive, dist_info, digests)
        refuse_all(path.name, faults)
        return Wheel(
            name=name,
            version=str(version),
            dist_info=dist_info,
            requires=requires,
            files=files,
            scripts=_scripts(archive, dist_info),
            left_out=left_out,
            startup=tuple(file.path for file in files if "/" not in file.path and file.path.endswith(".pth")),
        )


def _dist_info(archive: Archive, name: str, version: Version) -> str:
    found = {path.split("/")[0] for path in archive.members if path.split("/")[0].endswith(".dist-info")}
    if len(found) != 1:
        raise WheelRefused(f"{archive.name}: {len(found)} folders .dist-info, not one")
    folder = found.pop()
    written, _, number = folder.removesuffix(".dist-info").partition("-")
    if canonicalize_name(written) != name or not _same_version(number, version):
        raise WheelRefused(f"{archive.name}: its metadata lies in {folder}, which is another name or version")
    return folder


def _same_version(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except InvalidVersion:
        return False


def _metadata(archive: Archive, dist_info: str, name: str, version: Version) -> tuple[str, ...]:
    """Requires-Dist; WheelRefused when METADATA or WHEEL are not this wheel's."""
    wheel = email.message_from_bytes(archive.read(f"{dist_info}/WHEEL", MOST_METADATA_BYTES))
    if str(wheel.get("Wheel-Version", "")).split(".")[0] != "1":
        raise WheelRefused(f"{archive.name}: a wheel of version {wheel.get('Wheel-Version')!r}, not 1.x")
    try:
        raw, _ = parse_email(archive.read(f"{dist_info}/METADATA", MOST_METADATA_BYTES))
    except (ValueError, TypeError, LookupError) as error:
        raise WheelRefused(f"{archive.name}: METADATA cannot be read: {error}") from error
    said = raw.get("name", ""), raw.get("version", "")
    if canonicalize_name(said[0]) != name or not _same_version(said[1], version):
        raise WheelRefused(f"{archive.name}: its METADATA says {said[0]!r} {said[1]!r}: another name or version")
    return tuple(raw.get("requires_dist", ()))


def _record(archive: Archive, dist_info: str) -> dict[str, str]:
    """SHA-256 (hex) of every member, each compared with RECORD. WheelRefused lists what does not agree."""
    try:
        text = archive.read(f"{dist_info}/RECORD", MOST_METADATA_BYTES).decode("utf-8")
        rows = list(csv.reader(text.splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise WheelRefused(f"{archive.name}: RECORD cannot be read: {error}") from error
    exempt = {f"{dist_info}/{name}" for name in _NOT_RECORDED}
    faults: list[str] = []
    recorded: dict[str, tuple[str, str]] = {}
    for row in rows:
        if len(row) != 3 or path_fault(row[0]) or row[0] in recorded:
            faults.append(f"RECORD: {shortened(','.join(row), 80)!r} is no entry, or stands twice")
        else:
            recorded[row[0]] = (row[1], row[2])
    faults += [f"{path} is in RECORD but not there" for path in recorded.keys() - archive.members.keys() - exempt]
    digests = {}
    for path in archive.members:
        digests[path] = archive.digest(path).hex()
        if path in exempt:
            continue
        if path not in recorded:
            faults.append(f"{path} is not in RECORD")
        elif fault := _entry_fault(archive, path, digests[path], recorded[path]):
            faults.append(f"{path}: {fault}")
    refuse_all(archive.name, sorted(faults))
    return digests


def _entry_fault(archive: Archive, path: str, sha256: str, entry: tuple[str, str]) -> str:
    algorithm, _, written = entry[0].partition("=")
    if algorithm not in _RECORD_ALGORITHMS:
        return f"RECORD has no digest that is good enough ({algorithm or 'none'!r})"
    try:
        digest = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
    except (ValueError, binascii.Error):
        return "RECORD has no digest that can be read"
    if digest != (bytes.fromhex(sha256) if algorithm == "sha256" else archive.digest(path, algorithm)):
        return "is not what RECORD says"
    return "" if entry[1] in ("", str(archive.members[path].size)) else "has not the size that RECORD says"


def _landings(
    archive: Archive, dist_info: str, digests: dict[str, str]
) -> tuple[tuple[FileTarget, ...], tuple[str, ...], list[str]]:
    """(where files go, what is left out and why, faults)."""
    files: dict[str, FileTarget] = {}
    left_out: list[str] = []
    faults: list[str] = []
    data = dist_info.removesuffix(".dist-info") + ".data"
    for path, member in archive.members.items():
        if path in {f"{dist_info}/{name}" for name in _NOT_RECORDED}:
            continue
        top, _, rest = path.partition("/")
        if top == dist_info and rest in _INSTALLERS_OWN:
            left_out.append(f"{path}: for installers to write")
            continue
        place, outside = path, False
        if _DATA.fullmatch(top):
            kind, _, below = rest.partition("/")
            place, outside = below, kind not in ("purelib", "platlib")
            if top != data or not below or kind not in ("purelib", "platlib", "scripts", "data", "headers"):
                faults.append(f"{path}: not a place that a wheel may name")
                continue
            if kind == "headers" or (kind == "scripts" and _is_rewritten(archive, path)):
                left_out.append(
                    f"{path}: {'C headers' if kind == 'headers' else 'its first line names an interpreter'}"
                )
                continue
            if kind == "scripts":
                place = f"bin/{below}"
            elif kind == "data" and below.split("/")[0] not in _DATA_FOLDERS:
                faults.append(f"{path}: data may lie below {' or '.join(_DATA_FOLDERS)} only")
                continue
        if fault := "" if outside else _path_fault(place, dist_info):
            faults.append(f"{path}: {fault}")
        elif place in files:
            faults.append(f"{path}: would be written over {place}")
        else:
            executable = member.executable or place.startswith("bin/")
            files[place] = FileTarget(
                path=place, sha256=digests[path], size=member.size, executable=executable, outside=outside
            )
    return tuple(files.values()), tuple(left_out), faults


def _is_rewritten(archive: Archive, path: str) -> bool:
    """Installers replace a first line `#!python`; what they write is not what the wheel holds."""
    return next(archive.chunks(path), b"").startswith(b"#!python")


def _path_fault(place: str, dist_info: str) -> str:
    top, *below = place.split("/")
    module = re.split(r"\.", top, maxsplit=1)[0]
    if "__pycache__" in place.split("/"):
        return "compiled code beside its source: not what a reader sees"
    is_code = bool(below) or re.search(r"\.(py|pyc|so|pyd)$", top) is not None
    if is_code and module in _AT_EACH_START:
        return "would run at each start of Python"
    if is_code and not top.endswith((".dist-info", ".data")) and module in sys.stdlib_module_names:
        return f"would shadow {module!r} of the standard library"
    if top.endswith((".dist-info", ".egg-info", ".egg-link")) and (top != dist_info or not below):
        return "metadata of another distribution"
    return ""


def _scripts(archive: Archive, dist_info: str) -> tuple[str, ...]:
    path = f"{dist_info}/entry_points.txt"
    if path not in archive.members:
        return ()
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment] # names of scripts keep their case
    try:
        parser.read_string(archive.read(path, MOST_METADATA_BYTES).decode("utf-8"))
    except (UnicodeDecodeError, configparser.Error) as error:
        raise WheelRefused(f"{archive.name}: entry_points.txt cannot be read: {error}") from error
    groups = [group for group in ("console_scripts", "gui_scripts") if parser.has_section(group)]
    return tuple(f"{name} = {target}" for group in groups for name, target in parser.items(group))


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
