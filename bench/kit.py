"""Spoils a kit in one place, again and again, and kills its installer: `python bench/kit.py [KIT KEY]`.

Without KIT a small one is made. Every change must be refused, by the exit status of the kit's own script under dash and
bash, with nothing installed; a changed script must end with 0 nowhere but where its program said that it did its work;
every kill (kit_struck.py) must leave the old or the new version. Exit 1 if not.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from kit_struck import kills, machine_kills  # noqa: E402
from support.kit_builder import PUBLIC, Home, make_kit  # noqa: E402
from support.kit_wrappers import SCRIPTS, SHELLS, Wrappers, believed  # noqa: E402

KINDS = ("flip", "flip a program", "flip the script", "drop", "add", "rename", "reorder")
JUDGING = ("install", "verify", "upgrade")  # the scripts that judge the kit they are part of


def linked(kit: Path, target: Path) -> Path:
    """A copy by hard links: what is spoiled is replaced, never written in place."""
    shutil.copytree(kit, target, copy_function=os.link)
    return target


def replaced(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def spoiled(kit: Path, kind: str, script: str, dice: random.Random) -> str:
    """Changes one thing, maybe the script that is to be run; says which."""
    files = sorted(p for p in kit.rglob("*") if p.is_file())
    if kind == "flip a program":
        files = [p for p in files if p.parent in (kit, kit / "program")]
    elif kind == "flip the script":
        files = [kit / script]
    path = dice.choice([p for p in files if p.stat().st_size])
    name = path.relative_to(kit)
    if kind.startswith("flip"):
        data = bytearray(path.read_bytes())
        at = dice.randrange(len(data))
        data[at] ^= dice.randrange(1, 256)
        replaced(path, bytes(data))
        return f"{name} at {at}"
    if kind == "drop":
        path.unlink()
    elif kind == "add":
        choice = dice.randrange(3)
        new = path.with_name(f"{dice.choice(['', '.', 'x'])}new{dice.randrange(99)}{path.suffix}")
        if choice == 2:
            new.mkdir()
        else:
            new.write_bytes(path.read_bytes() if choice else b"")
    elif kind == "rename":
        path.rename(path.with_name(path.name + dice.choice(["x", ".bak", "~"])))
    elif dice.random() < 0.5:
        lines = (kit / "SHA256SUMS").read_bytes().splitlines(keepends=True)
        a, b = dice.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
        replaced(kit / "SHA256SUMS", b"".join(lines))
        return "lines of SHA256SUMS"
    else:
        other = dice.choice([p for p in files if p.stat().st_size != path.stat().st_size])
        one, two = path.read_bytes(), other.read_bytes()
        replaced(path, two)
        replaced(other, one)
        return f"{name} and {other.relative_to(kit)} exchanged"
    return str(name)


def changes(kit: Path, key: str, work: Path, count: int, dice: random.Random) -> bool:
    refused: Counter[str] = Counter()
    home = Home(work / "home")
    home.path.mkdir()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        copy = linked(kit, work / "spoiled")
        command = dice.choice(JUDGING)
        what = spoiled(copy, kind, command, dice)
        ended = home.run(dice.choice(SHELLS), copy / command, "--key", key)  # its status: the only word many will see
        if ended.returncode == 0 or home.left():
            print(f"NOT REFUSED: {kind}, {what}, {command}: {ended.returncode} {home.left()[:3]} {ended.stdout[-200:]}")
        else:
            refused[kind] += 1
        shutil.rmtree(copy)
    print(f"single changes: {sum(refused.values())} of {count} refused with nothing installed; {dict(refused)}")
    return sum(refused.values()) == count


def wrappers(work: Path, count: int, dice: random.Random) -> bool:
    """Changed scripts before programs that refuse or did their work, run by a real Python."""
    each = max(1, count // (len(SCRIPTS) * len(SHELLS)))
    wrong = list(believed(Wrappers(work / "wrappers", sys.executable), dice, each))
    for line in wrong:
        print(f"BELIEVED: {line}")
    tried = each * len(SCRIPTS) * len(SHELLS)
    print(f"changed scripts: {tried - len(wrong)} of {tried} ended with 0 only where it was said ({', '.join(SHELLS)})")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kit", nargs="?", type=Path)
    parser.add_argument("key", nargs="?")
    parser.add_argument("--changes", type=int, default=240)
    parser.add_argument("--wrappers", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--machine-kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    near = args.kit.resolve().parent if args.kit else None  # hard links do not cross file systems
    with tempfile.TemporaryDirectory(prefix="localagent-kit-", dir=near) as folder:
        work = Path(folder)
        kit = args.kit.resolve() if args.kit else make_kit(work / "kit", "1")
        good = changes(kit, args.key or PUBLIC, work, args.changes, dice)
        good = wrappers(work, args.wrappers, dice) and good
        good = kills(work, args.kills, dice) and good
        good = machine_kills(work, args.machine_kills, dice) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
