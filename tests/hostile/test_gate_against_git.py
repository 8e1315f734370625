"""Whatever the gate judges, `git apply` makes of the tree, or it refuses: never something else.

The patches kept as data, and the same with lines lost, doubled, exchanged, indented or altered.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, DiffFault, FileMode
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff

GIT = shutil.which("git")
PATCHES = Path(__file__).parents[1] / "gate" / "patches"
ENVIRON = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_DIR": "/nonexistent",
    "LC_ALL": "C",
}
OTHER = (FileMode.SYMLINK, FileMode.SUBMODULE)


def lay_out(root: Path) -> dict[str, bytes]:
    shutil.rmtree(root, ignore_errors=True)
    for path, text in json.loads((PATCHES / "base.json").read_text()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return tree(root)


def tree(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file() and not p.is_symlink())
    return {str(p.relative_to(root)): p.read_bytes() for p in found}


def altered(patch: bytes, chance: random.Random) -> bytes:
    lines = patch.split(b"\n")
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[one]
        case 1:
            lines.insert(one, lines[two])
        case 2:
            lines[one] = lines[one].replace(b"1", b"2").replace(b"a/", b"b/")
        case 3:
            lines[one] = chance.choice((b" ", b"+", b"-", b"\t")) + lines[one]
        case 4:
            lines[one], lines[two] = lines[two], lines[one]
        case _:
            lines[one] = lines[one][:-1] + chance.choice((b"\r", b" ", b"\t", b'"'))
    return b"\n".join(lines)


def patches(rounds: int) -> Iterator[bytes]:
    chance = random.Random(20261122)
    for number in range(rounds):
        for path in sorted(PATCHES.glob("*/*/*.patch")):
            patch = path.read_bytes().partition(b"\n\n")[2]
            if 0 < len(patch) < 20_000:
                yield altered(patch, chance) if number else patch


def judged(patch: bytes, root: Path, before: dict[str, bytes]) -> dict[str, bytes] | None:
    """The tree as the gate sees it afterwards; None where it refuses, or where links and the like are in play."""
    try:
        changes = apply_diff(parse_diff(patch), root)
    except DiffFault:
        return None
    if any(c.binary or c.before_mode in OTHER or c.after_mode in OTHER for c in changes):
        return None
    after = dict(before)
    for change in changes:
        if change.kind in (ChangeKind.DELETED, ChangeKind.RENAMED):
            del after[os.fsdecode(os.fsencode(change.source))]
    after |= {str(c.path): c.after for c in changes if c.kind is not ChangeKind.DELETED}
    return after


@pytest.mark.slow
@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_git_makes_what_was_judged_or_refuses(tmp_path: Path) -> None:
    assert GIT is not None
    root = tmp_path / "r"
    before = lay_out(root)
    agreed = 0
    for patch in patches(rounds=20):
        after = judged(patch, root, before)
        if after is None:
            continue
        done = subprocess.run(
            [GIT, "apply", "--whitespace=nowarn", "-"],
            cwd=root,
            env=ENVIRON,
            input=patch,
            capture_output=True,
            check=False,
        )
        made = tree(root)
        assert made == (before if done.returncode else after), patch
        agreed += not done.returncode
        if made != before:
            lay_out(root)
    assert agreed > 300
