"""Which differences between old and new the turned tests explain, and of which kind the others are. Pure.

A right fix changes answers on inputs near those of the failing tests: that is its purpose. So a difference is explained
where the old program fails as it did under a turned test, or where the call takes the way (the lines run by old and by
new) of a call that a turned test makes and that answers otherwise too, rather than the way of a call of some test that
answers as before. A passing test whose call answers otherwise is watched behaviour that changed, and a new crash is
nobody's purpose: neither is explained by its way. What a passing test's call only leaves otherwise, in its object or
arguments, is explained by the very way of a demanded call: there the tests want something else to be left.
Limitations: lines are coarse. A wrong answer on the way of a right one counts as explained, and where no turned test's
call of a function could be recorded, only variations of such calls do. What is careless (arguments whose relations are
broken) may be an input that nobody means: it is counted apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.claim import DifferenceKind, FunctionEffect
from localagent.domain.verification import InputOrigin

LEAST_ANSWERS = 3  # so many old answers make one new answer to everything a constant
LEAST_PAIRS = 5
LEAST_DEMANDED = 3  # inputs to which turned tests ask for one answer: then it may well be meant for all
MOST = 0.5  # of the answers
LEAST_MATTERED = 2  # groups of calls, alike but for one argument, in which that argument mattered before
_BAD_INPUT = frozenset({"TypeError", "AttributeError"})  # how code answers values of a make it was never meant for


class CallOutcome(StrEnum):
    """How a call ended. REFUSED: an exception raised on purpose; RAISED: any other; LATE: not in its time."""

    OK = "ok"
    REFUSED = "refused"
    RAISED = "raised"
    LATE = "late"
    SKIPPED = "skipped"

    @property
    def crashed(self) -> bool:
        """Whether the program broke, rather than answered or refused."""
        return self in (CallOutcome.RAISED, CallOutcome.LATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallAnswer:
    """One answer. `digest` is of all that it did, `alone` of what was returned or raised; `exception` its type, "".

    `state` are digests of the attributes of the object that a constructor made, and of its arguments by ""; empty for
    other functions, and where they are not known.
    """

    kind: CallOutcome
    text: str
    digest: str
    alone: str
    held: Mapping[str, bool]
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def exception(self) -> str:
        """The type of what was raised, `late` where it did not end, "" where it answered."""
        if self.kind is CallOutcome.LATE:
            return "late"
        if self.kind in (CallOutcome.OK, CallOutcome.SKIPPED):
            return ""
        return self.text.removeprefix("raises ").split(":")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerPair:
    """One call that both trees answered.

    `careless`: relations between the arguments were not kept. `of_turned`: it is a call, or varied from one, that a
    turned test makes. `in_place`: looked at where a test makes it, and not made again. `way`: the lines that both ran.
    `parts`: name and digest of each argument, the object apart.
    """

    text: str
    origin: InputOrigin
    careless: bool
    of_turned: bool
    in_place: bool
    way: frozenset[tuple[bool, int]]
    parts: tuple[tuple[str, str], ...]
    was: CallAnswer
    now: CallAnswer

    @property
    def differs(self) -> bool:
        """Whether old and new disagree."""
        return self.was.digest != self.now.digest

    @property
    def only_leaves(self) -> bool:
        """Whether both return the same by a known way, and differ in what they leave their object and arguments."""
        return self.differs and self.was.kind is self.now.kind and self.was.alone == self.now.alone and bool(self.way)

    @property
    def new_lines(self) -> frozenset[int]:
        """The lines that new ran."""
        return frozenset(line for new, line in self.way if new)

    @property
    def more_attributes(self) -> frozenset[str]:
        """The attributes that an object has after and had not before, if that is all in which the answers differ."""
        was, now = self.was.state, self.now.state
        alike = self.was.alone == self.now.alone and all(now.get(name) == state for name, state in was.items())
        return frozenset(now.keys() - was.keys()) if was and alike and self.differs else frozenset()

    @property
    def misfit(self) -> bool:
        """Whether both answer as code answers values of a make that it was never meant for: that compares nothing."""
        return not self.differs and self.was.kind is CallOutcome.RAISED and self.was.exception in _BAD_INPUT

    @property
    def crash(self) -> bool:
        """Whether new breaks where old answered or refused."""
        return self.now.kind.crashed and not self.was.kind.crashed


@dataclass(frozen=True, kw_only=True, slots=True)
class UndemandedChange:
    """A difference that no turned test makes, its kind, and whether such differences explain it."""

    pair: AnswerPair
    effect: DifferenceKind
    explained: bool


def judged(pairs: Sequence[AnswerPair]) -> Iterator[UndemandedChange]:
    """The differences of one function but for those that turned tests demand."""
    demanded = [p for p in pairs if p.origin is InputOrigin.DEMANDED and p.differs]
    steady = [p for p in pairs if p.origin in (InputOrigin.DEMANDED, InputOrigin.TESTED) and not p.differs]
    symptoms = {p.was.exception for p in demanded} - {""}
    wanted = {p.now.exception for p in demanded} - {""}
    ways = {p.way for p in demanded}
    others = {p.way for p in steady}
    for pair in pairs:
        if not pair.differs or pair.origin is InputOrigin.DEMANDED:
            continue
        effect = _effect(pair, wanted)
        yield UndemandedChange(pair=pair, effect=effect, explained=_explained(pair, effect, symptoms, ways, others))


def _effect(pair: AnswerPair, wanted: set[str]) -> DifferenceKind:
    if pair.crash and pair.now.exception not in wanted:
        made_up = pair.origin is InputOrigin.GENERATED and pair.now.exception in _BAD_INPUT
        return DifferenceKind.CARELESS if pair.careless or made_up else DifferenceKind.CRASH
    if pair.origin is InputOrigin.TESTED:
        return DifferenceKind.TESTED
    if pair.now.kind is CallOutcome.REFUSED and pair.was.kind is CallOutcome.OK and pair.now.exception not in wanted:
        return DifferenceKind.REFUSAL
    return DifferenceKind.STATE if pair.was.alone == pair.now.alone else DifferenceKind.ANSWER


_Way = frozenset[tuple[bool, int]]


def _explained(
    pair: AnswerPair, effect: DifferenceKind, symptoms: set[str], ways: set[_Way], others: set[_Way]
) -> bool:
    if pair.was.exception in symptoms:
        return True
    if effect is DifferenceKind.TESTED:
        return pair.only_leaves and pair.way in ways - others
    if effect in (DifferenceKind.CRASH, DifferenceKind.CARELESS):
        return False
    if not ways:
        return pair.of_turned
    near = min(len(pair.way ^ way) for way in ways)
    return near <= min((len(pair.way ^ way) for way in others), default=near)


def is_constant(pairs: Sequence[AnswerPair]) -> bool:
    """Whether the function answered this and that, and answers the same to every input now."""
    if len(pairs) < LEAST_PAIRS or any(p.now.kind is not CallOutcome.OK for p in pairs):
        return False
    was = {p.was.alone for p in pairs if p.was.kind is CallOutcome.OK}
    return len(was) >= LEAST_ANSWERS and len({p.now.alone for p in pairs}) == 1


def is_one_change(pairs: Sequence[AnswerPair]) -> bool:
    """Whether answers of several kinds became one answer, which the turned tests ask for in a case or two."""
    changed = [p for p in pairs if p.differs and p.was.kind is CallOutcome.OK]
    if len(changed) < LEAST_PAIRS or any(p.now.kind is not CallOutcome.OK for p in changed):
        return False
    many = len({p.was.alone for p in changed}) >= LEAST_ANSWERS and len({p.now.alone for p in changed}) == 1
    return many and _seldom_demanded(pairs)


def is_most_changed(pairs: Sequence[AnswerPair]) -> bool:
    """Whether most answers changed, turned tests ask for that in a case or two, and none shows an answer that stays."""
    known = [p for p in pairs if p.was.kind is CallOutcome.OK]
    steady = any(p.origin in (InputOrigin.DEMANDED, InputOrigin.TESTED) and not p.differs for p in known)
    if len(known) < LEAST_PAIRS or steady or not any(p.origin is InputOrigin.DEMANDED for p in pairs):
        return False
    return sum(p.differs for p in known) > MOST * len(known) and _seldom_demanded(pairs)


def _seldom_demanded(pairs: Sequence[AnswerPair]) -> bool:
    demanded = {p.parts for p in pairs if p.differs and p.origin is InputOrigin.DEMANDED}
    return len(demanded) < LEAST_DEMANDED


def lost_parameters(pairs: Sequence[AnswerPair]) -> tuple[str, ...]:
    """Arguments that mattered, all others being alike, and no longer do. Calls that old did not answer say nothing."""
    if not any(p.differs for p in pairs):
        return ()
    known = [p for p in pairs if p.was.kind is CallOutcome.OK and not p.careless]
    names = dict.fromkeys(name for p in known for name, _ in p.parts)
    return tuple(name for name in names if _lost(known, name))


def _lost(pairs: Sequence[AnswerPair], name: str) -> bool:
    groups: dict[tuple[tuple[str, str], ...], list[AnswerPair]] = {}
    for pair in pairs:
        if any(part == name for part, _ in pair.parts):
            rest = tuple((part, digest) for part, digest in pair.parts if part != name)
            groups.setdefault(rest, []).append(pair)
    mattered = [group for group in groups.values() if len({p.was.alone for p in group}) > 1]
    matters = any(len({p.now.alone for p in group}) > 1 for group in groups.values())
    return len(mattered) >= LEAST_MATTERED and not matters


def function_effects(pairs: Sequence[AnswerPair]) -> Iterator[tuple[FunctionEffect, str]]:
    """What became of the function as a whole, with the parameter that it is about."""
    if is_constant(pairs):
        yield FunctionEffect.CONSTANT, ""
        return
    if is_one_change(pairs):
        yield FunctionEffect.ONE_CHANGE, ""
    elif is_most_changed(pairs):
        yield FunctionEffect.MOST_CHANGED, ""
    yield from ((FunctionEffect.LOST_PARAMETER, name) for name in lost_parameters(pairs))
