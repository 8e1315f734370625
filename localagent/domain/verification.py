"""What `localagent verify` answers: a verdict on a patch, what it rests on, and everything that was seen on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.claim import Claim, DifferenceKind, FunctionEffect
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.review import PatchReview
from localagent.domain.strength import Share, Strength

_MISSING = 10


class VerifyVerdict(StrEnum):
    """The answer. Only VERIFIED and CHARACTERIZED are "yes" (exit 0).

    VERIFIED: tests ran what the patch changed, and all that count pass; what that shows depends on the claim.
    CHARACTERIZED: no test runs it; what it touches answers as before on every input that was tried. UNPROVEN: nothing
    speaks against the patch, and nothing for what is claimed of it. REFUTED: an input, or a test that turned, shows
    that what is claimed of it is not so.
    """

    VERIFIED = "verified"
    CHARACTERIZED = "characterized"
    UNPROVEN = "unproven"
    TOO_WEAK = "too-weak"
    REFUSED = "refused"
    REFUTED = "refuted"
    NEEDS_PERSON = "needs-person"
    COULD_NOT = "could-not-verify"
    CANNOT_ENFORCE = "cannot-enforce"
    INTERRUPTED = "interrupted"

    @property
    def yes(self) -> bool:
        """Whether the patch may go in, as far as this verb can tell."""
        return self in (VerifyVerdict.VERIFIED, VerifyVerdict.CHARACTERIZED)


class PersonReason(StrEnum):
    """Why a verification needs a person: a gate asks, an answer differs, a contract or a doctest is altered."""

    GATES = "gates"
    BEHAVIOUR = "behaviour"
    CONTRACTS = "contracts"
    DOCTESTS = "doctests"


class Basis(StrEnum):
    """What a verdict rests on."""

    TESTS = "tests"
    CHECKS = "checks"
    CHARACTERIZATION = "characterization"
    TYPES = "types"
    GATES = "gates"


class InputOrigin(StrEnum):
    """Where an input comes from: a test that the patch turns, another test, near a test's, made up, or CrossHair's."""

    DEMANDED = "demanded"
    TESTED = "tested"
    NEAR = "near"
    GENERATED = "generated"
    SYMBOLIC = "symbolic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One input on which old and new disagree. Texts are bounded; `crash`: new raises what nobody raised on purpose.

    `explained`: it fails as the failing tests did, or takes the way of a call that a turned test makes and that
    answers otherwise too, rather than the way of one that answers as before.
    """

    path: RepoPath
    function: str
    call: str
    old: str
    new: str
    origin: InputOrigin
    crash: bool = False
    effect: DifferenceKind = DifferenceKind.ANSWER
    explained: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionReach:
    """A touched function: inputs on which old and new were compared, how many agreed, why not more.

    `in_place`: these are calls of tests, looked at where the tests make them; nothing near them was asked. `idle`: none
    of the inputs runs a statement that changed, so that the answers agree whatever it does.
    """

    path: RepoPath
    function: str
    compared: int
    agreed: int
    answered: int
    why: str = ""
    least: int = 5
    in_place: bool = False
    idle: bool = False

    @property
    def reached(self) -> bool:
        """Enough inputs, some that were answered rather than turned down, and some that run what changed."""
        return self.compared >= self.least and self.answered > 0 and not self.idle

    @property
    def reached_by_inputs(self) -> bool:
        """Reached by inputs that were put to it, rather than by calls of tests alone."""
        return self.reached and not self.in_place


@dataclass(frozen=True, kw_only=True, slots=True)
class PropertyBreak:
    """A property that held for the old code on every input tried, and an input on which the new code breaks it.

    `unasked`: no turned test asks for that, and some input breaks it that is not `careless`.
    """

    path: RepoPath
    function: str
    name: str
    held: int
    call: str
    old: str
    new: str
    unasked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionChange:
    """What became of a whole function; `parameter` is the one that no longer matters, "" where it is not about one."""

    path: RepoPath
    function: str
    effect: FunctionEffect
    parameter: str = ""

    def __str__(self) -> str:
        if self.effect is FunctionEffect.CONSTANT:
            return f"{self.function} returns the same for every input"
        if self.effect is FunctionEffect.ONE_CHANGE:
            return (
                f"{self.function} returns the same for every input whose result changed, and tests ask for few of them"
            )
        if self.effect is FunctionEffect.MOST_CHANGED:
            return (
                f"{self.function} answers otherwise for most inputs, tests ask for few of these results, "
                "and none shows what is to stay"
            )
        return f"the argument {self.parameter!r} of {self.function} no longer matters"


@dataclass(frozen=True, kw_only=True, slots=True)
class Differential:
    """Old against new. `differences` are those that no turned test demands, unexplained ones and small inputs first.

    At most fifty. `demanded` counts the inputs of turned tests on which they differ, as they should; `explained` the
    others that such inputs explain; `unexplained` the rest, by kind. `steady` counts the results of calls that turned
    tests make before they fail, which run what changed and answer as before. `function_changes` are of functions as a
    whole.
    """

    functions: tuple[FunctionReach, ...]
    differences: tuple[Difference, ...] = ()
    differences_left_out: int = 0
    demanded: int = 0
    steady: int = 0
    explained: int = 0
    unexplained: Mapping[DifferenceKind, int] = field(default_factory=dict)
    function_changes: tuple[FunctionChange, ...] = ()
    properties_held: Mapping[str, int] = field(default_factory=dict)
    broken_properties: tuple[PropertyBreak, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        """On how many inputs old and new were compared."""
        return sum(f.compared for f in self.functions)

    @property
    def others(self) -> int:
        """On how many inputs they differ that no turned test makes."""
        return len(self.differences) + self.differences_left_out


class SymbolicResult(StrEnum):
    """What CrossHair says of a function. LIKELY_SAME: it went through every path that it knows."""

    DIFFERS = "differs"
    LIKELY_SAME = "likely-same"
    NOTHING_FOUND = "nothing-found"
    COULD_NOT = "could-not-answer"
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbolic:
    """CrossHair on one touched function; `why` where it was not asked or could not answer."""

    path: RepoPath
    function: str
    said: SymbolicResult
    why: str = ""
    differences: tuple[Difference, ...] = ()


class ContractResult(StrEnum):
    """What CrossHair says of a function's contracts after the patch. HELD: on every path that it knows."""

    HELD = "held"
    NOTHING_FOUND = "nothing-found"
    BROKEN = "broken"
    WAS_BROKEN = "broken-before-too"
    COULD_NOT = "could-not-answer"
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractBreak:
    """A contract that a call violates after the patch, and none was found to before.

    `held`: it was confirmed before, of a function whose head and contracts the patch leaves standing.
    """

    contract: str
    line: int
    found: str
    held: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Contracts:
    """The contracts of one touched function. `dropped` are conditions that it had before and has no more."""

    path: RepoPath
    function: str
    said: ContractResult
    why: str = ""
    broken: tuple[ContractBreak, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutants:
    """What became of mutants of the changed, covered lines. `alive` tells some that no test noticed, smallest first.

    `space` is how many there would have been; `tried` were run, in an order that the seed alone decides. Of the
    `killed`, `timed_out` ran over limits of their own, which are multiples of the time without a mutation; one that
    was cut off by whoever measures counts as not tried. `constant` are those of the living that return the same
    whatever they are given, in the place of what is worked out; `wider` those that raise a base of what the patch
    raises. `alike` more answered every input near those of the
    tests as the patch does: there is nothing that a test could notice, so they count neither as tried nor as alive.
    """

    tried: int
    killed: int
    space: int
    timed_out: int = 0
    alike: int = 0
    alive: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnneededPart:
    """A part of a patch without which every test passes as well. `path` and `line` are of the patched tree."""

    path: RepoPath
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Necessity:
    """Which parts of a patch the turned tests need: each was taken back alone, and the tests ran.

    `asked` of `parts` could be taken back and run. `unneeded` are those without which all tests pass; with all of them
    back, `differences` inputs answer otherwise, None where that could not be compared. `alternatives` are parts of one
    statement of which the tests need one, whichever it is, and without which no input answers otherwise.
    """

    parts: int
    asked: int
    unneeded: tuple[UnneededPart, ...] = ()
    alternatives: tuple[UnneededPart, ...] = ()
    differences: int | None = 0
    example: str = ""
    note: str = ""


def mutants_share(mutants: Mutants | None) -> Share | None:
    """Killed mutants as a part of strength, None where none were tried."""
    if mutants is None:
        return None
    return Share(part=mutants.killed, whole=mutants.tried, missing=mutants.alive[:_MISSING], note=mutants.note)


def compared_share(near: Differential) -> Share:
    """Compared functions as a part of strength."""
    if not near.functions:
        return Share(part=0, whole=0, note="no function that is touched stands in both trees")
    missed = [f"{f.path}: {f.function} ({f.why})" for f in near.functions if not f.reached]
    return Share(
        part=sum(f.reached for f in near.functions), whole=len(near.functions), missing=tuple(missed[:_MISSING])
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Assessment:
    """How strong the evidence for a repair is, measured in bounded time beside a full check that accepted it.

    `strength` is None where there is nothing that it could be the strength of; what it is evidence for is its `claim`.
    `cut` says what was not measured, or not to its end, and why. `same_answer`: of so many inputs, those of the tests
    among them, all got the same result.
    """

    strength: Strength | None
    mutants: Mutants | None = None
    differential: Differential | None = None
    same_answer: int = 0
    seconds: float = 0.0
    allowed_seconds: float = 0.0
    cut: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class UnrunCode:
    """Changed code that no passing test ran: a function by its name, or `line N`. `new`: it did not stand before."""

    path: RepoPath
    name: str
    new: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """A verdict with all that it rests on; what was not come to is None or empty.

    `patch` is the digest of the patch's text. `baseline_commit` is the commit whose tree was the one before, "" where
    that was the working tree. `left_alone` still fail, and the claim does not ask them to turn. `added` are tests
    that stand in the patched tree alone; `removed` those that are gone from it. `headline` is what was shown, the
    begin of the first line. `claim` is None where it was never come to; `claim_inferred`: nobody named it. `asked` is
    None unless the verdict is NEEDS_PERSON.
    """

    verdict: VerifyVerdict
    reason: str
    exit: int
    asked: PersonReason | None = None
    headline: str = ""
    claim: Claim | None = None
    claim_inferred: bool = True
    remedy: str = ""
    patch: str = ""
    repo: str = ""
    seed: int = 0
    baseline_commit: str = ""
    rests_on: tuple[Basis, ...] = ()
    review: PatchReview | None = None
    baseline: Baseline | None = None
    full: FullResult | None = None
    left_alone: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unrun: tuple[UnrunCode, ...] = ()
    differential: Differential | None = None
    mutants: Mutants | None = None
    necessity: Necessity | None = None
    strength: Strength | None = None
    symbolic: tuple[Symbolic, ...] | None = None
    contracts: tuple[Contracts, ...] | None = None
    least_strength: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    jail_backend: str = ""
    jail_level: str = ""
    warnings: tuple[str, ...] = ()
