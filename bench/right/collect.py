"""Puts labels and signals of plausible patches together into `labels.jsonl`: facts, never text of a project.

  collect.py --work DIR

A line per patch: repository and name of the project, digest of the patch, places that it edits, what it costs in the
choice, its signals, the strength of the tests where it was measured, and its label. `readings.json` beside this file
holds the labels that readers gave, by digest; they win over what was compared by machine.

"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.right.candidates import Found, load
from localagent.domain.strength import Grade
from localagent.repair.acceptance.ambiguity import FEW_TESTS, undecided, unproven
from localagent.repair.acceptance.confidence_model import comparison_signals, grade_signals
from localagent.repair.acceptance.ranking import RankedCandidate

HERE = Path(__file__).resolve().parent
LABELS, READINGS = HERE / "labels.jsonl", HERE / "readings.json"
NEWER = {"did-not-parse": 0.0}  # what features that were made before the signal lack: those programs all parse


def _strength_of(strength: dict[str, Any]) -> dict[str, float]:
    """The signals of a measured strength; as one that is unknown where it was not measured."""
    if strength.get("grade") is None:
        return {"strength-unknown": 1.0}
    grade, measured = Grade(strength["grade"]), strength["signals"]
    told = {**grade_signals(grade), **comparison_signals(grade, measured["functions-compared"])}
    return {"strength-unknown": 0.0, **measured, **{name: signal.value for name, signal in told.items()}}


def _of_one_edit(row: dict[str, Any]) -> dict[str, float]:
    """`did-not-parse` counts for single edits only; features may be older than that."""
    return {"did-not-parse": 0.0} if len(row["edits"]) > 1 else {}


def asks(features: dict[str, Any], candidates: Found) -> bool:
    """Whether `fix` leaves the choice to a person before it comes to a confidence: few tests, and rivals or a guess."""
    known = {c.number: c for c in candidates.candidates}
    order = [
        RankedCandidate(candidate=known[r["number"]], cost=r["cost"], row=(r["behaviour"],) if r["behaviour"] else ())
        for r in features["candidates"]
    ]
    tests, first = features["tests"], features["candidates"][0]
    few = tests <= FEW_TESTS and first["crashes"]
    return bool(few or undecided(order, tests, features["verified"]) or unproven(order, tests, features["failing"]))


def lines(
    features: dict[str, Any], labels: dict[str, Any], readings: dict[str, str], candidates: Found
) -> list[dict[str, Any]]:
    """The patches of one project."""
    found = []
    asked = asks(features, candidates)
    for row in features["candidates"]:
        digest = row["digest"]
        label = readings.get(digest) or labels.get(digest, {}).get("label", "unclear")
        strength = row.get("strength") or {}
        found.append(
            {
                "name": features["name"],
                "group": features["group"],
                "half": features["half"],
                "digest": digest,
                "label": label,
                "read": digest in readings,
                "cost": row["cost"],
                "full": row.get("full"),
                "asks": asked,
                "tests": features["tests"],
                "grade": strength.get("grade"),
                "behaviour": row["behaviour"],
                "edits": row["edits"],
                "signals": {**NEWER, **row["signals"], **_strength_of(strength), **_of_one_edit(row)},
            }
        )
    return found


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=LABELS)
    args = parser.parse_args()
    readings = json.loads(READINGS.read_text("utf-8")) if READINGS.exists() else {}
    made = []
    for path in sorted((args.work / "features").glob("*.json")):
        labels = args.work / "labels" / path.name
        if labels.exists():
            told = json.loads(path.read_text("utf-8")), json.loads(labels.read_text("utf-8"))
            made += lines(*told, readings, load(args.work / "candidates" / path.name))
    args.out.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in made), encoding="utf-8")
    counts: dict[str, int] = {}
    for line in made:
        counts[line["label"]] = counts.get(line["label"], 0) + 1
    print(f"{len(made)} patches of {len({m['name'] for m in made})} projects: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
