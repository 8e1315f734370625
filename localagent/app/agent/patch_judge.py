"""The proof of a change: named tests, the verification that `verify` gives any patch, and what that is worth here.

A change that is refused goes back to the model with the reason. What no test shows is told, and is accepted only where
whoever gave the instruction said that nobody wants to be asked (`assume`); it never gets a grade better than C.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pathspec

from localagent.agent.agent_ports import JudgeAnswer, Judgement, Person, SuiteOutcome
from localagent.agent.approval import frozen_among
from localagent.agent.events import AgreedBy, AgreedTests
from localagent.app.agent.idle_statements import idle_statements
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.model_review import ModelReview
from localagent.app.agent.request import DoRequest
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.untested_code import untested
from localagent.app.agent.unused_additions import unused_additions
from localagent.app.cancellation import Stop
from localagent.app.review.instruction_review import instruction_reviewer
from localagent.app.review.verify_patch import run_verify
from localagent.app.review.verify_run import VerifyRequest
from localagent.app.settings import Settings
from localagent.domain.claim import Claim
from localagent.domain.edit import Patch
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.review import PatchVerdict
from localagent.domain.strength import LEAST_MUTANTS, Grade, Strength
from localagent.domain.verification import PersonReason, UnrunCode, Verification, VerifyVerdict
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.ports import Sink
from localagent.repo.diff.write_diff import unified_diff

_MOST_WITHOUT_TURNED = Grade("C")
_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the last judgement rests on."""

    patch: Patch
    verification: Verification
    answer: JudgeAnswer
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shortfall:
    """What a patch that passes every check lacks: the model is told once of each kind, then a person decides."""

    kind: str
    what: str
    remedy: str


@dataclass(kw_only=True)
class VerifyJudge:
    """`PatchJudge` by the verification of patches."""

    request: DoRequest
    settings: Settings
    policy: Policy
    tree: SnapshotTree
    runs: JailRuns
    person: Person
    sink: Sink
    stop: Stop
    named_fail: Callable[[], bool]
    frozen: frozenset[RepoPath] = frozenset()  # tests that are the specification
    review: ModelReview | None = None
    agreed_tests: Callable[[], AgreedTests | None] = lambda: None
    refused: Callable[[Collection[RepoPath]], Sequence[RepoPath]] = lambda _written: ()
    claim: Claim = Claim.ADDS
    proof: Proof | None = None
    _reported: set[str] = field(default_factory=set)

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """Never raises for what the change does; CannotEnforce where it cannot be judged at all."""
        del summary  # a model's word proves nothing
        if why := frozen_among(writes, self.frozen):
            return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        agreed = self.agreed_tests()
        if agreed is not None and (why := _altered(agreed, writes)):
            return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        quick = self.runs.run_tests(writes, ())
        if quick.outcome not in (SuiteOutcome.PASSED, SuiteOutcome.NO_TESTS):
            return Judgement(answer=JudgeAnswer.REFUSED, reason=f"not finished, the tests fail: {quick.text}")
        for tests in (self.request.tests, tuple(agreed.files) if agreed is not None else ()):
            if tests and (why := self._named(writes, tests)):
                return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        patch = self.tree.patch(writes)
        diff = unified_diff(patch)
        # what fails outside a specification may go on failing, as the whole suite has just shown
        apart = () if not self.request.from_tests or self.runs.passes(writes, ()) else self.request.tests
        found = self._verified(diff, apart)
        found = replace(found, strength=_at_most_c(found))
        answer, reason = self._answer(found)
        reason += "; tests outside the specification fail as before" if apart else ""
        for short in self._shortfalls(found, writes) if answer is JudgeAnswer.ACCEPTED else ():
            if short.kind not in self._reported:
                self._reported.add(short.kind)
                reason = f"not finished, {short.what}; {short.remedy}"
                return Judgement(answer=JudgeAnswer.REFUSED, reason=reason)
            answer, reason = JudgeAnswer.NEEDS_PERSON, f"{short.what}: {reason}"
            break
        if agreed is not None and agreed.files:
            reason += f"; {told_of(agreed)}"
            if answer is JudgeAnswer.ACCEPTED and (weak := _unnoticed(found)):
                answer, reason = JudgeAnswer.NEEDS_PERSON, f"{weak}: {reason}"
        if self.review is not None:
            answer, reason = self.review.settle(answer, reason, diff, found, {*self.tree.paths, *writes})
        if answer is JudgeAnswer.ACCEPTED and self._wants_to_see():
            shown = diff.decode("utf-8", "replace")
            if not (self.person.present and self.person.approves(f"this patch ({reason})", shown)):
                answer = JudgeAnswer.NEEDS_PERSON
                left = "you have not taken it" if self.person.present else "a person has to take it"
                reason = f"a patch was made and passes every check ({reason}); {left}"
        self.proof = Proof(patch=patch, verification=found, answer=answer, reason=reason)
        return Judgement(answer=answer, reason=reason)

    def _wants_to_see(self) -> bool:
        return not self.request.assume and self.request.trust.value != "auto"

    def _named(self, writes: Mapping[RepoPath, str | None], tests: tuple[str, ...]) -> str:
        """Why the tests that were named do not hold, "" where they do."""
        try:
            if self.runs.passes(writes, tests):
                return ""
            return f"not finished: {self.runs.run_tests(writes, tests).text}"
        except AnswerIsNo as no:
            return f"the tests that were named cannot be run: {no}"

    def _answer(self, found: Verification) -> tuple[JudgeAnswer, str]:
        said = f"{found.headline}: {found.reason}" if found.headline else found.reason
        match found.verdict:
            case VerifyVerdict.VERIFIED | VerifyVerdict.CHARACTERIZED:
                return JudgeAnswer.ACCEPTED, said
            case VerifyVerdict.UNPROVEN if self.request.assume and _gates_allow(found):
                return JudgeAnswer.ACCEPTED, f"the tests pass as before, and none shows the change itself: {said}"
            case VerifyVerdict.CANNOT_ENFORCE:
                raise CannotEnforce(found.reason, remedy=found.remedy)
            case VerifyVerdict.REFUSED | VerifyVerdict.REFUTED | VerifyVerdict.COULD_NOT:
                return JudgeAnswer.REFUSED, f"{said}{_findings(found)}"
            case VerifyVerdict.NEEDS_PERSON if found.asked is PersonReason.GATES:
                return JudgeAnswer.NEEDS_PERSON, f"{said}{_findings(found)}"
        return JudgeAnswer.NEEDS_PERSON, f"{said}{_findings(found)}"

    def _verified(self, diff: bytes, tests: tuple[str, ...]) -> Verification:
        return run_verify(
            VerifyRequest(
                patch=diff,
                repo=self.request.repo,
                tests=tests,
                checks=self.request.checks,
                python=self.request.python,
                seed=self.request.seed,
                policy=self.request.policy,
                backend=self.request.backend,
                claim=Claim.FIXES if self.claim is Claim.ADDS and self.named_fail() else self.claim,
                seconds=self.request.limits.seconds,
            ),
            self.settings,
            self.sink,
            self.stop,
            reviewer=instruction_reviewer(self.request.instruction),
        )

    def _shortfalls(self, found: Verification, writes: Mapping[RepoPath, str | None]) -> Iterator[_Shortfall]:
        if missed := self._untested(found, writes):
            yield _Shortfall(
                kind="test", what=f"no test runs {_shown(missed)}", remedy="add a test that runs and checks it"
            )
        if left := self.refused(writes):
            what = f"{left[0]} was to be changed, that was refused, and it is as it was"
            remedy = "change it in a way that may be, or call finish if it is to stay"
            yield _Shortfall(kind="change", what=what, remedy=remedy)
        if idle := self._idle(writes):
            yield _Shortfall(kind="effect", what=f"a statement without effect: {idle[0]}", remedy="take it out")
        if spare := self._unused(writes):
            what = f"nothing uses {spare[0]}, and the instruction does not name it"
            yield _Shortfall(kind="use", what=what, remedy="use it, or take it out")

    def _idle(self, writes: Mapping[RepoPath, str | None]) -> list[str]:
        sources = {p: t.encode() for p, t in writes.items() if t is not None and p.is_python}
        return [idle for p, after in sources.items() for idle in idle_statements(p, self.tree.read(p) or b"", after)]

    def _unused(self, writes: Mapping[RepoPath, str | None]) -> tuple[str, ...]:
        tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in self.policy.paths.tests])
        texts = {path: text.encode() for path, text in writes.items() if text is not None}
        after = {p: t for p, t in texts.items() if p.is_python and not tests.match_file(p.lower())}
        rest = (self.tree.read(path) or b"" for path in self.tree.paths if path not in writes)
        others = itertools.chain((t for p, t in texts.items() if p not in after), rest)
        return unused_additions({p: self.tree.read(p) for p in after}, after, others, self.request.instruction)

    def _untested(self, found: Verification, writes: Mapping[RepoPath, str | None]) -> list[UnrunCode]:
        """What no test ran and has to be; tests that the user named and that turned are all that was asked for."""
        if found.verdict is VerifyVerdict.VERIFIED and self.request.tests:
            return []
        sources = [t for p, t in writes.items() if t is not None and p.is_python]
        return untested(found.unrun, sources, self.request.instruction)


def told_of(agreed: AgreedTests) -> str:
    """What the tests that a model wrote before the work are worth."""
    names = ", ".join(sorted(agreed.files))
    if agreed.by is AgreedBy.PERSON:
        return f"{names}: tests written by the model, and agreed to by a person"
    assumed = "and assumed, read by nobody" if agreed.by is AgreedBy.ASSUMED else "and read by nobody"
    return f"{names}: tests written by the model {assumed}"


def _altered(agreed: AgreedTests, writes: Mapping[RepoPath, str | None]) -> str:
    """Why tests that were agreed to do not judge any more; "" where they stand as they were."""
    other = [path for path, text in agreed.files.items() if writes.get(path) != text]
    return f"{other[0]} is not as it was agreed to" if other else ""


def _unnoticed(found: Verification) -> str:
    """Why tests that a model wrote are too weak to rest on: they pass for most programs like this; "" where not."""
    mutants = found.mutants
    if mutants is None or mutants.tried < LEAST_MUTANTS or 2 * mutants.killed >= mutants.tried:
        return ""
    return f"the tests notice {mutants.killed} of {mutants.tried} small faults in the change, too few to rest on"


def _gates_allow(found: Verification) -> bool:
    """Whether the gates ask nobody: what is unproven comes here with their questions still open."""
    return found.review is not None and found.review.verdict is PatchVerdict.ALLOWED


def _shown(missed: Sequence[UnrunCode]) -> str:
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return ", ".join(map(str, missed[:_NAMED])) + more


def _at_most_c(found: Verification) -> Strength | None:
    """The strength, capped where no test failed before and passes now."""
    strength = found.strength
    turned = found.full.fail_to_pass if found.full is not None else ()
    if strength is None or turned or found.claim is Claim.PRESERVES or not strength.grade.reaches(Grade("B")):
        return strength
    return replace(
        strength,
        grade=_MOST_WITHOUT_TURNED,
        limits=(*strength.limits, "no test failed before and passes now, so none shows what was added"),
    )


def _findings(found: Verification) -> str:
    if found.review is None:
        return ""
    open_ = [f for d in found.review.decisions if d.answer is not Allow.ALLOW for f in d.findings]
    shown = "; ".join(f"{f.path or ''}:{f.line} {f.message} [{f.rule}]" for f in open_[:4])
    return f" ({shown})" if shown else ""
