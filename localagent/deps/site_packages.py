"""Puts what was unpacked and compared where it was asked for: a fresh folder, or the site-packages of an environment.

Everything is written beside the target first, each file compared with its digest while it is copied, then renamed: a
fresh folder appears whole or not at all. In an environment each top-level entry is renamed by itself, metadata last,
and what was renamed is taken back when one fails. Not promised: that a kill in between takes back what was
renamed (without its metadata no tool counts it as installed), nor that a power cut leaves either state.
"""

import base64
import csv
import hashlib
import io
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from localagent.deps.choose import ChosenWheel, NotInstallable
from localagent.deps.wheel import FileTarget
from localagent.errors import CannotEnforce, UsageFault
from localagent.fs.bounded_read import MOST_ENTRIES, read_below
from localagent.fs.openat import open_regular
from localagent.jail.files.workspace import remove_tree

_CONFIG_BYTES = 1 << 16
_VERSION = re.compile(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)\b", re.MULTILINE)
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """A virtual environment that may be written to. `present`: what is installed there, name -> version."""

    site: Path
    present: Mapping[str, str]


def fresh_target(path: Path) -> Path:
    """The target folder; UsageFault unless it can be made anew (it is not there, or is an empty folder)."""
    target = Path(os.path.abspath(path))  # noqa: PTH100 - `..` as text; links are refused below
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageFault(f"--target {path}: something is there", remedy="name a folder that is not there yet")
    if not target.parent.is_dir():
        raise UsageFault(f"--target {path}: {target.parent} is not a directory")
    return target


def environment(path: Path) -> Environment:
    """The environment at a folder, or of an interpreter in its `bin`. UsageFault when nothing may be put there."""
    root = path if path.is_dir() else path.parent.parent
    remedy = "name the folder of a virtual environment made for this version of Python"
    try:
        config = read_below(root, "pyvenv.cfg", _CONFIG_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageFault(
            f"--python {path}: no virtual environment: {error.strerror or error}", remedy=remedy
        ) from error
    version = _VERSION.search(config)
    if version is None or (int(version[1]), int(version[2])) != sys.version_info[:2]:
        found = f"is for Python {version[1]}.{version[2]}" if version else "does not say its version"
        ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise UsageFault(f"--python {path}: {found}, and wheels are chosen for Python {ours}", remedy=remedy)
    if os.path.realpath(root) == os.path.realpath(sys.prefix):
        raise UsageFault(f"--python {path}: localagent's own environment", remedy="it is renewed by `make setup` only")
    site = root / "lib" / f"python{version[1]}.{version[2]}" / "site-packages"
    if not site.is_dir() or any(folder.is_symlink() for folder in (site, *site.parents[:2])):
        raise UsageFault(f"--python {path}: {site} is not a real folder", remedy=remedy)
    return Environment(site=site, present=_present(site))


def _present(site: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with os.scandir(site) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_ENTRIES:
                raise UsageFault(f"{site}: more than {MOST_ENTRIES:,} entries")
            if entry.name.endswith(".dist-info"):
                name, _, version = entry.name.removesuffix(".dist-info").partition("-")
                found[canonicalize_name(name)] = version
    return found


def conflicts(chosen: Sequence[ChosenWheel], place: Environment) -> list[str]:
    """What stands in the way in an environment, a line each."""
    lines = [
        f"{one.wheel.name} {place.present[one.wheel.name]} is installed there already"
        for one in chosen
        if one.wheel.name in place.present
    ]
    tops = {file.path.split("/")[0] for one in chosen for file in one.wheel.files if not file.outside}
    lines += [f"{top!r} is there already" for top in sorted(tops) if os.path.lexists(place.site / top)]
    lines += [f"{path} would run at each start of that Python" for one in chosen for path in one.wheel.startup]
    return lines


def land_fresh(unpacked: Path, chosen: Sequence[ChosenWheel], target: Path) -> None:
    """Make `target` hold what was unpacked; whole, or not at all."""
    with _staging(target.parent) as stage:
        for one in chosen:
            _fill(unpacked, stage, one, outside=True)
        try:
            stage.rename(target)  # replaces an empty folder, and nothing else
        except OSError as error:
            raise NotInstallable(f"{target} could not be made: {error.strerror or error}") from error


def land_in(unpacked: Path, chosen: Sequence[ChosenWheel], place: Environment) -> None:
    """Put what belongs to site-packages into an environment, entry by entry, metadata last."""
    if lines := conflicts(chosen, place):
        raise NotInstallable("nothing was installed: " + "; ".join(lines))
    with _staging(place.site) as stage:
        for one in chosen:
            _fill(unpacked, stage, one, outside=False)
        names = sorted(os.listdir(stage), key=lambda name: (name.endswith(".dist-info"), name))  # noqa: PTH208
        moved: list[str] = []
        try:
            for name in names:
                if os.path.lexists(place.site / name):
                    raise FileExistsError(0, f"{name} has come there meanwhile")
                (stage / name).rename(place.site / name)
                moved.append(name)
        except BaseException as error:
            for name in reversed(moved):
                (place.site / name).rename(stage / name)
            if isinstance(error, OSError):
                raise NotInstallable(f"{place.site}: {error.strerror or error}; it is as it was") from error
            raise


@contextmanager
def _staging(parent: Path) -> Iterator[Path]:
    """A fresh folder beside the target; gone at the end, whatever is left in it."""
    stage = parent / f".localagent-{secrets.token_hex(8)}"
    try:
        stage.mkdir(mode=0o755)
    except OSError as error:
        raise NotInstallable(f"cannot write into {parent}: {error.strerror or error}") from error
    try:
        yield stage
    except OSError as error:
        raise NotInstallable(f"cannot write below {parent}: {error.strerror or error}") from error
    finally:
        remove_tree(stage)


def _fill(unpacked: Path, stage: Path, one: ChosenWheel, *, outside: bool) -> None:
    """Write one distribution: its files, compared while they are copied, and a RECORD of what was written."""
    rows = []
    for file in one.wheel.files:
        if file.outside and not outside:
            continue
        to = stage / file.path
        to.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _copy(unpacked / file.path, to, file)
        rows.append((file.path, _encoded(file.sha256), str(file.size)))
    note = b"localagent\n"
    (stage / one.wheel.dist_info / "INSTALLER").write_bytes(note)
    rows.append((f"{one.wheel.dist_info}/INSTALLER", _encoded(hashlib.sha256(note).hexdigest()), str(len(note))))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*sorted(rows), (f"{one.wheel.dist_info}/RECORD", "", "")])
    (stage / one.wheel.dist_info / "RECORD").write_text(text.getvalue(), encoding="utf-8")


def _encoded(sha256: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")


def _copy(source: Path, to: Path, file: FileTarget) -> None:
    """CannotEnforce when what is copied is not what the wheel holds."""
    hashed = hashlib.sha256()
    with os.fdopen(open_regular(source), "rb") as stream, to.open("xb") as out:
        while part := stream.read(_CHUNK):
            hashed.update(part)
            out.write(part)
    if hashed.hexdigest() != file.sha256:
        raise CannotEnforce(f"{file.path} changed while it was copied; nothing was installed")
    to.chmod(0o755 if file.executable else 0o644)
