"""How many tasks are confirmed a second time: `localagent fix` over repair cases, then `localagent replay`.

  replay.py --every 6                  every sixth of the project's own cases, bundled model, two jobs
  replay.py --no-model --jobs 1 --json out.json

A replay verifies the patch again, runs the task again, and compares both journals; where they differ is printed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.casefile import BUILT, Case, read_built
from bench.judge import make_repository

ROOT = Path(__file__).resolve().parents[1]


def verb(state: Path, *args: str) -> tuple[int, str]:
    """Exit status and standard output of one verb."""
    environ = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "localagent", *args], env=environ, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout or ended.stderr


def solve(case: Case, args: argparse.Namespace) -> dict[str, Any]:
    """One task and its replay."""
    with tempfile.TemporaryDirectory(prefix="bench-replay-") as folder:
        repo, state = Path(folder, "repo"), Path(folder, "state")
        make_repository(repo, case)
        model = ["--no-model"] if args.no_model else []
        budget = ["--max-candidates", str(args.max_candidates), "--max-seconds", str(args.max_seconds)]
        asked = ["--repo", str(repo), "--test", "tests", "--jobs", str(args.jobs), "--quiet", *budget, *model]
        status, _ = verb(state, "fix", *asked)
        ids = sorted(p.name for p in (state / "localagent" / "tasks").iterdir())
        again, out = verb(state, "replay", ids[-1], "--json", "--quiet")
        try:
            found = json.loads(out)
        except ValueError:
            found = {"confirmed": False, "same": False, "events": 0, "fault": out[-800:]}
        return {"id": case.id, "exit": status, "replay_exit": again, **found}


def told(row: dict[str, Any]) -> str:
    """Where it departed, on one line."""
    if row["same"]:
        return ""
    departure = row.get("departure")
    if not departure:
        return row.get("fault") or "another patch"
    kinds = [(departure[side] or {}).get("kind", "nothing") for side in ("recorded", "replayed")]
    why = "; ".join([*departure["differs"], *departure["causes"]])
    return f"event {departure['event'] + 1}: {kinds[0]} / {kinds[1]}; same patch: {row['same_patch']}; {why}"


def main() -> int:
    """Entry point: 0 if at most one in twenty is not confirmed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="regular expression on ids")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--max-candidates", type=int, default=500)
    parser.add_argument("--max-seconds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write rows here as they come")
    args = parser.parse_args()
    cases = [case for case in read_built(BUILT) if re.search(args.only, case.id)][:: args.every]
    rows: list[dict[str, Any]] = []
    for case in cases:
        row = solve(case, args)
        rows.append(row)
        answer = "confirmed" if row["confirmed"] else "not confirmed"
        print(f"{row['id']:24.24s} exit {row['exit']}  {row['events']:5d} events  {answer}  {told(row)}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    confirmed, same = (sum(row[name] for row in rows) for name in ("confirmed", "same"))
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"{confirmed} of {len(rows)} confirmed, {same} the same way (load {load} on {os.cpu_count()} cores)")
    return 0 if rows and confirmed >= 0.95 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
