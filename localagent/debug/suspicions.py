"""Statements ranked by the evidence that `fix` has, and by how near they are to the failure in its dynamic slice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from localagent.debug.dynamic_slice import VariableAccess
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion

SLICE_WEIGHT = 0.05
DECAY = 0.95


def combined(
    suspicions: Sequence[Suspicion],
    distances: Mapping[tuple[RepoPath, int], int],
    tables: Mapping[RepoPath, Mapping[int, VariableAccess]],
) -> tuple[Suspicion, ...]:
    """Most suspicious first: what wrote the wrong values stands above what merely ran."""
    found = []
    for one in suspicions:
        access = tables.get(one.path, {}).get(one.line)
        distance = distances.get((one.path, access.line)) if access is not None else None
        if distance is None:
            found.append(replace(one, score=one.score * (1 - SLICE_WEIGHT)))
            continue
        score = one.score * (1 - SLICE_WEIGHT) + SLICE_WEIGHT * DECAY**distance
        found.append(replace(one, score=score, why="; ".join(filter(None, (one.why, _led(distance))))))
    return tuple(sorted(found, key=lambda s: -s.score))


def _led(distance: int) -> str:
    if not distance:
        return "it failed in this statement"
    return f"{distance} step{'s' * (distance > 1)} of data or control flow before the failure"
