"""What was shown of a claim, in a verdict and in the words of the first line. Pure: reads evidence, runs nothing.

Only a test that failed before makes "verified by tests". Where nothing turned, what was shown is that tests pass as
before, and whether anything that was compared answers otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from localagent.app.review.patch_evidence import Evidence
from localagent.domain.claim import Claim
from localagent.domain.outcome import FullResult
from localagent.domain.strength import LEAST_MUTANTS, Strength
from localagent.domain.verification import Basis, Differential, VerifyVerdict
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX

_SAY_WHAT_FOR = "say what it is for (--claim), or bring a test that fails without it"


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownClaim:
    """A verdict, the begin of its first line ("" where the verdict's own does), its reason, what to do."""

    verdict: VerifyVerdict
    headline: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A claim with what was measured. `tested`: there is a baseline.

    `left` failing tests never run what changes, `still` ones do and fail as before; both are left alone. `changes`: a
    statement of Python outside tests differs. `strength` is the one for the claim.
    """

    claim: Claim
    full: FullResult
    evidence: Evidence
    strength: Strength | None
    rests: Sequence[Basis]
    tested: bool
    changes: bool
    left: int
    still: int = 0

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that failed before and pass."""
        return tuple(i for i in self.full.fail_to_pass if i.startswith(CHECK_PREFIX))

    @property
    def turned(self) -> tuple[str, ...]:
        """All that failed before and passes."""
        return (*self.evidence.turned, *self.checks)

    @property
    def near(self) -> Differential | None:
        """Old against new, None where nothing was asked."""
        near = self.evidence.differential
        return near if near is not None and near.functions else None

    @property
    def compared(self) -> bool:
        """Whether old and new were compared on all that changes."""
        near = self.near
        return near is not None and all(f.reached_by_inputs for f in near.functions) and not self.evidence.around

    @property
    def counts(self) -> str:
        """The comparison in a line."""
        full = self.full
        same = "" if self.changes else "no statement that runs outside tests is changed; "
        to_pass = f"{len(full.fail_to_pass)} fail-to-pass{self._collected}"
        return f"{same}{to_pass}, {len(full.pass_to_pass)} pass-to-pass, 0 pass-to-fail"

    @property
    def _collected(self) -> str:
        """Which of those that turned are files whose tests could not be imported, and how many these hold."""
        files = {i.removeprefix(COLLECT_PREFIX) for i in self.full.fail_to_pass if i.startswith(COLLECT_PREFIX)}
        if not files:
            return ""
        tests = sum(test.partition("::")[0] in files for test in self.evidence.turned)
        what = "a file that" if len(files) == 1 else f"{len(files)} files that"
        return f" ({what} could not be imported before, with {tests} test{'s' * (tests != 1)})"

    @property
    def tail(self) -> str:
        """What is left alone."""
        left = f"; {self.left} failing tests never run what it changes and are left alone" if self.left else ""
        return left + (f"; {self.still} that failed before run it and still fail" if self.still else "")

    @property
    def limits(self) -> str:
        """What speaks against the claim."""
        return "".join(f"; {limit}" for limit in self.strength.limits) if self.strength is not None else ""


def shown(case: Case) -> ShownClaim:
    """What the evidence shows of the claim."""
    if case.claim is Claim.PRESERVES:
        return _preserves(case)
    if case.claim is Claim.FIXES or case.claim is Claim.ADDS:
        return _turns(case)
    return _unclaimed(case)


def _turns(case: Case) -> ShownClaim:
    """A claim that something works now which did not."""
    if not case.turned:
        what = "fixes anything" if case.claim is Claim.FIXES else "adds anything"
        reason = f"no test that failed before passes with it, so that it {what} was not shown; {case.counts}{case.tail}"
        return ShownClaim(
            verdict=VerifyVerdict.UNPROVEN, headline="", reason=reason, remedy="bring a test that fails without it"
        )
    return ShownClaim(
        verdict=VerifyVerdict.VERIFIED, headline=_turned_headline(case), reason=f"{case.counts}{case.tail}{case.limits}"
    )


def _turned_headline(case: Case) -> str:
    if not case.evidence.turned:
        by = "by its check" if len(case.checks) == 1 else "by its checks"
        return f"Patch verified {by}, not by tests"
    if case.strength is not None and case.strength.limits:
        return "Patch turns its tests, and there is more to it than they show"
    return (
        "Patch verified by tests" if case.claim is Claim.FIXES else "Patch verified by tests that ask for what it adds"
    )


def _preserves(case: Case) -> ShownClaim:
    """A claim that nothing answers otherwise: one input that does, or one test that turns, refutes it."""
    near = case.near
    if case.turned:
        reason = f"{case.turned[0]} failed before and passes with it, so it does not keep what was there"
        return ShownClaim(
            verdict=VerifyVerdict.REFUTED, headline="", reason=reason, remedy="claim what it does: --claim fixes"
        )
    if near is not None and near.others + near.demanded:
        reason = f"{near.others + near.demanded} of {near.inputs} inputs answer otherwise{_example(near)}"
        return ShownClaim(
            verdict=VerifyVerdict.REFUTED, headline="", reason=reason, remedy="look at the input, then mend the patch"
        )
    if not _by_tests(case):
        return _without_tests(case)
    told = f"tests pass as before ({case.counts})"
    if not case.changes:
        return ShownClaim(
            verdict=VerifyVerdict.VERIFIED, headline="Tests pass as before", reason=f"{case.counts}{case.tail}"
        )
    if case.compared and near is not None:
        return ShownClaim(
            verdict=VerifyVerdict.VERIFIED,
            headline="Patch keeps what it touches as it was",
            reason=f"{told}, and no answer differs on all {near.inputs} inputs that were tried{case.tail}",
        )
    return ShownClaim(
        verdict=VerifyVerdict.VERIFIED,
        headline="Tests pass as before",
        reason=f"{case.counts}; old and new could not be compared on all that it changes{case.tail}",
    )


def _unclaimed(case: Case) -> ShownClaim:
    """Nobody said what it is for, and nothing that failed before passes."""
    near = case.near
    if not _by_tests(case):
        return _without_tests(case)
    if near is not None and near.others:
        reason = (
            f"tests pass as before; {near.others} of {near.inputs} inputs answer otherwise: what it is for is not known"
            f"{_example(near)}{case.tail}"
        )
        return ShownClaim(verdict=VerifyVerdict.NEEDS_PERSON, headline="", reason=reason, remedy=_SAY_WHAT_FOR)
    compared = (
        f"no answer differs on {near.inputs} inputs" if near is not None and near.inputs else "nothing was compared"
    )
    return ShownClaim(
        verdict=VerifyVerdict.VERIFIED,
        headline="Tests pass as before",
        reason=f"{case.counts}; {compared}, and what it is for is not known{case.tail}",
    )


def _by_tests(case: Case) -> bool:
    return Basis.TESTS in case.rests


def _example(near: Differential) -> str:
    if not near.differences:
        return ""
    first = min(near.differences, key=lambda d: (len(d.call), d.call))
    return f", the smallest: {first.call}: {first.old} -> {first.new}"


def _without_tests(case: Case) -> ShownClaim:
    """No test that could fail runs what changes: old against new is all there is."""
    evidence = case.evidence
    told = "no test that passes runs what it changes" if case.tested else "no test was found"
    if case.tested and evidence.mutants is not None and is_blind(evidence):
        told = f"the tests that run what it changes notice none of {evidence.mutants.tried} mutants of it"
    near = case.near
    if near is not None and near.others:
        many = f"{near.others} of {near.inputs} inputs"
        reason = f"{told}, and it answers otherwise on {many}: a person has to say what is right"
        remedy = "look at the table of differences, or add a test that wants them"
        return ShownClaim(verdict=VerifyVerdict.NEEDS_PERSON, headline="", reason=reason, remedy=remedy)
    if near is None or not case.compared:
        reason = f"{told}, and old and new could not be compared on all that it changes{case.tail}"
        return ShownClaim(
            verdict=VerifyVerdict.UNPROVEN,
            headline="",
            reason=reason,
            remedy="add a test that runs what the patch changes",
        )
    reason = f"{told}; what it touches answers as before on all {near.inputs} inputs that were tried{case.tail}"
    return ShownClaim(verdict=VerifyVerdict.CHARACTERIZED, headline="", reason=reason)


def is_blind(evidence: Evidence) -> bool:
    """Whether the tests would pass whatever the changed lines did: the control that they can fail at all."""
    mutants = evidence.mutants
    return mutants is not None and mutants.tried >= LEAST_MUTANTS and not mutants.killed
