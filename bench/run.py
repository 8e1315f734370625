"""Runs `localagent fix` over repair cases and judges every patch with tests it never saw.

  run.py                                        the project's own cases, bundled model, 500 candidates, 60 s each
  run.py --no-model --json without.json         the same without a model
  run.py --compare with.json without.json       paired: won, lost, exact McNemar p
  run.py --first --json first.json              no choice: the first patch that passes every check (--assume: the best)
  run.py --self-check                           the judge and the cases: oracle 100 %, empty patch 0 %
  run.py --build                                write cases/own.jsonl from cases/*.case, tests counted
  run.py bench/spans --max-seconds 120          bugs whose repair is a text that somebody has to write
  run.py other.jsonl --cmd 'TOOL --repo {repo} --out {out} ...'

Seconds depend on the machine and its load (printed beside them); outcomes do as far as a budget in seconds ends a run.
"""

import argparse
import collections
import dataclasses
import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.casefile import BUILT, Case, CaseError, read_all, read_built
from bench.judge import JudgeError, Judgement, count_expected, judge, make_repository, oracle_diff, passing, tree_digest

AGENT = Path(sys.executable).absolute().parent / "localagent"
ANSWERS = (0, 1)


def default_command(args: argparse.Namespace) -> list[str]:
    """`localagent fix` as a user would call it; placeholders are filled for each case."""
    model = ["--no-model"] if args.no_model else ["--model", args.model] if args.model else []
    budget = ["--max-candidates", str(args.max_candidates), "--max-seconds", str(args.max_seconds)]
    asked = ["--repo", "{repo}", "--test", "tests", "--out", "{out}", "--report", "{report}", "--seed", str(args.seed)]
    choosing = ["--first"] if args.first else ["--assume"] if args.assume else []
    return [str(AGENT), "fix", *asked, *budget, "--jobs", "1", "--quiet", *model, *choosing]


def run_one(argv: list[str], state: Path, log: Path, wall_seconds: float) -> int:
    """Exit status; 124 if it had to be killed."""
    environ = {**os.environ, "XDG_STATE_HOME": str(state)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ, start_new_session=True
        )
        try:
            return process.wait(timeout=wall_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 124


def outcome_of(case: Case, status: int, diff: bytes) -> Judgement:
    """The exit status and the patch have to agree before the patch is judged."""
    if status == 124:
        return Judgement.NONE
    if status not in ANSWERS:
        return Judgement.CRASH
    if (status == 0) != bool(diff.strip()):
        return Judgement.CONTRACT if status == 0 or diff.strip() else Judgement.NONE
    return judge(case, diff)


def solve(case: Case, command: list[str], wall_seconds: float) -> dict[str, Any]:
    """One row of the result."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        places = {name: Path(folder, name) for name in ("repo", "out", "report", "state", "log")}
        make_repository(places["repo"], case)
        before = tree_digest(places["repo"])
        begun = time.monotonic()
        filled = [part.format(**places) for part in command]
        status = run_one(filled, places["state"], places["log"], wall_seconds)
        seconds = time.monotonic() - begun
        diff = places["out"].read_bytes() if places["out"].is_file() else b""
        outcome = outcome_of(case, status, diff)
        report = read_report(places["report"])
        tail = places["log"].read_bytes()[-800:].decode(errors="replace")
        return {
            "id": case.id,
            "kind": case.kind,
            "outcome": str(outcome),
            "exit": status,
            "seconds": round(seconds, 2),
            "candidates": report.get("candidates_verified"),
            "rank": report.get("rank_of_first_plausible"),
            "confidence": (report.get("confidence") or {}).get("probability"),
            "asked": any("where a person" in str(text) for text in report.get("warnings", ())),
            "reported": bool(report),
            "tree_changed": tree_digest(places["repo"]) != before,
            "tail": tail if outcome in (Judgement.CRASH, Judgement.CONTRACT) else "",
        }


def read_report(path: Path) -> dict[str, Any]:
    """The report, or nothing if there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def wilson(good: int, of: int) -> tuple[float, float]:
    """95 % interval of a share, in per cent."""
    if not of:
        return 0.0, 100.0
    z, p = 1.96, good / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return 100 * (middle - half), 100 * (middle + half)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """The table under the rows."""
    counts = collections.Counter(row["outcome"] for row in rows)
    kinds: dict[str, list[bool]] = collections.defaultdict(list)
    for row in rows:
        kinds[row["kind"]].append(row["outcome"] == "correct")
    good, answered = counts["correct"], len(rows) - counts["none"] - counts["crash"]
    low, high = wilson(good, len(rows))
    seconds = sorted(row["seconds"] for row in rows)
    ranks = [row["rank"] for row in rows if row["rank"] is not None]
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    lines = ["", "kind                      correct"]
    lines += [f"{kind:24s}  {sum(known)}/{len(known)}" for kind, known in sorted(kinds.items())]
    lines += ["", "  ".join(f"{name} {counts[name]}" for name in Judgement if counts[name])]
    lines += [
        f"correct   {good}/{len(rows)} = {100 * good / len(rows):.1f} % [{low:.1f}, {high:.1f}]",
        f"precision {good}/{answered}" + (f" = {100 * good / answered:.1f} %" if answered else ""),
        f"rank of the first plausible: median {statistics.median(ranks):g}, within 50: {sum(r <= 50 for r in ranks)}"
        if ranks
        else "nothing plausible",
        f"seconds   median {statistics.median(seconds):.1f}, 90 % {seconds[int(0.9 * (len(seconds) - 1))]:.1f}, "
        f"total {sum(seconds):.0f}   (load {load} on {os.cpu_count()} cores)",
        *by_confidence(rows),
        f"tree changed {sum(row['tree_changed'] for row in rows)}, "
        f"no report {sum(not row['reported'] for row in rows)}",
    ]
    return lines


def by_confidence(rows: list[dict[str, Any]]) -> list[str]:
    """Precision by the confidence that an answer has at least; those left out that only --assume chose among."""
    known = [r for r in rows if r.get("confidence") is not None and not r.get("asked")]
    lines = []
    for least in (0.0, 0.5, 0.7, 0.8, 0.9, 0.97) if known else ():
        some = [row["outcome"] == "correct" for row in known if row["confidence"] >= least]
        low, high = wilson(sum(some), len(some))
        lines.append(f"confidence >= {least:.2f}: correct {sum(some)} of {len(some)} [{low:.0f}, {high:.0f}] %")
    return lines


def compare(one: Path, other: Path) -> str:
    """Paired difference of two results."""
    first, second = (
        {row["id"]: row["outcome"] == "correct" for row in json.loads(path.read_bytes())["rows"]}
        for path in (one, other)
    )
    both = first.keys() & second.keys()
    won = sorted(name for name in both if first[name] and not second[name])
    lost = sorted(name for name in both if second[name] and not first[name])
    n, k = len(won) + len(lost), min(len(won), len(lost))
    p = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0
    return (
        f"{len(both)} pairs: {sum(first[n] for n in both)} against {sum(second[n] for n in both)} correct; "
        f"won {len(won)} {won}, lost {len(lost)} {lost}; exact McNemar p = {p:.4f}"
    )


def unsound(case: Case) -> str:
    """Why a case proves nothing, or ""."""
    expected = count_expected(case)
    if case.expect and expected != case.expect:
        return f"the oracle passes {expected}, not {case.expect}"
    if not 0 < expected["visible"] < expected["hidden"]:
        return f"the oracle fails, or no hidden test adds anything: {expected}"
    if passing({**case.files, **case.visible}):
        return "the visible tests pass as it is"
    if judge(case, oracle_diff(case)) is not Judgement.CORRECT:
        return "the oracle's diff is not judged correct"
    return "" if judge(case, b"") is Judgement.NONE else "an empty patch is judged"


def self_check(cases: list[Case]) -> int:
    """0 if the judge tells good from bad and every case is sound."""
    trial = "from m import X\n\n\ndef test_x():\n    assert X == 1\n"
    if passing({"m.py": "X = 1\n", "tests/test_m.py": trial}) != 1 or passing(
        {"m.py": "X = 2\n", "tests/test_m.py": trial}
    ):
        raise JudgeError(f"the judge cannot tell a passing test from a failing one with {sys.executable}")
    faults = {case.id: fault for case in cases if (fault := unsound(case))}
    for name, fault in faults.items():
        print(f"{name}: {fault}")
    print(f"{len(cases)} cases: oracle correct {len(cases) - len(faults)}, unsound {len(faults)}")
    return 1 if faults else 0


def build() -> int:
    """Writes the JSON Lines file from the readable cases."""
    cases = [dataclasses.replace(case, expect=count_expected(case)) for case in read_all()]
    BUILT.write_text("".join(case.as_json() + "\n" for case in cases), encoding="ascii")
    print(f"{len(cases)} cases written to {BUILT}")
    return self_check(cases)


def _read(path: Path) -> list[Case]:
    return read_all(path) if path.is_dir() else read_built(path)


def selected(args: argparse.Namespace) -> list[Case]:
    """The cases that were asked for."""
    cases = [case for path in args.cases or [BUILT] for case in _read(path)]
    wanted = [c for c in cases if re.search(args.only, c.id) and re.search(args.kind, c.kind)][:: args.every]
    if not wanted:
        raise CaseError("no case is left to run")
    return wanted


def run_all(cases: list[Case], command: list[str], args: argparse.Namespace) -> int:
    """Rows as they come, then the table. 1 only for what must never happen: unsafe, crash, a changed tree."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        row = solve(case, command, args.wall_seconds)
        rows.append(row)
        mark = "  TREE CHANGED" if row["tree_changed"] else ""
        print(
            f"{row['id']:20.20s} {row['kind']:22.22s} {row['outcome']:8s} {row['seconds']:6.1f} s"
            f"  candidates {row['candidates']}{mark}",
            flush=True,
        )
        if row["tail"]:
            print("    " + row["tail"].strip().replace("\n", "\n    "), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"command": command, "rows": rows}, indent=1), encoding="utf-8")
    print("\n".join(summary(rows)))
    return 1 if any(row["tree_changed"] or row["outcome"] in ("unsafe", "crash") for row in rows) else 0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", type=Path, help="JSON Lines files or folders of cases (default: cases/own.jsonl)"
    )
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="JSON")
    parser.add_argument("--cmd", help="another command; {repo} {out} {report} are filled in")
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--model", default="")
    parser.add_argument("--first", action="store_true", help="take the first patch that passes every check")
    parser.add_argument("--assume", action="store_true", help="take the best patch where a person would be asked")
    parser.add_argument("--max-candidates", type=int, default=500)
    parser.add_argument("--max-seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wall-seconds", type=float, default=300, help="when a run is killed")
    parser.add_argument("--only", default="", help="regular expression on ids")
    parser.add_argument("--kind", default="", help="regular expression on kinds")
    parser.add_argument("--every", type=int, default=1, help="every Nth of what is left")
    parser.add_argument("--json", type=Path, help="write rows here as they come")
    return parser


def main() -> int:
    """Entry point."""
    args = arguments().parse_args()
    try:
        if args.compare:
            print(compare(*args.compare))
            return 0
        if args.build:
            return build()
        if args.self_check:
            return self_check(selected(args))
        return run_all(selected(args), shlex.split(args.cmd) if args.cmd else default_command(args), args)
    except (CaseError, JudgeError, OSError) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
