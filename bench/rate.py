"""Candidates per second of a whole `localagent fix`, beside a cold `pytest` per candidate, in the same run.

`python bench/rate.py [--jobs 2] [--candidates 600]`: a pure-Python program with one failing test that no small edit can
turn green, so that the whole budget is spent. The figure counts everything between choice and outcome: order,
duplicates, gates, workspace, jail, tests. It also prints the time to the first candidate and the peak memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "ledger.py": '''\
def total(prices, discount, limit):
    """Sum of the prices, each less its discount, none below the limit."""
    result = 0
    largest = prices[0]
    for price in prices:
        reduced = price - discount
        if reduced < limit:
            reduced = limit
        if reduced > largest:
            largest = reduced
        result = result + reduced
    average = result / len(prices)
    return [result, largest, average]
''',
    "test_ledger.py": """\
from ledger import total


def test_total():
    assert total([10, 12, 7], 2, 6) == ["no edit", "gives", "this"]


def test_length():
    assert len(total([1, 2], 0, 0)) == 3
""",
    "pyproject.toml": '[project]\nname = "ledger"\nversion = "0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
}


def cold_seconds(repo: Path, runs: int = 5) -> float:
    """A plain pytest process on the tree."""
    begin = time.perf_counter()
    for _ in range(runs):
        subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "."],
            cwd=repo,
            capture_output=True,
            check=False,
        )
    return (time.perf_counter() - begin) / runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--candidates", type=int, default=600)
    parser.add_argument("--model", action="store_true", help="with the bundled model (default: without)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder, "repo")
        repo.mkdir()
        for name, text in FILES.items():
            (repo / name).write_text(text)
        before = cold_seconds(repo)
        command = [sys.executable, "-m", "localagent", "fix", "--repo", str(repo), "--json", "--max-seconds", "300"]
        command += ["--jobs", str(asked.jobs), "--max-candidates", str(asked.candidates)]
        command += [] if asked.model else ["--no-model"]
        env = dict(os.environ, XDG_STATE_HOME=folder, PYTHONPATH=str(ROOT))
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        after = cold_seconds(repo)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    checked = [e for e in events if e["event"] == "checked"]
    if len(checked) < 20:
        raise SystemExit(f"only {len(checked)} candidates ran: {done.stderr[-500:]}")
    at = [e["at_seconds"] for e in checked]
    rate = (len(at) - 1) / (at[-1] - at[0])
    cold = (before + after) / 2
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"candidates            {len(checked)} with {asked.jobs} jobs")
    print(f"per second            {rate:.1f}")
    print(f"cold pytest           {cold * 1000:.0f} ms   ({rate * cold:.1f} times a cold pytest per candidate)")
    print(f"first candidate       {at[0]:.1f} s after the start")
    print(f"largest process       {peak:.0f} MB resident")
    print(f"load average          {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
