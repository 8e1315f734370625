"""The proof of a change: named tests, the verification that `verify` gives any patch, and what that is worth here.

A change that is refused goes back to the model with the reason. What no test shows is told, and is accepted only where
whoever gave the instruction said that nobody wants to be asked (`assume`); it never gets a grade better than C.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pathspec

from localagent.agent.agent_ports import Answer, JudgeAnswer, Judgement, Person, SuiteOutcome
from localagent.agent.approval import frozen_among
from localagent.agent.events import AgreedBy, AgreedTests
from localagent.app.agent.change_review import GateReview
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.model_review import ModelReview
from localagent.app.agent.request import DoRequest
from localagent.app.agent.shortfalls import shortfalls
from localagent.app.agent.snapshot_tree import SnapshotTree
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
from localagent.domain.verification import PersonReason, Verification, VerifyVerdict
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.gate.assumed_answers import ASSUMED, TESTS
from localagent.gate.instructed_tests import tests_of_something_else
from localagent.gate.tests.inventory import changed_bodies, changed_tests, tests_of_same_values
from localagent.ports import Sink
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.top_level_modules import importable_names
from localagent.verify.worker.worker_client import WorkerLost

_MOST_WITHOUT_TURNED = Grade("C")
_REWRITTEN = "rewritten"  # that tests were rewritten without need, likewise
_ASKED = "asked"  # that only a person may allow something, as a kind of what the model is told once


TESTS_ALONE = "only tests are changed, and they pass: how many faults they would notice was not measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the last judgement rests on. `tests_alone`: nothing but tests is changed."""

    patch: Patch
    verification: Verification
    reason: str
    tests_alone: bool = False


_SHOWN = 4
_COLLECT = "collect:"  # begins the name of a file that could not be read for its tests
# Shortfalls of which a model's word that nothing is missing does under `assume`.
_ASSUMED = frozenset({"demand", "spoken"})
_ASSUMED_IF_TURNED = _ASSUMED | {"test", "part"}  # where tests show what was asked for


@dataclass(kw_only=True)
class VerifyJudge:
    """`PatchJudge` by the verification of patches. `mends`: whoever made the change can be told what it lacks."""

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
    refused: Callable[[Mapping[RepoPath, str | None]], Sequence[RepoPath]] = lambda _written: ()
    with_refused: Callable[[Mapping[RepoPath, str | None]], Mapping[RepoPath, str | None]] = lambda written: written
    claim: Claim = Claim.ADDS
    mends: bool = True
    proof: Proof | None = None
    _reported: set[str] = field(default_factory=set)
    _last: tuple[bytes, tuple[str, ...], Verification] | None = None

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """Never raises for what the change does; CannotEnforce where it cannot be judged at all."""
        del summary  # a model's word proves nothing
        if why := frozen_among(writes, self.frozen):
            return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        writes = self._with_held_back(writes)
        agreed = self.agreed_tests()
        if agreed is not None and (why := _altered(agreed, writes)):
            return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        rewritten, unjustified = self._rewritten(writes)
        if unjustified and self.mends and _REWRITTEN not in self._reported:
            self._reported.add(_REWRITTEN)
            why = f"tests of {min(unjustified)} expect something else, and no run shows that what was asked for does"
            return Judgement(answer=JudgeAnswer.REFUSED, reason=f"not finished, {why}; put them back as they were")
        rest = {path: text for path, text in writes.items() if path not in unjustified}
        left_out = unjustified if rest and self._holds(rest) else frozenset[RepoPath]()
        writes = rest if left_out else writes
        if (refused := self._refused_by_tests(writes, agreed)) is not None:
            return refused
        patch = self.tree.patch(writes)
        diff = unified_diff(patch)
        # what fails outside a specification may go on failing, as the whole suite has just shown
        apart = () if not self.request.from_tests or self.runs.passes(writes, ()) else self.request.tests
        assumed = ASSUMED | TESTS if rewritten - unjustified and unjustified == left_out else ASSUMED
        found = self._verified_once(diff, apart, assumed)
        known = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in self.policy.paths.tests])
        alone = bool(writes) and all(known.match_file(path.lower()) for path in writes)
        answer, reason = self._answer(found, tests_alone=alone)
        reason += "; tests outside the specification fail as before" if apart else ""
        reason += f"; changes of {', '.join(sorted(left_out))} are left out: nothing asked for them" if left_out else ""
        if answer is JudgeAnswer.ACCEPTED:
            answer, reason = self._lacking(found, writes, f"{_told(found)}{reason}")
            if answer is JudgeAnswer.REFUSED:
                return Judgement(answer=answer, reason=reason)
        if agreed is not None and agreed.files:
            reason += f"; {told_of(agreed)}"
            if answer is JudgeAnswer.ACCEPTED and (weak := _unnoticed(found)):
                answer, reason = JudgeAnswer.NEEDS_PERSON, f"{weak}: {reason}"
        if self.review is not None:
            answer, reason = self.review.settle(answer, reason, diff, found, {*self.tree.paths, *writes})
        if answer is JudgeAnswer.ACCEPTED and self._wants_to_see():
            answer, reason = self._shown(diff, reason)
        self.proof = Proof(patch=patch, verification=found, reason=reason, tests_alone=alone)
        return Judgement(answer=answer, reason=reason)

    def _refused_by_tests(self, writes: Mapping[RepoPath, str | None], agreed: AgreedTests | None) -> Judgement | None:
        """What is said of a change with which tests fail; None where none does."""
        quick = self.runs.run_tests(writes, ())
        if quick.outcome not in (SuiteOutcome.PASSED, SuiteOutcome.NO_TESTS):
            why = f"the tests fail: {quick.text}"
            if quick.outcome is SuiteOutcome.FAILED:
                return self._proposed(writes, why)
            return Judgement(answer=JudgeAnswer.REFUSED, reason=f"not finished, {why}")
        for tests in (self.request.tests, tuple(agreed.files) if agreed is not None else ()):
            if tests and (why := self._named(writes, tests)):
                return Judgement(answer=JudgeAnswer.REFUSED, reason=why)
        return None

    def _verified_once(self, diff: bytes, apart: tuple[str, ...], assumed: frozenset[str]) -> Verification:
        """As the last time where nothing changed since: a second `finish` changes nothing that was verified."""
        if self._last is None or self._last[:2] != (diff, apart):
            found = self._verified(diff, apart, assumed)
            self._last = diff, apart, replace(found, strength=_at_most_c(found))
        return self._last[2]

    def _shown(self, diff: bytes, reason: str) -> tuple[JudgeAnswer, str]:
        """The answer of the person who wants to see a patch that passes every check."""
        shown = diff.decode("utf-8", "replace")
        if self.person.present and self.person.approves(f"this patch ({reason})", shown):
            return JudgeAnswer.ACCEPTED, reason
        left = "you have not taken it" if self.person.present else "a person has to take it"
        return JudgeAnswer.NEEDS_PERSON, f"a patch was made and passes every check ({reason}); {left}"

    def _lacking(
        self, found: Verification, writes: Mapping[RepoPath, str | None], reason: str
    ) -> tuple[JudgeAnswer, str]:
        """What a patch that holds lacks: the model is told once of each kind, then it is told, or left to a person."""
        short = list(shortfalls(found, writes, self.request, self.tree, self.policy, self.refused(writes)))
        new = [s for s in short if s.kind not in self._reported]
        self._reported |= {s.kind for s in new}
        if self.mends and new:
            return JudgeAnswer.REFUSED, f"not finished, {'; '.join(f'{s.what}; {s.remedy}' for s in new)}"
        if not short:
            return JudgeAnswer.ACCEPTED, reason
        turned = found.full is not None and found.full.fail_to_pass
        assumed = _ASSUMED_IF_TURNED if turned else _ASSUMED
        told = self.request.assume and all(s.kind in assumed for s in short)
        answer = JudgeAnswer.ACCEPTED if told else JudgeAnswer.NEEDS_PERSON
        return answer, f"{'; '.join(s.what for s in short)}: {reason}"

    def _holds(self, writes: Mapping[RepoPath, str | None]) -> bool:
        return self.runs.run_tests(writes, ()).outcome in (SuiteOutcome.PASSED, SuiteOutcome.NO_TESTS)

    def _proposed(self, writes: Mapping[RepoPath, str | None], why: str) -> Judgement:
        """A change that fails, with what was refused for want of a person, where it holds with that: never accepted.

        The model is told once before. Tests come first: the rest is added only where it does not hold with them alone.
        """
        tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in self.policy.paths.tests])
        whole = self.with_refused(writes)
        added = {path: text for path, text in whole.items() if path not in writes or writes[path] != text}
        refused = Judgement(answer=JudgeAnswer.REFUSED, reason=f"not finished, {why}")
        if not added:
            return refused
        names = ", ".join(sorted(added))
        if self.mends and _ASKED not in self._reported:
            self._reported.add(_ASKED)
            hint = f"only a person may allow what was refused in {names}; do without it, or call finish again to ask"
            return replace(refused, reason=f"not finished, {hint}; {why}")
        of_tests = {path: text for path, text in added.items() if tests.match_file(path.lower())}
        theirs = self._fail_by(writes, of_tests)
        for more in [of_tests, added] if of_tests and of_tests != added else [added]:
            patch = self.tree.patch({**writes, **more})
            found = self._verified(unified_diff(patch), ())
            found = replace(found, strength=_at_most_c(found))
            answer, reason = self._answer(found)
            if answer is JudgeAnswer.ACCEPTED:
                hint = f"what was refused in {', '.join(sorted(more))} may be by now: do it again"
                return replace(refused, reason=f"not finished, {hint}; {why}")
            if answer is JudgeAnswer.NEEDS_PERSON and (found.full is not None or (theirs and more == of_tests)):
                reason += "; without them no other test fails" if found.full is None else ""
                self.proof = Proof(patch=patch, verification=found, reason=reason)
                return Judgement(answer=answer, reason=reason)
        return refused

    def _with_held_back(self, writes: Mapping[RepoPath, str | None]) -> Mapping[RepoPath, str | None]:
        """The change with what was refused for want of a person alone, where nobody wants to be asked and it holds.

        It holds where the gates allow it together, and no test fails.
        """
        whole = self.with_refused(writes) if self.request.assume else writes
        if whole == writes or frozen_among(whole, self.frozen):
            return writes
        if self._gates(ASSUMED | TESTS).of_change({}, whole).answer is not Answer.ALLOW:
            return writes
        return whole if self._holds(whole) else writes

    def _gates(self, assumed: frozenset[str]) -> GateReview:
        own = importable_names(Path(self.tree.snapshot.store))
        return GateReview(self.policy, self.request.instruction, self.tree, own, assumed)

    def _rewritten(self, writes: Mapping[RepoPath, str | None]) -> tuple[frozenset[RepoPath], frozenset[RepoPath]]:
        """The files of tests that expect something else than the instruction says, and those that no run justifies."""
        asked = self._gates(ASSUMED).paths_asked(writes, TESTS) if self.request.assume else frozenset[RepoPath]()
        left = (p for p in asked if not self._overrules(writes, {p: self._text(p)}, {p: writes.get(p)}))
        return asked, frozenset(left)

    def _overrules(
        self,
        change: Mapping[RepoPath, str | None],
        stood: Mapping[RepoPath, str | None],
        texts: Mapping[RepoPath, str | None],
    ) -> bool:
        """Whether a change contradicts all tests that `texts` rewrite, as they `stood`, and no other test.

        The instruction has to speak of each, or whoever breaks what nobody asked about writes down that it is broken.
        None of them holds without the change, too, but for those that want the same values by other means.
        """
        pairs = [(p, stood[p] or "", texts[p] or "") for p in texts]
        rewritten = frozenset(t for pair in pairs for t in changed_bodies(*pair))
        concerned = frozenset(t for pair in pairs for t in changed_tests(*pair))  # by their fixtures, too
        files = {f"{_COLLECT}{path}" for path in texts}  # all tests of a file fail with it
        failing = self._failing({**change, **stood})
        fails = {t for t in concerned if t in failing or f"{_COLLECT}{t.partition('::')[0]}" in failing}
        if not fails or not rewritten <= fails or failing - concerned - files:
            return (
                False  # nor is what holds no test of its own, such as a file of fixtures: no run of it shows anything
            )
        if fails & {t for pair in pairs for t in tests_of_something_else(*pair, self.request.instruction)}:
            return False
        alone = self._failing({path: text for path, text in texts.items() if text is not None})
        holds = {t for t in rewritten if t not in alone and f"{_COLLECT}{t.partition('::')[0]}" not in alone}
        return not holds - frozenset(t for pair in pairs for t in tests_of_same_values(*pair))

    def _text(self, path: RepoPath) -> str | None:
        data = self.tree.read(path)
        return None if data is None else data.decode("utf-8", "replace")

    def _fail_by(self, writes: Mapping[RepoPath, str | None], wanted: Mapping[RepoPath, str | None]) -> bool:
        """Whether all tests that fail, and did not before, are those that `wanted` texts of test files would change."""
        failing = self._failing(writes)
        return bool(failing) and failing <= self._changed_by(writes, wanted)

    def _failing(self, writes: Mapping[RepoPath, str | None]) -> frozenset[str]:
        """The tests that fail and did not before, without parameters; none where that cannot be told."""
        try:
            return frozenset(name.partition("[")[0] for name in self.runs.newly_failing(writes))
        except (AnswerIsNo, WorkerLost):
            return frozenset()

    def _changed_by(
        self, writes: Mapping[RepoPath, str | None], wanted: Mapping[RepoPath, str | None]
    ) -> frozenset[str]:
        """The tests that `wanted` texts of files would change."""
        stands = {path: writes[path] if path in writes else self._text(path) for path in wanted}
        changed = [changed_tests(path, stands[path] or "", text or "") for path, text in wanted.items()]
        return frozenset(test for tests in changed for test in tests)

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

    def _answer(self, found: Verification, *, tests_alone: bool = False) -> tuple[JudgeAnswer, str]:
        said = f"{found.headline}: {found.reason}" if found.headline else found.reason
        match found.verdict:
            case VerifyVerdict.VERIFIED | VerifyVerdict.CHARACTERIZED:
                return JudgeAnswer.ACCEPTED, said
            case VerifyVerdict.UNPROVEN if self.request.assume and _gates_allow(found) and tests_alone:
                return JudgeAnswer.ACCEPTED, f"{TESTS_ALONE}: {said}"
            case VerifyVerdict.UNPROVEN if self.request.assume and _gates_allow(found):
                return JudgeAnswer.ACCEPTED, f"the tests pass as before, and none shows the change itself: {said}"
            case VerifyVerdict.CANNOT_ENFORCE:
                raise CannotEnforce(found.reason, remedy=found.remedy)
            case VerifyVerdict.REFUSED | VerifyVerdict.REFUTED | VerifyVerdict.COULD_NOT:
                return JudgeAnswer.REFUSED, f"{said}{_findings(found)}"
            case VerifyVerdict.NEEDS_PERSON if found.asked is PersonReason.GATES:
                return JudgeAnswer.NEEDS_PERSON, f"{said}{_findings(found)}"
        return JudgeAnswer.NEEDS_PERSON, f"{said}{_findings(found)}"

    def _verified(self, diff: bytes, tests: tuple[str, ...], assumed: frozenset[str] = frozenset()) -> Verification:
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
            reviewer=instruction_reviewer(self.request.instruction, assumed if self.request.assume else ()),
        )


def _told(found: Verification) -> str:
    """What nobody wanted to be asked about, as the begin of a reason."""
    asked = found.review.assumed if found.review is not None else ()
    shown = [f"{f.path or ''}:{f.line} {f.message} [{f.rule}]" for f in asked[:_SHOWN]]
    more = [f"{len(asked) - _SHOWN} more"] if len(asked) > _SHOWN else []
    return f"assumed without a question: {'; '.join((*shown, *more))}; " if asked else ""


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
