"""How strong the evidence for a patch is: the parts that were measured, and the grade that follows from them.

A grade is a summary of its parts and never stands alone. A part that could not be measured is None and says why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from localagent.domain.claim import Claim


class Grade(StrEnum):
    """Strength of evidence, A the strongest."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"
    E = "E"

    def reaches(self, least: "Grade") -> bool:
        """Whether this grade is at least as strong as another one."""
        return self.value <= least.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """`part` of `whole`. `missing` names up to ten of the rest, `note` what a reader should know."""

    part: int
    whole: int
    missing: tuple[str, ...] = ()
    note: str = ""

    @property
    def share(self) -> float:
        """Between 0 and 1; 0 of nothing is 0."""
        return self.part / self.whole if self.whole else 0.0

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """What a grade asks for: least shares of changed lines run, of mutants killed, of functions compared."""

    grade: Grade
    lines: float
    mutants: float
    functions: float


THRESHOLDS = (
    Threshold(grade=Grade.A, lines=0.95, mutants=0.90, functions=1.0),
    Threshold(grade=Grade.B, lines=0.80, mutants=0.75, functions=0.5),
    Threshold(grade=Grade.C, lines=0.60, mutants=0.50, functions=0.0),
)
LEAST_MUTANTS = 5  # fewer say too little for A or B


@dataclass(frozen=True, kw_only=True, slots=True)
class Strength:
    """The grade and its parts.

    `lines`: changed lines that a test which counts ran. `mutants`: mutants of those lines that such a test killed.
    `functions`: touched functions whose behaviour before and after was compared on enough inputs. A part is None
    where it was not measured; `unknown` says why, by the part's name. `short` says what is missing to the next grade.
    `others`: how many other behaviours, of repairs that the search found, pass the same tests. `weak` says why the
    tests could not tell the patch from others at this place; it is empty for A and B. The grade is one of evidence for
    the `claim`; `limits` say what speaks against that claim and what grade it leaves at most.
    """

    grade: Grade
    lines: Share | None
    mutants: Share | None
    functions: Share | None
    unknown: dict[str, str]
    short: tuple[str, ...] = ()
    others: int = 0
    weak: tuple[str, ...] = ()
    claim: Claim = Claim.UNKNOWN
    limits: tuple[str, ...] = ()


def graded(
    *,
    lines: Share | None,
    mutants: Share | None,
    functions: Share | None,
    unknown: dict[str, str],
    others: int = 0,
) -> Strength:
    """The highest grade all of whose thresholds are reached; D where a test runs any changed line; else E.

    A part that was not measured reaches no threshold above 0. Mutants too few to judge by reach none of A and B, and
    neither does a patch that the tests are known not to tell from others.
    """
    found = Grade.D if lines is not None and lines.part else Grade.E
    short: list[str] = []
    for threshold in reversed(THRESHOLDS):
        short = _short(threshold, lines, mutants, functions, others)
        if short:
            break
        found = threshold.grade
    return Strength(
        grade=found,
        lines=lines,
        mutants=mutants,
        functions=functions,
        unknown=unknown,
        short=tuple(short),
        others=others,
        weak=tuple(_weak(mutants, others)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """Why evidence for a claim is worth no more than a grade."""

    most: Grade
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.most} at most"


def limited(strength: Strength, claim: Claim, limits: Sequence[Limit]) -> Strength:
    """The strength as one of evidence for a claim: its grade, or the lowest that the limits leave."""
    grade = Grade(max((strength.grade.value, *(limit.most.value for limit in limits))))
    told = tuple(str(limit) for limit in sorted(limits, key=lambda limit: limit.most.value, reverse=True))
    return replace(strength, grade=grade, claim=claim, limits=told)


def _weak(mutants: Share | None, others: int) -> Iterator[str]:
    """What shows that other programs pass too. Mutants that live may be equal in behaviour: some are nothing yet."""
    least = next(t.mutants for t in THRESHOLDS if t.grade is Grade.B)
    if mutants is not None and mutants.whole >= LEAST_MUTANTS and mutants.share < least:
        alive = mutants.whole - mutants.part
        smallest = f", the smallest: {mutants.missing[0]}" if mutants.missing else ""
        yield f"{alive} of {mutants.whole} mutated alternatives of the changed lines pass too{smallest}"
    if others:
        told = "of repairs that were tried, pass too and answer otherwise on inputs near theirs"
        yield f"{others} other behaviours, {told}"


def _short(t: Threshold, lines: Share | None, mutants: Share | None, functions: Share | None, others: int) -> list[str]:
    found = []
    for name, share, least in (
        ("changed lines run by tests", lines, t.lines),
        ("mutants killed", mutants, t.mutants),
        ("touched functions compared", functions, t.functions),
    ):
        if share is not None and not share.whole and name != "mutants killed":
            continue  # there is nothing of that kind to measure
        if least and (share is None or share.share < least):
            told = "not measured" if share is None else f"{share}"
            found.append(f"{name}: {told}; {t.grade} asks for {least:.0%}")
    few = mutants is not None and mutants.whole < LEAST_MUTANTS
    if few and t.grade in (Grade.A, Grade.B):
        assert mutants is not None
        found.append(f"mutants: only {mutants.whole}; {t.grade} asks for at least {LEAST_MUTANTS}")
    if others and t.grade in (Grade.A, Grade.B):
        found.append(f"other behaviours that pass the tests: {others}; {t.grade} asks for none")
    return found
