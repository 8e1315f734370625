"""How many random alterations of an audit journal are found, and whether at the right place.

  audit.py                     1,000 alterations of a journal of 400 entries in several segments
  audit.py --count 200 --seed 7 --json

Altered are bytes, whole lines (dropped, doubled, made up, swapped) and the end (cut at and within lines); what a crash
leaves (a torn line behind the head) is none. Each is undone before the next.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localagent.record.audit.entry import AuditKind, line_of, parse_line
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import segments
from localagent.record.audit.verify_chain import check_audit
from localagent.record.journal import JournalStatus

Segment = list[bytes]  # lines, newlines included


@dataclass(frozen=True, kw_only=True)
class Altered:
    """What was done, and the places (segment, line from 1) of which one has to be named."""

    what: str
    places: tuple[tuple[int, int], ...]


def one_byte(rows: list[Segment], rng: random.Random) -> Altered:
    """One byte becomes another: anywhere, newlines included."""
    s, n = some_line(rows, rng)
    row = bytearray(rows[s][n])
    at = rng.randrange(len(row))
    row[at] = rng.choice([b for b in range(256) if b != row[at]])
    rows[s][n] = bytes(row)
    return Altered(what="byte", places=((s, n + 1),))


def inserted_byte(rows: list[Segment], rng: random.Random) -> Altered:
    """One byte more or less."""
    s, n = some_line(rows, rng)
    row = rows[s][n]
    at = rng.randrange(len(row))
    more = rng.random() < 0.5
    rows[s][n] = row[:at] + bytes([rng.randrange(256)]) + row[at:] if more else row[:at] + row[at + 1 :]
    return Altered(what="byte more or less", places=((s, n + 1),))


def dropped(rows: list[Segment], rng: random.Random) -> Altered:
    """A line is gone."""
    s, n = some_line(rows, rng)
    del rows[s][n]
    return Altered(what="line dropped", places=((s, n + 1), *(((s + 1, 1),) if n == len(rows[s]) else ())))


def doubled(rows: list[Segment], rng: random.Random) -> Altered:
    """A line stands twice."""
    s, n = some_line(rows, rng)
    rows[s].insert(n, rows[s][n])
    return Altered(what="line doubled", places=((s, n + 2),))


def made_up(rows: list[Segment], rng: random.Random) -> Altered:
    """A line is replaced by one that fits number and chain but says something else."""
    s, n = some_line(rows, rng)
    old = parse_line(rows[s][n][:-1])
    rows[s][n] = line_of(seq=old.seq, prev=old.prev, kind=AuditKind.APPLIED, data={"n": rng.random()}, at=old.at)
    return Altered(what="line replaced", places=((s, n + 1),))


def swapped(rows: list[Segment], rng: random.Random) -> Altered:
    """Two lines change places."""
    s, n = some_line(rows, rng)
    t, m = some_line(rows, rng)
    if (s, n) == (t, m):
        return swapped(rows, rng)
    rows[s][n], rows[t][m] = rows[t][m], rows[s][n]
    return Altered(what="order", places=((s, n + 1), (t, m + 1)))


def cut(rows: list[Segment], rng: random.Random) -> Altered:
    """The end is gone, at a line's end or within a line."""
    s, n = some_line(rows, rng)
    within = rng.randrange(len(rows[s][n])) if rng.random() < 0.5 else 0
    rows[s][n:] = [rows[s][n][:within]] if within else []
    if rng.random() < 0.5 or s == len(rows) - 1:
        del rows[s + 1 :]
    nothing = ((s - 1, len(rows[s - 1]) + 1),) if s and not n and not within else ()
    follows = ((s + 1, 1),) if s + 1 < len(rows) and not within else ()
    return Altered(what="end cut", places=((s, n + 1), *follows, *nothing))


WAYS: tuple[Callable[[list[Segment], random.Random], Altered], ...] = (
    one_byte,
    one_byte,
    inserted_byte,
    dropped,
    doubled,
    made_up,
    swapped,
    cut,
)


def some_line(rows: list[Segment], rng: random.Random) -> tuple[int, int]:
    """A line, each as likely as any other."""
    return rng.choice([(s, n) for s, segment in enumerate(rows) for n in range(len(segment))])


def write_journal(state: Path, entries: int) -> Path:
    """A journal in several segments; its folder."""
    log = AuditLog(state, segment_bytes=16 << 10)
    for n in range(entries):
        log.append(
            AuditKind.TASK_ENDED, {"task": f"t{n // 3}", "verified": n, "outcome": "gave-up", "denied": {"a": n}}
        )
    return log.folder


def trial(folder: Path, rng: random.Random) -> tuple[str, bool, bool]:
    """One alteration: what it was, whether it was found, whether the place is right."""
    paths = segments(folder)
    before = [path.read_bytes() for path in paths]
    rows = [data.splitlines(keepends=True) for data in before]
    done = rng.choice(WAYS)(rows, rng)
    after = [b"".join(segment) for segment in rows]
    names = [path.name for path in paths]
    if after == before:
        return trial(folder, rng)
    for number, path in enumerate(paths):
        if number < len(after):
            path.write_bytes(after[number])
        else:
            path.unlink()
    check = check_audit(folder)
    found = check.standing is JournalStatus.ALTERED
    place = check.place
    right = place is not None and any(
        (place.file, place.line) == (names[s], n) for s, n in done.places if s < len(names)
    )
    for path, data in zip(paths, before, strict=True):
        path.write_bytes(data)
    if not (found and right):
        print(f"missed: {done} -> {check.standing} {check.place} {check.reason}", file=sys.stderr)
    return done.what, found, right


def measure(count: int, entries: int, seed: int) -> dict[str, object]:
    """How many of `count` were found, and named at their place."""
    rng = random.Random(seed)
    state = Path(tempfile.mkdtemp(prefix="bench-audit-"))
    try:
        folder = write_journal(state, entries)
        results = [trial(folder, rng) for _ in range(count)]
        sound = check_audit(folder).standing is JournalStatus.WHOLE
        return {
            "alterations": count,
            "entries": entries,
            "segments": len(segments(folder)),
            "kinds": dict(Counter(what for what, _, _ in results)),
            "found": sum(found for _, found, _ in results),
            "at_the_place": sum(right for _, _, right in results),
            "unaltered_holds": sound,
        }
    finally:
        shutil.rmtree(state)


def main() -> int:
    """Entry point: 0 if everything was found at its place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--entries", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = measure(args.count, args.entries, args.seed)
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    return 0 if figures["found"] == figures["at_the_place"] == args.count and figures["unaltered_holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
