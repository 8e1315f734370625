"""`localagent bisect --fix` against `localagent fix` alone, where the guilty commit also carries a wanted feature.

`python bench/first_bad_fix.py [--cases own spans] [--every 2] [--fix-seconds 60] [--json FILE]`: each repair case
(bench/cases/own.jsonl, bench/spans) becomes a history. It begins with the repaired project; one
commit breaks it and brings a feature with its tests: who wants may be called when the broken function runs. In every
second case the feature's lines stand directly before the broken ones, in the others at the head of their function.
Other commits come before and after. Both tools get the failing tests and the same time, no model.

`right`: exit status 0, and the project's, its hidden and the feature's tests pass with the patch. `first`: the same of
the first proposal, where a person is asked. Bar: right in 20 points more of the cases than with `fix` alone.
"""

import argparse
import ast
import difflib
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from casefile import BUILT, Case, read_all, read_built
from first_bad import ENVIRON, ROOT, git

FEATURE = """

HOOKS = []


def on_call(hook):
    '''Call `hook` with the name of what runs.'''
    HOOKS.append(hook)
"""
FEATURE_TEST = """import {tests}
from {module} import on_call


def test_a_hook_is_called():
    heard = []
    on_call(heard.append)
    for name, test in list(vars({tests}).items()):
        if name.startswith("test_") and not test.__code__.co_argcount:
            try:
                test()
            except Exception:
                pass
    assert {name!r} in heard
"""


def with_feature(case: Case, *, adjacent: bool) -> tuple[str, str, str] | None:
    """(path, its text with the feature, the function's name) of a broken file; None where no function is broken."""
    for path, right in case.oracle.items():
        wrong = case.files[path]
        try:
            tree = ast.parse(wrong)
        except SyntaxError:
            continue
        lines = wrong.splitlines(keepends=True)
        blocks = difflib.SequenceMatcher(a=lines, b=right.splitlines(keepends=True), autojunk=False).get_opcodes()
        changed = [i1 + 1 for tag, i1, *_ in blocks if tag != "equal"]
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inside = [n for n in changed if function.lineno < n <= function.end_lineno]
            body = function.body[1:] if ast.get_docstring(function) is not None else function.body
            if not inside or not body:
                continue
            statement = _holding(body, inside[0]) if adjacent else body[0]
            at, pad = statement.lineno - 1, " " * statement.col_offset
            hook = [f"{pad}for hook in HOOKS:\n", f'{pad}    hook("{function.name}")\n']
            return path, "".join([*lines[:at], *hook, *lines[at:]]).rstrip("\n") + "\n" + FEATURE, function.name
    return None


def _holding(body, line):
    """The innermost statement at a line, or the first one behind it in its block."""
    for statement in body:
        if statement.lineno <= line <= statement.end_lineno:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(statement, name, [])
                if block and block[0].lineno <= line:
                    return _holding(block, line)
            return statement
        if statement.lineno > line:
            return statement
    return body[-1]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def tests(root: Path) -> tuple[bool, list[str]]:
    """Whether all pass, and the ids of those that do not. The cases are our own, so no jail."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "tests"],
        cwd=root, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    failing = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return done.returncode == 0, failing


def plant(root: Path, case: Case, *, adjacent: bool) -> tuple[str, list[str]] | None:
    """A history: its guilty commit and the failing tests. None where the case takes no feature."""
    made = with_feature(case, adjacent=adjacent)
    if made is None:
        return None
    path, text, name = made
    module = path.removesuffix(".py").replace("/", ".")
    visible = next(p for p in case.visible if Path(p).name.startswith("test_"))
    root.mkdir()
    git(root, "init", "-q", "-b", "main")

    def commit(files: dict[str, str], subject: str) -> str:
        write(root, files)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", subject)
        return git(root, "rev-parse", "HEAD")

    right = {**case.project, **case.oracle, "conftest.py": ""}
    commit(right, "begin")
    if not tests(root)[0]:
        return None
    commit({"notes.txt": "begin\n"}, "notes")
    feature = FEATURE_TEST.format(tests=Path(visible).stem, module=module, name=name)
    broken = {**{p: case.files[p] for p in case.oracle}, path: text, "tests/test_hooks.py": feature}
    guilty = commit(broken, "tell who wants what is called")
    _, failing = tests(root)
    if not failing or any("test_hooks" in test for test in failing):
        return None
    commit({path: "# Part of the case.\n" + text + "\n\ndef version():\n    return 2\n"}, "a version")
    return guilty, failing


def localagent(root: Path, state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**ENVIRON, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "localagent", *arguments]
    return subprocess.run(words, cwd=root, env=environ, capture_output=True, text=True, check=False)


def judged(case: Case, root: Path, state: Path, status: int) -> dict[str, object]:
    """The patch, or the first proposal, applied and put to all tests."""
    landed = localagent(root, state, "apply", *(() if status == 0 else ("--choose", "1"))).returncode == 0
    kept = git(root, "diff", "--stat", "--", "tests") == ""
    write(root, case.hidden)
    good = landed and kept and tests(root)[0]
    return {"exit": status, "landed": landed, "right": good and status == 0, "first": good}


def one(case: Case, adjacent: bool, seconds: float) -> dict[str, object] | None:
    with tempfile.TemporaryDirectory() as folder:
        ours, alone = Path(folder, "ours"), Path(folder, "alone")
        planted = plant(ours, case, adjacent=adjacent)
        if planted is None:
            return None
        guilty, failing = planted
        git(Path(folder), "clone", "-q", str(ours), str(alone))
        asked = [part for test in failing for part in ("--test", test)]
        begin = time.monotonic()
        said = localagent(
            ours, Path(folder, "s1"), "bisect", *asked, "--fix", "--no-model", "--fix-seconds", str(seconds), "--json"
        )
        took = time.monotonic() - begin
        told, _ = json.JSONDecoder().raw_decode(said.stdout or "{}")
        found = (told.get("first_bad") or {}).get("commit") == guilty
        row = {"case": case.id, "adjacent": adjacent, "commit": found, "seconds": round(took, 1)}
        row["behaviour"] = len((told.get("behaviour") or {}).get("differences", ()))
        row["bisect --fix"] = judged(case, ours, Path(folder, "s1"), said.returncode)
        fix = localagent(
            alone, Path(folder, "s2"), "fix", *asked, "--no-model", "--max-seconds", str(seconds), "--quiet"
        )
        row["fix"] = judged(case, alone, Path(folder, "s2"), fix.returncode)
        return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--cases", nargs="+", choices=("own", "spans"), default=["own", "spans"])
    parser.add_argument("--only", nargs="*", metavar="ID", help="these cases alone")
    parser.add_argument("--fix-seconds", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known = {"own": lambda: read_built(BUILT), "spans": lambda: read_all(ROOT / "bench" / "spans")}
    cases = [case for name in args.cases for case in known[name]()]
    rows = []
    for number, case in enumerate(cases[:: args.every]):
        if args.only and case.id not in args.only:
            continue
        row = one(case, number % 2 == 0, args.fix_seconds)
        print(json.dumps(row if row is not None else {"case": case.id, "left out": "takes no feature"}), flush=True)
        rows += [row] if row is not None else []
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")
    counts = {}
    for what in ("right", "first"):
        pairs = [(bool(row["bisect --fix"][what]), bool(row["fix"][what])) for row in rows]
        counts[what] = tuple(map(sum, zip(*pairs, strict=True)))
        won, lost = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
        print(f"{what}: bisect --fix {counts[what][0]}, fix {counts[what][1]} of {len(rows)}; won {won}, lost {lost}")
    for tool in ("bisect --fix", "fix"):
        print(f"{tool}: {sum(r[tool]['exit'] == 0 and not r[tool]['right'] for r in rows)} accepted that are wrong")
    print(f"guilty commit found in {sum(row['commit'] for row in rows)}")
    return 0 if counts["right"][0] - counts["right"][1] >= 0.2 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
