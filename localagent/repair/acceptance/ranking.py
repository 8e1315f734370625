"""Choosing among plausible candidates.

All of them pass the tests they were shown; which is right is not known. What speaks for one: fewer edits; a low cost of
the order (prior, place, half of the model's part: `opened`); an operator that adds rather than takes away; no literal
copied from the tests; and agreement with the other candidates on inputs near those of the tests, since wrong programs
are wrong in different ways (majority voting over execution results; Shi et al., "Natural Language to Code Translation
with Execution", 2022). Where that leaves rivals, the model reads their texts, and what reads more naturally counts too
(`reread`): alone it chooses no better than the rest.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.code.test_literals import Literals
from localagent.domain.behaviour import Behaviours, Row
from localagent.domain.edit import Candidate, Edit, EditEffect
from localagent.repair.acceptance.copied_literals import copied
from localagent.repair.acceptance.leftover_faults import left_faults
from localagent.repair.acceptance.meaningless_expressions import degenerate
from localagent.repair.acceptance.undefined_names import half_mended, left_undefined

# In nats of cost, set by hand after reading a few overfitted patches of the development cases; not counted. The
# strongest counts,
_MALUS = {
    EditEffect.DELETES: 1.5,
    EditEffect.COMMENTS_OUT: 1.5,
    EditEffect.DROPS_UNDEFINED: 1.5,
    EditEffect.ADDS_GUARD: 1.0,
    EditEffect.REPLACES_CALL: 1.0,
    EditEffect.CHANGES_CONDITION: 0.7,
    EditEffect.GUARDS_BOUNDS: 0.7,
    EditEffect.RENAMES_PARAMETER: 0.7,
    EditEffect.REUSES_EXPRESSION: 0.5,
    EditEffect.REUSES_CALL: 0.4,
    EditEffect.WRAPS: 0.3,
}
# and each of these.
_FURTHER = {
    EditEffect.NEGATES_EQUALITY: 0.5,
    EditEffect.NEGATES_ORDER: 0.5,
    EditEffect.NEGATES_SEVERAL: 0.4,  # a condition of several parts is seldom wrong as a whole
    EditEffect.DROPS_ONE: -0.3,  # it is written by mistake more often than other operands
    EditEffect.CHANGES_ARITHMETIC: 0.7,
}
_CALL_LOST = 2.5  # a call of an unknown name replaced by its bare argument: whoever wrote it meant something by it
_TOKEN_TAKEN = 0.25  # for each token beyond _FREE_TOKENS by which the program became shorter, up to _TAKEN_LIMIT
_TAKEN_LIMIT = 2.0
_FREE_TOKENS = 3
_MORE_EDITS = 1.0
# For each expression that says nothing, and each name mended here and missing there: of 374 patches of the cases 5 had
# one of the first kind, none of them right.
_SAYS_NOTHING = 3.0
_RESEMBLANCE = 0.7  # taken off for a missing name that becomes one like it
READ = 8  # so many of the first are read
_NATURAL = 0.3  # nats of cost for a nat by which a text is less likely than the likeliest, up to _UNNATURAL
_UNNATURAL = 6.0
_COPIED = 2.0  # for each literal that only the tests had; set by hand
FAR = 6.0  # nats of cost in the choice, one in four hundred: set by hand
_AGREEMENT = 4.0
_FAULT = 2.0
_CRASHES = 2
_CRASH_SHARE = 0.05

_WORDS = re.compile(rb"\w+|[^\w\s]")

Rows = Mapping[int, Row]


def malus(edit: Edit, before: bytes | None = None, *, choosing: bool = True) -> float:
    """What an edit costs when choosing: by its effects, and for what it takes away.

    `before` is the text the edit replaces, when known. Where a search only goes on from it (not `choosing`), a call
    that is lost is no worse than one put in its place.
    """
    effects = edit.effects
    cost = max((_MALUS[effect] for effect in effects if effect in _MALUS), default=0.0)
    if choosing and EditEffect.DROPS_CALL in effects:
        cost += _CALL_LOST
    if {EditEffect.MENDS_NAME, EditEffect.RESEMBLES} <= effects:
        cost -= _RESEMBLANCE
    cost += sum(nats for effect, nats in _FURTHER.items() if effect in effects)
    if before is not None:
        taken = len(_WORDS.findall(before)) - len(_WORDS.findall(b" ".join(s.text for s in edit.splices)))
        cost += min(_TAKEN_LIMIT, _TOKEN_TAKEN * max(0, taken - _FREE_TOKENS))
    return cost


def _replaced(candidate: Candidate) -> float:
    """The edits' malus, the first ones seen against the snapshot and the later ones against what came before."""
    sources = {c.path: c.before for c in candidate.patch.changes}
    total = 0.0
    for edit in candidate.edits:
        source = sources.get(edit.path)
        before = None if source is None else b" ".join(source[s.start : s.end] for s in edit.splices)
        total += malus(edit, before)
        if source is not None:
            sources[edit.path] = edit.apply(source)
    return total


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


def crashes(near: Behaviours, number: int) -> bool:
    """Whether a program crashes on more than a stray one of the inputs that keep the relations of the tests'."""
    return len(near.crashed(number)) >= max(_CRASHES, _CRASH_SHARE * sum(near.kept))


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedCandidate:
    """A plausible candidate with its cost in the choice; lower is better. `row` is what it does, () when not known."""

    candidate: Candidate
    cost: float
    row: Row


def ranked(
    candidates: Sequence[Candidate], near: Behaviours, *, shaky: float = 0.0, tested: Literals | None = None
) -> list[RankedCandidate]:
    """Best first. What an error message suggested runs early but is no righter for it.

    `near` may be empty or lack some candidates, which then count as average. `shaky` is what crashing costs; `tested`
    are the literals of the failing tests.
    """
    rows = near.telling()
    agree, wrong = agreement(rows), faults(rows)
    unknown = sum(agree.values()) / len(agree) if agree else 0.5
    standings = []
    for c in candidates:
        evidence = _AGREEMENT * (1 - agree.get(c.number, unknown)) + _FAULT * wrong.get(c.number, 0.0)
        cost = max(c.cost, 0.0) + _replaced(c) + evidence + _MORE_EDITS * (len(c.edits) - 1)
        said = degenerate(c) + half_mended(c) + left_undefined(c) + left_faults(c)
        cost += (shaky if crashes(near, c.number) else 0.0) + _SAYS_NOTHING * said
        cost += _COPIED * copied(c, tested) if tested is not None else 0.0
        standings.append(RankedCandidate(candidate=c, cost=cost, row=rows.get(c.number, ())))
    return sorted(standings, key=lambda s: (s.cost, s.candidate.number))


def other_behaviours(mine: RankedCandidate, order: Sequence[RankedCandidate]) -> int:
    """How many known behaviours beside its own stand within `FAR` of a candidate; 0 where its own is not known."""
    rows = {s.row for s in order if s.row and s.cost <= mine.cost + FAR}
    return len(rows - {mine.row}) if mine.row else 0


def reread(order: Sequence[RankedCandidate], natural: Mapping[int, float]) -> list[RankedCandidate]:
    """The order once the model has read the first of it; `natural` is in nats, by candidate number.

    What was not read costs as much more as the least natural of those that were.
    """
    likeliest = max(natural.values())
    dearer = {number: min(_UNNATURAL, _NATURAL * (likeliest - nats)) for number, nats in natural.items()}
    most = max(dearer.values())
    again = [replace(s, cost=s.cost + dearer.get(s.candidate.number, most)) for s in order]
    return sorted(again, key=lambda s: (s.cost, s.candidate.number))
