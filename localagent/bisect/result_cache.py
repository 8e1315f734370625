"""Runs of trees, kept by tree, tests and environment: a search that was killed goes on where it was.

One small file for each, replaced atomically. A file that cannot be read is no result. Not promised: that two searches
at the same time add to each other's runs.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localagent.bisect.symptom import SymptomObservation, TreeRun
from localagent.domain.outcome import Outcome
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_private
from localagent.text.strict_json import canonical, load

_SCHEMA = 3
_MOST_BYTES = 16 << 20


class ResultCache:
    """The runs below one folder. `facts` is what beside the tree decides what a run shows."""

    def __init__(self, folder: Path, facts: Sequence[str]) -> None:
        self._folder = folder
        self._facts = tuple(facts)

    def runs(self, tree: Sequence[str]) -> tuple[TreeRun, ...]:
        """What is known of a tree, oldest first."""
        try:
            value = load(read_bounded(self._path(tree), _MOST_BYTES))
            return tuple(_run_of(item) for item in value["runs"])
        except (FileNotFoundError, RecordDamaged, UsageFault, ValueError, KeyError, TypeError, AttributeError):
            return ()

    def keep(self, tree: Sequence[str], runs: Sequence[TreeRun]) -> None:
        """Put down what is known of a tree. CannotRecord where that cannot be written."""
        path = self._path(tree)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        told = [
            {
                "problem": run.problem,
                "seen": {n: [seen.outcome.value, seen.kind, seen.place or ""] for n, seen in run.seen.items()},
                "ran": {path: sorted(lines) for path, lines in run.ran.items()},
                "imported": run.imported,
            }
            for run in runs
            if not run.lost
        ]
        write_private(path, canonical({"schema": _SCHEMA, "runs": told}))

    def _path(self, tree: Sequence[str]) -> Path:
        digest = hashlib.sha256(canonical([_SCHEMA, *self._facts, *tree])).hexdigest()
        return self._folder / digest[:2] / f"{digest[2:]}.json"


def _run_of(value: Any) -> TreeRun:
    seen = {
        str(name): SymptomObservation(
            outcome=Outcome(outcome), kind=str(kind), place=RepoPath(place) if place else None
        )
        for name, (outcome, kind, place) in value["seen"].items()
    }
    ran = {RepoPath(path): frozenset(int(line) for line in lines) for path, lines in value["ran"].items()}
    imported = tuple(RepoPath(path) for path in value["imported"])
    return TreeRun(seen=seen, problem=str(value["problem"]), ran=ran, imported=imported)
