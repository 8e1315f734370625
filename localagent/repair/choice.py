"""Choosing among plausible candidates.

All of them pass the tests they were shown; which is right is not known. What speaks for one: fewer edits; a low cost of
the order (prior, place, model); an operator that adds rather than takes away; and agreement with the other candidates
on inputs near those of the tests, since wrong programs are wrong in different ways (majority voting over execution
results; Shi et al., "Natural Language to Code Translation with Execution", 2022). The model's full score does
not choose (`docs/architecture.md`).
"""

from collections.abc import Mapping, Sequence

from localagent.domain.edit import Candidate

# Operators whose plausible patches were overfitted more often than the rest on the development cases, in nats of cost.
_MALUS = {"delete": 2.5, "guard": 1.0, "condition": 1.0, "constant": 0.5, "ingredient": 0.5, "wrap": 0.3}
_AGREEMENT = 4.0
_FAULT = 2.0

Rows = Mapping[int, tuple[str, ...]]


def malus(operator: str) -> float:
    """What an operator's name costs when choosing; names are dotted, the strongest part counts."""
    return max((v for k, v in _MALUS.items() if k in operator), default=0.0)


def agreement(rows: Rows) -> dict[int, float]:
    """For each candidate the mean share of the other candidates that answer as it does, over all calls; in [0, 1].

    Candidates with equal rows count once: ten spellings of one program are one voice. Row 0, the unpatched program, has
    none.
    """
    voices = {row for number, row in rows.items() if number != 0}
    if len(voices) < 2:
        return {number: 1.0 for number in rows if number != 0}
    out = {}
    for number, row in rows.items():
        if number != 0:
            same = [sum(other[i] == cell for other in voices) - 1 for i, cell in enumerate(row)]
            out[number] = sum(same) / (len(row) * (len(voices) - 1))
    return out


def faults(rows: Rows) -> dict[int, float]:
    """For each candidate the share of calls in which it raised or ran too long while most others answered."""
    voices = {row for number, row in rows.items() if number != 0}
    out = {}
    for number, row in rows.items():
        if number != 0 and row:
            bad = sum(
                not cell.startswith("ok") and 2 * sum(other[i].startswith("ok") for other in voices) > len(voices)
                for i, cell in enumerate(row)
            )
            out[number] = bad / len(row)
    return out


def ranked(candidates: Sequence[Candidate], rows: Rows) -> list[Candidate]:
    """Best first. `rows` are behaviours by candidate number; it may be empty or lack some."""
    agree, wrong = agreement(rows), faults(rows)

    def cost(c: Candidate) -> tuple[int, float, int]:
        evidence = _AGREEMENT * (1 - agree.get(c.number, 0.5)) + _FAULT * wrong.get(c.number, 0.0)
        return (len(c.edits), c.cost + sum(malus(e.operator) for e in c.edits) + evidence, c.number)

    return sorted(candidates, key=cost)
