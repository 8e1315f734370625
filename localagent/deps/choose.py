"""Which wheel of an index serves each requirement (by name, version, interpreter and digest), and what is missing."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from localagent.deps.archive import WheelRefused
from localagent.deps.dependency_check import fits
from localagent.deps.requirement import MOST_CHARACTERS
from localagent.deps.wheel import Wheel, read_wheel, sha256_of
from localagent.deps.wheelhouse import Wheelhouse
from localagent.domain.dependency import Locked, Wanted
from localagent.errors import AnswerIsNo
from localagent.text.visible_text import shortened

MOST_WHEEL_BYTES = 2 << 30
_CHUNK = 1 << 20


class NotInstallable(AnswerIsNo):
    """What was asked for cannot come in as it is, with every reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenWheel:
    """A judged wheel, copied to where nobody else writes. `vouched` says who named its digest ("" for nobody)."""

    wheel: Wheel
    copy: Path
    sha256: str
    vouched: str


def choose(
    wanted: Sequence[Wanted], house: Wheelhouse, locked: Sequence[Locked], folder: Path, *, require_hashes: bool
) -> list[ChosenWheel]:
    """One judged wheel for each name, copied into `folder`. NotInstallable lists every name that gets none."""
    chosen: list[ChosenWheel] = []
    faults: list[str] = []
    for name in dict.fromkeys(item.name for item in wanted):
        items = [item for item in wanted if item.name == name]
        specifier = ",".join(filter(None, (item.specifier for item in items)))
        try:
            candidates = _candidates(name, specifier, house)
            accepted = _accepted(name, items, locked)
            chosen.append(_first_accepted(name, candidates, accepted, folder, require_hashes=require_hashes))
        except AnswerIsNo as refusal:
            faults.append(str(refusal))
    if faults:
        raise NotInstallable(
            "nothing was installed: " + "; ".join(faults), remedy="docs/dependencies.md says what a wheel must be"
        )
    return chosen


def _candidates(name: str, specifier: str, house: Wheelhouse) -> list[Path]:
    wheels = house.wheels.get(name, ())
    if not wheels and name in house.sources:
        raise NotInstallable(
            f"{name}: only source distributions are there ({', '.join(house.sources[name])}): building runs their code"
        )
    if not wheels:
        raise NotInstallable(f"{name}: no wheel of that name is in the index")
    fitting = [wheel for wheel in wheels if fits(str(wheel.version), specifier)]
    if not fitting:
        versions = ", ".join(dict.fromkeys(str(wheel.version) for wheel in wheels))
        raise NotInstallable(f"{name}: the index has {versions}, which is not {specifier}")
    usable = [wheel.path for wheel in fitting if wheel.rank is not None]
    if not usable:
        raise NotInstallable(f"{name}: no wheel fits this interpreter ({', '.join(w.path.name for w in fitting)})")
    return usable


def _accepted(name: str, items: Iterable[Wanted], locked: Iterable[Locked]) -> Mapping[str, str]:
    """Digest -> who vouches for it."""
    found = {digest: entry.lock for entry in locked if entry.name == name for digest in entry.hashes}
    return found | {digest: item.source for item in items for digest in item.hashes}


def _first_accepted(
    name: str, candidates: Sequence[Path], accepted: Mapping[str, str], folder: Path, *, require_hashes: bool
) -> ChosenWheel:
    seen: list[str] = []
    for path in candidates:
        copy = copied(path, folder)
        digest = sha256_of(copy)
        if digest in accepted or not (accepted or require_hashes):
            return ChosenWheel(wheel=read_wheel(copy), copy=copy, sha256=digest, vouched=accepted.get(digest, ""))
        seen.append(f"{path.name} is sha256:{digest}")
        copy.unlink()
    if not accepted:
        why = "no --hash, lock file or approval names its SHA-256, and the policy requires one"
    else:
        why = "no wheel there has a SHA-256 that the requirement, a lock file or an approval names"
    command = f"localagent deps approve {name}==VERSION --hash-from WHEEL --reason TEXT"
    raise NotInstallable(f"{name}: {why} ({'; '.join(seen)}); to approve a wheel: {command}")


def copied(path: Path, folder: Path) -> Path:
    """A copy that does not change while it is judged; NotInstallable when it cannot be made."""
    copy = folder / path.name
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as reading, copy.open("xb") as writing:
            facts = os.fstat(number)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_WHEEL_BYTES:
                raise WheelRefused(f"{path.name}: no regular file of at most {MOST_WHEEL_BYTES >> 30} GiB")
            left = facts.st_size
            while left > 0 and (part := reading.read(min(left, _CHUNK))):
                left -= len(part)
                writing.write(part)
        copy.chmod(0o644)
    except OSError as error:
        raise NotInstallable(f"{path.name}: cannot be copied: {error.strerror or error}") from error
    return copy


def missing(chosen: Sequence[ChosenWheel], wanted: Sequence[Wanted], present: Mapping[str, str]) -> list[str]:
    """What the chosen wheels need and nobody asked for, a line each. `present`: name -> version in the target."""
    versions = dict(present) | {one.wheel.name: one.wheel.version for one in chosen}
    lines = []
    for one in chosen:
        extras = {extra for item in wanted if item.name == one.wheel.name for extra in item.extras}
        for text in one.wheel.requires:
            try:
                if len(text) > MOST_CHARACTERS:
                    raise InvalidRequirement(f"longer than {MOST_CHARACTERS} characters")
                need = Requirement(text)
                applies = need.marker is None or any(_true(need.marker, extra) for extra in ("", *extras))
            except (InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName, RecursionError) as error:
                lines.append(
                    f"{one.wheel.name} needs {shortened(text, 80)!r}, which cannot be understood: "
                    f"{str(error).splitlines()[0]}"
                )
                continue
            version = versions.get(canonicalize_name(need.name))
            if applies and (version is None or not fits(version, str(need.specifier))):
                have = "not asked for" if version is None else f"{version} is there"
                lines.append(f"{one.wheel.name} needs {need.name}{need.specifier}: {have}")
    return lines


def _true(marker: Marker, extra: str) -> bool:
    return marker.evaluate({"extra": extra})


def applies_here(item: Wanted) -> bool:
    """False where the requirement's own marker says that it is not for this interpreter."""
    try:
        return not item.marker or _true(Marker(item.marker), "")
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        return True
