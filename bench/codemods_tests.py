"""Whether the hook's safe repairs make tests of real projects fail: the whole suite before and after.

    python bench/codemods_tests.py --repos CLONES [--only sqlparse,click] [--work DIR] [--json FILE]

Takes the newest state that `bench/real/facts.toml` names of each project, with its pinned environment (the only step
that reaches the package index), and runs plain pytest in the judge's jail, no part of localagent involved. A test is
newly failing where it passed twice without the repairs and failed twice with them; what differed between equal runs
is told as unsteady. Ends with 1 where one is, or a repaired file does not compile. Bar: 0.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.real import facts, judge, layout  # noqa: E402
from localagent.lint.engine import choose  # noqa: E402
from localagent.lint.file_view import CannotReadError, view_of  # noqa: E402
from localagent.lint.fixer import repair  # noqa: E402


def newest(only: set[str]) -> list[facts.Fact]:
    """The last fact of each project."""
    found = {fact.project: fact for fact in facts.load(facts.FACTS)}
    return [fact for project, fact in found.items() if not only or project in only]


def repair_all(tree: Path) -> tuple[int, Counter[str], list[str]]:
    """Every safe repair of every file of a tree, written there: (files, repairs by rule, files that do not compile)."""
    rules, files, broken = choose(), 0, []
    made: Counter[str] = Counter()
    for path in sorted(tree.rglob("*.py")):
        if path.is_symlink() or not path.is_file():
            continue
        raw = path.read_bytes()
        try:
            done = repair(view_of(raw, path.name), rules)
        except CannotReadError:
            continue
        if done.after == raw:
            continue
        files += 1
        made.update(found.rule for found in done.applied)
        path.write_bytes(done.after)
        try:
            compile(done.after, path.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as fault:
            broken.append(f"{path}: {fault}")
    return files, made, broken


def steady(tree: Path, python: Path, wall: float) -> tuple[frozenset[str], frozenset[str], str]:
    """Tests that passed twice, tests that failed twice, and the end of the log."""
    runs = [judge.run_tests(tree, python, (), wall_seconds=wall) for _ in range(2)]
    good, bad = runs[0].good() & runs[1].good(), runs[0].bad() & runs[1].bad()
    return good, bad, runs[1].log


def one(fact: facts.Fact, repos: Path, work: Path, wall: float) -> dict[str, object]:
    """One project."""
    tree = work / "trees" / fact.project
    layout.lay_out(fact, layout.clone_of(fact, repos), tree)
    python = layout.environment(fact, work / "venvs", tree)
    good, bad, log = steady(tree, python, wall)
    if not good:
        return {"project": fact.project, "not_run": log[-300:] or "no test passes twice"}
    files, made, broken = repair_all(tree)
    good_after, bad_after, log = steady(tree, python, wall)
    lost = good - good_after
    return {
        "project": fact.project,
        "commit": fact.parent[:12],
        "passing": len(good),
        "failing_before": len(bad),
        "files_repaired": files,
        "repairs": dict(made.most_common()),
        "no_longer_compile": broken,
        "newly_failing": sorted(lost & bad_after) if good_after else ["all: " + log[-300:]],
        "unsteady": sorted(lost - bad_after)[:20],
        "newly_passing": len(good_after - good),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--wall", type=float, default=300.0, help="seconds of one run of a project's tests")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    work = (args.work or Path(tempfile.mkdtemp(prefix="la-codemods-"))).absolute()
    work.mkdir(parents=True, exist_ok=True)
    rows = []
    for fact in newest(set(filter(None, args.only.split(",")))):
        try:
            row = one(fact, args.repos, work, args.wall)
        except layout.LayoutError as fault:
            row = {"project": fact.project, "not_run": str(fault)}
        rows.append(row)
        print(json.dumps(row), flush=True)
    ran = [row for row in rows if "not_run" not in row]
    wrong = sum(len(row["newly_failing"]) + len(row["no_longer_compile"]) for row in ran)  # type: ignore[arg-type]
    tests, files = (sum(row[key] for row in ran) for key in ("passing", "files_repaired"))  # type: ignore[misc]
    print(f"{len(ran)} of {len(rows)} projects, {tests} tests that passed, {files} files repaired: {wrong} wrong")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
