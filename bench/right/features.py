"""The signals of every plausible patch that `search.py` kept, made by the code that `fix` uses, beside its label.

  features.py --repos DIR --work DIR [--half judging|learning|faults|small|mutated|syntax] [--only RE] [--part K/N]

Written to WORK/features/NAME.json: for each candidate in the order of the choice its digest, what it costs, the row
that tells behaviours apart, the signals, and for the first few also whether the full check takes it and the strength
of the tests. Holds no code of the projects.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.real import layout
from bench.right import projects
from bench.right.candidates import Found, load
from localagent.app.settings import Settings
from localagent.code.test_literals import failing_literals
from localagent.domain.outcome import Baseline
from localagent.domain.task import Budget, Task
from localagent.edit.space import open_edit_space
from localagent.errors import LocalagentError
from localagent.jail.api import open_jail, scratch_folder
from localagent.localize.fuse import SpectrumLocalizer
from localagent.repair.acceptance.acceptance import SHAKY
from localagent.repair.acceptance.ambiguity import FEW_TESTS
from localagent.repair.acceptance.confidence_model import guard_signals, strength_signals
from localagent.repair.acceptance.ranking import crashes, other_behaviours, ranked
from localagent.repair.acceptance.signals import Choice, Signal, signals
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repair.search.event_fanout import combined
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap
from localagent.verify.evidence.test_strength import AssessRequest, assess
from localagent.verify.verifier import JailVerifier

CHECKED = 3
STRENGTH_SECONDS = 20.0  # as `fix` allows where its time is not used up
GUARD_SECONDS = 90.0


def features(project: projects.Project, found: Found, settings: Settings, *, checked: int) -> dict[str, Any]:
    """What `fix` would know of each candidate when it chooses."""
    with scratch_folder(settings.scratch_dir) as scratch:
        snapshot = take_snapshot(project.tree, scratch / "store")
        task = Task(
            id="features",
            repo=str(project.tree),
            tests=project.tests,
            python=str(project.python),
            budget=Budget(max_seconds=120.0),
        )
        verifier = JailVerifier(
            jail=open_jail(),
            task=task,
            snapshot=snapshot,
            python=str(project.python),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            policy=None,
            sink=combined(()),
        )
        sources = SourceMap(snapshot)
        try:
            begin = time.monotonic()
            baseline = verifier.baseline()
            suspicions = SpectrumLocalizer(text="").localize(baseline, sources)
            compared = time.monotonic()
            near = verifier.behaviours(found.candidates, baseline, seed=0)
            took = time.monotonic() - compared
            few = len(baseline.tests) + len(baseline.checks) <= FEW_TESTS
            tested = failing_literals(baseline, sources)
            order = ranked(found.candidates, near, shaky=SHAKY if few else 0.0, tested=tested)
            choice = Choice(
                order=order,
                near=near,
                baseline=baseline,
                suspicions=suspicions,
                sources=sources,
                verified=found.verified,
                natural={},
                tested=tested,
            )
            known = signals(choice)
            rows = []
            for place, standing in enumerate(order):
                candidate = standing.candidate
                row: dict[str, Any] = {
                    "number": candidate.number,
                    "digest": candidate.patch.digest,
                    "cost": round(standing.cost, 4),
                    "behaviour": hashlib.sha256(repr(standing.row).encode()).hexdigest()[:12] if standing.row else "",
                    "crashes": crashes(near, candidate.number),
                    "signals": _values(known[candidate.number]),
                    "edits": [
                        {"path": str(e.path), "line": e.line, "end_line": e.end_line, "operator": e.operator}
                        for e in candidate.edits
                    ],
                }
                if place < checked:
                    full = verifier.full(candidate, baseline, seed=0)
                    row["full"] = full.accepted
                    if full.accepted and project.fact is not None:
                        guard = verifier.guard(candidate, baseline, seconds=GUARD_SECONDS, tell=lambda *_: None)
                        row["guard"] = {"found": guard.found, "ran": guard.ran, "refusal": bool(guard.refusal)}
                        row["signals"] |= _values(guard_signals(guard))
                        row["full"] = not guard.refusal
                    if row["full"]:
                        others = other_behaviours(standing, order)
                        row["strength"] = _strength(verifier, candidate, baseline, full, sources, others)
                rows.append(row)
        finally:
            verifier.cancel()
    return {
        "name": project.name,
        "group": project.group,
        "half": project.half,
        "verified": found.verified,
        "tests": len(baseline.tests),
        "failing": len(baseline.failing),
        "behaviour_seconds": round(took, 2),
        "seconds": round(time.monotonic() - begin, 1),
        "candidates": rows,
    }


def _values(found: Mapping[str, Signal]) -> dict[str, float]:
    return {name: round(signal.value, 5) for name, signal in sorted(found.items())}


def _strength(
    verifier: JailVerifier, candidate: Any, baseline: Baseline, full: Any, sources: SourceMap, others: int
) -> Any:
    found = assess(
        AssessRequest(
            jails=verifier.worker_pool,
            request=verifier.request,
            candidate=candidate,
            baseline=baseline,
            full=full,
            sources=sources,
            space=open_edit_space({}),
            key=behaviour_key,
            seed=0,
            seconds=STRENGTH_SECONDS,
            others=others,
            quick=lambda: verifier.quick(replace(baseline, failing=full.fail_to_pass), jobs=1),
        )
    )
    measured = found.strength
    return {
        "grade": measured.grade.value if measured is not None else None,
        "missing": [*measured.limits, *measured.short, *found.cut] if measured is not None else list(found.cut),
        "signals": _values(strength_signals(found)),
    }


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    projects.add_arguments(parser)
    parser.add_argument("--part", default="0/1", help="K/N: each N-th project, from the K-th")
    parser.add_argument("--checked", type=int, default=CHECKED, help="so many of the first are checked and measured")
    parser.add_argument("--anew", action="store_true", help="also what was made before")
    args = parser.parse_args()
    args.repos, args.work = args.repos.absolute() if args.repos else None, args.work.absolute()
    settings = replace(Settings.from_environ(), state_dir=args.work / "state")
    part, of = map(int, args.part.split("/"))
    for number, name in enumerate(projects.names(args)):
        source, out = args.work / "candidates" / f"{name}.json", args.work / "features" / f"{name}.json"
        if number % of != part or not source.exists() or (out.exists() and not args.anew):
            continue
        found = load(source)
        if not found.candidates:
            continue
        try:
            made = features(projects.lay_out(name, args), found, settings, checked=args.checked)
        except (LocalagentError, layout.LayoutError) as fault:
            print(f"{name:34} no features: {fault}", flush=True)
            continue
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(made, indent=1), encoding="utf-8")
        print(f"{name:34} {len(made['candidates'])} candidates in {made['seconds']} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
