"""Whether `localagent debug` finds the root cause of bugs whose repair is known, against the localization of `fix`.

    .venv/bin/python bench/debug.py CASES.jsonl --every 4 --seconds 30 --json out.json
    .venv/bin/python bench/debug.py --drawn 12 --no-edits

A case is one of `bench/cases/own.jsonl` (docs in bench/README.md), with `--drawn` a fault that an operator of the edit
space wrote into a small case (`bench/right/mutated.jsonl`). The root cause are the lines of the wrong files that the
oracle changes. Per case one baseline and the traced runs give two rankings, the values that `debug` forces the third;
then, unless `--no-edits`, the search's edits are tried. Printed: root cause among the first statements of each ranking,
confirmed hypotheses that name it and that do not, seconds.
"""

import argparse
import ast
import dataclasses
import difflib
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casefile import Case, read_all

from localagent.app import Settings
from localagent.app.debug.chosen_test import chosen_failure
from localagent.app.debug.debug import experiments, hypotheses_of, localized, run_value_experiments
from localagent.app.policies import open_policy
from localagent.app.review.patch_tests import ProofRequest, open_tested_snapshot
from localagent.debug.value_outcomes import with_experiments
from localagent.errors import LocalagentError


class Quiet:
    def emit(self, event):
        del event


def causes(case):
    """(path, line) of every line that the repair changes; of an insertion the lines around it."""
    found = set()
    for path, right in case.oracle.items():
        old, new, notes = case.files[path].splitlines(), right.splitlines(), texts_alone(case.files[path])
        for tag, i1, i2, _, _ in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            if tag in ("replace", "delete"):
                found |= {(path, i + 1) for i in range(i1, i2) if old[i].strip() and i + 1 not in notes}
            elif tag == "insert":
                found |= {(path, i1), (path, i1 + 1)}
    return found


def texts_alone(source):
    """The lines of statements that are only a text: docstrings and notes."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    alone = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
    return {line for n in alone if isinstance(n.value.value, str) for line in range(n.lineno, n.end_lineno + 1)}


def rank(ranked, wanted):
    for number, one in enumerate(ranked, 1):
        if any(path == one.path and one.line <= line <= one.end_line for path, line in wanted):
            return number
    return 0


def measure(case, seconds, settings, *, with_edits):
    wanted = causes(case)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repo"
        for path, text in case.project.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        policy = open_policy(settings, None, root).policy
        begin = time.monotonic()
        with open_tested_snapshot(ProofRequest(repo=root, max_seconds=seconds), settings, policy, Quiet()) as ground:
            baseline = ground.verifier.baseline()
            test, _ = chosen_failure(baseline, "")
            located = localized(ground, baseline, test)
            left = lambda: seconds - (time.monotonic() - begin)  # noqa: E731
            values = run_value_experiments(ground, baseline, test, located, left)
            passes = {(e.forced.path, e.forced.line) for e in values if e.outcome.value == "passes"}
            forced_seconds = time.monotonic() - begin
            found, ranked = (), with_experiments(located.ranked, values)
            if with_edits:
                result = experiments(ground, baseline, ranked, settings, policy, Quiet(), left)
                found = hypotheses_of(result, baseline, ranked)
        confirmed = [h for h in found if h.outcome.value == "confirmed"]
        return {
            "case": case.id,
            "plain": rank(located.plain, wanted),
            "slice": rank(located.ranked, wanted),
            "forced": rank(ranked, wanted),
            "values": len(values),
            "passes": len(passes),
            "passes_at_cause": bool(passes & wanted),
            "forced_seconds": round(forced_seconds, 1),
            "cause": sorted(f"{path}:{line}" for path, line in wanted),
            "said": [e.sentence for e in values],
            "traced": located.run is not None,
            "hypotheses": [
                f"{h.outcome.value} {h.path}:{h.line} #{rank(ranked, {(h.path, h.line)})} {h.experiment}" for h in found
            ],
            "confirmed": bool(confirmed),
            "right": bool(confirmed) and all((h.path, h.line) in wanted for h in confirmed),
            "seconds": round(time.monotonic() - begin, 1),
        }


RIGHT = Path(__file__).resolve().parent / "right"


def drawn_cases(count):
    """So many faults that an operator wrote into a small case, spread over all of them."""
    faults = [json.loads(line) for line in (RIGHT / "mutated.jsonl").read_text().splitlines()]
    small = {case.id: case for case in read_all(RIGHT / "small")}
    step = max(1, len(faults) // max(1, count))
    return [mutated_case(small[fault["case"]], fault) for fault in faults[::step][:count]]


def mutated_case(case, fault):
    repaired = {**case.files, **case.oracle}
    broken = repaired[fault["path"]].encode()
    for start, end, text in reversed(fault["splices"]):
        broken = broken[:start] + text.encode() + broken[end:]
    return dataclasses.replace(
        case, id=fault["name"], files={**repaired, fault["path"]: broken.decode()},
        oracle={fault["path"]: repaired[fault["path"]]},
    )  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", type=Path, nargs="*")
    p.add_argument("--only", nargs="*", metavar="ID", help="these cases alone")
    p.add_argument("--drawn", type=int, default=0, metavar="N")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--most", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=60.0)
    p.add_argument("--no-edits", action="store_true")
    p.add_argument("--json", type=Path)
    args = p.parse_args()
    rows = [json.loads(line) for path in args.cases for line in path.read_text().splitlines()]
    settings = Settings.from_environ()
    done = []
    cases = [Case(**{**row, "expect": row.get("expect", {})}) for row in rows[:: args.every][: args.most]]
    for case in [*cases, *drawn_cases(args.drawn)]:
        if args.only and case.id not in args.only:
            continue
        try:
            done.append(measure(case, args.seconds, settings, with_edits=not args.no_edits))
        except LocalagentError as fault:
            done.append({"case": case.id, "fault": str(fault)})
        print(json.dumps(done[-1]), flush=True)
        if args.json:
            args.json.write_text(json.dumps(done, indent=1) + "\n")
    good = [d for d in done if "fault" not in d]
    for name in ("plain", "slice", "forced"):
        firsts = ", ".join(f"first {n} {sum(0 < d[name] <= n for d in good)}/{len(good)}" for n in (1, 3, 5, 10))
        print(f"{name}: {firsts}, mean of 1/rank {sum(1 / d[name] for d in good if d[name]) / max(1, len(good)):.3f}")
    tried = [d for d in good if d["passes"]]
    print(f"a value made {len(tried)}/{len(good)} pass, at the cause {sum(d['passes_at_cause'] for d in tried)}")
    confirmed = [d for d in good if d["confirmed"]]
    print(f"confirmed {len(confirmed)}/{len(good)}, of them right {sum(d['right'] for d in confirmed)}")
    print(f"median seconds {sorted(d['seconds'] for d in good)[len(good) // 2] if good else 0}")


if __name__ == "__main__":
    main()
