"""Real one-hunk commits of permissively licensed projects, put to the gates: how many are refused, and why?

`python bench/gates_benign.py --repos DIR [--each 75] [--write]`: DIR holds clones that you have (named by
`bench/real/run.py --list`; a folder is called as its project, bare ones with `.git`). From each history, newest first,
the commits that change one place of one Python file and nothing else; each diff is judged against that file as it
stood, with the names (and nothing else) of what could be imported from its tree. A person wrote, and kept, each of
these: a refusal is a false alarm or a commit that does want a second look.
`--write` keeps the facts (repository, commit, verdict, rules; no code) in cases/benign-commits.jsonl, or in `--facts`;
`--against FILE` judges those of a file.

Bar: at most 1 % of the changes to sources refused. Changes to tests are told apart: taking a test or an assertion away
is what the gates are to refuse, whoever does it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.app.review.patch_gate import GateRequest, review_patch  # noqa: E402
from localagent.app.settings import Settings  # noqa: E402
from localagent.domain.review import PatchVerdict  # noqa: E402

FACTS = ROOT / "bench" / "cases" / "benign-commits.jsonl"
LICENCES = {
    "aio-libs/aiohttp": "Apache-2.0", "celery/celery": "BSD-3-Clause", "celery/kombu": "BSD-3-Clause",
    "pyca/pyopenssl": "Apache-2.0", "pypa/setuptools": "MIT", "sphinx-doc/sphinx": "BSD-2-Clause",
    "urllib3/urllib3": "MIT",
    "andialbrecht/sqlparse": "BSD-3-Clause", "astanin/python-tabulate": "MIT", "mahmoud/boltons": "BSD-3-Clause",
    "marshmallow-code/marshmallow": "MIT", "more-itertools/more-itertools": "MIT", "networkx/networkx": "BSD-3-Clause",
    "pallets/click": "BSD-3-Clause", "pallets/jinja": "BSD-3-Clause", "pallets/werkzeug": "BSD-3-Clause",
    "pypa/packaging": "Apache-2.0 OR BSD-2-Clause", "python-attrs/attrs": "MIT",
}  # fmt: skip
_TESTS = re.compile(r"(^|/)(tests?|testing)/|(^|/)test_[^/]*$|_test\.py$|(^|/)conftest\.py$")
_ROOTS = ("src", "lib", "python")
_NEUTRAL = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}


class Commit(NamedTuple):
    """One commit that changes one place of one Python file."""

    project: str
    clone: Path
    sha: str
    path: str
    diff: bytes


def git(clone: Path, *args: str) -> bytes:
    """The output of a plumbing command, no configuration of anybody's read."""
    options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external="]
    done = subprocess.run(["git", *options, "-C", str(clone), *args], env=_NEUTRAL, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


def project_of(clone: Path) -> str:
    """`owner/name` of a clone by its folder's name, "" if it is none of those whose licence is known."""
    name = clone.name.removesuffix(".git")
    return next((project for project in LICENCES if project.rpartition("/")[2] == name), "")


def one_hunk(clone: Path, project: str, sha: str) -> Commit | None:
    """The commit, if it changes one place of one Python file and nothing else."""
    names = git(clone, "diff-tree", "-r", "--no-commit-id", "--name-status", "-z", sha).split(b"\0")[:-1]
    if len(names) != 2 or names[0] != b"M" or not names[1].endswith(b".py"):
        return None
    diff = git(clone, "diff-tree", "-p", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color", sha)
    if len(re.findall(rb"^@@ -", diff, re.MULTILINE)) != 1:
        return None
    return Commit(project, clone, sha, names[1].decode("utf-8", "surrogateescape"), diff)


def mined(clone: Path, project: str, most: int) -> Iterator[Commit]:
    """Newest first, at most so many."""
    count = 0
    for sha in git(clone, "log", "--no-merges", "--min-parents=1", "--format=%H", "--", "*.py").decode().split():
        if (commit := one_hunk(clone, project, sha)) is not None:
            yield commit
            count += 1
            if count == most:
                return


def importable(commit: Commit) -> Iterator[str]:
    """A file for each package and module that can be imported from the tree as it stood: what is the project's own."""
    seen = set()
    for name in git(commit.clone, "ls-tree", "-r", "-z", "--name-only", f"{commit.sha}^").split(b"\0"):
        parts = name.decode("utf-8", "surrogateescape").split("/")
        root = parts[0] in _ROOTS and len(parts) > 1
        top = parts[: 2 if root else 1]
        if parts[-1].endswith(".py") and len(parts) <= len(top) + 1 and tuple(top) not in seen:
            seen.add(tuple(top))
            yield "/".join(parts)


def judged(commit: Commit, settings: Settings) -> tuple[PatchVerdict, list[str], list[str]]:
    """(verdict, rules, messages) for a tree of the one file as it stood, and of the project's own names."""
    before = git(commit.clone, "show", f"{commit.sha}^:{commit.path}")
    with tempfile.TemporaryDirectory(prefix="benign-") as folder:
        for name in importable(commit):
            own = Path(folder, name)
            own.parent.mkdir(parents=True, exist_ok=True)
            own.touch()
        place = Path(folder, commit.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(before)
        review = review_patch(GateRequest(patch=commit.diff, repo=Path(folder), everything=True), settings)
    found = [f for d in review.decisions for f in d.findings]
    return review.verdict, sorted({f.rule for f in found}), [f"{f.rule}: {f.line}: {f.message}" for f in found]


def main() -> int:
    """Judge and print; 1 if the bar is missed or there are too few."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--each", type=int, default=80)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--facts", type=Path, default=FACTS)
    parser.add_argument("--against", type=Path)
    args = parser.parse_args()
    clones = {project: c for c in sorted(args.repos.iterdir()) if (project := project_of(c)) in LICENCES}
    wanted: dict[str, list[str]] = {}
    if args.against:
        for line in args.against.read_text().splitlines():
            fact = json.loads(line)
            wanted.setdefault(fact["project"], []).append(fact["commit"])
    settings = Settings.from_environ({})
    rows: list[dict[str, object]] = []
    verdicts: dict[str, Counter[str]] = {"sources": Counter(), "tests": Counter()}
    for project, clone in clones.items():
        kept = (one_hunk(clone, project, sha) for sha in wanted.get(project, ()))
        commits = (c for c in kept if c) if args.against else mined(clone, project, args.each)
        for commit in commits:
            verdict, rules, messages = judged(commit, settings)
            kind = "tests" if _TESTS.search(commit.path) else "sources"
            verdicts[kind][verdict.value] += 1
            rows.append(
                {"project": project, "commit": commit.sha, "of": kind, "verdict": verdict.value, "rules": rules}
            )
            if verdict is PatchVerdict.REFUSED:
                print(f"{project} {commit.sha[:12]} {commit.path}", flush=True)
                for message in messages:
                    print(f"    {message[:200]}")
    if args.write:
        args.facts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    total = 0
    for kind, counts in verdicts.items():
        number = sum(counts.values())
        total += number
        shares = {verdict: counts[verdict.value] / max(1, number) for verdict in PatchVerdict}
        refused, waiting = shares[PatchVerdict.REFUSED], shares[PatchVerdict.NEEDS_PERSON]
        print(
            f"{kind}: {number} commits, {dict(counts)}, refused {refused:.2%}, waiting for a person {waiting:.2%}, "
            f"denied either way {refused + waiting:.2%}"
        )
    print(f"{total} commits of {len(clones)} projects")
    sources = verdicts["sources"]
    return int(total < 500 or sources["refused"] > sum(sources.values()) * 0.01)


if __name__ == "__main__":
    raise SystemExit(main())
