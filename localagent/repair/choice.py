"""Choosing among plausible candidates.

All of them pass the tests they were shown; which is right is not known. Preference: fewer edits, then the lower cost
of the order (prior, place, model), with a malus for edits that take something away (a deleted statement, a condition
made constant), since those overfit most often. The model's full score does not choose (`docs/architecture.md`).
"""

from collections.abc import Sequence

from localagent.domain.edit import Candidate

# Operators whose plausible patches were overfitted more often than the rest on the development cases, in nats of cost.
_MALUS = {"delete": 2.5, "guard": 1.0, "condition": 1.0, "constant": 0.5, "ingredient": 0.5, "wrap": 0.3}


def malus(operator: str) -> float:
    """What an operator's name costs when choosing; names are dotted, the strongest part counts."""
    return max((v for k, v in _MALUS.items() if k in operator), default=0.0)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first."""
    return sorted(
        candidates,
        key=lambda c: (len(c.edits), c.cost + sum(malus(e.operator) for e in c.edits), c.number),
    )
