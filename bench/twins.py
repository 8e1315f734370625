"""Renamed twins of repair cases: every identifier of their own replaced by a neutral one, files and tests alike.

  twins.py --out twins.jsonl                     of the project's own cases
  twins.py CASES.jsonl --out twins.jsonl         of others in the form of bench/run.py, by path
  run.py twins.jsonl --json twins.json; run.py --compare twins.json named.json

What a model knows by heart it knows by its names: how much worse it does on twins says how much that was worth. A twin
is kept where its true repair passes as many tests as the original's and the bug as it is fails; one that is not sound
is made anew with fewer kinds of names replaced, and told. Words in comments and texts stay, so a twin is not anonymous.
"""

import argparse
import collections
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.casefile import BUILT, Case, CaseError, read_all, read_built
from bench.judge import JudgeError
from bench.neutral import Renaming
from bench.own_names import KINDS
from bench.run import unsound

# kinds of names that are replaced, tried one after the other
LEVELS = (KINDS, ("module", "function", "value"), ("function", "value"), ("value",))


def twin(case: Case, kinds: Sequence[str] = KINDS) -> tuple[Case, Renaming]:
    """The case with neutral names, its tests not counted anew. CaseError for what does not parse."""
    parts = (case.files, case.visible, case.hidden, case.oracle)
    paths = list(dict.fromkeys(path for part in parts for path in part))
    try:
        names = Renaming({path: [part[path] for part in parts if path in part] for path in paths}, kinds)
        files, visible, hidden, oracle = (
            {
                names.path(path): names.source(path, text) if path.endswith(".py") else text
                for path, text in part.items()
            }
            for part in parts
        )
    except SyntaxError as fault:
        raise CaseError(f"{case.id}: {fault}, so that its names are not known") from None
    made = Case(
        id=case.id, kind=case.kind, files=files, visible=visible, hidden=hidden, oracle=oracle, expect=case.expect
    )
    return made, names


def sound_twin(case: Case, fault_of: Callable[[Case], str] = unsound) -> tuple[Case, str]:
    """The first sound twin, and what there is to say of it. CaseError where there is none."""
    fault = ""
    for kinds in LEVELS:
        made, names = twin(case, kinds)
        if not names.table:
            continue
        fault = fault_of(made)
        if not fault:
            less = "" if kinds is LEVELS[0] else f", only names of kind {', '.join(kinds)}"
            return made, f"{len(names.table)} names replaced, {names.left} left{less}"
    raise CaseError(f"{case.id}: no sound twin: {fault or 'nothing in it has a name of its own'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. 1 where no case has a twin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", type=Path, help="JSON Lines files or folders of cases (default: our own)")
    parser.add_argument("--out", type=Path, required=True, help="the twins, as JSON Lines")
    parser.add_argument("--every", type=int, default=1, help="every Nth case")
    args = parser.parse_args(arguments)
    told: collections.Counter[str] = collections.Counter()
    try:
        cases = [c for path in args.cases or [BUILT] for c in (read_all(path) if path.is_dir() else read_built(path))]
        with args.out.open("w", encoding="ascii") as out:
            for case in cases[:: args.every]:
                try:
                    made, remark = sound_twin(case)
                except CaseError as no:
                    told["without"] += 1
                    print(no, flush=True)
                    continue
                told["twins"] += 1
                out.write(made.as_json() + "\n")
                out.flush()
                print(f"{case.id}: {remark}", flush=True)
    except (CaseError, JudgeError, OSError, ValueError, TypeError) as fault:
        print(f"twins: {fault}", file=sys.stderr)
        return 2
    print(f"{told['twins']} twins in {args.out}, {told['without']} cases without one")
    return 0 if told["twins"] else 1


if __name__ == "__main__":
    sys.exit(main())
