"""Gathers what the bill of materials tells: installed metadata, the locks, the packagers' own bills, model manifests.

Read from the environment that runs, so the bill is of this installation. Not promised: that files were not altered
since they were installed; the digest of each RECORD lets that be checked.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from localagent.app.settings import Settings, data_root
from localagent.errors import CannotEnforce
from localagent.llm.model.manifest import ModelManifest, load_manifest
from localagent.record.cyclonedx import SbomModel, SbomPart, bill

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_BESIDE = ("pip",)  # used, and no requirement of anybody


def bill_of_materials(settings: Settings) -> str:
    """CycloneDX JSON of this installation."""
    parts = list(installed())
    manifests = [load_manifest(path) for path in sorted(settings.models_dir.glob("*.toml"))]
    models = [weights for manifest in manifests for weights in (weights_of(manifest), *menders_of(manifest))]
    own = next(part for part in parts if part.name == "localagent")
    return bill(own, [part for part in parts if part is not own], models, when=datetime.now(UTC))


def installed() -> Iterator[SbomPart]:
    """This package and everything it needs here, by name; what a marker leaves out on this machine is not there.

    CannotEnforce names what is needed and is not installed as a distribution: nobody could say which version runs.
    """
    locks = locked(data_root() / "requirements")
    found: dict[str, Distribution] = {}
    needs: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    waiting = deque(["localagent", *_BESIDE])
    while waiting:
        name = waiting.popleft()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            missing += [] if name in (*_BESIDE, *missing) else [name]
            continue
        wanted = (Requirement(line) for line in found[name].requires or ())
        needs[name] = tuple(
            sorted({canonicalize_name(r.name) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})})
        )
        waiting.extend(needs[name])
    if missing:
        raise CannotEnforce(
            f"not installed as packages: {', '.join(sorted(missing))}; what runs here cannot be named",
            remedy="`make setup`, or install the kit; code on PYTHONPATH alone has no list of what it needs",
        )
    for name, package in sorted(found.items()):
        told: Message = package.metadata  # type: ignore[assignment]
        yield SbomPart(
            name=name,
            version=package.version,
            licence=licence(told),
            packager=packager(told),
            description=str(told["Summary"] or ""),
            locked=locks.get((name, package.version), ()),
            record=hashlib.sha256((package.read_text("RECORD") or "").encode()).hexdigest(),
            needs=needs[name],
            inside=tuple(_inside(package)),
        )


def locked(folder: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """(name, version) to the SHA-256 of the files that our locks accept."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for path in sorted(folder.glob("*.txt")):
        for name, version, rest in _PIN.findall(path.read_text(encoding="utf-8")):
            found[canonicalize_name(name), version] = tuple(sorted(_HASH.findall(rest)))
    return found


def licence(told: Message) -> str:
    """The newest of the fields that speak of it: an SPDX expression, else a short free text, else classifiers."""
    classified = [str(c).rsplit("::", 1)[-1].strip() for c in told.get_all("Classifier", []) if "License ::" in str(c)]
    free = str(told["License"] or "").strip()
    short = free if free and "\n" not in free and len(free) < 80 and free != "UNKNOWN" else ""
    return str(told["License-Expression"] or "") or short or ", ".join(classified)


def packager(told: Message) -> str:
    """Who is named as maintainer, else as author."""
    return str(told["Maintainer"] or told["Author"] or told["Author-email"] or "").replace("\n", " ")


def _inside(package: Distribution) -> Iterator[tuple[str, str, str]]:
    bills = [path for path in package.files or () if is_packagers_bill(path.as_posix())]
    for path in bills:
        try:
            text = path.read_text()
        except (OSError, ValueError):
            text = ""
        yield from libraries(package.name, path.name, text)


def is_packagers_bill(path: str) -> bool:
    """Whether a file of a wheel is the bill that its packager's tool left (PEP 770)."""
    return path.split("/")[-2:-1] == ["sboms"] and path.endswith(".cdx.json")


def libraries(own: str, name: str, text: str) -> Iterable[tuple[str, str, str]]:
    """(name, version, address) of what a wheel's repair put in, as the packager's bill `name` says."""
    try:
        components = json.loads(text)["components"]
        told = [(str(c["name"]), str(c.get("version", "")), str(c.get("purl", ""))) for c in components]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        told = [(name, "", "")]  # it says that something is inside, and not what
    return sorted({part for part in told if canonicalize_name(part[0]) != canonicalize_name(own)})


def menders_of(manifest: ModelManifest) -> Iterator[SbomModel]:
    """What a bill says of the mender that a model comes with, which we made: nothing where it has none."""
    if manifest.mender is not None:
        yield SbomModel(
            name=f"{manifest.name}-mender",
            version="",
            sha256=manifest.mender.sha256,
            licence=manifest.licence,
            card=f"models/{manifest.name}.md",
            statements={
                "file": manifest.mender.file,
                "bytes": str(manifest.mender.bytes),
                "base-model": manifest.name,
            },
        )


def weights_of(manifest: ModelManifest) -> SbomModel:
    """What a bill says of a model."""
    origin = manifest.origin
    return SbomModel(
        name=manifest.name,
        version=origin.version,
        sha256=manifest.sha256,
        licence=manifest.licence,
        card=f"models/{manifest.name}.md",
        statements={
            "file": manifest.file,
            "bytes": str(manifest.bytes),
            "quantization": manifest.quantization,
            "context-tokens": str(manifest.context_tokens),
            "source": origin.upstream,
            "base-model": origin.base_model,
            "package": f"{origin.package} {origin.version}".strip(),
            "package-sha256": origin.package_sha256,
        },
    )
