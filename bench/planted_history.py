"""Regressions planted in histories of real projects, for `bench/first_bad.py --history`.

A window of the newest commits is written anew, each with its own tree but for what is planted: from one commit on a
statement of the project is another, so that one of the project's own tests fails. Beside that, as in generated
histories: commits that do not parse or import what was not built, a stretch in which the test fails now and then, in
every third history the package moves below src/ on the way. Merges, moved and broken files of the project stay.
"""

import ast
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from first_bad import ENVIRON, Planted, git, window

LEAST_COMMITS = 200
SOMETIMES = "vars(__import__('builtins')).setdefault('_drawn', __import__('random').random())"  # once a process
SWAPS = (
    (r" == ", " != "), (r" \+ ", " - "), (r" - ", " + "), (r" and ", " or "), (r" < ", " >= "), (r" > ", " <= "),
    (r"\bnot ", ""), (r"\bTrue\b", "False"), (r"^(\s*)return (?!None)(.+)$", r"\1return None"),
    (r"\b0\b", "1"), (r"\b1\b", "2"),
)  # fmt: skip
TESTS = re.compile(r"^def (test_\w+)\(\)|^class (Test\w*)\b[^\n]*:|^    def (test_\w+)\(self\)", re.MULTILINE)
COVER = """
import sys, json, os
root, out, spec = os.getcwd(), sys.argv[1], sys.argv[2]
seen = {}
def trace(frame, event, arg):
    name = frame.f_code.co_filename
    if not name.startswith(root) or "/tests/" in name or "/test/" in name or "test_" in os.path.basename(name):
        return None
    if event == "line" and frame.f_code.co_name != "<module>":
        seen.setdefault(os.path.relpath(name, root), set()).add(frame.f_lineno)
    return trace
class Plugin:
    def pytest_runtest_call(self, item):
        sys.settrace(trace)
    def pytest_runtest_teardown(self, item):
        sys.settrace(None)
import pytest
code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", spec], plugins=[Plugin()])
json.dump({k: sorted(v) for k, v in seen.items()}, open(out, "w"))
sys.exit(code)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A statement on a line of its own, and what it becomes. `test` fails of it."""

    path: str
    line: str
    wrong: str
    test: str


def runs(folder: Path, *words: str, seconds: float = 60.0) -> subprocess.CompletedProcess:
    environ = {**ENVIRON, "PYTHONPATH": f"{folder}/src:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            [sys.executable, *words], cwd=folder, env=environ, capture_output=True, text=True, check=False,
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", "")


def passes(folder: Path, spec: str) -> bool:
    return runs(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", spec).returncode == 0


def extract(store: str, commit: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    tar = subprocess.Popen(["git", f"--git-dir={store}", "archive", commit], stdout=subprocess.PIPE, env=ENVIRON)
    subprocess.run(["tar", "-x"], cwd=folder, stdin=tar.stdout, check=True)
    assert tar.wait() == 0


def tests_of(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("test*.py")):
        name, owner = str(path.relative_to(folder)), ""
        for match in TESTS.finditer(path.read_text(errors="replace")):
            if match[1]:
                found.append(f"{name}::{match[1]}")
            owner = match[2] or (owner if match[3] else "")
            if match[3] and owner:
                found.append(f"{name}::{owner}::{match[3]}")
    return found


def simple_statements(text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr) and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            if line.startswith(" ") and ";" not in line and line.strip() == ast.get_source_segment(text, node):
                yield node.lineno, line


def fault_of(tip: Path, base: Path, draw: random.Random) -> Fault | None:
    """A fault that makes a test fail, which passes at both ends without it."""
    specs = tests_of(tip)
    draw.shuffle(specs)
    unusable: set[str] = set()
    for spec in specs[:60]:
        name = spec.split("::")[0]
        if name in unusable:
            continue
        if len(unusable) == 4:
            break
        with tempfile.NamedTemporaryFile() as out:
            if runs(tip, "-c", COVER, out.name, spec).returncode:
                unusable.add(name)
                continue
            seen = ast.literal_eval(Path(out.name).read_text())
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes((tip / name).read_bytes())
        if not passes(base, spec):
            unusable.add(name)
            continue
        wrongs = [
            (path, line, made)
            for path, ran in seen.items()
            if path.endswith(".py")
            for number, line in simple_statements((tip / path).read_text())
            if number in ran and (tip / path).read_text().count(f"\n{line}\n") == 1
            for pattern, other in SWAPS
            if (made := re.sub(pattern, other, line, count=1)) != line
        ]
        draw.shuffle(wrongs)
        for path, line, wrong in wrongs[:6]:
            text = (tip / path).read_text()
            (tip / path).write_text(text.replace(f"\n{line}\n", f"\n{wrong}\n"))
            ran = runs(tip, "-m", "pytest", "-q", "-p", "no:cacheprovider", spec, seconds=20)
            (tip / path).write_text(text)
            if ran.returncode == 1:
                return Fault(path=path, line=line, wrong=wrong, test=spec)
    return None


def objects(store: str, names: list[str]) -> list[bytes | None]:
    """The contents of blobs, None for what is not there."""
    done = subprocess.run(
        ["git", f"--git-dir={store}", "cat-file", "--batch"], input="\n".join(names).encode(),
        stdout=subprocess.PIPE, env=ENVIRON, check=True,
    )  # fmt: skip
    found, at, data = [], 0, done.stdout
    for name in names:
        end = data.index(b"\n", at)
        head = data[at:end]
        if head.endswith((b"missing", b"ambiguous")):
            found.append(None)
            at = end + 1
            continue
        size = int(head.split()[2])
        found.append(data[end + 1 : end + 1 + size])
        at = end + 2 + size
        del name
    return found


def plant_real(
    store: str, folder: Path, commits: int, draw: random.Random, number: int
) -> tuple[Planted, Fault] | None:
    """None where no test of the project fits, in a shorter window neither."""
    told = lambda *words: git(folder.parent, f"--git-dir={store}", *words)  # noqa: E731
    fault = None
    while fault is None and commits >= LEAST_COMMITS:  # what is older than that may be for another Python
        newest, base = window(store, commits, draw)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            tip_folder, base_folder = Path(scratch, "tip"), Path(scratch, "base")
            extract(store, newest, tip_folder)
            extract(store, base, base_folder)
            fault = fault_of(tip_folder, base_folder, draw)
        commits = commits * 2 // 3
    if fault is None:
        return None
    out = told("rev-list", "--topo-order", "--reverse", "--parents", newest, f"^{base}")
    listed = [line.split() for line in out.splitlines()]
    order = [commit for commit, *_ in listed]
    parents = {commit: own for commit, *own in listed}
    names = dict.fromkeys(told("log", "--follow", "--format=", "--name-only", newest, "--", fault.path).split("\n"))
    names = [name for name in names if name]
    place: dict[str, tuple[str, bytes]] = {}
    contents = {name: objects(store, [f"{commit}:{name}" for commit in order]) for name in names}
    for at, commit in enumerate(order):
        for name in names:
            data = contents[name][at]
            if data is not None:
                place.setdefault(commit, (name, data))
    holds = {c for c, (_, data) in place.items() if data.count(f"\n{fault.line}\n".encode()) == 1}
    children: dict[str, list[str]] = {}
    for commit, own in parents.items():
        for parent in own:
            children.setdefault(parent, []).append(commit)
    steady: set[str] = set()  # the line is there from this commit on
    for commit in reversed(order):
        if commit in holds and all(child in steady for child in children.get(commit, [])):
            steady.add(commit)
    able = [
        c for c in order[len(order) // 20 : -3] if c in steady and all(p in holds for p in parents[c] if p in parents)
    ]
    guilty = next(
        (
            c
            for c in draw.sample(able, min(len(able), 8))
            if is_judged(store, newest, c, parents[c], place[c][0], fault)
        ),
        "",
    )
    if not guilty:
        return None
    bad = {guilty}
    for commit in order:
        if any(parent in bad for parent in parents[commit]):
            bad.add(commit)
    before = {guilty}
    for commit in reversed(order):
        if any(child in before for child in children.get(commit, [])):
            before.add(commit)
    older = [c for c in order if c in before and c != guilty]
    shaky = set(older[-len(order) // 10 : -len(order) // 40 or None] if number % 3 == 0 else ())
    near = order.index(guilty)
    spared = {*order[near : near + 5], *parents[guilty]}
    broken = {c: draw.choice(["parse", "build"]) for c in order[1:-1] if c not in spared and draw.random() < 0.06}
    package = fault.path.split("/")[0]
    moves = number % 3 == 1 and package != "src" and "/" in fault.path
    moved = set(order[draw.randrange(len(order)) :]) if moves else set()
    for commit in order:  # a move is inherited
        if any(parent in moved for parent in parents[commit]):
            moved.add(commit)
    marks = {commit: n for n, commit in enumerate(order, 1)}
    trees = dict(zip(order, told("rev-parse", *(f"{commit}^{{tree}}" for commit in order)).split(), strict=True))
    parts: list[bytes] = []
    for commit in order:
        own = [f":{marks[p]}" if p in marks else p for p in parents[commit]]
        when = 1_700_000_000 + marks[commit]
        head = f"commit refs/heads/main\nmark :{marks[commit]}\ncommitter a@b <a@b> {when} +0000\n"
        head += f"data {len(str(marks[commit]))}\n{marks[commit]}\n"
        head += "".join(f"{'merge' if n else 'from'} {p}\n" for n, p in enumerate(own))
        parts.append(f'{head}M 040000 {trees[commit]} ""\n'.encode())
        if commit in place:
            path, data = place[commit]
            made = data
            if commit in bad:
                made = data.replace(f"\n{fault.line}\n".encode(), f"\n{fault.wrong}\n".encode())
            elif commit in shaky and commit in holds:
                pad = fault.line[: len(fault.line) - len(fault.line.lstrip())]
                either = (f"if {SOMETIMES} < 0.3:\n{pad}    {fault.wrong.strip()}", "else:")
                choice = f"\n{pad}{either[0]}\n{pad}{either[1]}\n{pad}    {fault.line.strip()}\n"
                made = data.replace(f"\n{fault.line}\n".encode(), choice.encode())
            fault_kind = broken.get(commit)
            made += b"\ndef (:\n" if fault_kind == "parse" else b"\nimport _not_built_here\n" if fault_kind else b""
            if made != data:
                parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(made), made))
        if commit in moved and contents_has(store, trees[commit], package):
            parts.append(f"R {package} src/{package}\n".encode())
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".git/objects/info/alternates").write_text(f"{store}/objects\n")
    subprocess.run(
        ["git", "fast-import", "--quiet", "--export-marks=.git/marks"],
        cwd=folder, env=ENVIRON, input=b"".join(parts), check=True, capture_output=True,
    )  # fmt: skip
    git(folder, "reset", "-q", "--hard", "main")
    known = dict(line.split() for line in (folder / ".git/marks").read_text().splitlines())
    planted = Planted(
        folder=folder, guilty=known[f":{marks[guilty]}"], good=base, bad=known[f":{marks[newest]}"], test=fault.test
    )
    return planted, fault


def is_judged(store: str, newest: str, commit: str, parents: list[str], path: str, fault: Fault) -> bool:
    """Whether the newest test passes at the parents of a commit and at the commit itself, and fails with the fault."""
    name = fault.test.split("::")[0]
    (test,) = objects(store, [f"{newest}:{name}"])
    for one in (*parents, commit):
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch, "tree")
            extract(store, one, tree)
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(test or b"")
            if not passes(tree, fault.test):
                return False
            if one == commit:
                text = (tree / path).read_text()
                (tree / path).write_text(text.replace(f"\n{fault.line}\n", f"\n{fault.wrong}\n"))
                return not passes(tree, fault.test)
    return False


def contents_has(store: str, tree: str, name: str) -> bool:
    done = subprocess.run(
        ["git", f"--git-dir={store}", "cat-file", "-e", f"{tree}:{name}"], env=ENVIRON, capture_output=True, check=False
    )  # fmt: skip
    return done.returncode == 0
