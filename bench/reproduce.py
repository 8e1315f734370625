"""Failing tests reduced by `localagent reproduce`, against a plain line-based ddmin over the test's file.

Own cases (bench/cases/own.jsonl: broken projects with their tests), and with --repos mutants drawn into real projects:
one comparison, operator or number of a module is changed whose tests lie in a file named after it. Per failing test: does
the result fail in the same way, how large is it against the test's file with its conftest files, how many runs did it
take, and does it pass where the project is not broken (then it shows the planted fault, not another one).

    .venv/bin/python bench/reproduce.py [--every N] [--repos DIR ...] [--each N] [--json FILE] [--no-baseline]
"""
# ruff: noqa: E501 - tables

import argparse
import ast
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.casefile import BUILT
from localagent.app import Settings
from localagent.app.policies import open_policy
from localagent.app.reproduce.request import ReproduceRequest
from localagent.app.reproduce.run import run_reproduce
from localagent.app.review.patch_tests import ProofRequest, open_tested_snapshot
from localagent.code.delta_debugging import minimise
from localagent.domain.failure_signature import signature_of
from localagent.domain.paths import RepoPath
from localagent.domain.reproduction import Reproduction, ReproductionStatus
from localagent.errors import LocalagentError
from localagent.reproduce.candidate_runs import CandidateRuns, Variant

SWAPS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}
MOST_TRIES = 12  # mutants drawn for one failing test


class Silent:
    def emit(self, event: object) -> None:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="every n-th own case; 0: none")
    parser.add_argument(
        "--repos", type=Path, nargs="*", default=[], help="checkouts or git directories of real projects"
    )
    parser.add_argument("--each", type=int, default=3, help="mutants for each of them (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-seconds", type=float, default=90.0)
    parser.add_argument("--no-baseline", action="store_true", help="do not run the line-based ddmin")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, files, fixed, target in itertools.chain(own_cases(args.every), mutants(args, Path(scratch))):
            row = one(name, files, fixed, target, args, Path(scratch))
            if row is None:
                continue
            rows.append(row)
            print(line(row), flush=True)
            if args.json:
                args.json.write_text(json.dumps(rows, indent=1))
    return summary(rows)


def own_cases(every: int):
    if not every:
        return
    for text in BUILT.read_text().splitlines()[::every]:
        case = json.loads(text)
        broken = {**case["files"], **case["visible"]}
        yield case["id"], broken, {**broken, **case["oracle"]}, ""


def mutants(args: argparse.Namespace, scratch: Path):
    draw = random.Random(args.seed)
    for repo in args.repos:
        name = repo.parent.name if repo.name == "repo" else repo.name
        files = read_tree(repo, scratch)
        pairs = [(m, t) for m in files for t in files if is_test_of(m, t)]
        found = 0
        for _ in range(MOST_TRIES * args.each):
            if found >= args.each or not pairs:
                break
            module, test = draw.choice(pairs)
            changed = mutate(files[module], draw)
            if changed is None:
                continue
            outcome = yield_if_fails(f"{name}-{found + 1}", {**files, module: changed}, files, test, args, scratch)
            if outcome is not None:
                found += 1
                yield outcome


def yield_if_fails(name, broken, fixed, test, args, scratch):
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        write_tree(Path(folder), broken)
        request = ReproduceRequest(repo=Path(folder), target=test, max_seconds=1.0, runs=1)
        try:
            found = run_reproduce(
                replace(request, max_seconds=40.0, runs=1, flaky=False), Settings.from_environ(), Silent()
            )
        except LocalagentError:
            return None
        return None if found.signature is None else (name, broken, fixed, found.test)


def is_test_of(module: str, test: str) -> bool:
    if not (module.endswith(".py") and test.endswith(".py")):
        return False
    stem, name = Path(module).stem, Path(test).name
    if Path(module).name.startswith(("test", "conftest", "__", "setup")) or "test" in module.split("/", maxsplit=1)[0]:
        return False
    return name in (f"test_{stem}.py", f"{stem}_test.py") or (name == "test.py" and len(stem) > 3)


def read_tree(repo: Path, scratch: Path) -> dict[str, str]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    git = ["git", "-C", str(repo)]
    archive = subprocess.run([*git, "archive", "HEAD"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size < 400_000 and "doc" not in path.relative_to(folder).parts[0]:
            try:
                found[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return found


def mutate(source: str, draw: random.Random) -> str | None:
    lines = source.splitlines(keepends=True)
    places = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS and node.lineno == node.end_lineno:
            places.append((node.left, node.comparators[0], SWAPS[type(node.ops[0])]))
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS and node.lineno == node.end_lineno:
            places.append((node.left, node.right, SIGNS[type(node.op)]))
    if not places:
        return None
    left, right, sign = draw.choice(places)
    text = lines[left.lineno - 1]
    if not text.isascii():
        return None
    lines[left.lineno - 1] = text[: left.end_col_offset] + f" {sign} " + text[right.col_offset :]
    changed = "".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed if changed != source else None


def write_tree(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def one(name, files, fixed, target, args, scratch) -> dict[str, object] | None:
    settings = Settings.from_environ()
    with tempfile.TemporaryDirectory(dir=scratch) as broken, tempfile.TemporaryDirectory(dir=scratch) as whole:
        write_tree(Path(broken), files)
        request = ReproduceRequest(repo=Path(broken), target=target, max_seconds=args.max_seconds)
        begin = time.monotonic()
        found = run_reproduce(request, settings, Silent())
        if found.signature is None:
            print(f"{name:28} left out: {found.reason[:90]}", flush=True)
            return None
        seconds = time.monotonic() - begin
        plain = None if args.no_baseline else line_ddmin(found, Path(broken), settings)
        write_tree(Path(whole), {**fixed, found.path: found.file.decode()})
        on_whole = run_reproduce(
            ReproduceRequest(repo=Path(whole), target=found.path, max_seconds=20, runs=1), settings, Silent()
        )
    return {
        "name": name,
        "test": found.test,
        "status": found.status.value,
        "same": found.status is ReproductionStatus.REPRODUCED,
        "share": found.bytes_after / found.bytes_before,
        "runs": found.runs,
        "seconds": seconds,
        "line_runs": None if plain is None else plain[0],
        "line_share": None if plain is None else plain[1],
        "line_finished": None if plain is None else plain[2],
        "passes_unbroken": on_whole.signature is None and on_whole.status is ReproductionStatus.PASSES,
        "signature": str(found.signature),
        "file": found.file.decode(),
    }


def line_ddmin(found: Reproduction, repo: Path, settings: Settings) -> tuple[int, float, bool]:
    """Runs, share of the test's file that is left, and whether it came to an end, of a ddmin over lines."""
    test = found.test.split("[")[0]
    path = RepoPath(test.split("::")[0])
    place = RepoPath(str(path).replace(path.name, f"test_lines_{path.name.removeprefix('test_')}"))
    policy = open_policy(settings, None, repo).policy
    most = max(150, 2 * found.runs)
    with open_tested_snapshot(ProofRequest(repo=repo), settings, policy, Silent()) as ground:
        runs = CandidateRuns(ground.verifier.worker_pool)
        runs.hot = Variant(files={}, spec=str(path))
        source = (repo / path).read_bytes()
        lines = source.splitlines(keepends=True)
        asked = [0]

        def fails(kept: tuple[bytes, ...]) -> bool:
            asked[0] += 1  # a run of pytest, whether the file parses or not
            text = b"".join(kept)
            try:
                ast.parse(text)
            except (SyntaxError, ValueError):
                return False
            results = runs.results(Variant(files={place: text}, spec=str(place)))
            known = {str(path), str(place), *(str(p) for p in ground.sources if p.name == "conftest.py")}
            return any(r.failure is not None and signature_of(r.failure, known) == found.signature for r in results)

        until = time.monotonic() + 60
        kept = minimise(lines, fails, lambda: asked[0] < most and time.monotonic() < until)
        finished = asked[0] < most and time.monotonic() < until
        runs.close()
    return asked[0], len(b"".join(kept)) / max(1, len(source)), finished


def line(row: dict[str, object]) -> str:
    plain = (
        ""
        if row["line_runs"] is None
        else f"lines: {row['line_runs']}{'' if row['line_finished'] else '+'} runs, {row['line_share']:.0%}"
    )
    true = "shows the fault" if row["passes_unbroken"] else "FAILS UNBROKEN TOO"
    return f"{row['name']:28} {row['status']:12} {row['share']:5.0%} {row['runs']:4} runs {row['seconds']:6.1f} s  {plain:28} {true}"


def summary(rows: list[dict[str, object]]) -> int:
    if not rows:
        print("nothing failed")
        return 1
    same = sum(bool(row["same"]) for row in rows)
    share = statistics.median(row["share"] for row in rows)
    print(f"{len(rows)} failing tests; the result fails in the same way: {same} ({same / len(rows):.0%}; bar 100 %)")
    print(f"median size against the original: {share:.0%} (bar 40 %)")
    unbroken = sum(bool(row["passes_unbroken"]) for row in rows)
    print(f"passes where the project is not broken: {unbroken} of {len(rows)}")
    compared = [row for row in rows if row["line_runs"] is not None]
    if compared:
        fewer = sum(row["runs"] < row["line_runs"] for row in compared)
        ours, plain = (statistics.median(row[key] for row in compared) for key in ("runs", "line_runs"))
        print(f"runs: median {ours:.0f} against {plain:.0f} or more by lines; fewer in {fewer} of {len(compared)}")
    return 0 if same == len(rows) and share <= 0.4 else 1


if __name__ == "__main__":
    sys.exit(main())
