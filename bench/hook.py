"""The hook's wall time on ten staged files of some 300 lines, beside ruff, bandit and mypy on the same files.

`python bench/hook.py [--runs 15] [--files 10]`. The files are real: modules of the interpreter's standard library, cut
at a statement near 300 lines, without the statements that the hook finds fault with; those to be repaired hold six
safe repairs more each. Wall seconds of whole processes, as a commit waits for them; p95 over the runs. Bars: 1.5 s
clean, 2.5 s with repairs, and half of what the three tools take one after the other. Load is printed: other work
slows everything; ratios are of pairs of runs, also in processor time, which load alters less.
"""

import argparse
import ast
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.lint.engine import choose, find  # noqa: E402
from localagent.lint.file_view import view_of  # noqa: E402
from localagent.lint.fixer import repair  # noqa: E402

NAMES = (
    "argparse", "ast", "calendar", "configparser", "csv", "dataclasses", "difflib", "enum", "functools", "gettext",
    "heapq", "inspect", "ipaddress", "locale", "mailbox", "optparse", "pathlib", "pickle", "plistlib", "random",
    "shutil", "statistics", "tarfile", "textwrap", "threading", "tokenize", "traceback", "typing", "urllib/parse",
    "uuid", "zipfile", "doctest", "pdb", "subprocess", "ftplib", "imaplib", "pydoc", "selectors", "string", "codecs",
)  # fmt: skip
LINES = 300
REPAIRS = """
class Added{n}(object):
    def one(self, x, y):
        if not x in y:
            return sorted(list(y))
        return set([x, y]), True if x else False

    def two(self, x):
        try:
            return not x is None
        except IOError:
            pass
"""


def cut(raw: bytes) -> bytes:
    """Whole statements of a module up to some 300 lines, repaired and without what is only a suggestion."""
    raw = repair(view_of(raw), choose()).after
    tree, lines, last = ast.parse(raw), raw.splitlines(keepends=True), 0
    bad = {f.line for f in find(view_of(raw), choose())}
    kept: list[bytes] = []
    for node in tree.body:
        end = node.end_lineno or 0
        if len(kept) + end - last <= LINES + 60 and not bad & set(range(last + 1, end + 1)):
            kept += lines[last:end]
        last = end
        if len(kept) >= LINES:
            break
    return b"".join(kept)


def sources(count: int) -> list[bytes]:
    found = []
    for name in NAMES:
        data = cut((Path(sysconfig.get_path("stdlib")) / f"{name}.py").read_bytes())
        if LINES - 60 <= data.count(b"\n") <= LINES + 70 and not find(view_of(data), choose()):
            found.append(data)
    if len(found) < count:
        sys.exit(f"only {len(found)} modules of that size here")
    return found[:count]


def timed(argv: list[str], folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Wall seconds and processor seconds, of the process and all that it waited for."""
    began, spent = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{argv}: {done.stderr.decode()[-500:]}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime


def p95(seconds: list[float]) -> float:
    return sorted(seconds)[max(0, -(-95 * len(seconds) // 100) - 1)]


def median(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def stage(folder: Path, files: list[bytes], *, repairs: bool) -> None:
    for n, data in enumerate(files):
        (folder / f"m{n}.py").write_bytes(data + (REPAIRS.replace("{n}", str(n)).encode() if repairs else b""))
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--files", type=int, default=10)
    args = parser.parse_args()
    files = sources(args.files)
    folder = Path(tempfile.mkdtemp(prefix="bench-hook-"))
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder.parent / (folder.name + "-state"))}
    hook, bin_dir = [sys.executable, "-m", "localagent", "hook"], Path(sys.executable).parent
    names = [f"m{n}.py" for n in range(len(files))]
    tools = {
        "ruff": [str(bin_dir / "ruff"), "check", "--no-cache", "-q", *names],
        "bandit": [sys.executable, "-m", "bandit", "-q", *names],
        "mypy": [sys.executable, "-m", "mypy", "--no-incremental", "--cache-dir", os.devnull, *names],
    }
    both: dict[str, list[tuple[float, float]]] = {"hook check": [], "hook fix": [], **{name: [] for name in tools}}
    try:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        for run in range(args.runs):
            stage(folder, files, repairs=False)
            both["hook check"].append(timed([*hook, "check", "--staged"], folder, environ))
            if run < max(3, args.runs // 5):
                for name, argv in tools.items():
                    both[name].append(timed(argv, folder, environ))
            stage(folder, files, repairs=True)
            both["hook fix"].append(timed([*hook, "fix", "--staged"], folder, environ))
        left = subprocess.run([*hook, "check", "--staged"], cwd=folder, env=environ, capture_output=True, check=False)
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(environ["XDG_STATE_HOME"], ignore_errors=True)
    seconds = {name: [wall for wall, _ in taken] for name, taken in both.items()}
    lines = sum(f.count(b"\n") for f in files)
    load, done = os.getloadavg()[0], left.returncode == 0
    print(f"{len(files)} files, {lines} lines, {args.runs} runs, load {load:.1f}; all repaired: {done}")
    for name, taken in seconds.items():
        print(f"{name:11} median {median(taken):6.2f} s  p95 {p95(taken):6.2f} s  ({len(taken)} runs)")
    together = sum(median(seconds[name]) for name in tools)
    for name in ("hook check", "hook fix"):
        for word, which in (("wall", 0), ("processor", 1)):
            ratios = [sum(both[t][n][which] for t in tools) / both[name][n][which] for n in range(len(both["ruff"]))]
            print(f"{name}: the three tools take {median(ratios):.1f} times as much {word} time (median of pairs)")
    for name, bar in (("hook check", 1.5), ("hook fix", 2.5)):
        worst = p95(seconds[name])
        print(
            f"{name}: p95 {worst:.2f} s (bar {bar}: {'held' if worst <= bar else 'MISSED'}), "
            f"the three tools take {together / median(seconds[name]):.1f} times as long ({together:.2f} s)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
