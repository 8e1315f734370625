"""The projects whose plausible patches are labelled: parents of real fixes, and small cases of our own.

Facts of `bench/real/facts.toml` are judged by; those of `bench/right/facts.toml` and `bench/right/small/` are learned
from.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.casefile import Case, read_all
from bench.real import facts, layout
from bench.real.facts import Fact

HERE = Path(__file__).resolve().parent
LEARNING, JUDGING, SMALL = HERE / "facts.toml", facts.FACTS, HERE / "small"
MUTATED, SYNTAX = HERE / "mutated.jsonl", HERE / "syntax.jsonl"
FAULTS = "faults.jsonl"  # in the work folder: it holds pieces of the projects
HALVES = ("learning", "faults", "judging", "small", "mutated", "syntax")
_CASES = ("small", "mutated", "syntax")


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """One broken project. `group`: its repository; `reference`: the repaired files; `hidden`: more tests of a case."""

    name: str
    group: str
    half: str
    tree: Path
    python: Path
    tests: tuple[str, ...]
    reference: Mapping[str, bytes]
    hidden: Mapping[str, str] = field(default_factory=dict)
    fact: Fact | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which projects, and where they are laid out."""
    parser.add_argument("--repos", type=Path, help="folder of clones (for facts)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "localagent-bench-right")
    parser.add_argument("--half", choices=HALVES, default="learning")
    parser.add_argument("--only", default="", metavar="RE", help="names that match")
    parser.add_argument("--every", type=int, default=1, metavar="N")


def cases(half: str) -> list[Case]:
    """Those of `small/`, or the faults drawn into their repaired programs."""
    small = {case.id: case for case in read_all(SMALL)}
    if half == "small":
        return list(small.values())
    drawn = SYNTAX if half == "syntax" else MUTATED
    return [_mutated(small[told["case"]], told) for told in map(json.loads, drawn.read_text("utf-8").splitlines())]


def _mutated(case: Case, told: dict[str, Any]) -> Case:
    files = {**case.files, **case.oracle}
    repaired = files[told["path"]]
    broken = _spliced(repaired.encode(), told["splices"])
    return replace(
        case,
        id=told["name"],
        kind="mutated",
        files={**files, told["path"]: broken.decode()},
        oracle={told["path"]: repaired},
    )


def names(args: argparse.Namespace) -> tuple[str, ...]:
    """Names in their order."""
    if args.half in _CASES:
        every = [case.id for case in cases(args.half)]
    elif args.half == "faults":
        every = list(_faults(args.work))
    else:
        every = [fact.name for fact in facts.load(LEARNING if args.half == "learning" else JUDGING)]
    return tuple(name for name in every if re.search(args.only, name))[:: args.every]


def lay_out(name: str, args: argparse.Namespace) -> Project:
    """The broken tree with its environment, made anew."""
    if args.half in _CASES:
        return _case(next(case for case in cases(args.half) if case.id == name), args)
    fault = _faults(args.work)[name] if args.half == "faults" else None
    path = JUDGING if args.half == "judging" else LEARNING
    wanted = fault["fact"] if fault else name
    fact = next(fact for fact in facts.load(path) if fact.name == wanted)
    clone = layout.clone_of(fact, args.repos)
    tree = args.work / "layouts" / fact.name
    layout.lay_out(fact, clone, tree)
    reference = layout.true_fix(fact, clone).after
    if fault:
        for changed, text in reference.items():
            (tree / changed).write_bytes(text)
        repaired = (tree / fault["path"]).read_bytes()
        (tree / fault["path"]).write_bytes(_spliced(repaired, fault["splices"]))
        reference = {fault["path"]: repaired}
    return Project(
        name=name,
        group=fact.repository,
        half=args.half,
        tree=tree,
        python=layout.environment(fact, args.work / "venvs", tree),
        tests=fact.tests,
        reference=reference,
        fact=fact,
    )


def _faults(work: Path) -> dict[str, dict[str, Any]]:
    """Faults drawn into repaired trees of learning facts, by name."""
    return {told["name"]: told for told in map(json.loads, (work / FAULTS).read_text("utf-8").splitlines())}


def _spliced(text: bytes, splices: Sequence[tuple[int, int, str]]) -> bytes:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new.encode() + text[end:]
    return text


def _case(case: Case, args: argparse.Namespace) -> Project:
    tree = args.work / "layouts" / case.id
    if tree.exists():
        shutil.rmtree(tree)
    for name, text in case.project.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project(
        name=case.id,
        group=case.id if args.half == "small" else case.id.rpartition("-")[0],
        half=args.half,
        tree=tree,
        python=Path(sys.executable),
        tests=("tests",),
        reference={path: text.encode() for path, text in case.oracle.items()},
        hidden=case.hidden,
    )
