"""Gathers the bill of materials of a kit: read off the wheels that it carries, for nothing is installed or run.

`locks/installed.txt` says what an installation gets, each wheel by its one hash; everything else of `wheels/` is
carried for `make setup` and `make test`, and so is the source. Nothing depends on where or when this is asked: one kit,
one text. Not promised: that the kit is its maker's, or that its files agree with SHA256SUMS; `verify` judges that.
"""

import email
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from localagent.app.inventory.sbom import is_packagers_bill, libraries, licence, packager, weights_of
from localagent.deps.archive import open_archive
from localagent.errors import UsageFault
from localagent.llm.model.manifest import load_manifest
from localagent.record.cyclonedx import Carried, SbomModel, SbomPart, bill
from localagent.text.visible_text import shortened

_INSTALLED = re.compile(r"([a-z0-9-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")
_ABOUT = {"version": str, "commit": str, "commit_time": int, "python": str, "machine": str, "glibc": str}
_MOST_BYTES = 8 << 20
_REMEDY = "name the folder of a whole kit, or fetch the kit again"


def bill_of_kit(kit: Path) -> str:
    """CycloneDX JSON of a kit's folder. UsageFault where it is none, WheelRefused names a wheel that cannot be read."""
    about = _about(kit)
    sums = _sums(kit / "wheels", "*.whl")
    lock = _installed(kit / "locks" / "installed.txt", set(sums.values()))
    parts = [_part(kit / "wheels" / name, digest, lock, about) for name, digest in sums.items()]
    there = {part.name for part in parts if not part.carried}
    missing = {
        f"{need} (of {part.name})" for part in parts if not part.carried for need in part.needs if need not in there
    }
    if missing or "localagent" not in there:
        raise UsageFault(
            f"{kit}: not in locks/installed.txt, and needed: {', '.join(sorted(missing)) or 'localagent'}",
            remedy="put it into requirements/runtime.txt and make the kit again: it would not run",
        )
    own = next(part for part in parts if part.name == "localagent")
    source = _sums(kit / "source", "*.tar.gz")
    return bill(
        own,
        [part for part in parts if part is not own],
        list(_models(kit)),
        when=datetime.fromtimestamp(about["commit_time"], UTC),
        files=[
            Carried(file=f"source/{n}", sha256=d, what="the checkout at the kit's commit") for n, d in source.items()
        ],
        about={"of": "kit", **{name: about[name] for name in ("commit", "python", "machine", "glibc")}},
    )


def _about(kit: Path) -> dict[str, Any]:
    path = kit / "kit.json"
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError) as fault:
        raise UsageFault(f"{path}: not JSON: {fault}", remedy=_REMEDY) from None
    if not isinstance(found, dict):
        raise UsageFault(f"{path}: does not describe a kit", remedy=_REMEDY)
    wrong = [name for name, kind in _ABOUT.items() if type(found.get(name)) is not kind]
    if wrong or not re.fullmatch(r"cp3[0-9]{1,3}", found["python"]):
        raise UsageFault(
            f"{path}: no {', '.join(wrong) or 'Python that is known'}: made by another make_kit.py", remedy=_REMEDY
        )
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageFault(f"{path}: larger than {_MOST_BYTES:,} bytes", remedy=_REMEDY)
        return data.decode("utf-8")
    except OSError as fault:
        raise UsageFault(f"{path}: {fault.strerror}", remedy=_REMEDY) from None
    except UnicodeDecodeError as fault:
        raise UsageFault(f"{path}: {fault}", remedy=_REMEDY) from None


def _sums(folder: Path, pattern: str) -> dict[str, str]:
    """SHA-256 by name of the files of a folder."""
    found = {}
    for path in sorted(folder.glob(pattern)):
        with path.open("rb") as stream:
            found[path.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _installed(path: Path, carried: set[str]) -> set[str]:
    """The hashes of the wheels that an installation gets. UsageFault names a line that no wheel answers to."""
    hashes = set()
    for line in _text(path).splitlines():
        row = _INSTALLED.fullmatch(line)
        if row is None:
            raise UsageFault(f"{path}: a line that no kit has: {shortened(ascii(line), 122)}", remedy=_REMEDY)
        if row[3] not in carried:
            raise UsageFault(f"{path}: no wheel of the kit is the file that {row[1]} {row[2]} names", remedy=_REMEDY)
        hashes.add(row[3])
    return hashes


def _part(wheel: Path, digest: str, lock: set[str], about: Mapping[str, Any]) -> SbomPart:
    """What a wheel's own metadata says."""
    with open_archive(wheel) as archive:
        names = [path for path in archive.members if re.fullmatch(r"[^/]+\.dist-info/METADATA", path)]
        told = _metadata(archive.read(names[0], _MOST_BYTES) if len(names) == 1 else b"")
        bills = {path: archive.read(path, _MOST_BYTES) for path in archive.members if is_packagers_bill(path)}
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
        needs = [Requirement(line) for line in map(str, told.get_all("Requires-Dist", []))]
    except (InvalidWheelFilename, InvalidVersion, InvalidRequirement) as fault:
        raise UsageFault(f"{wheel}: {fault}", remedy=_REMEDY) from None
    if canonicalize_name(str(told["Name"])) != name:
        raise UsageFault(f"{wheel}: its metadata is of {shortened(ascii(str(told['Name'])), 82)}", remedy=_REMEDY)
    machine = _machine(about)
    return SbomPart(
        name=name,
        version=str(version),
        licence=licence(told),
        packager=packager(told),
        description=str(told["Summary"] or ""),
        locked=(digest,),
        needs=tuple(
            sorted({canonicalize_name(r.name) for r in needs if r.marker is None or r.marker.evaluate(machine)})
        ),
        inside=tuple(
            part for path, text in sorted(bills.items()) for part in libraries(name, Path(path).name, _lax(text))
        ),
        file=f"wheels/{wheel.name}",
        carried=digest not in lock,
    )


def _metadata(data: bytes) -> Message:
    return email.message_from_string(_lax(data))


def _lax(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _machine(about: Mapping[str, Any]) -> dict[str, str]:
    """What markers ask for, as it is where the kit fits; of a Python's patch releases the last."""
    minor = f"3.{about['python'][3:]}"
    return {
        "extra": "",
        "implementation_name": "cpython",
        "implementation_version": f"{minor}.99",
        "os_name": "posix",
        "platform_machine": about["machine"],
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{minor}.99",
        "python_version": minor,
        "sys_platform": "linux",
    }


def _models(kit: Path) -> Iterator[SbomModel]:
    """The models whose weights the kit carries. UsageFault where a manifest speaks of another file."""
    sums = _sums(kit / "models", "*.gguf")
    for manifest in map(load_manifest, sorted((kit / "models").glob("*.toml"))):
        found = sums.pop(manifest.file, None)
        if found not in (None, manifest.sha256):
            raise UsageFault(f"{kit}: models/{manifest.file} is not the file that its manifest names", remedy=_REMEDY)
        if found:
            yield weights_of(manifest)
    if sums:
        raise UsageFault(f"{kit}: no manifest speaks of models/{', '.join(sums)}", remedy=_REMEDY)
