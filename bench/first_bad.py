"""Planted regressions in generated histories, found by `localagent bisect` and by `git bisect run` beside it.

`python bench/first_bad.py [--cases 30] [--commits 200 2000] [--jobs 1] [--seed 0] [--history GIT-DIR ...]`: with
`--history` in histories of real projects (bench/planted_history.py), else each has commits that do
not parse, commits that import what was not built, a stretch of commits at which the test fails now and then, merges of
side branches (every third guilty commit is on one), and a module that is moved with its test. Runs: for git those of
its script, which skips what cannot be imported, for us all runs of the tests, those at the bad end and those that look
again included. Bars: 95 % right, 1.3 times git's runs, every repository byte for byte as before.
"""

import argparse
import hashlib
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
SOMETIMES = "    import random\n\n    return sum(prices) * (100 - off) // 100 + (random.random() < 0.3)\n"
TEST = "from shop.{module} import total\n\n\ndef test_total():\n    assert total([100, 50], 10) == 135\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A history and what broke it. `good` and `bad` are its ends."""

    folder: Path
    guilty: str
    good: str
    bad: str
    test: str = ""


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, env=ENVIRON, capture_output=True, text=True, check=check)
    return done.stdout.strip()


def window(store: str, commits: int, draw: random.Random) -> tuple[str, str]:
    """The two ends of so many of a project's newest commits: the last one, and the first parent before all of them."""
    at = Path(store)
    firsts = git(at, "rev-list", "--first-parent", "HEAD").split()
    firsts = firsts[draw.randrange(max(1, len(firsts) // 10)) :]
    low, high = 0, len(firsts) - 1
    while low < high:
        middle = (low + high) // 2
        enough = int(git(at, "rev-list", "--count", firsts[0], f"^{firsts[middle]}")) >= commits
        low, high = (low, middle) if enough else (middle + 1, high)
    return firsts[0], firsts[low]


class Stream:
    """Commits for `git fast-import`, each with its whole tree; marks are their numbers from 1."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.marks = 0

    def commit(self, files: dict[str, str], parents: list[int], subject: str, branch: str = "main") -> int:
        self.marks += 1
        who = f"a@b <a@b> {1_700_000_000 + 60 * self.marks} +0000"
        head = f"commit refs/heads/{branch}\nmark :{self.marks}\ncommitter {who}\ndata {len(subject)}\n{subject}\n"
        head += "".join(f"{'merge' if n else 'from'} :{mark}\n" for n, mark in enumerate(parents)) + "deleteall\n"
        told = [head.encode()]
        for name, text in files.items():
            data = text.encode()
            told += [f"M 100644 inline {name}\ndata {len(data)}\n".encode(), data, b"\n"]
        self.parts.append(b"".join(told))
        return self.marks

    def load(self, folder: Path) -> list[str]:
        """Make the repository; the commits by mark, the first under 1."""
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        subprocess.run(
            ["git", "fast-import", "--quiet", "--export-marks=.git/marks"],
            cwd=folder, env=ENVIRON, input=b"".join(self.parts), check=True, capture_output=True,
        )  # fmt: skip
        git(folder, "reset", "-q", "--hard", "main")
        known = dict(line.split() for line in (folder / ".git/marks").read_text().splitlines())
        return [""] + [known[f":{mark}"] for mark in range(1, self.marks + 1)]


def plant(folder: Path, commits: int, draw: random.Random) -> Planted:
    """A small shop: other functions come and go in every commit; one commit breaks `total` beside them.

    Some commits do not parse, some import what nobody built, in a stretch before the guilty one the test fails now and
    then; side branches are merged, and in every third history the guilty commit is on one; module and test move.
    """
    guilty, moved = draw.randrange(commits // 10, commits - 5), draw.randrange(commits)
    on_side = draw.random() < 1 / 3
    spared = range(guilty - 1, guilty + 5)
    broken = {n: draw.choice(["parse", "build"]) for n in range(1, commits - 1) if draw.random() < 0.06}
    shaky = range(max(1, guilty - commits // 10), max(1, guilty - commits // 40))
    stream = Stream()

    def files(n: int, *, bad: bool, notes: int) -> dict[str, str]:
        module = "price" if n < moved else "pricing"
        fault = "" if n in spared else broken.get(n, "")
        body = BAD if bad else SOMETIMES if n in shaky else GOOD
        steps = "".join(f"\n\ndef step_{k}():\n    return {k}\n" for k in range(max(0, n - 5), n + 1))
        return {
            "shop/__init__.py": "import shop._speedups\n" if fault == "build" else "",
            f"shop/{module}.py": "def total(prices, off):\n" + body + steps + ("def (:\n" if fault == "parse" else ""),
            f"tests/test_{module}.py": TEST.format(module=module),
            "conftest.py": "",
            "notes.txt": f"{notes}\n",
        }

    marks: list[int] = []
    found = 0
    for n in range(commits):
        bad = n > guilty or (n == guilty and not on_side)
        parents = marks[-1:]
        if n == guilty and on_side:
            first = stream.commit(files(n - 1, bad=False, notes=n), parents, f"side {n}", "side")
            found = stream.commit(files(n - 1, bad=True, notes=n), [first], f"side change {n}", "side")
            last = stream.commit(files(n - 1, bad=True, notes=-n), [found], f"side again {n}", "side")
            marks.append(stream.commit(files(n, bad=True, notes=-n), [*parents, last], f"merge {n}"))
            continue
        if n % 25 == 20 and n not in spared:
            side = stream.commit(files(n - 1, bad=bad, notes=-n), parents, f"side {n}", "side")
            main = stream.commit(files(n - 1, bad=bad, notes=n), parents, f"main {n}")
            parents = [main, side]
        marks.append(stream.commit(files(n, bad=bad, notes=n), parents, f"change {n}"))
        found = marks[-1] if n == guilty else found
    names = stream.load(folder)
    test = "test_price.py" if moved > commits - 1 else "test_pricing.py"
    return Planted(folder=folder, guilty=names[found], good=names[1], bad=names[marks[-1]], test=f"tests/{test}")


def digest(folder: Path) -> str:
    """Of every file of a repository, its git folder too."""
    hashed = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        hashed.update(f"{path.relative_to(folder)}\0{path.stat().st_mode}\0".encode() + path.read_bytes())
    return hashed.hexdigest()


def by_git(case: Planted, scratch: Path) -> tuple[bool, int]:
    """`git bisect run` on a clone; its script brings the bad end's test and skips where it cannot be collected.

    In a generated history the module moves, so the script takes the test that is there.
    """
    clone, count = scratch / "clone", scratch / "count"
    count.write_text("")
    git(scratch, "clone", "-q", str(case.folder), str(clone))
    script, file = scratch / "run.sh", case.test.split("::")[0]
    held = scratch / Path(file).name
    held.write_bytes((case.folder / file).read_bytes())
    generated = (case.folder / "shop").is_dir()
    lay = "" if generated else f"mkdir -p {Path(file).parent}; cp {held} {file}\n"
    script.write_text(
        f"echo x >> {count}\n{lay}PYTHONPATH=src:. {sys.executable} -B -m pytest -q -p no:cacheprovider "
        f"{'tests' if generated else case.test}\n"
        "status=$?\ngit checkout -q -f . ; git clean -fdq\n[ $status -le 1 ] && exit $status\nexit 125\n"
    )
    git(clone, "bisect", "start", case.bad, case.good)
    said = git(clone, "bisect", "run", "sh", str(script), check=False)
    right = f"{case.guilty} is the first bad commit" in said
    if not right:
        print(f"   git: {[line for line in said.splitlines() if 'first' in line][-2:]}", flush=True)
    return right, len(count.read_text().split())


def by_us(case: Planted, scratch: Path, jobs: int, keep: Path | None = None) -> tuple[bool, int, float]:
    begin = time.monotonic()
    environ = {**ENVIRON, "XDG_STATE_HOME": str(scratch / "state"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "localagent", "bisect", "--repo", str(case.folder), "--test", case.test,
         "--good", case.good, "--jobs", str(jobs), "--no-hunks", "--json"],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stdout:
        print(f"   no answer: {done.stderr[-500:]}", flush=True)
        return False, 0, time.monotonic() - begin
    told = json.loads(done.stdout)
    if keep is not None:
        with keep.open("a") as file:
            file.write(json.dumps({"guilty": case.guilty, "test": case.test, **told}) + "\n")
    right = told["first_bad"] is not None and told["first_bad"]["commit"] == case.guilty
    if not right:
        print(f"   wrong: {told['reason']}; guilty {case.guilty}; {told['warnings'][-2:]}", flush=True)
    return right, told["runs"], time.monotonic() - begin


def main() -> int:
    from planted_history import plant_real  # noqa: PLC0415 - it takes what stands above from here

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--commits", type=int, nargs=2, default=(200, 2000), metavar=("LEAST", "MOST"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--history", nargs="*", default=[], metavar="GIT-DIR", help="real projects, in turn")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="append the answers as JSON lines")
    args = parser.parse_args()
    ours, theirs, tested, runs, changed, seconds, cases = 0, 0, 0, 0, 0, 0.0, 0
    for number in range(args.cases):
        with tempfile.TemporaryDirectory() as folder:
            scratch, draw = Path(folder), random.Random(args.seed + number)
            commits = round(math.exp(draw.uniform(*map(math.log, args.commits))))
            if args.history:
                store = args.history[number % len(args.history)]
                planted = plant_real(store, scratch / "repo", commits, draw, number)
                if planted is None:
                    print(f"{number}: {store}: no test fits", flush=True)
                    continue
                case, fault = planted
                print(f"{number}: {store}: {fault.test}: {fault.line.strip()} -> {fault.wrong.strip()}", flush=True)
            else:
                case = plant(scratch / "repo", commits, draw)
            cases += 1
            before = digest(case.folder)
            right, asked, took = by_us(case, scratch, args.jobs, args.keep)
            changed += digest(case.folder) != before
            git_right, git_asked = by_git(case, scratch)
            ours, theirs, tested, runs, seconds = (
                ours + right, theirs + git_right, tested + asked, runs + git_asked, seconds + took,
            )  # fmt: skip
            told = f"{number}: {commits} commits, right {right}, {asked} runs, {took:.0f} s"
            print(f"{told}; git {git_right}, {git_asked}", flush=True)
    print(f"right {ours} of {cases} (git {theirs}); {tested} runs, git {runs}: {tested / max(1, runs):.2f} times; "
          f"{changed} repositories changed; {seconds / max(1, cases):.0f} s a case")  # fmt: skip
    return 0 if ours >= 0.95 * cases and tested <= 1.3 * runs and not changed else 1


if __name__ == "__main__":
    sys.modules["first_bad"] = sys.modules["__main__"]
    sys.exit(main())
