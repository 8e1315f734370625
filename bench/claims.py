"""What `localagent verify --claim fixes` makes of real fixes, and of wrong variants of them.

  claims.py --repos DIR [--work DIR] [--only RE] [--every N] [--kind KIND] [--json FILE]

For each fact of `bench/real` the parent commit is laid out with the fix's tests, and `verify` judges the change that
people made. Then a wrong variant of it is made: the same change and one more small edit, drawn from the edit space in
the functions that it touches (`edit`: a comparison, constant or name; `option`: a condition or statement that is lost;
`branch`: a condition turned round; the facts take turns). It counts where the fix's tests pass with it as they do with
the true fix (in a jail that shares no code with localagent's), and where `verify --claim preserves`, asked about the
step from the true fix to the variant, shows an input on which they differ, or the project's own tests fail. `verify`
then judges the variant under the same claim.

Bar: of the right ones at least 80 % are graded A or B, of the wrong ones at most 5 %. Ends with 1 where one is missed.

Not promised: that a variant is wrong for anybody but the input that tells it from the true fix. Facts of which no such
variant was found among the edits that were tried are counted as `none`.
"""

import argparse
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.real import facts, judge, layout
from bench.real.facts import Fact
from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.mutants import mutants_of

AGENT = Path(sys.executable).absolute().parent / "localagent"
GOOD = ("A", "B")
ANSWERS = ("verified", "needs-person")  # a gate may ask a person what the change means, whatever was shown
RIGHT_LEAST, WRONG_MOST = 0.80, 0.05
KINDS: Mapping[str, frozenset[str]] = {
    "edit": frozenset(
        {
            "compare-swap", "arithmetic-swap", "augmented-swap", "operand-order", "off-by-one", "sign", "constant-step",
            "text-edit", "name-swap", "attribute-swap", "argument-swap", "callee-swap", "index-usual", "slice-bounds",
            "range-bounds", "return-value", "exception-swap",
        }
    ),
    "option": frozenset({"operand-drop", "condition-drop", "truth-flip", "statement-delete", "else-drop"}),
    "branch": frozenset({"negate", "and-or", "branch-swap", "break-continue"}),
}  # fmt: skip
_FILE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where one fact lies: the parent with the fix's tests, its interpreter, the files of the true fix."""

    fact: Fact
    tree: Path
    python: Path
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]


def prepare(fact: Fact, args: argparse.Namespace) -> Place:
    """Parent laid out, environment made."""
    clone = layout.clone_of(fact, args.repos)
    tree = args.work / "claims" / "layouts" / fact.name
    layout.lay_out(fact, clone, tree)
    python = layout.environment(fact, args.work / "claims" / "venvs", tree)
    fix = layout.true_fix(fact, clone)
    before = {path: (tree / path).read_bytes() for path in fix.after if (tree / path).is_file()}
    return Place(fact=fact, tree=tree, python=python, before=before, after=fix.after)


@contextlib.contextmanager
def standing(place: Place, files: Mapping[str, bytes]) -> Iterator[None]:
    """The tree with these files; afterwards as it was."""
    try:
        for path, data in files.items():
            (place.tree / path).write_bytes(data)
        yield
    finally:
        for path in files:
            if path in place.before:
                (place.tree / path).write_bytes(place.before[path])
            else:
                (place.tree / path).unlink(missing_ok=True)


def patch_between(place: Place, files: Mapping[str, bytes]) -> bytes:
    """The diff from the tree as it stands in `HEAD` of its repository to these files."""
    with standing(place, files):
        layout.git(place.tree, "add", "--intent-to-add", "--", *files)
        return layout.git(place.tree, "diff", "--no-ext-diff", "--no-textconv", "--", *files)


def verify(place: Place, patch: bytes, claim: str, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """What `localagent verify` reports, {} where it left no report."""
    home = args.work / "claims" / "runs" / place.fact.name
    home.mkdir(parents=True, exist_ok=True)
    file, report = home / f"{name}.patch", home / f"{name}.json"
    file.write_bytes(patch)
    report.unlink(missing_ok=True)
    argv = [str(args.agent), "verify", str(file), "--repo", str(place.tree), "--python", str(place.python)]
    argv += ["--claim", claim, "--report", str(report), "--seed", str(args.seed), "--quiet"]
    argv += [word for test in place.fact.tests for word in ("--test", test)]
    with (home / f"{name}.log").open("wb") as log:
        environ = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
        try:
            subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, timeout=args.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return {}
    return json.loads(report.read_bytes()) if report.is_file() else {}


def told(report: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The part of a report that the table needs."""
    strength = report.get("strength") or {}
    near = report.get("differential") or {}
    return {
        "verdict": report.get("verdict", "no report"),
        "grade": strength.get("grade"),
        "reason": report.get("reason", "")[:400],
        "limits": strength.get("limits", []),
        "short": strength.get("short", []),
        "parts": {
            key: [strength[key]["part"], strength[key]["whole"]] if strength.get(key) else None
            for key in ("lines", "mutants", "functions")
        },
        "unexplained": near.get("unexplained"),
        "demanded": near.get("demanded"),
        "explained": near.get("explained"),
        "necessity": report.get("necessity"),
        "seconds": round(seconds, 1),
    }


def timed(place: Place, patch: bytes, claim: str, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """`verify`, with the seconds that it took."""
    begin = time.monotonic()
    report = verify(place, patch, claim, name, args)
    return told(report, time.monotonic() - begin)


def edits_of(place: Place, kind: str, seed: int) -> Iterator[Edit]:
    """Edits of a kind on top of the true fix, in the functions that it touches (else on its own lines)."""
    tree = {
        RepoPath(p.relative_to(place.tree).as_posix()): p.read_bytes()
        for p in sorted(place.tree.rglob("*.py"))
        if p.is_file() and not p.is_symlink() and p.stat().st_size <= _FILE_BYTES
    }
    sources = {**tree, **{RepoPath(path): data for path, data in place.after.items()}}
    lines: dict[RepoPath, frozenset[int]] = {}
    for path, after in place.after.items():
        name = RepoPath(path)
        file = ChangedFile(path=name, source=name, before=place.before.get(path, b""), after=after)
        inside = {n for _, new in file.touched() for n in range(new.body_line, new.last_line + 1)}
        lines[name] = frozenset(inside or file.lines()[1])
    found, _ = mutants_of(open_edit_space({}), sources, lines, behaviour_key, seed=seed, most=2_000)
    edits = [candidate.edits[0] for candidate in found]
    first = [edit for edit in edits if edit.operator in KINDS[kind]]
    rest = [edit for edit in edits if edit.operator not in KINDS[kind]]
    order = random.Random(seed)
    order.shuffle(first)
    order.shuffle(rest)
    yield from (*first, *rest)


def kind_of(edit: Edit) -> str:
    """Which kind an edit is of."""
    return next(kind for kind, operators in KINDS.items() if edit.operator in operators)


def wrong_variant(place: Place, kind: str, args: argparse.Namespace) -> tuple[Edit, dict[str, bytes]] | None:
    """The first edit with which the fix's tests pass as with the true fix, and that answers otherwise."""
    with standing(place, place.after):
        right = judge.run_tests(place.tree, place.python, place.fact.tests)
        edits = list(edits_of(place, kind, args.seed))
    if not right.good():
        return None  # nothing was run, so nothing can be said to pass as it did
    for edit in edits[: args.tries]:
        files = {**place.after, str(edit.path): edit.apply(place.after[str(edit.path)])}
        with standing(place, files):
            ran = judge.run_tests(place.tree, place.python, place.fact.tests)
        if right.good() <= ran.good() and differs(place, files, args):
            return edit, files
    return None


def differs(place: Place, files: Mapping[str, bytes], args: argparse.Namespace) -> bool:
    """Whether an input, or a test, tells the variant from the true fix: asked of the step from the one to the other."""
    with standing(place, place.after):
        layout.git(place.tree, "add", "--all")
        layout.git(place.tree, *_WHO, "commit", "--quiet", "--no-verify", "-m", "the true fix")
        try:
            with fixed(place) as at:
                report = verify(at, patch_between(at, files), "preserves", "step", args)
        finally:
            layout.git(place.tree, "reset", "--quiet", "--soft", "HEAD~1")
            layout.git(place.tree, "reset", "--quiet")
    return report.get("verdict") == "refuted"


_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")


@contextlib.contextmanager
def fixed(place: Place) -> Iterator[Place]:
    """The place with the true fix as the tree before."""
    yield Place(fact=place.fact, tree=place.tree, python=place.python, before=place.after, after=place.after)


def measure(fact: Fact, kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """One fact: the true fix and a wrong variant."""
    place = prepare(fact, args)
    row: dict[str, Any] = {"name": fact.name, "kind": kind}
    row["right"] = timed(place, patch_between(place, place.after), "fixes", "right", args)
    found = wrong_variant(place, kind, args)
    row["wrong"] = None
    if found is not None:
        edit, files = found
        row["edit"] = f"{edit.path}:{edit.line} {edit.operator}: {edit.note}"
        row["kind"] = kind_of(edit)
        row["wrong"] = timed(place, patch_between(place, files), "fixes", "wrong", args)
    return row


def show(row: Mapping[str, Any]) -> None:
    """One line a fact."""
    right, wrong = row["right"], row["wrong"]
    other = "none" if wrong is None else f"{wrong['verdict']} {wrong['grade']}"
    print(f"{row['name']:34} right: {right['verdict']} {right['grade']}   wrong ({row['kind']}): {other}", flush=True)
    if right["grade"] not in GOOD or right["verdict"] not in ANSWERS:
        print(f"    right: {'; '.join([*right['limits'], *right['short']]) or right['reason']}")
    if wrong is not None and wrong["grade"] in GOOD and wrong["verdict"] in ANSWERS:
        print(f"    wrong: {row['edit']}")
    sys.stdout.flush()


def summary(rows: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """The counts by kind, and whether the bars hold."""

    def good(one: Mapping[str, Any]) -> bool:
        return one["verdict"] in ANSWERS and one["grade"] in GOOD

    right = [row["right"] for row in rows]
    wrong = [row for row in rows if row["wrong"] is not None]
    out = [f"right: {sum(map(good, right))} of {len(right)} graded A or B"]
    for kind in (*KINDS, "all"):
        some = [row["wrong"] for row in wrong if kind in (row["kind"], "all")]
        out.append(f"wrong ({kind}): {sum(map(good, some))} of {len(some)} graded A or B")
    out.append(f"no variant that passes the tests and differs: {len(rows) - len(wrong)}")
    held = bool(rows) and sum(map(good, right)) >= RIGHT_LEAST * len(right)
    held = held and sum(good(row["wrong"]) for row in wrong) <= WRONG_MOST * len(wrong)
    return "\n".join(out), held


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True, help="folder of clones (bench/real/run.py --list)")
    parser.add_argument("--work", type=Path, required=True, help="folder of layouts, environments and reports")
    parser.add_argument("--facts", type=Path, default=facts.FACTS)
    parser.add_argument("--only", default="", metavar="RE", help="names that match")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth of these")
    parser.add_argument("--kind", choices=tuple(KINDS), help="of the variants (default: the facts take turns)")
    parser.add_argument("--tries", type=int, default=8, help="edits that are tried for a variant")
    parser.add_argument("--seconds", type=float, default=900.0, help="of one verify")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="FILE", help="the localagent to run")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """0 where both bars hold, 1 where one is missed, 2 for usage."""
    args = arguments(argv)
    args.repos, args.work = args.repos.absolute(), args.work.absolute()
    chosen = [f for f in facts.load(args.facts) if re.search(args.only, f.name)][:: args.every]
    if not chosen:
        print(f"no fact matches {args.only!r}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    for number, fact in enumerate(chosen):
        kind = args.kind or tuple(KINDS)[number % len(KINDS)]
        try:
            row = measure(fact, kind, args)
        except (layout.LayoutError, judge.NoJailError) as fault:
            print(f"{fact.name:34} not run: {fault}", flush=True)
            continue
        rows.append(row)
        show(row)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    text, held = summary(rows)
    print(text)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
