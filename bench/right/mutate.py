"""Makes `mutated.jsonl`: a fault put into the repaired program of each small case, one edit, drawn at random.

  mutate.py [--per-case 1]
  mutate.py --syntax          `syntax.jsonl`: a slip of typing, after which the file does not parse

The cases of `small/` were written to tempt: a third of them has no right repair in reach. Faults that are drawn are
what a search meets more often. One is taken that the visible tests notice. A line names the case, the file and the
splices (from, to, text) in bytes of the repaired file.
"""

import argparse
import io
import json
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.casefile import Case, read_all
from bench.judge import passing
from bench.right.projects import MUTATED, SMALL, SYNTAX
from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.verify.evidence.mutants import mutants_of


def faults(case: Case, per_case: int) -> Iterator[dict[str, Any]]:
    """So many faults of a case, in an order that its name decides."""
    repaired = {**case.files, **case.oracle}
    sources = {RepoPath(path): text.encode() for path, text in repaired.items() if path.endswith(".py")}
    lines = {RepoPath(path): frozenset(range(1, sources[RepoPath(path)].count(b"\n") + 2)) for path in case.oracle}
    seed = crc32(case.id.encode())
    drawn, _ = mutants_of(open_edit_space({}), sources, lines, behaviour_key, seed=seed, most=200)
    drawn.sort(key=lambda candidate: crc32(f"{case.id} {candidate.number}".encode()))
    made = 0
    for candidate in drawn:
        (edit,) = candidate.edits
        broken = {**repaired, edit.path: edit.apply(sources[edit.path]).decode(), **case.visible}
        if made < per_case and not passing(broken):
            made += 1
            splices = [[s.start, s.end, s.text.decode()] for s in edit.splices]
            yield {"name": f"{case.id}-{made}", "case": case.id, "path": edit.path, "splices": splices}


_LOST = ("(", ")", "[", "]", "{", "}", ":", ",")
_MISTYPED = {
    "return": "retrun",
    "else": "esle",
    "def": "",
    "for": "fro",
    "while": "whlie",
    "if": "",
    "in": "",
    "==": "=",
}


def _slips(text: str) -> Iterator[tuple[int, int, str]]:
    """(from, to, text) in characters: what somebody who types leaves out, doubles or mistypes."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start, end = (starts[line - 1] + column for line, column in (token.start, token.end))
        if token.string in _LOST:
            yield start, end, ""
        elif token.string in _MISTYPED:
            yield start, end, _MISTYPED[token.string]
        elif token.type == tokenize.STRING:
            yield end - 1, end, ""
        elif token.type == tokenize.INDENT:
            yield start, end, token.string[:-1]
        if token.string in (")", "]", "}"):
            yield end, end, token.string


def syntax_faults(case: Case) -> Iterator[dict[str, Any]]:
    """One slip in a repaired file, after which it does not parse; drawn by the name of the case, kinds weigh alike."""
    path = sorted(case.oracle)[0]
    text = case.oracle[path]
    kinds: dict[str, list[tuple[int, int, str]]] = {}
    for start, end, new in _slips(text):
        if parse_or_none(text[:start] + new + text[end:]) is None:
            kinds.setdefault(f"{text[start:end][-1:]}>{new[-1:]}", []).append((start, end, new))
    drawn = sorted(kinds)[crc32(case.id.encode()) % len(kinds)]
    start, end, new = kinds[drawn][crc32(case.id.encode() + b"spot") % len(kinds[drawn])]
    at = [len(text[:n].encode()) for n in (start, end)]
    yield {"name": f"{case.id}-s", "case": case.id, "path": path, "splices": [[*at, new]]}


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-case", type=int, default=1)
    parser.add_argument("--syntax", action="store_true")
    args = parser.parse_args()
    with (SYNTAX if args.syntax else MUTATED).open("w", encoding="utf-8") as out:
        for case in read_all(SMALL):
            for fault in syntax_faults(case) if args.syntax else faults(case, args.per_case):
                out.write(json.dumps(fault, sort_keys=True) + "\n")
                out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
