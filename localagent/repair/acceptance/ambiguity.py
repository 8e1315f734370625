"""Whether the tests, which are few, bear the first of several plausible candidates; else a person is asked.

Where there are more tests than FEW_TESTS the first is believed. The rules were set by hand on development cases with
one visible example each; what was counted stands beside the rule.
"""

from collections.abc import Sequence

from localagent.domain.edit import Edit, EditEffect
from localagent.repair.acceptance.leftover_faults import left_faults
from localagent.repair.acceptance.meaningless_expressions import degenerate
from localagent.repair.acceptance.ranking import RankedCandidate
from localagent.repair.acceptance.undefined_names import half_mended, left_undefined

# Of 215 answered development cases 5 were answered by those that do less in themselves, none of them right.
_LESS = frozenset(
    {
        EditEffect.LEAVES_EARLY,
        EditEffect.UNWRAPS_BLOCK,
        EditEffect.REPLACES_LEXEME,
        EditEffect.SHORTENS_TO_WORD,
    }
)
_BY_CHANCE = frozenset(
    {
        EditEffect.NEGATES_EQUALITY,
        EditEffect.CHANGES_ARITHMETIC,
        EditEffect.RETURNS_LITERAL,
        EditEffect.STARTS_FROM_EXPRESSION,
    }
)
_MADE_UP = frozenset({EditEffect.REUSES_CALL, EditEffect.WRITTEN_BY_MODEL})
_MARGIN_SINGLE = 0.25
_MARGIN_PAIRS = 1.5
_MARGIN_WEAK = 3.0
# Where as many kinds as _SEVERAL_KINDS pass: 8 of 15 such choices of the development cases were wrong.
_MARGIN_KINDS = 2.0
_MANY_EDITS = 3
_WEAK_TESTS = 5  # so many different behaviours among the plausible: the tests tell little
_SEVERAL_KINDS = 4
_TOO_MANY_KINDS = 7
_WEAK_SHARE = 0.25
_NOTHING_SHARE = 0.5  # of all programs that ran pass: the tests say nothing
_MANY_GUESSES = 2
FEW_TESTS = 3
_MARGIN_READ = 0.2
_MARGIN_READ_KINDS = 1.0  # with so many kinds one of three readings was right by a lead below


def explained(edit: Edit) -> bool:
    """Whether the parser or a name in the error message tells what was wrong, and the edit takes nothing away."""
    return _slip(edit) or (EditEffect.EXPLAINED in edit.effects and EditEffect.DROPS_UNDEFINED not in edit.effects)


def _slip(edit: Edit) -> bool:
    """Whether what did not parse is mended; not where a statement that was whole is made a comment."""
    return EditEffect.MENDS_SYNTAX in edit.effects and EditEffect.COMMENTS_OUT not in edit.effects


def _invented(edit: Edit) -> bool:
    """Whether an edit makes up what nobody wrote: a body for a missing method, a value, a way out of a crash."""
    return EditEffect.INVENTS in edit.effects and EditEffect.RESEMBLES not in edit.effects


def _lone_call(edit: Edit) -> bool:
    """Whether a call of a method that nobody wrote becomes the call of a function that is not called alike."""
    return _invented(edit) and EditEffect.CALLS_WITH_ARGUMENTS in edit.effects


def _by_chance(edit: Edit) -> bool:
    """Whether an edit has two outcomes of which one passes: a contrary, a constant at the end; or is seldom a slip.

    Of 376 patches of the development cases 12 had one, 2 of them right.
    """
    return not _BY_CHANCE.isdisjoint(edit.effects)


def _takes_away(edit: Edit) -> bool:
    """Whether an edit only does less: drops a statement, leaves before one, or puts a bare word for a whole expression.

    Such patches pass weak tests by what they no longer do (Qi et al., "An Analysis of Patch Plausibility and
    Correctness for Generate-and-Validate Patch Generation Systems", 2015).
    """
    deletes = EditEffect.DELETES in edit.effects and EditEffect.MENDS_SYNTAX not in edit.effects
    return deletes or not _LESS.isdisjoint(edit.effects)


def weak(order: Sequence[RankedCandidate], verified: int) -> bool:
    """Whether the tests tell little: programs of many kinds pass, or a quarter of all that ran and not all alike."""
    many = len(order) > max(1.0, _WEAK_SHARE * verified) and not _agreed(order)
    return _kinds(order) >= _WEAK_TESTS or many


def _kinds(order: Sequence[RankedCandidate]) -> int:
    return len({s.row for s in order if s.row})


def _agreed(order: Sequence[RankedCandidate]) -> bool:
    """Whether more than one program is known to do what the first does, and none to do anything else."""
    rows = [s.row for s in order if s.row]
    return len(rows) > 1 and len(set(rows)) == 1 and bool(order[0].row)


def unproven(order: Sequence[RankedCandidate], tests: int, failing: int) -> bool:
    """Whether the tests are too few to believe the first candidate even without a rival.

    So it is with many edits of which more were guessed than there are failing tests to vouch for them, with a guess
    that was made on top of another one at the same line, with something invented or a line dropped beside other edits,
    and with a call of a sibling put in a call's place, or a text that the model wrote, one that brings in an expression
    that says nothing or leaves a name undefined that it mends elsewhere, a whole statement made a comment, what only
    takes away, or what passes one test by chance as easily as by being right.
    Several edits are believed where other programs pass too, and all behave alike.
    """
    candidate = order[0].candidate
    agreed = _agreed(order)
    if tests <= FEW_TESTS and len(candidate.edits) > 1 and not agreed:
        dropped = any(EditEffect.DELETES_LINE in e.effects for e in candidate.edits)
        if any(_invented(e) for e in candidate.edits) or (dropped and not all(_slip(e) for e in candidate.edits)):
            return True
    made_up = not _MADE_UP.isdisjoint(candidate.edits[0].effects)
    made_up = made_up or (not agreed and any(map(_lone_call, candidate.edits)))
    silenced = any(EditEffect.COMMENTS_OUT in e.effects for e in candidate.edits)
    chance = any(_by_chance(e) or _takes_away(e) or EditEffect.INVENTS_LITERAL in e.effects for e in candidate.edits)
    faulty = degenerate(candidate) or half_mended(candidate) or left_undefined(candidate) or left_faults(candidate)
    if tests <= FEW_TESTS and (made_up or silenced or chance or faulty):
        return True
    guessed = [(e.path, e.line) for e in candidate.edits if not explained(e)]
    many = len(candidate.edits) >= _MANY_EDITS and len(guessed) >= _MANY_GUESSES
    doubled = len(set(guessed)) < len(guessed)
    return tests <= FEW_TESTS and len(guessed) > failing and not agreed and (many or doubled)


def undecided(order: Sequence[RankedCandidate], tests: int, verified: int) -> list[RankedCandidate]:
    """The rivals of the first that nothing tells apart from it, when the tests are too few to believe the first alone.

    A rival costs nearly as much and does something else (or nobody knows what). Where programs of many kinds pass, the
    tests say little, and all but those that cost far more are rivals; so it is where a quarter of all programs that ran
    (`verified`) pass. The smallest repair of a file that did not parse is believed all the same, also beside edits that
    an error message explains, unless half of all programs pass. Several guesses under a few tests are believed less
    than one: many pairs satisfy one example.
    """
    if not order or tests > FEW_TESTS:
        return []
    first = order[0]
    single = len(first.candidate.edits) == 1
    guesses = sum(not explained(e) for e in first.candidate.edits)
    slips = [e.effects for e in first.candidate.edits if _slip(e)]
    several = len(slips) > 1 or any(EditEffect.SEVERAL_FIXES in effects for effects in slips)
    replaces = any(EditEffect.REPLACES_LEXEME in effects for effects in slips)
    little = weak(order, verified)
    nothing = len(order) > max(_MANY_EDITS, _NOTHING_SHARE * verified)
    certain = slips and not guesses and not replaces and not (little and several)
    meant = single and EditEffect.COMPARES in first.candidate.edits[0].effects
    if certain and (meant or not nothing):
        return []  # where the parser failed, the smallest repair is right far more often than not
    lone = (single or guesses <= 1) and not (several and replaces)
    margin = _MARGIN_WEAK if little else _MARGIN_SINGLE if lone else _MARGIN_PAIRS
    if _kinds(order) >= _SEVERAL_KINDS:
        margin = max(margin, _MARGIN_KINDS)
    return [s for s in order[1:] if s.cost - first.cost < margin and (not s.row or not first.row or s.row != first.row)]


def settled(order: Sequence[RankedCandidate], verified: int) -> bool:
    """Whether a reread order tells which single guess is right: all that do something else cost more by a margin.

    Not where a quarter of all programs pass, or programs of many kinds (of 15 such readings of the development cases,
    with four kinds or more, 6 were wrong; with fewer kinds none of 8), and neither for several edits nor for something
    invented: of those the tests prove too little.
    """
    first = order[0]
    if _kinds(order) >= _TOO_MANY_KINDS:
        return False
    edits = first.candidate.edits
    if len(edits) > 1 or any(_invented(e) for e in edits) or len(order) > max(_MANY_EDITS, _WEAK_SHARE * verified):
        return False
    lead = _MARGIN_READ_KINDS if _kinds(order) >= _SEVERAL_KINDS else _MARGIN_READ
    return all(s.cost - first.cost >= lead for s in order[1:] if not s.row or not first.row or s.row != first.row)
