"""Does search find the right file and function? Real fix commits, and docstrings, against plain counts and BM25.

    python bench/know_search.py fixes CLONE... [--per-project 20]      subjects of fix commits -> the changed file
    python bench/know_search.py docstrings CLONE... [--functions 1000] docstring, removed -> its function
    python bench/know_search.py speed TREE                             cold index, one changed file, queries
    python bench/know_search.py kills TREE [--kills 100]               two writers, one of them killed at random moments

CLONE is a git repository with its history; it is only read. `fixes` takes the newest commits whose subject says that
something is fixed and that change one to three Python sources that were there before; words of the subject that name a
changed file are left out. The tree is that of the parent, and so is the history. Baselines: `count`, how often a file
holds the words (as ripgrep's counts); `bm25`, BM25 (k1 1.2, b 0.75) over whole files, words split at what is no letter
or digit and in lower case. Rankings of files are over Python sources other than tests for all of them alike.
"""

import argparse
import ast
import json
import math
import random
import re
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.repository_index import HitKind, RepositoryIndex, open_index
from localagent.code.index.identifiers import STOP_WORDS, split_identifier
from localagent.code.related_tests import is_test
from localagent.domain.paths import RepoPath

_FIXES = re.compile(r"\b(?:fix(?:e[sd])?|bug|bugfix)\b", re.IGNORECASE)
_DULL = re.compile(r"typo|docs?\b|readme|changelog|lint|flake8|mypy|typing|pre-commit|\bci\b|tests?\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
K1, B = 1.2, 0.75


def git(folder: Path, *arguments: str) -> str:
    """What git writes."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, check=True, text=True, errors="replace"
    )
    return done.stdout


@dataclass(frozen=True, kw_only=True, slots=True)
class Fix:
    """A commit that fixed something: its parent, what it says, which sources it changed."""

    parent: str
    subject: str
    files: frozenset[str]


def fixes(clone: Path, most: int) -> Iterator[Fix]:
    """The newest fixes of a repository that can be asked for."""
    found = 0
    log = git(
        clone, "log", "--no-merges", "--max-count=6000", "--format=%x01%H %P%x02%s", "--name-status", "--no-renames"
    )
    for record in log.split("\1")[1:]:
        head, _, rest = record.partition("\2")
        subject, *changes = rest.split("\n")
        parent = head.split()[1:2]
        touched = [line.split("\t") for line in changes if "\t" in line]
        sources = {path for status, path in touched if is_source(path)}
        old = {path for status, path in touched if is_source(path) and status == "M"}
        if not parent or not _FIXES.search(subject) or _DULL.search(subject):
            continue
        if sources != old or not 1 <= len(sources) <= 3:
            continue
        asked = without_names(subject, sources)
        if len([w for w in _WORD.findall(asked.lower()) if w not in STOP_WORDS]) < 3:
            continue
        yield Fix(parent=parent[0], subject=asked, files=frozenset(sources))
        found += 1
        if found >= most:
            return


def is_source(path: str) -> bool:
    """A Python source that is no test."""
    folders = path.split("/")[:-1]
    return path.endswith(".py") and not is_test(RepoPath(path)) and not {"test", "tests", "docs"} & set(folders)


def without_names(subject: str, files: set[str]) -> str:
    """The subject without numbers of issues and without words that name a changed file or one of its folders."""
    named = {part.lower() for path in files for p in path.removesuffix(".py").split("/") for part in _parts(p)}
    words = re.sub(r"\(?#\d+\)?|https?://\S+", " ", subject).split()
    return " ".join(w for w in words if not {p.lower() for p in _parts(w)} & named)


def _parts(word: str) -> list[str]:
    return [*_WORD.findall(word.lower()), *(p for w in re.findall(r"\w+", word) for p in split_identifier(w))]


class Baselines:
    """Counts and BM25 over the whole files of a tree."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self.bags = {path: Counter(_WORD.findall(_text(root / path).lower())) for path in files}
        self.sizes = {path: sum(bag.values()) for path, bag in self.bags.items()}
        self.mean = statistics.fmean(self.sizes.values()) if self.sizes else 1.0
        self.seen = Counter(word for bag in self.bags.values() for word in bag)

    def ranked(self, query: str, *, bm25: bool) -> list[str]:
        """The files, the best first."""
        words = [w for w in dict.fromkeys(_WORD.findall(query.lower())) if w not in STOP_WORDS]
        scores = {path: self._bm25(path, words) if bm25 else self._count(path, words) for path in self.bags}
        return sorted(scores, key=lambda path: (-scores[path], path))

    def _count(self, path: str, words: list[str]) -> float:
        return sum(self.bags[path][word] for word in words)

    def _bm25(self, path: str, words: list[str]) -> float:
        bag, total = self.bags[path], len(self.bags)
        score = 0.0
        for word in words:
            idf = math.log(1 + (total - self.seen[word] + 0.5) / (self.seen[word] + 0.5))
            tf = bag[word]
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * self.sizes[path] / self.mean)) if tf else 0.0
        return score


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def bench_fixes(args: argparse.Namespace) -> None:
    """Prints, for each project and in all, how often a changed file is the first and among the first 5."""
    rows: list[tuple[str, dict[str, int]]] = []
    for clone in args.clone:
        with tempfile.TemporaryDirectory(prefix="know-") as folder:
            rows += [(clone.name, ranks) for ranks in _fix_ranks(clone, Path(folder), args.per_project)]
        _print_ranks(clone.name, [ranks for name, ranks in rows if name == clone.name])
    _print_ranks("all", [ranks for _, ranks in rows])
    if args.json:
        args.json.write_text(json.dumps(rows), encoding="utf-8")


def _fix_ranks(clone: Path, folder: Path, most: int) -> Iterator[dict[str, int]]:
    tree = folder / "tree"
    git(folder, "clone", "-q", "--shared", "--no-checkout", str(clone), str(tree))
    for fix in fixes(clone, most):
        git(tree, "checkout", "-q", "-f", "--detach", fix.parent)
        index = opened(tree, folder)
        files = [path for path in index.files() if is_source(path)]
        if not fix.files & set(files):
            continue
        base = Baselines(tree, files)
        mine = [h.path for h in index.search(fix.subject, kind=HitKind.FILE, limit=100_000).hits if is_source(h.path)]
        index.close()
        rankings = {
            "count": base.ranked(fix.subject, bm25=False), "bm25": base.ranked(fix.subject, bm25=True), "search": mine,
        }  # fmt: skip
        yield {name: next((at for at, p in enumerate(r, 1) if p in fix.files), 10**6) for name, r in rankings.items()}


def _print_ranks(name: str, ranks: list[dict[str, int]]) -> None:
    if not ranks:
        return
    parts = []
    for way in ("count", "bm25", "search"):
        first = sum(r[way] == 1 for r in ranks) / len(ranks)
        five = sum(r[way] <= 5 for r in ranks) / len(ranks)
        parts.append(f"{way} first {first:5.1%} among five {five:5.1%}")
    print(f"{name:20} n={len(ranks):4}  " + "   ".join(parts), flush=True)


def bench_docstrings(args: argparse.Namespace) -> None:
    """Prints the mean reciprocal rank, 0 beyond the tenth, of a function for its docstring that was taken out."""
    drawn = random.Random(0)
    totals: defaultdict[str, list[float]] = defaultdict(list)
    share = max(1, args.functions // len(args.clone))
    for clone in args.clone:
        with tempfile.TemporaryDirectory(prefix="know-") as folder:
            tree = Path(folder) / "tree"
            git(Path(folder), "clone", "-q", "--shared", str(clone), str(tree))
            cases = _strip_docstrings(tree)
            index = opened(tree, Path(folder))
            texts = _functions(tree)
            base = FunctionBaseline(texts)
            for path, name, doc in drawn.sample(cases, min(share, len(cases))):
                hits = index.search(doc, kind=HitKind.FUNCTION, limit=10).hits
                totals["search"].append(_reciprocal([(h.path, h.name) for h in hits], (path, name)))
                totals["bm25"].append(_reciprocal(base.ranked(doc)[:10], (path, name)))
            index.close()
        print(f"{clone.name:20} " + _means(totals), flush=True)
    print(f"{'all':20} " + _means(totals))


def _means(totals: dict[str, list[float]]) -> str:
    return "   ".join(f"{way} MRR@10 {statistics.fmean(v):.3f} (n={len(v)})" for way, v in totals.items())


def _reciprocal(found: Sequence[tuple[str, str]], wanted: tuple[str, str]) -> float:
    return next((1 / at for at, one in enumerate(found, 1) if one == wanted), 0.0)


class FunctionBaseline:
    """BM25 over the texts of functions, identifiers split at what is no letter or digit."""

    def __init__(self, texts: dict[tuple[str, str], str]) -> None:
        self.files = Baselines(Path(), ())
        self.files.bags = {key: Counter(_WORD.findall(text.lower())) for key, text in texts.items()}  # type: ignore[misc]
        self.files.sizes = {key: sum(bag.values()) for key, bag in self.files.bags.items()}
        self.files.mean = statistics.fmean(self.files.sizes.values())
        self.files.seen = Counter(word for bag in self.files.bags.values() for word in bag)

    def ranked(self, query: str) -> list[tuple[str, str]]:
        """(path, name), the best first."""
        return self.files.ranked(query, bm25=True)  # type: ignore[return-value]


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        name = prefix + (getattr(node, "name", "") or "")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        inner = f"{name}." if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else prefix
        yield from _definitions(node, inner)


def _strip_docstrings(root: Path) -> list[tuple[str, str, str]]:
    """Take the docstrings of functions out of a tree's sources: (path, qualified name, first paragraph)."""
    cases = []
    for file in sorted(root.rglob("*.py")):
        path = str(file.relative_to(root))
        try:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, ValueError, OSError):
            continue
        lines = text.split("\n")
        for name, node in _definitions(tree):
            doc = ast.get_docstring(node)
            first = node.body[0]
            if not doc or first.end_lineno is None or len(node.body) < 2 or first.lineno == node.body[1].lineno:
                continue
            lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
            asked = " ".join(doc.split("\n\n")[0].split())
            if is_source(path) and len(_WORD.findall(asked)) >= 5:
                cases.append((path, name, asked))
        file.write_text("\n".join(lines), encoding="utf-8")
    return cases


def _functions(root: Path) -> dict[tuple[str, str], str]:
    found = {}
    for file in sorted(root.rglob("*.py")):
        try:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, ValueError, OSError):
            continue
        rows = text.split("\n")
        for name, node in _definitions(tree):
            found[str(file.relative_to(root)), name] = "\n".join(rows[node.lineno - 1 : node.end_lineno])
    return found


def bench_speed(args: argparse.Namespace) -> None:
    """Prints wall and processor seconds; the latter hardly depend on what else the machine does."""
    with tempfile.TemporaryDirectory(prefix="know-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["cp", "-r", str(args.tree), str(tree)], check=True)
        begun, spent = time.monotonic(), _processor()
        index = opened(tree, Path(folder))
        status = index.status()
        size = sum(len(index.read(path)) for path in index.files())
        print(f"cold: {status.files} files, {status.lines} lines, {time.monotonic() - begun:.1f} s,", end=" ")
        print(f"{_processor() - spent:.1f} processor s; {status.bytes / size:.2f} x the sources on disk")
        print(f"memory of the parent at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB", end=", ")
        print(f"of a child {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10} MB")
        asked = _questions(index)
        took = []
        for question in asked:
            spent_before = time.process_time()
            index.search(question)
            took.append(time.process_time() - spent_before)
        took.sort()
        print(f"queries: {len(took)}, median {took[len(took) // 2] * 1e3:.0f} ms,", end=" ")
        print(f"p95 {took[int(len(took) * 0.95)] * 1e3:.0f} ms of processor time")
        index.close()
        changed = tree / next(path for path in sorted(p for p in _python(tree)))
        changed.write_text(changed.read_text(encoding="utf-8") + "\nchanged = 1\n", encoding="utf-8")
        begun, spent = time.monotonic(), _processor()
        opened(tree, Path(folder)).close()
        print(f"one changed file: {time.monotonic() - begun:.2f} s, {_processor() - spent:.2f} processor s")


def bench_kills(args: argparse.Namespace) -> None:
    """Two builders of one index, of which one is killed at a random moment, so many times; then right answers."""
    drawn = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="know-") as folder:
        tree, state = Path(folder) / "tree", Path(folder) / "killed"
        subprocess.run(["cp", "-r", str(args.tree), str(tree)], check=True)
        begun = time.monotonic()
        opened(tree, Path(folder) / "whole").close()
        whole = time.monotonic() - begun
        sources = sorted(p for p in tree.rglob("*.py") if p.stat().st_size)
        outcomes: Counter[str] = Counter()
        for _ in range(args.kills):
            for file in drawn.sample(sources, max(1, len(sources) // 4)):  # so that there is something to write
                file.write_text(file.read_text(encoding="utf-8") + f"\n# {drawn.random()}\n", encoding="utf-8")
            victim, other = (subprocess.Popen([sys.executable, "-c", BUILD, str(tree), str(state)]) for _ in range(2))
            time.sleep(drawn.uniform(0.1, whole))
            victim.send_signal(signal.SIGKILL)
            outcomes[f"victim {'killed' if victim.wait() else 'had ended'}"] += 1
            outcomes["other ended well" if other.wait() == 0 else "OTHER FAILED"] += 1
            if sqlite3.connect(next((state / "state").rglob("*.sqlite"))).execute("PRAGMA quick_check").fetchone() != (
                "ok",
            ):
                outcomes["DAMAGED"] += 1
        survivor, fresh = opened(tree, state), opened(tree, Path(folder) / "fresh")
        asked = _questions(fresh)
        wrong = sum(survivor.search(q, limit=50) != fresh.search(q, limit=50) for q in asked)
        wrong += list(survivor.facts()) != list(fresh.facts())
        rebuilt = survivor.status().rebuilt
    print(
        f"{args.kills} kills: {dict(outcomes)}; {len(asked)} questions and all facts, {wrong} answered otherwise",
        end="",
    )
    print(f"; begun anew: {rebuilt or 'no'}")


BUILD = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
from know_search import opened
opened(Path(sys.argv[1]), Path(sys.argv[2])).close()
"""


def _python(tree: Path) -> Iterator[str]:
    return (str(p.relative_to(tree)) for p in tree.rglob("*.py") if p.stat().st_size > 500)


def _questions(index: RepositoryIndex) -> list[str]:
    """Docstrings' first lines, as questions."""
    found = [d.doc for _, _, facts in index.facts() for d in facts.definitions if len(d.doc.split()) >= 4]
    return random.Random(0).sample(found, min(100, len(found)))


def _processor() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def opened(tree: Path, folder: Path) -> RepositoryIndex:
    """The index of a tree, its state in a folder."""
    return open_index(tree, replace(Settings.from_environ(), state_dir=folder / "state"))


def main() -> int:
    """Run one of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("fixes")
    one.add_argument("clone", nargs="+", type=Path)
    one.add_argument("--per-project", type=int, default=20)
    one.add_argument("--json", type=Path, help="write every rank here")
    two = what.add_parser("docstrings")
    two.add_argument("clone", nargs="+", type=Path)
    two.add_argument("--functions", type=int, default=1_000)
    three = what.add_parser("speed")
    three.add_argument("tree", type=Path)
    four = what.add_parser("kills")
    four.add_argument("tree", type=Path)
    four.add_argument("--kills", type=int, default=100)
    four.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    run = {"fixes": bench_fixes, "docstrings": bench_docstrings, "speed": bench_speed, "kills": bench_kills}
    run[args.what](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
