"""The search of `localagent bisect` on commit graphs of real projects against `git bisect run`, without running a test.

`python bench/first_bad_search.py GIT-DIR ... [--cases 30] [--commits 200 2000] [--seed 0]`: each case is a window of a
project's newest commits, with their merges and the files that they change. A commit that changes some Python file is
the first bad one, in three cases of four one of which lines still stand at the bad end; 6 % of the others cannot be
judged, and in every third case a tenth of the history before it fails in three runs of ten. Both searches get the same
answers; ours is told what a traced run tells: half of the lines of that file and three others as run, one of the first
bad commit among them where one stands, and the rest of the package as imported. Runs: all, the two at the bad end too.
"""

import argparse
import math
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from first_bad import git, window

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.guilty_prior import guilty_prior
from localagent.bisect.search import Bisection
from localagent.bisect.symptom import TreeRun
from localagent.domain.bisection import CommitVerdict, RunCounts
from localagent.domain.paths import RepoPath
from localagent.repo.commit_history import read_parents
from localagent.repo.git import Git
from localagent.repo.line_history import commits_of_lines

FAILS_IN_STRETCH = 0.3
STANDS = 0.75
SCRIPT = """commit=$(git rev-parse BISECT_HEAD); echo x >> {count}
verdict=$(grep "^$commit" {verdicts} | cut -d' ' -f2)
case $verdict in
  skip) exit 125;;
  bad) exit 1;;
  shaky) [ $(od -An -N1 -tu1 /dev/urandom) -lt 77 ] && exit 1;;
esac
exit 0
"""


class Case:
    """A window of a history and what every commit answers."""

    def __init__(self, store: str, commits: int, draw: random.Random, *, flaky: bool) -> None:
        self.store, self.draw = store, draw
        run = Git(Path(store), {})
        self.last, self.good = window(store, commits, draw)
        self.graph = CommitGraph(parents=read_parents(run, self.last, [self.good], first_parent=False))
        order = list(self.graph.parents)
        names = run.run("ls-tree", "-r", "--name-only", self.last).decode().splitlines()
        python = [n for n in names if n.endswith(".py") and "test" not in n and not n.startswith(("doc", "setup"))]
        draw.shuffle(python)
        self.guilty, file = "", ""
        for file in python:
            out = run.run("rev-list", "--no-merges", "--full-history", self.last, f"^{self.good}", "--", file)
            able = [c for c in out.decode().split() if c in order[len(order) // 20 : -3]]
            if able:
                blamed = commits_of_lines(run, RepoPath(file), self.last, [self.good], first_parent=False)
                standing = [c for c in able if c in blamed.values()] if draw.random() < STANDS else []
                self.guilty = draw.choice(standing or able)
                break
        package = file.split("/")[0]
        ran = {RepoPath(n): self.half_of(run, n) for n in [file, *[n for n in python if n != file][:3]]}
        if self.guilty:
            ran[RepoPath(file)] |= set(sorted(line for line, commit in blamed.items() if commit == self.guilty)[:1])
        rest = [RepoPath(n) for n in python if n.split("/")[0] == package and n not in ran]
        self.traced = TreeRun(ran=ran, imported=tuple(rest))
        self.git = run
        if not self.guilty:
            return
        bit = 1 << order.index(self.guilty)
        older = self.graph.ancestor_sets(order)
        before = [c for n, c in enumerate(order) if older[self.guilty] >> n & 1 and c != self.guilty]
        at = order.index(self.guilty)
        spared = {*order[at : at + 5], *self.graph.parents[self.guilty], self.last}
        shaky = set(before[-len(order) // 8 : -max(1, len(order) // 40)]) if flaky else set()
        self.answers = {
            c: "skip" if c not in spared and draw.random() < 0.06
            else "bad" if older[c] & bit else "shaky" if c in shaky else "good"
            for c in order
        }  # fmt: skip

    def half_of(self, run: Git, name: str) -> frozenset[int]:
        """Half of a file's lines."""
        count = len(run.run("cat-file", "blob", f"{self.last}:{name}").splitlines())
        return frozenset(self.draw.sample(range(1, count + 1), count // 2))

    def ask(self, commit: str) -> CommitVerdict:
        answer = self.answers[commit]
        if answer == "shaky":
            answer = "bad" if self.draw.random() < FAILS_IN_STRETCH else "good"
        return CommitVerdict(answer)


def by_us(case: Case) -> tuple[bool, int]:
    prior = guilty_prior(case.git, case.last, [case.good], case.graph, case.traced, first_parent=False)
    search = Bisection(case.graph, case.last, prior, RunCounts(failed=2))
    counts: dict[str, RunCounts] = {}
    runs = 2
    while search.state().open:
        (commit,) = search.next_commits(1)
        verdict = case.ask(commit)
        one = RunCounts(failed=int(verdict is CommitVerdict.BAD), passed=int(verdict is CommitVerdict.GOOD))
        counts[commit] = counts.get(commit, RunCounts()) + one
        search.record(commit, verdict, counts[commit])
        runs += 1
    state = search.state()
    return state.found and state.head == case.guilty, runs


def by_git(case: Case, scratch: Path) -> tuple[bool, int]:
    git(scratch, "clone", "-q", "--bare", "--shared", case.store, "clone")
    clone, count, verdicts, script = (scratch / name for name in ("clone", "count", "verdicts", "run.sh"))
    count.write_text("")
    verdicts.write_text("".join(f"{commit} {answer}\n" for commit, answer in case.answers.items()))
    script.write_text(SCRIPT.format(count=count, verdicts=verdicts))
    git(clone, "bisect", "start", "--no-checkout", case.last, case.good)
    said = git(clone, "bisect", "run", "sh", str(script), check=False)
    return f"{case.guilty} is the first bad commit" in said, len(count.read_text().split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", metavar="GIT-DIR")
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--commits", type=int, nargs=2, default=(200, 2000), metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    cases = ours = theirs = runs = git_runs = 0
    for number in range(args.cases):
        draw = random.Random(args.seed + number)
        commits = round(math.exp(draw.uniform(*map(math.log, args.commits))))
        case = Case(args.stores[number % len(args.stores)], commits, draw, flaky=number % 3 == 0)
        if not case.guilty:
            continue
        with tempfile.TemporaryDirectory() as folder:
            right, asked = by_us(case)
            git_right, git_asked = by_git(case, Path(folder))
        cases, ours, theirs = cases + 1, ours + right, theirs + git_right
        runs, git_runs = runs + asked, git_runs + git_asked
        told = f"{number}: {Path(case.store).parts[-2]}, {len(case.graph)} commits, right {right}, {asked} runs"
        print(f"{told}; git {git_right}, {git_asked}", flush=True)
    print(f"right {ours} of {cases} (git {theirs}); {runs} runs, git {git_runs}: {runs / git_runs:.2f} times")
    return 0 if ours >= 0.95 * cases and runs <= 1.3 * git_runs else 1


if __name__ == "__main__":
    sys.exit(main())
