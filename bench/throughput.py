"""Candidates per second through the quick check, beside a cold `pytest` on the same tree in the same run.

`python bench/throughput.py [CASES.jsonl --case NAME] [--jobs 2] [--seconds 10]`; without a file, a built-in program.
Each candidate is a real edit of the program's function (integer constants and operators), run as the search runs it:
workspace patched, code swapped, failing tests first. Gates and edit enumeration are not part of this figure.
"""

import argparse
import concurrent.futures as cf
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.house_builder import House, house  # noqa: E402

from localagent.domain.edit import Candidate  # noqa: E402
from localagent.domain.outcome import QuickResult  # noqa: E402

PROGRAM = {
    "bits.py": (
        "def bitcount(n):\n    count = 0\n    while n:\n        n = n // 3\n        count += 1\n    return count\n"
    ),
    "test_bits.py": (
        "import pytest\nfrom bits import bitcount\n"
        "@pytest.mark.parametrize('n,want', [(1, 1), (3, 2), (8, 4), (255, 8), (1024, 11)])\n"
        "def test_length(n, want):\n    assert bitcount(n) == want\n"
    ),
}
SWAPS = [
    (" == ", " != "),
    (" + ", " - "),
    (" - ", " + "),
    (" < ", " <= "),
    (" > ", " >= "),
    ("0", "1"),
    ("1", "2"),
    ("return ", "return not "),
]


def case_files(path: str, name: str) -> dict[str, str]:
    with Path(path).open(encoding="utf-8") as rows:
        for row in rows:
            case = json.loads(row)
            if case["id"].endswith(name):
                return {**case["files"], **case["visible"]}
    raise SystemExit(f"no case {name}")


def candidates(h: House) -> list[Candidate]:
    """Edits in functions of files that are no tests."""
    found = []
    for name, data in h.files.items():
        if "test" in name:
            continue
        text = data.decode()
        for row in text.splitlines(keepends=True):
            if not row.startswith((" ", "\t")) or text.count(row.strip()) != 1:
                continue
            words = row.strip()
            found += [h.candidate(name, words, words.replace(old, new, 1)) for old, new in SWAPS if old in words]
    return [c for c in found if c.edits[0].scope is not None]


def cold_seconds(h: House, runs: int = 4) -> float:
    """A plain `pytest` process on a copy of the tree."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in h.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        begin = time.perf_counter()
        for _ in range(runs):
            subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "."],
                cwd=folder,
                capture_output=True,
                check=False,
            )
        return (time.perf_counter() - begin) / runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="?")
    parser.add_argument("--case", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    files = case_files(asked.cases, asked.case) if asked.cases else PROGRAM
    with house(files) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=asked.jobs)
        todo = candidates(h)
        if not todo:
            raise SystemExit("no candidates in this case")
        quick.check(todo[0], cpu_seconds=0.4)
        cold = cold_seconds(h)
        stream = itertools.cycle(todo)
        results: list[QuickResult] = []
        begin = time.perf_counter()
        with cf.ThreadPoolExecutor(asked.jobs) as pool:
            while time.perf_counter() - begin < asked.seconds:
                batch = list(itertools.islice(stream, 20 * asked.jobs))
                results += pool.map(lambda c: quick.check(c, cpu_seconds=0.4), batch)
        took = time.perf_counter() - begin
        cold = (cold + cold_seconds(h)) / 2
    rate = len(results) / took
    routes = Counter(r.route.value for r in results)
    slow = sum(r.ending.value != "exited" for r in results)
    print(f"candidates        {len(results)} ({dict(routes)}, {slow} ended by a limit)")
    print(f"per second        {rate:.1f}   with {asked.jobs} workers")
    print(f"cold pytest       {cold * 1000:.0f} ms   ({rate * cold:.1f} times a cold pytest per candidate)")
    print(f"load average      {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
