"""What `localagent verify --claim fixes` makes of right fixes, and of wrong variants of them.

  claims.py --half judging --repos DIR [--work DIR] [--only RE] [--every N] [--part K/N] [--kind KIND] [--json FILE]
  claims.py --half small|mutated [--work DIR] ...

For each project of a half (`bench/right`: what is mended here is looked at on other halves than `judging`) the broken
tree is laid out with the fix's tests, and `verify` judges the reference: what people changed, or the case's own
repair. Then wrong variants are made: the same change and one more small edit, drawn from the edit space in the
functions that it touches (`edit`: a comparison, constant or name; `option`: a condition or statement that is lost;
`branch`: a condition turned round; the projects take turns). One counts where the fix's tests pass with it as they do
with the reference (in a jail that shares no code with localagent's), and where a hidden test of a small case fails, or
an input is found on which it answers otherwise than the reference (`bench/right/label.py`). `verify` then judges the
variant under the same claim.

Bar: of the right ones at least 80 % are graded A or B, of the wrong ones at most 5 %. Ends with 1 where one is missed.

Not promised: that a variant is wrong for anybody but the input that tells it from the reference. Variants that the
fix's own tests notice are counted as `noticed`, those of which nothing tells whether they are wrong as `untold`.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.judge import JudgeError
from bench.real import judge, layout
from bench.right import label, projects
from bench.right.candidates import Found
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, Edit, FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import LocalagentError
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repo.diff.write_diff import unified_diff
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.mutants import describe, mutants_of

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
_ASKED = 4  # survivors a variant, of which it is asked whether they are wrong


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where one project lies, broken, with the tests of the fix; the files that the reference changes, before it."""

    project: projects.Project
    before: Mapping[str, bytes]

    @property
    def after(self) -> Mapping[str, bytes]:
        """The files of the reference."""
        return self.project.reference


def prepare(name: str, args: argparse.Namespace) -> Place:
    """The project laid out, its environment made."""
    project = projects.lay_out(name, args)
    before = {path: (project.tree / path).read_bytes() for path in project.reference if (project.tree / path).is_file()}
    return Place(project=project, before=before)


@contextlib.contextmanager
def standing(place: Place, files: Mapping[str, bytes]) -> Iterator[None]:
    """The tree with these files; afterwards as it was."""
    tree = place.project.tree
    try:
        for path, data in files.items():
            (tree / path).write_bytes(data)
        yield
    finally:
        for path in files:
            if path in place.before:
                (tree / path).write_bytes(place.before[path])
            else:
                (tree / path).unlink(missing_ok=True)


def patch_to(files: Mapping[str, bytes], before: Mapping[str, bytes]) -> Patch:
    """From files as they stood to these."""
    changed = sorted((RepoPath(path), data) for path, data in files.items() if data != before.get(path))
    return Patch(changes=tuple(FileChange(path=p, before=before.get(p, b""), after=data) for p, data in changed))


def verify(place: Place, files: Mapping[str, bytes], name: str, args: argparse.Namespace) -> dict[str, Any]:
    """What `localagent verify --claim fixes` tells of a change, as a row of the table needs it."""
    home = args.work / "claims" / place.project.name
    home.mkdir(parents=True, exist_ok=True)
    file, report = home / f"{name}.patch", home / f"{name}.json"
    patch = unified_diff(patch_to(files, place.before))
    begin = time.monotonic()
    stood = (
        json.loads(report.read_bytes()) if report.is_file() and file.is_file() and file.read_bytes() == patch else {}
    )
    if not args.reuse or stood.get("verdict", "interrupted") == "interrupted":
        file.write_bytes(patch)
        report.unlink(missing_ok=True)
        argv = [str(args.agent), "verify", str(file), "--repo", str(place.project.tree)]
        argv += ["--python", str(place.project.python), "--claim", "fixes", "--report", str(report)]
        argv += ["--seed", str(args.seed), "--quiet", *(w for test in place.project.tests for w in ("--test", test))]
        with (home / f"{name}.log").open("wb") as log, contextlib.suppress(subprocess.TimeoutExpired):
            environ = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
            subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, timeout=args.seconds, check=False
            )
    return told(json.loads(report.read_bytes()) if report.is_file() else {}, time.monotonic() - begin)


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
        "alive": (report.get("mutants") or {}).get("alive", []),
        "unexplained": near.get("unexplained"),
        "demanded": near.get("demanded"),
        "explained": near.get("explained"),
        "necessity": report.get("necessity"),
        "seconds": round(seconds, 1),
    }


def edits_of(place: Place, kind: str, alive: Sequence[str], seed: int) -> list[Edit]:
    """Edits on top of the reference, in the functions that it touches or else on its lines.

    First those that `verify` of the reference found `alive` as mutants: they pass most likely. Then those of a kind.
    """
    tree = place.project.tree
    sources = {
        RepoPath(p.relative_to(tree).as_posix()): p.read_bytes()
        for p in sorted(tree.rglob("*.py"))
        if p.is_file() and not p.is_symlink() and p.stat().st_size <= _FILE_BYTES
    }
    sources |= {RepoPath(path): data for path, data in place.after.items()}
    lines: dict[RepoPath, frozenset[int]] = {}
    for path, after in place.after.items():
        name = RepoPath(path)
        file = ChangedFile(path=name, source=name, before=place.before.get(path, b""), after=after)
        inside = {n for _, new in file.touched() for n in range(new.body_line, new.last_line + 1)}
        lines[name] = frozenset(inside or file.lines()[1])
    found, _ = mutants_of(open_edit_space({}), sources, lines, behaviour_key, seed=seed, most=2_000)
    edits = [candidate.edits[0] for candidate in found]
    random.Random(seed).shuffle(edits)
    return sorted(edits, key=lambda edit: (describe(edit) not in alive, edit.operator not in KINDS[kind]))


def kind_of(edit: Edit) -> str:
    """Which kind an edit is of."""
    return next((kind for kind, operators in KINDS.items() if edit.operator in operators), "edit")


@dataclass(kw_only=True, slots=True)
class Tried:
    """Variants that were tried: those that are wrong and pass, and how many were noticed, or could not be told."""

    wrong: list[tuple[Edit, dict[str, bytes], str]]
    noticed: int = 0
    untold: int = 0


def wrong_variants(place: Place, kind: str, alive: Sequence[str], args: argparse.Namespace) -> Tried:
    """Edits with which the fix's tests pass as with the reference, and that answer otherwise."""
    project, found = place.project, Tried(wrong=[])
    with standing(place, place.after):
        right = judge.run_tests(project.tree, project.python, project.tests)
        edits = edits_of(place, kind, alive, args.seed) if right.good() else []
    survivors: dict[int, tuple[Edit, dict[str, bytes]]] = {}
    for number, edit in enumerate(edits[: args.tries], 1):
        files = {**place.after, str(edit.path): edit.apply(place.after[str(edit.path)])}
        with standing(place, files):
            ran = judge.run_tests(project.tree, project.python, project.tests)
        if right.good() <= ran.good():
            survivors[number] = (edit, files)
        else:
            found.noticed += 1
        if len(survivors) == _ASKED * args.variants:
            break
    if not survivors:
        return found
    made = {
        number: Candidate(number=number, patch=patch_to(files, place.after), edits=(edit,), cost=0.0)
        for number, (edit, files) in survivors.items()
    }
    asked = Found(name=project.name, candidates=tuple(made.values()), verified=0, outcome="", chosen=None, seconds=0.0)
    with standing(place, place.after):
        labels = label.labels(project, asked, replace(Settings.from_environ(), state_dir=args.work / "state"))
    for number, candidate in made.items():
        said = labels[candidate.patch.digest]
        if said["label"] != "differs":
            found.untold += 1
        elif len(found.wrong) < args.variants:
            found.wrong.append((*survivors[number], said["why"]))
    return found


def measure(name: str, kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """One project: the reference and wrong variants of it."""
    place = prepare(name, args)
    row: dict[str, Any] = {"name": name, "right": verify(place, place.after, "right", args), "wrong": []}
    tried = wrong_variants(place, kind, row["right"]["alive"], args) if args.variants else Tried(wrong=[])
    row |= {"noticed": tried.noticed, "untold": tried.untold}
    for number, (edit, files, why) in enumerate(tried.wrong, 1):
        one = verify(place, files, f"wrong-{number}", args)
        text = f"{edit.path}:{edit.line} {edit.operator}: {edit.note}"
        row["wrong"].append({**one, "kind": kind_of(edit), "edit": text, "differs": why})
    return row


def good(one: Mapping[str, Any]) -> bool:
    """Whether a report speaks for a patch: graded A or B, and nothing refuses it."""
    return one["verdict"] in ANSWERS and one["grade"] in GOOD


def show(row: Mapping[str, Any]) -> None:
    """A few lines for each project."""
    right = row["right"]
    others = ", ".join(f"{w['kind']} {w['verdict']} {w['grade']}" for w in row["wrong"]) or "none"
    print(f"{row['name']:34} right: {right['verdict']} {right['grade']}   wrong: {others}   noticed: {row['noticed']}")
    if not good(right):
        print(f"    right: {'; '.join([*right['limits'], *right['short']]) or right['reason']}")
    for wrong in filter(good, row["wrong"]):
        print(f"    wrong {wrong['grade']}: {wrong['edit']}")
    sys.stdout.flush()


def summary(rows: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """The counts by kind, and whether the bars hold."""
    right = [row["right"] for row in rows]
    wrong = [one for row in rows for one in row["wrong"]]
    out = [f"right: {sum(map(good, right))} of {len(right)} graded A or B"]
    for kind in (*KINDS, "all"):
        some = [one for one in wrong if kind in (one["kind"], "all")]
        out.append(f"wrong ({kind}): {sum(map(good, some))} of {len(some)} graded A or B")
    noticed, untold = (sum(row[key] for row in rows) for key in ("noticed", "untold"))
    out.append(f"other variants: {noticed} noticed by the fix's tests, {untold} not shown to differ")
    held = bool(rows) and sum(map(good, right)) >= RIGHT_LEAST * len(right)
    return "\n".join(out), held and sum(map(good, wrong)) <= WRONG_MOST * len(wrong)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    projects.add_arguments(parser)
    parser.set_defaults(half="judging", work=Path(tempfile.gettempdir()) / "localagent-bench-claims")
    parser.add_argument("--part", default="0/1", help="K/N: each N-th project, from the K-th")
    parser.add_argument("--kind", choices=tuple(KINDS), help="of the variants (default: the projects take turns)")
    parser.add_argument("--tries", type=int, default=16, help="edits that are tried for the variants of a project")
    parser.add_argument("--variants", type=int, default=1, help="wrong ones of each project at most")
    parser.add_argument("--seconds", type=float, default=900.0, help="of one verify")
    parser.add_argument("--reuse", action="store_true", help="take a report that stands in WORK for the same patch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="FILE", help="the localagent to run")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """0 where both bars hold, 1 where one is missed, 2 for usage."""
    args = arguments(argv)
    args.repos, args.work = args.repos.absolute() if args.repos else None, args.work.absolute()
    part, of = map(int, args.part.split("/"))
    chosen = projects.names(args)[part::of]
    if not chosen:
        print(f"no project matches {args.only!r}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(chosen):
        try:
            row = measure(name, args.kind or tuple(KINDS)[number % len(KINDS)], args)
        except (layout.LayoutError, judge.NoJailError, JudgeError, LocalagentError) as fault:
            print(f"{name:34} not run: {fault}", flush=True)
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
