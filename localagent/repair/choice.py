"""Choosing among plausible candidates.

All of them pass the tests they were shown; which is right is not known. What speaks for one: fewer edits; a low cost of
the order (prior, place, model); an operator that adds rather than takes away; and agreement with the other candidates
on inputs near those of the tests, since wrong programs are wrong in different ways (majority voting over execution
results; Shi et al., "Natural Language to Code Translation with Execution", 2022). Where that leaves rivals, the
model reads their texts, and what reads more naturally counts too (`reread`): alone it chooses no better than the rest.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from localagent.domain.behaviour import Behaviours, Row
from localagent.domain.edit import WRITTEN, Candidate, Edit
from localagent.repair.degenerate import degenerate

# In nats of cost, set by hand after reading a few overfitted patches of the development cases; not counted.
_COMMENTED_OUT = "comment-statement"
_MALUS = {
    "delete": 1.5,
    _COMMENTED_OUT: 1.5,
    "guard": 1.0,
    "condition": 0.7,
    "body": 1.0,
    "ingredient": 0.5,
    "wrap": 0.3,
    "reported-bounds": 0.7,
    "parameter-rename": 0.7,
    "sibling-call": 0.4,
    "undefined-drop": 1.5,
}
_CALL_LOST = 2.5  # a call of an unknown name replaced by its bare argument: whoever wrote it meant something by it
_NEGATING = frozenset(
    {"== -> !=", "!= -> ==", "is -> is not", "is not -> is", "< -> >=", ">= -> <", "> -> <=", "<= -> >"}
)
_MEANT = ("tokens.assign-compare", "= -> ==")  # whoever assigns in a condition meant to compare
_EQUALITIES = frozenset({"== -> !=", "!= -> ==", "is -> is not", "is not -> is"})
_STARTS = frozenset({"set()", "float('inf')", "float('-inf')"})
_NEGATION = 0.5
_NEGATED_WHOLE = 0.4  # a condition of several parts is seldom wrong as a whole
_NEAR = ("+-", "*/", "///", "***", "//%", "&|", "|^", "&^", "<<>>")
_SEVERAL_PARTS = re.compile(r"\b(and|or)\b")
_DROPPED_ONE = re.compile(r"(.+?) *[-+] *1 -> \1")
_ONE = 0.3  # taken off for a `+ 1` or `- 1` that goes: it is written by mistake more often than other operands
_FAR = 0.7  # an arithmetic operator that becomes one of another kind
_TOKEN_TAKEN = 0.25  # for each token beyond _FREE_TOKENS by which the program became shorter, up to _TAKEN_LIMIT
_TAKEN_LIMIT = 2.0
_FREE_TOKENS = 3
_MORE_EDITS = 1.0
_SAYS_NOTHING = 3.0  # for each expression that says nothing: of 374 patches of the cases 5 had one, none of them right
_RESEMBLANCE = 0.7  # taken off for a missing name that becomes one like it
_ALIKE = 0.75
_MARGIN_SINGLE = 0.25
_MARGIN_PAIRS = 1.5
_MARGIN_WEAK = 3.0
_MARGIN_KINDS = (
    2.0  # where as many kinds as _SEVERAL_KINDS pass: 8 of 15 such choices of the development cases were wrong
)
_INVENTIONS = ("missing-method-body", "reported-bounds", "undefined-initialise", "off-by-one", "sibling-call")
_WAYS_OUT = "reported-bounds"  # of a crash: which one is a matter of what reads naturally
_MANY_EDITS = 3
_WEAK_TESTS = 5  # so many different behaviours among the plausible: the tests tell little
_SEVERAL_KINDS = 4
_TOO_MANY_KINDS = 7
_WEAK_SHARE = 0.25
_NOTHING_SHARE = 0.5  # of all programs that ran pass: the tests say nothing
_MANY_GUESSES = 2
FEW_TESTS = 3
READ = 8  # so many of the first are read
_NATURAL = 0.3  # nats of cost for a nat by which a text is less likely than the likeliest, up to _UNNATURAL
_UNNATURAL = 6.0
_MARGIN_READ = 0.2
_AGREEMENT = 4.0
_FAULT = 2.0
_CRASHES = 2
_CRASH_SHARE = 0.05

_NAMES = re.compile(r"[A-Za-z_]\w*")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORDS = re.compile(rb"\w+|[^\w\s]")

Rows = Mapping[int, Row]


def malus(edit: Edit, before: bytes | None = None) -> float:
    """What an edit costs when choosing: by its operator, for contraries, and for what it takes away.

    The strongest part of the operator's name counts; `before` is the text the edit replaces, when known.
    """
    cost = max((v for k, v in _MALUS.items() if k in edit.operator), default=0.0)
    if edit.operator == "missing-method-body" and "(" not in edit.note.rpartition(" -> ")[2]:
        cost += _CALL_LOST
    if edit.operator == "undefined-name" and edit.note.endswith("dropped"):
        cost += _MALUS["undefined-drop"]
    if edit.operator.startswith(("undefined-", "missing-")) and _alike(*edit.note.rpartition(" -> ")[::2]):
        cost -= _RESEMBLANCE
    if edit.note in _NEGATING:
        cost += _NEGATION
    if edit.operator == "negate" and _SEVERAL_PARTS.search(edit.note.partition(" -> ")[0]):
        cost += _NEGATED_WHOLE
    if edit.operator == "operand-drop" and _DROPPED_ONE.fullmatch(edit.note):
        cost -= _ONE
    if edit.operator in ("augmented-swap", "arithmetic-swap") and _far(*edit.note.partition(" -> ")[::2]):
        cost += _FAR
    if before is not None:
        taken = len(_WORDS.findall(before)) - len(_WORDS.findall(b" ".join(s.text for s in edit.splices)))
        cost += min(_TAKEN_LIMIT, _TOKEN_TAKEN * max(0, taken - _FREE_TOKENS))
    return cost


def _far(old: str, new: str) -> bool:
    """Whether one operator is rarely written for the other; with or without the `=` of an augmented one."""
    old, new = old.removesuffix("="), new.removesuffix("=")
    return old + new not in _NEAR and new + old not in _NEAR


def _alike(old: str, new: str) -> bool:
    """Whether an identifier of the new text is like one of the old: a word of it, or nearly the same letters."""
    before, after = _NAMES.findall(old), _NAMES.findall(new)
    for name in set(after) - set(before):
        words = {w.lower() for w in _HUMPS.findall(name) if len(w) > 2}
        for gone in set(before) - set(after):
            if name.lower() == gone.lower():
                return True
            lost = {w.lower() for w in _HUMPS.findall(gone) if len(w) > 2}
            if name.lower() in lost or gone.lower() in words:
                return True
            if min(len(name), len(gone)) > 2 and SequenceMatcher(None, name.lower(), gone.lower()).ratio() >= _ALIKE:
                return True
    return False


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
class Standing:
    """A plausible candidate with its cost in the choice; lower is better. `row` is what it does, () when not known."""

    candidate: Candidate
    cost: float
    row: Row


def ranked(candidates: Sequence[Candidate], near: Behaviours, *, shaky: float = 0.0) -> list[Standing]:
    """Best first. What an error message suggested runs early but is no righter for it.

    `near` may be empty or lack some candidates, which then count as average. `shaky` is what crashing costs.
    """
    rows = near.telling()
    agree, wrong = agreement(rows), faults(rows)
    unknown = sum(agree.values()) / len(agree) if agree else 0.5
    standings = []
    for c in candidates:
        evidence = _AGREEMENT * (1 - agree.get(c.number, unknown)) + _FAULT * wrong.get(c.number, 0.0)
        cost = max(c.cost, 0.0) + _replaced(c) + evidence + _MORE_EDITS * (len(c.edits) - 1)
        cost += (shaky if crashes(near, c.number) else 0.0) + _SAYS_NOTHING * degenerate(c)
        standings.append(Standing(candidate=c, cost=cost, row=rows.get(c.number, ())))
    return sorted(standings, key=lambda s: (s.cost, s.candidate.number))


def explained(edit: Edit) -> bool:
    """Whether the parser or a name in the error message tells what was wrong, and the edit takes nothing away."""
    if edit.operator.startswith("tokens."):
        return _slip(edit)
    return edit.operator in ("undefined-name", "undefined-everywhere", "missing-attribute", "missing-import") and (
        not edit.note.endswith("dropped")
    )


def _slip(edit: Edit) -> bool:
    """Whether what did not parse is mended; not where a statement that was whole is made a comment."""
    return edit.operator.startswith("tokens.") and _COMMENTED_OUT not in edit.operator


def _invented(edit: Edit) -> bool:
    """Whether an edit makes up what nobody wrote: a body for a missing method, a value, a way out of a crash."""
    alike = _alike(*edit.note.rpartition(" -> ")[::2])
    return edit.operator.startswith(_INVENTIONS) and not alike


def _by_chance(edit: Edit) -> bool:
    """Whether an edit has two outcomes of which one passes: a contrary, a constant at the end; or is seldom a slip.

    Of 376 patches of the development cases 12 had one, 2 of them right.
    """
    if edit.operator == "return-missing":
        return _literal(edit.note.removeprefix("return ").removesuffix(" at the end"))
    if edit.operator == "undefined-initialise":
        value = edit.note.rpartition(" = ")[2]
        return value not in _STARTS and not _literal(value)
    if edit.operator in ("augmented-swap", "arithmetic-swap"):
        return _far(*edit.note.partition(" -> ")[::2])
    return edit.note in _EQUALITIES


def _literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def weak(order: Sequence[Standing], verified: int) -> bool:
    """Whether the tests tell little: programs of many kinds pass, or a quarter of all that ran and not all alike."""
    many = len(order) > max(1.0, _WEAK_SHARE * verified) and not _agreed(order)
    return _kinds(order) >= _WEAK_TESTS or many


def _kinds(order: Sequence[Standing]) -> int:
    return len({s.row for s in order if s.row})


def _agreed(order: Sequence[Standing]) -> bool:
    """Whether more than one program is known to do what the first does, and none to do anything else."""
    rows = [s.row for s in order if s.row]
    return len(rows) > 1 and len(set(rows)) == 1 and bool(order[0].row)


def unproven(order: Sequence[Standing], tests: int, failing: int) -> bool:
    """Whether the tests are too few to believe the first candidate even without a rival.

    So it is with many edits of which more were guessed than there are failing tests to vouch for them, with a guess
    that was made on top of another one at the same line, with something invented or a line dropped beside other edits,
    and with a call of a sibling put in a call's place, or a text that the model wrote, one that brings in an expression
    that says nothing, a whole statement made a comment, or what passes one test by chance as easily as by being right.
    Several edits are believed where other programs pass too, and all behave alike.
    """
    candidate = order[0].candidate
    agreed = _agreed(order)
    if tests <= FEW_TESTS and len(candidate.edits) > 1 and not agreed:
        dropped = any("delete-line" in e.operator for e in candidate.edits)
        if any(_invented(e) for e in candidate.edits) or (dropped and not all(_slip(e) for e in candidate.edits)):
            return True
    made_up = candidate.edits[0].operator in {"sibling-call", *WRITTEN}
    silenced = any(_COMMENTED_OUT in e.operator for e in candidate.edits)
    chance = any(_by_chance(e) for e in candidate.edits)
    if tests <= FEW_TESTS and (made_up or silenced or chance or degenerate(candidate)):
        return True
    guessed = [(e.path, e.line) for e in candidate.edits if not explained(e)]
    many = len(candidate.edits) >= _MANY_EDITS and len(guessed) >= _MANY_GUESSES
    doubled = len(set(guessed)) < len(guessed)
    return tests <= FEW_TESTS and len(guessed) > failing and not agreed and (many or doubled)


def undecided(order: Sequence[Standing], tests: int, verified: int) -> list[Standing]:
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
    slips = [part for e in first.candidate.edits if _slip(e) for part in e.operator.split("+")]
    little = weak(order, verified)
    nothing = len(order) > max(_MANY_EDITS, _NOTHING_SHARE * verified)
    certain = slips and not guesses and "replace-token" not in "+".join(slips) and not (little and len(slips) > 1)
    meant = [(e.operator, e.note) for e in first.candidate.edits] == [_MEANT]
    if certain and (meant or not nothing):
        return []  # where the parser failed, the smallest repair is right far more often than not
    margin = _MARGIN_WEAK if little else _MARGIN_SINGLE if single or guesses <= 1 else _MARGIN_PAIRS
    if _kinds(order) >= _SEVERAL_KINDS:
        margin = max(margin, _MARGIN_KINDS)
    return [s for s in order[1:] if s.cost - first.cost < margin and (not s.row or not first.row or s.row != first.row)]


def reread(order: Sequence[Standing], natural: Mapping[int, float]) -> list[Standing]:
    """The order once the model has read the first of it; `natural` is in nats, by candidate number.

    What was not read costs as much more as the least natural of those that were.
    """
    likeliest = max(natural.values())
    dearer = {number: min(_UNNATURAL, _NATURAL * (likeliest - nats)) for number, nats in natural.items()}
    most = max(dearer.values())
    again = [replace(s, cost=s.cost + dearer.get(s.candidate.number, most)) for s in order]
    return sorted(again, key=lambda s: (s.cost, s.candidate.number))


def settled(order: Sequence[Standing], verified: int) -> bool:
    """Whether a reread order tells which single guess is right: all that do something else cost more by a margin.

    Not where a quarter of all programs pass, or programs of many kinds (of 15 such readings of the development cases,
    with four kinds or more, 6 were wrong; with fewer kinds none of 8), and neither for several edits nor for something
    invented: of those the tests prove too little.
    """
    first = order[0]
    if _kinds(order) >= _TOO_MANY_KINDS:
        return False
    edits = first.candidate.edits
    invented = any(_invented(e) and not e.operator.startswith(_WAYS_OUT) for e in edits)
    if len(edits) > 1 or invented or len(order) > max(_MANY_EDITS, _WEAK_SHARE * verified):
        return False
    return all(
        s.cost - first.cost >= _MARGIN_READ for s in order[1:] if not s.row or not first.row or s.row != first.row
    )
