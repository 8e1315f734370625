"""Repairs the parents of real bug fixes with `localagent fix`, and judges the patches.

  run.py --repos DIR --self-check        every fact with plain pytest in a jail: fails before the fix, passes after
  run.py --repos DIR [--only RE] [--max-candidates 500] [--max-seconds 120] [--no-model] [--json FILE]

DIR holds clones with history (`git clone https://github.com/OWNER/NAME DIR/NAME`; `--list` names them). Layouts and
virtual environments lie below `--work` (default: a `localagent-bench-real` folder in the temporary directory) and are
kept. Only the making of an environment reaches the package index, for the pinned packages of a fact.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.real import facts, judge, layout, reach, stage
from bench.real.facts import Fact

AGENT = Path(sys.executable).absolute().parent / "localagent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where everything of one fact lies."""

    clone: Path
    tree: Path
    python: Path
    fix: layout.TrueFix


def prepare(fact: Fact, args: argparse.Namespace) -> Place:
    """Clone found, parent laid out, environment made."""
    clone = layout.clone_of(fact, args.repos)
    tree = args.work / "layouts" / fact.name
    layout.lay_out(fact, clone, tree)
    python = layout.environment(fact, args.venvs or args.work / "venvs", tree)
    return Place(clone=clone, tree=tree, python=python, fix=layout.true_fix(fact, clone))


def self_check(fact: Fact, args: argparse.Namespace) -> dict[str, Any]:
    """Before: the named tests fail. After the true fix: they pass, and nothing that passed fails."""
    place = prepare(fact, args)
    before = judge.run_tests(place.tree, place.python, fact.tests)
    layout.apply_true_fix(place.fix, place.tree)
    after = judge.run_tests(place.tree, place.python, fact.tests)
    wanted = frozenset(fact.fail_to_pass)
    faults = [f"does not fail before: {t}" for t in sorted(wanted - before.bad())]
    faults += [f"does not pass after: {t}" for t in sorted(wanted - after.good())]
    faults += [f"broken by the fix: {t}" for t in sorted(before.good() & after.bad())]
    faults += [f"not named in fail_to_pass: {t}" for t in sorted((before.bad() & after.good()) - wanted)]
    if not before.tests or not after.tests:
        faults.append(f"no tests ran: {before.log if not before.tests else after.log}")
    return {"name": fact.name, "ok": not faults, "faults": faults, "tests": len(after.tests)}


def repair(fact: Fact, args: argparse.Namespace) -> dict[str, Any]:
    """One run of `localagent fix`, judged."""
    place = prepare(fact, args)
    home = args.work / "runs" / fact.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    out, report_file = home / "patch.diff", home / "report.json"
    argv = [
        str(args.agent),
        "fix",
        "--repo",
        str(place.tree),
        "--python",
        str(place.python),
        "--out",
        str(out),
        "--report",
        str(report_file),
        "--max-candidates",
        str(args.max_candidates),
        "--max-seconds",
        str(args.max_seconds),
        "--seed",
        str(args.seed),
        "--jobs",
        str(args.jobs),
        "--quiet",
    ]
    for test in fact.tests:
        argv += ["--test", test]
    argv += ["--no-model"] if args.no_model else []
    began = time.monotonic()
    status = _run_agent(argv, home, args.max_seconds * 3 + 300)
    wall = time.monotonic() - began
    report = json.loads(report_file.read_text("utf-8")) if report_file.is_file() else None
    patched = out.is_file() and out.stat().st_size > 0
    verdict = _judge_patch(fact, place, out, home) if patched else {}
    failed = not verdict.get("good")
    place_in_space = _place_in_space(place, report) if failed and report else None
    in_space = place_in_space is not None if failed and report else None
    done = stage.Run(
        status=status, report=report, patched=patched, judged_good=not failed, in_space=in_space, wall_seconds=wall
    )
    return {
        "name": fact.name,
        "stage": stage.stage_of(done, place.fix, fact.fail_to_pass).value,
        "exit": status,
        "reason": (report or {}).get("reason", (home / "log.txt").read_text("utf-8", "replace")[-400:]),
        "wall_seconds": round(wall, 1),
        "candidates_verified": (report or {}).get("candidates_verified"),
        "rank_of_first_plausible": (report or {}).get("rank_of_first_plausible"),
        "localized_rank": stage.localized_rank(report, place.fix) if report else None,
        "in_space": in_space,
        "place_in_space": place_in_space,
        "missing_failures": list(stage.missing_failures(report, fact.fail_to_pass)) if report else [],
        "judge": verdict,
        "report": report,
    }


def _place_in_space(place: Place, report: dict[str, Any]) -> int | None:
    return reach.rank_in_space(place.tree, place.fix, report.get("failing", ()))


def _run_agent(argv: list[str], home: Path, wall_seconds: float) -> int:
    environ = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
    with (home / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
        )
        try:
            return process.wait(timeout=wall_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 124


def _judge_patch(fact: Fact, place: Place, out: Path, home: Path) -> dict[str, Any]:
    """The patch on a fresh layout under plain pytest, compared with the unpatched tree and with people's fix."""
    before = judge.run_tests(place.tree, place.python, fact.tests)
    layout.lay_out(fact, place.clone, place.tree)
    try:
        layout.git(place.tree, "apply", str(out.resolve()))
    except layout.LayoutError as fault:
        return {"good": False, "why": [str(fault)], "exact": False}
    after = judge.run_tests(place.tree, place.python, fact.tests)
    why = [f"still fails: {t}" for t in sorted(frozenset(fact.fail_to_pass) - after.good())]
    why += [f"broken: {t}" for t in sorted(before.good() & after.bad())]
    exact = all(judge.same_code((place.tree / path).read_bytes(), data) for path, data in place.fix.after.items())
    (home / "judge.txt").write_text(after.log, encoding="utf-8")
    layout.lay_out(fact, place.clone, place.tree)
    return {"good": not why, "why": why, "exact": exact}


def _show(row: dict[str, Any]) -> None:
    mark = " (as people did)" if row["judge"].get("exact") else ""
    counts = f"verified {row['candidates_verified']}  first plausible {row['rank_of_first_plausible']}"
    where = f"true line ranked {row['localized_rank']}  in space {row['in_space']}"
    print(
        f"{row['name']:34} {row['stage']:12} exit {row['exit']} {row['wall_seconds']:6.1f} s  {counts}  {where}{mark}"
    )
    if row["stage"] in ("environment", "baseline", "wrong"):
        print(f"    {row['judge'].get('why') or row['missing_failures'] or row['reason']}")
    sys.stdout.flush()


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, help="folder of clones")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "localagent-bench-real")
    parser.add_argument("--venvs", type=Path, help="folder of virtual environments (default: WORK/venvs)")
    parser.add_argument("--facts", type=Path, default=facts.FACTS)
    parser.add_argument("--only", default="", metavar="RE", help="names that match")
    parser.add_argument("--max-candidates", type=int, default=500)
    parser.add_argument("--max-seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="FILE", help="the localagent to run")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--list", action="store_true", help="names the repositories to clone")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """0 if every fact could be run (self-check: holds), 1 otherwise, 2 for usage."""
    args = arguments(argv)
    chosen = [f for f in facts.load(args.facts) if re.search(args.only, f.name)]
    if args.list:
        print("\n".join(sorted({f"https://github.com/{f.repository}" for f in chosen})))
        return 0
    if args.repos is None or not chosen:
        print("--repos DIR is needed" if chosen else f"no fact matches {args.only!r}", file=sys.stderr)
        return 2
    args.repos, args.work = args.repos.absolute(), args.work.absolute()
    args.venvs = args.venvs.absolute() if args.venvs else None
    rows: list[dict[str, Any]] = []
    faults = 0
    for fact in chosen:
        try:
            row = self_check(fact, args) if args.self_check else repair(fact, args)
        except (layout.LayoutError, judge.NoJailError) as fault:
            faults += 1
            print(f"{fact.name:34} not run: {fault}", flush=True)
            continue
        rows.append(row)
        if args.self_check:
            print(f"{fact.name:34} {'ok' if row['ok'] else row['faults']}", flush=True)
        else:
            _show(row)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if args.self_check:
        good = sum(row["ok"] for row in rows)
        print(f"{good} of {len(chosen)} facts hold")
        return int(good < len(chosen))
    counts = Counter(row["stage"] for row in rows)
    working = len(rows) - counts["environment"] - counts["baseline"]
    print(
        f"{len(rows)} fixes: environment and baseline work on {working}; "
        + ", ".join(f"{k} {v}" for k, v in counts.most_common())
    )
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
