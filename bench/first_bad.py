"""Planted regressions in generated histories, found by `localagent bisect` and by `git bisect run` beside it.

`python bench/first_bad.py [--cases 30] [--commits 200] [--jobs 1] [--seed 0]`: each history has commits that do not
parse, merges of side branches, and a module that is moved with its test. Commits tested: for git the runs of its
script, for us the commits that were asked about, the bad end included. Bars: 95 % right, 1.3 times git's commits. Not
measured here: real projects, flaky commits.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
GOOD, BAD = "    return sum(prices) * (100 - off) // 100\n", "    return sum(prices) * (100 + off) // 100\n"
TEST = "from shop.{module} import total\n\n\ndef test_total():\n    assert total([100, 50], 10) == 135\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A history and what broke it. `good` and `bad` are its ends."""

    folder: Path
    guilty: str
    good: str
    bad: str


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, env=ENVIRON, capture_output=True, text=True, check=check)
    return done.stdout.strip()


def plant(folder: Path, commits: int, draw: random.Random) -> Planted:
    """A small shop: other functions come and go in every commit; one commit breaks `total` beside them."""
    guilty = draw.randrange(commits // 10, commits)
    moved = draw.randrange(commits)
    broken = {n for n in range(1, commits - 1) if draw.random() < 0.05 and abs(n - guilty) > 1}
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    names = []
    for n in range(commits):
        module = "price" if n < moved else "pricing"
        if n == moved and n:
            git(folder, "mv", "shop/price.py", "shop/pricing.py")
            git(folder, "mv", "tests/test_price.py", "tests/test_pricing.py")
        others = "".join(f"\n\ndef step_{k}():\n    return {k}\n" for k in range(max(0, n - 5), n + 1))
        files = {
            "shop/__init__.py": "",
            f"shop/{module}.py": "def total(prices, off):\n" + (BAD if n >= guilty else GOOD) + others,
            f"tests/test_{module}.py": TEST.format(module=module),
            "conftest.py": "",
        }
        if n in broken:
            files[f"shop/{module}.py"] += "def (:\n"
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"change {n}")
        names.append(git(folder, "rev-parse", "HEAD"))
        if n % 25 == 20 and n not in (guilty - 1, guilty):
            tree = git(folder, "rev-parse", "HEAD^{tree}")
            side = git(folder, "commit-tree", "-m", f"side {n}", "-p", names[-1], tree)
            merge = git(folder, "commit-tree", "-m", f"merge {n}", "-p", names[-1], "-p", side, tree)
            git(folder, "reset", "-q", "--hard", merge)
    return Planted(folder=folder, guilty=names[guilty], good=names[0], bad=git(folder, "rev-parse", "HEAD"))


def by_git(case: Planted, scratch: Path) -> tuple[bool, int]:
    """`git bisect run` on a clone, with a script that skips what does not parse."""
    clone, count = scratch / "clone", scratch / "count"
    count.write_text("")
    git(scratch, "clone", "-q", str(case.folder), str(clone))
    script = scratch / "run.sh"
    script.write_text(
        f"echo x >> {count}\n{sys.executable} -m compileall -q shop || exit 125\nrm -rf shop/__pycache__\n"
        f"{sys.executable} -B -m pytest -q -p no:cacheprovider tests || exit 1\n"
    )
    git(clone, "bisect", "start", case.bad, case.good)
    said = git(clone, "bisect", "run", "sh", str(script), check=False)
    return f"{case.guilty} is the first bad commit" in said, len(count.read_text().split())


def by_us(case: Planted, scratch: Path, jobs: int) -> tuple[bool, int, float]:
    begin = time.monotonic()
    test = next((case.folder / "tests").glob("test_pric*.py")).name
    environ = {**ENVIRON, "XDG_STATE_HOME": str(scratch / "state"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "localagent", "bisect", "--repo", str(case.folder), "--test", f"tests/{test}",
         "--good", case.good, "--jobs", str(jobs), "--no-hunks", "--json"],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    right = told["first_bad"] is not None and told["first_bad"]["commit"] == case.guilty
    return right, told["tested"], time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    ours, theirs, tested, runs, seconds = 0, 0, 0, 0, 0.0
    for number in range(args.cases):
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            case = plant(scratch / "repo", args.commits, random.Random(args.seed + number))
            right, asked, took = by_us(case, scratch, args.jobs)
            git_right, git_asked = by_git(case, scratch)
            ours, theirs, tested, runs, seconds = (
                ours + right, theirs + git_right, tested + asked, runs + git_asked, seconds + took,
            )  # fmt: skip
            print(
                f"{number}: right {right}, {asked} commits, {took:.0f} s; git {git_right}, {git_asked} runs", flush=True
            )
    print(f"right {ours} of {args.cases} (git {theirs}); {tested} commits, git {runs}: {tested / runs:.2f} times; "
          f"log2 of the commits {math.log2(args.commits):.1f}; {seconds / args.cases:.0f} s a case")  # fmt: skip
    return 0 if ours >= 0.95 * args.cases and tested <= 1.3 * runs else 1


if __name__ == "__main__":
    sys.exit(main())
