"""How well the dependency guard tells squats: generated squats of every family, and known names left out one at a time.

    python bench/squats.py [--json] [--others FILE]

Detection: every known name of at least 4 letters is squatted in every family that applies; a squat that happens to be
another known name is not counted. Exceptions: each known name is taken off the list and asked about; those that alarm
then are near another one and stand on the list for that reason too (`pyqt5`, `pyqt6`). False alarms: with
--others, how many names of a list of your own, for instance the most downloaded distributions, alarm though genuine.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from packaging.utils import canonicalize_name  # noqa: E402

from localagent.deps.known_distributions import load_known  # noqa: E402
from localagent.deps.squat import KnownNames, compact, tolerance  # noqa: E402

KNOWN = ROOT / "policies" / "known-packages.txt"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = {"o": "0", "l": "1", "i": "1", "e": "3", "a": "4", "s": "5", "t": "7", "b": "8", "z": "2", "g": "9"}
CYRILLIC = {
    "a": "\u0430",
    "e": "\u0435",
    "o": "\u043e",
    "p": "\u0440",
    "c": "\u0441",
    "y": "\u0443",
    "x": "\u0445",
    "i": "\u0456",
}
GREEK = {"o": "\u03bf", "v": "\u03bd", "a": "\u03b1", "i": "\u03b9", "u": "\u03c5"}
NEIGHBOURS = {"a": "s", "s": "d", "e": "r", "o": "p", "i": "u", "n": "m", "t": "y", "r": "t", "l": "k", "c": "v"}
LEAST_LETTERS = 4


def squats(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """(family, squat) of one known name."""
    yield from _edits(name, chance)
    yield from _looks(name, chance)
    for squat in (f"python-{name}", f"{name}-python", f"py{name}", f"py-{name}", f"{name}2", f"{name}3", f"{name}s"):
        yield "affix", squat
    words = name.split("-")
    if len(words) > 1:
        yield "separator", "".join(words)
        yield "word order", "-".join(reversed(words))
        yield "word order", "-".join(words[1:] + words[:1])
    middle = len(name) // 2
    yield "separator", f"{name[:middle]}-{name[middle:]}"


def _edits(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    at = chance.randrange(len(name))
    yield "letter left out", name[:at] + name[at + 1 :]
    yield "letter doubled", name[:at] + name[at] + name[at:]
    yield "letter added", name[:at] + chance.choice(LETTERS) + name[at:]
    yield "letter replaced", name[:at] + chance.choice(LETTERS) + name[at + 1 :]
    for n, letter in enumerate(name):
        if letter in NEIGHBOURS:
            yield "neighbouring key", name[:n] + NEIGHBOURS[letter] + name[n + 1 :]
            break
    pairs = [n for n in range(len(name) - 1) if name[n] != name[n + 1] and "-" not in name[n : n + 2]]
    if pairs:
        n = chance.choice(pairs)
        yield "letters swapped", name[:n] + name[n + 1] + name[n] + name[n + 2 :]
    if tolerance(len(compact(name))) > 1:
        first, second = sorted(chance.sample(range(len(name)), 2))
        twice = name[:first] + chance.choice(LETTERS) + name[first + 1 : second] + chance.choice(LETTERS)
        yield "two letters replaced", twice + name[second + 1 :]


def _looks(name: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    for family, table in (("digit for letter", DIGITS), ("Cyrillic letter", CYRILLIC), ("Greek letter", GREEK)):
        places = [n for n, letter in enumerate(name) if letter in table]
        if places:
            n = chance.choice(places)
            yield family, name[:n] + table[name[n]] + name[n + 1 :]
        if len(places) > 2:
            yield f"{family}, all of them", "".join(table.get(letter, letter) for letter in name)
    if "m" in name:
        yield "rn for m", name.replace("m", "rn", 1)
    yield "full-width letters", "".join(chr(ord(c) + 0xFEE0) if c in LETTERS else c for c in name)
    yield "accent", name[:1] + "\u0301" + name[1:]
    yield "invisible character", name[:2] + "\u200b" + name[2:]


def detection(known: KnownNames, seed: int = 0, every: int = 1) -> dict[str, tuple[int, int]]:
    """family -> (seen, asked), squatting every n-th known name."""
    chance = random.Random(seed)
    found: dict[str, list[int]] = {}
    for name in sorted(known.names)[::every]:
        if len(compact(name)) < LEAST_LETTERS:
            continue
        for family, squat in squats(name, chance):
            if squat.isascii() and canonicalize_name(squat).strip("-") in known.names:
                continue
            row = found.setdefault(family, [0, 0])
            row[0] += known.look_alike(squat.strip("-")) is not None
            row[1] += 1
    return {family: (seen, asked) for family, (seen, asked) in found.items()}


def near(known: KnownNames) -> dict[str, str]:
    """Known names that would be taken for another one if they were not on the list."""
    found: dict[str, str] = {}
    for name in sorted(known.names):
        likeness = KnownNames(known.names - {name}).look_alike(name)
        if likeness is not None:
            found[name] = likeness.known
    return found


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--others", type=Path, metavar="FILE", help="genuine names, one a line")
    args = parser.parse_args()
    known = load_known(KNOWN)
    start = time.monotonic()
    seen = detection(known)
    per_name_ms = (time.monotonic() - start) * 1000 / sum(asked for _, asked in seen.values())
    alarms = near(known)
    others = (
        {canonicalize_name(line.strip()) for line in args.others.read_text().splitlines()} if args.others else set()
    )
    others -= known.names | {""}
    alarmed = sorted(name for name in others if known.look_alike(name))
    if args.json:
        print(
            json.dumps(
                {
                    "names": len(known.names),
                    "detection": seen,
                    "near": alarms,
                    "others": len(others),
                    "alarmed": alarmed,
                    "ms": per_name_ms,
                }
            )
        )
        return 0
    for family, (caught, asked) in sorted(seen.items()):
        print(f"{family:32} {caught:5} of {asked:5}  {caught / asked:6.1%}")
    caught, asked = (sum(row[n] for row in seen.values()) for n in (0, 1))
    print(f"{'all':32} {caught:5} of {asked:5}  {caught / asked:6.1%}   {per_name_ms:.2f} ms a name")
    print(
        f"near another, were they left out: {len(alarms)} of {len(known.names)} ({len(alarms) / len(known.names):.1%})"
    )
    print(", ".join(f"{name}~{other}" for name, other in alarms.items()))
    if others:
        print(
            f"genuine names off the list that alarm: {len(alarmed)} of {len(others)} ({len(alarmed) / len(others):.1%})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
