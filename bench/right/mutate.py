"""Makes `mutated.jsonl`: a fault put into the repaired program of each small case, one edit, drawn at random.

  mutate.py [--per-case 1]

The cases of `small/` were written to tempt: a third of them has no right repair in reach. Faults that are drawn are
what a search meets more often. One is taken that the visible tests notice. A line names the case, the file and the
splices (from, to, text) in bytes of the repaired file.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.casefile import Case, read_all
from bench.judge import passing
from bench.right.projects import MUTATED, SMALL
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


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-case", type=int, default=1)
    args = parser.parse_args()
    with MUTATED.open("w", encoding="utf-8") as out:
        for case in read_all(SMALL):
            for fault in faults(case, args.per_case):
                out.write(json.dumps(fault, sort_keys=True) + "\n")
                out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
