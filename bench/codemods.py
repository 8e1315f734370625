"""Every rule of the hook over every Python file of some folders: what fires, what is repaired, what goes wrong.

`python bench/codemods.py --repos DIR [DIR ...] [--sample 40] [--json FILE]`. Nothing is written into the folders. Must
be 0: files that no longer compile, repairs whose tree changed elsewhere, repairs that do not settle, errors.
`--sample N` prints that many safe repairs, drawn at random over the rules, to be read by a person.
"""

import argparse
import difflib
import json
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.lint.engine import choose, find  # noqa: E402
from localagent.lint.file_view import CannotReadError, view_of  # noqa: E402
from localagent.lint.fixer import after_repairs, repair  # noqa: E402

EACH = 5  # so many repairs of a rule and file are also tried one by one


class Tally:
    """Counts over all files, and the safe repairs to draw a sample from."""

    def __init__(self) -> None:
        self.files = self.lines = self.unread = 0
        self.hits: Counter[str] = Counter()
        self.safe: Counter[str] = Counter()
        self.applied: Counter[str] = Counter()
        self.withheld: Counter[str] = Counter()
        self.broken: list[str] = []
        self.suggestions: list[tuple[str, str, str]] = []
        self.repairs: list[tuple[str, str, str]] = []


def compiles(raw: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(raw, "x", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def shown(before: bytes, after: bytes) -> str:
    lines = (t.decode("utf-8", "replace").splitlines() for t in (before, after))
    return "\n".join(list(difflib.unified_diff(*lines, lineterm="", n=1))[2:])


def one(path: Path, rules: tuple, tally: Tally) -> None:
    raw = path.read_bytes()
    try:
        view = view_of(raw, path.name)
    except CannotReadError:
        tally.unread += 1
        return
    tally.files += 1
    tally.lines += raw.count(b"\n")
    found = find(view, rules)
    good = compiles(raw)
    here: Counter[str] = Counter()
    for f in found:
        tally.hits[f.rule] += 1
        where = f"{path}:{f.line}"
        text = view.source.utf8.decode().splitlines()[f.line - 1] if f.line else ""
        if not f.repairable:
            tally.suggestions.append((f.rule, where, f"{text}   <- {f.message}"))
            continue
        tally.safe[f.rule] += 1
        here[f.rule] += 1
        if here[f.rule] > EACH:
            continue
        alone = after_repairs(view, [f])
        if alone is None:
            tally.broken.append(f"{where} {f.rule}: not proven alone")
        elif good and not compiles(alone.source.raw):
            tally.broken.append(f"{where} {f.rule}: no longer compiles")
        else:
            tally.repairs.append((f.rule, where, shown(raw, alone.source.raw)))
    done = repair(view, rules, found)
    tally.applied.update(f.rule for f in done.applied)
    tally.withheld.update(f"{f.rule}: {why}" for f, why in done.withheld)
    if done.after != raw and good and not compiles(done.after):
        tally.broken.append(f"{path}: no longer compiles")
    if done.after != raw and repair(view_of(done.after, path.name), rules).after != done.after:
        tally.broken.append(f"{path}: does not settle")


def sample(of: list[tuple[str, str, str]], count: int, seed: int) -> list[tuple[str, str, str]]:
    """At most `count`, drawn so that every rule has its turn."""
    rng = random.Random(seed)
    by_rule: dict[str, list[tuple[str, str, str]]] = {}
    for item in of:
        by_rule.setdefault(item[0], []).append(item)
    for items in by_rule.values():
        rng.shuffle(items)
    drawn: list[tuple[str, str, str]] = []
    while len(drawn) < count and any(by_rule.values()):
        drawn += [items.pop() for items in by_rule.values() if items]
    return sorted(drawn[:count])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, nargs="+", required=True)
    parser.add_argument("--select", action="append", default=[])
    parser.add_argument("--skip", action="append", default=[], help="leave out paths that hold this text")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--suggestions", type=int, default=0, help="print so many findings that are not repaired")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rules, tally, began = choose(args.select or ("all",)), Tally(), time.monotonic()
    paths = sorted(p for repo in args.repos for p in repo.rglob("*.py") if p.is_file() and not p.is_symlink())
    for path in paths:
        if not any(text in str(path) for text in args.skip):
            try:
                one(path, rules, tally)
            except Exception as error:  # noqa: BLE001 - counted, and named at the end
                tally.broken.append(f"{path}: {type(error).__name__}: {error}")
    seconds = time.monotonic() - began
    for rule in rules:
        print(
            f"{rule.id:26} hits {tally.hits[rule.id]:6} safe {tally.safe[rule.id]:6} applied {tally.applied[rule.id]:6}"
        )
    for why, count in tally.withheld.most_common():
        print(f"withheld {count:5}  {why}")
    for item in sample(tally.repairs, args.sample, args.seed) + sample(tally.suggestions, args.suggestions, args.seed):
        print("\n".join(("", *item)))
    print(f"{tally.files} files, {tally.lines} lines, {tally.unread} not read, {seconds:.0f} s")
    print(f"went wrong: {len(tally.broken)}")
    for line in tally.broken[:50]:
        print("  ", line)
    if args.json:
        keys = ("files", "lines", "unread", "hits", "safe", "applied", "withheld", "broken")
        args.json.write_text(json.dumps({k: getattr(tally, k) for k in keys}, indent=1))
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
