"""Plausible candidates by what they do: those that answer alike on every input that was tried are one cluster.

A cost is in nats, so the candidates of a cluster speak for it together: the sum of `exp(-cost)` over its members is
its mass, and of rivals the cluster of the greatest mass comes first, with its cheapest member (after clustering by
execution results: Li et al., "Competition-Level Code Generation with AlphaCode", 2022). Not promised: that the greatest
cluster is right, or that candidates which nobody could compare differ: each of those is a cluster of its own.
"""

import math
from collections.abc import Sequence

from localagent.repair.acceptance.ranking import RankedCandidate


def mass(members: Sequence[RankedCandidate]) -> float:
    """The logarithm of a cluster's mass."""
    least = min(s.cost for s in members)
    return math.log(sum(math.exp(least - s.cost) for s in members)) - least


def by_mass(
    order: Sequence[RankedCandidate], rivals: Sequence[RankedCandidate]
) -> tuple[list[RankedCandidate], list[RankedCandidate]]:
    """The order and the rivals of its first, once the first and its rivals stand by the mass of their clusters.

    `rivals` are some of `order`, its first is none of them. Whoever is no rival stays behind them, in order.
    """
    clusters: dict[tuple[str, ...] | int, list[RankedCandidate]] = {}
    for standing in order:
        clusters.setdefault(_key(standing), []).append(standing)
    weight = {key: mass(members) for key, members in clusters.items()}
    near = sorted((order[0], *rivals), key=lambda s: (-weight[_key(s)], s.cost, s.candidate.number))
    numbers = {s.candidate.number for s in near}
    others = [s for s in near[1:] if _key(s) != _key(near[0])]
    return [*near, *(s for s in order if s.candidate.number not in numbers)], others


def _key(standing: RankedCandidate) -> tuple[str, ...] | int:
    return standing.row or standing.candidate.number
