"""Files of a verified kit, taken: copied while they are held against what was signed once more.

Others may write where a kit lies (a share, a stick), and between a look and a use they may exchange a file for a link.
So no link is followed, the very bytes that are copied are the ones that are hashed, and what does not agree is gone
again before anybody but its owner could read it. Not promised: that a kit whose files grow without end is noticed
before the disk is full.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import verify
from places import Impossible
from placing import own_umask

RUN_BY_NAME = "program/localagent-kit"
CHANGED = "changed after it was verified: copy the kit to a folder that is yours alone"


def about_kit(kit: verify.Sound) -> dict[str, Any]:
    """kit.json as it was signed: it says which commands are tried."""
    found = json.loads(contents(kit, "kit.json"))
    assert isinstance(found, dict)
    return found


def contents(kit: verify.Sound, name: str) -> bytes:
    """A small file of the kit as it was signed. Impossible where it is another one by now."""
    data = verify.regular(kit.folder / name, verify.MAX_SUMS_BYTES)
    if hashlib.sha256(data).hexdigest() != kit.files.get(name):
        raise Impossible(f"{name} {CHANGED}")
    return data


def taken(kit: verify.Sound, name: str, target: Path) -> Path:
    """A file of the kit, copied to `target`, which must not be there yet. Impossible where it is another one by now.

    Its mode is ours to say: modes are not signed, and a stick may show everything as open to all.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = hashlib.sha256()
    with os.fdopen(verify.opened(kit.folder / name), "rb") as source:
        number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "wb") as copy:
            while chunk := source.read(verify.CHUNK_BYTES):
                whole.update(chunk)
                copy.write(chunk)
            if whole.hexdigest() == kit.files.get(name):
                os.fchmod(number, (0o755 if name == RUN_BY_NAME else 0o644) & ~own_umask())
                return target
    target.unlink()
    raise Impossible(f"{name} {CHANGED}")


def below(kit: verify.Sound, folder: str, target: Path) -> list[Path]:
    """Every file of the kit below one of its folders, taken to the same place below `target`."""
    names = sorted(name for name in kit.files if name.startswith(f"{folder}/"))
    return [taken(kit, name, target / name.removeprefix(f"{folder}/")) for name in names]


def wheels(kit: verify.Sound, target: Path) -> Path:
    """The wheels that the kit's own lock installs, taken to a folder: pip hashes a file and opens it once more."""
    lock = contents(kit, "locks/installed.txt").decode("utf-8")
    for name, digest in sorted(kit.files.items()):
        if name.startswith("wheels/") and (f"sha256:{digest}" in lock or name.startswith("wheels/pip-")):
            taken(kit, name, target / Path(name).name)
    return target
