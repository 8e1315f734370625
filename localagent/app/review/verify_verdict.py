"""From two trees to a verdict: the first "no" ends it; a "yes" says what it rests on.

Tests count where one of them ran a changed statement and passes. Without that, old against new is all there is. What a
"yes" says depends on the claim: see `claim_verdict`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from localagent.app.review.claim_verdict import Case, is_blind, shown
from localagent.app.review.patch_evidence import Evidence, Subject, gather
from localagent.app.review.verify_run import VerifyRun
from localagent.code.doctests import altered
from localagent.domain.claim import Claim
from localagent.domain.claim_limits import claim_limits, nothing_kept
from localagent.domain.diff import TreeChange
from localagent.domain.edit import FileChange
from localagent.domain.guard import GuardScope
from localagent.domain.outcome import Baseline, FullResult, TestResult
from localagent.domain.strength import Strength, limited
from localagent.domain.task import Snapshot
from localagent.domain.verification import Basis, PersonReason, Verification, VerifyVerdict
from localagent.gate.tests.removed_features import gone_tests
from localagent.verify.baseline.test_discovery import NoTests
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.claim_inference import inferred_claim
from localagent.verify.patch_verifier import unreached

_NAMED = 5
_DOCUMENTS = (".md", ".rst", ".txt")


class VerdictMaker:
    """From the two trees to the verdict. `files` are all changed sources, `others` what else changes (tests, data)."""

    def __init__(
        self, run: VerifyRun, subject: Subject, files: tuple[ChangedFile, ...], others: Sequence[TreeChange]
    ) -> None:
        self._run, self._subject, self._every, self._others = run, subject, files, others
        self._verifier, self._files = subject.verifier, subject.files

    def verdict(self, old: Snapshot, *, brings_tests: bool) -> Verification:
        """Baseline, full check, evidence; the first "no" ends it."""
        run, request = self._run, self._run.request
        try:
            with run.timed("baseline"):
                baseline = self._verifier.baseline()
        except NoTests:
            return self._without_tests()
        run.known["baseline"] = baseline
        run.warnings += baseline.notes
        untouched: Mapping[str, TestResult] = {}
        if brings_tests:
            with run.timed("baseline"):
                self._added(self._verifier.ids(old), baseline)
                if uncollected := [name.removeprefix(COLLECT_PREFIX) for name in baseline.collect_failures]:
                    untouched = self._verifier.results(old, uncollected)
        excused = self._excused(baseline)
        with run.timed("full-check"):
            full = self._verifier.full(
                self._every,
                baseline,
                seed=request.seed,
                may_fail=excused,
                untouched=untouched,
                groups=self._groups(baseline),
            )
        run.known["full"] = full
        run.known["left_alone"] = tuple(i for i in full.still_failing if i in {*excused, *full.fails_alike})
        reasons = [*full.reasons, *self._removed(), *self._moved(full, excused)]
        if reasons:
            return run.answer(VerifyVerdict.REFUSED, "; ".join(reasons), remedy=_remedy(full, reasons))
        guard = None
        if request.tests and request.guard.scope is not GuardScope.NONE:
            with run.timed("guard"):
                guard = self._verifier.guard(self._files, baseline, request.guard)
        if guard is not None:
            full = replace(full, guard=guard.result)
            run.known["full"] = full
            if guard.result.refusal:
                return run.answer(VerifyVerdict.REFUSED, guard.result.refusal, remedy=_remedy(full))
        return self._judged(baseline, full, gather(self._subject, baseline, full, guard))

    def _excused(self, baseline: Baseline) -> tuple[str, ...]:
        """Failing tests that may fail on: where nothing has to turn, all; else those that have nothing to do with it.

        Not what was named, nor tests of files that the patch touches; none at all where it touches fixtures or data.
        """
        told = self._run.request.claim
        if told is Claim.PRESERVES or (told is Claim.ADDS and not self._run.request.tests):
            return tuple(i for i in baseline.failing if not i.startswith(CHECK_PREFIX))
        paths = {p for change in self._others for p in (change.path, change.source)}
        shared = any(p.name == "conftest.py" for p in paths) or self._changes_data()
        if self._run.request.tests or self._run.request.checks or shared:
            return ()
        touched = {t.id for t in baseline.tests if t.path in paths}
        return tuple(i for i in unreached(baseline, self._files) if i not in touched)

    def _groups(self, baseline: Baseline) -> Mapping[str, str]:
        """Failing tests by the argument that names them, "" where nothing is named.

        Not what is named by itself, nor tests of files that the patch touches; none where it touches fixtures or data.
        """
        paths = {p for change in self._others for p in (change.path, change.source)}
        if any(p.name == "conftest.py" for p in paths) or self._changes_data():
            return {}
        specs = [spec for spec in self._run.request.tests if "::" not in spec]
        named = {spec for spec in self._run.request.tests if "::" in spec}
        found = {}
        for test in baseline.tests:
            alone = any(test.id == spec or test.id.startswith((f"{spec}[", f"{spec}::")) for spec in named)
            if test.id not in baseline.failing or test.path is None or test.path in paths or alone:
                continue
            if not self._run.request.tests:
                found[test.id] = ""
            places = ((spec, spec.removeprefix("./").rstrip("/")) for spec in specs)
            for spec, place in places:
                if place in ("", ".", test.path) or test.path.startswith(f"{place}/"):
                    found[test.id] = spec
        return found

    def _moved(self, full: FullResult, excused: Sequence[str]) -> list[str]:
        """What keeps all behaviour keeps the way in which tests fail, too."""
        moved = [i for i in full.fails_otherwise if i in excused]
        if self._run.request.claim is not Claim.PRESERVES or not moved:
            return []
        return [f"tests that failed before fail with another exception: {_names(moved)}"]

    def _changes_data(self) -> bool:
        """Whether anything changes that is neither Python nor text for people."""
        paths = {p for change in self._others for p in (change.path, change.source)}
        return any(not p.is_python and not p.endswith(_DOCUMENTS) for p in paths)

    def _added(self, old: frozenset[str], baseline: Baseline) -> None:
        now = {t.id for t in baseline.tests}
        if old:
            self._run.known["added"] = tuple(sorted(now - old))
            gone = old - now - set(baseline.unstable)
            if gone and baseline.collect_failures:  # files that need the patch to be collected
                now |= self._verifier.ids(self._subject.after)
                gone -= now
            gone -= self._numbered_anew(old, now)
            along = self._gone_along() if gone else frozenset()
            self._run.known["removed"] = tuple(sorted(i for i in gone if i.partition("[")[0] not in along))

    def _numbered_anew(self, old: Collection[str], now: Collection[str]) -> frozenset[str]:
        """Cases of tests that have as many as before, in files of the patch: a new row shifts the numbers in names.

        Which rows went or differ is for the gates, which read them.
        """
        paths = {change.path for change in self._others}
        had, has = (Counter(i.partition("[")[0] for i in ids if "[" in i) for ids in (old, now))
        kept = {test for test, count in had.items() if has[test] >= count and test.partition("::")[0] in paths}
        return frozenset(i for i in old if i.partition("[")[0] in kept)

    def _gone_along(self) -> frozenset[str]:
        """Tests that went with all that they tested: the gates have let that be by now, or a person has."""
        sources = [FileChange(path=f.path, before=f.before, after=f.after) for f in self._every]
        tests = [FileChange(path=c.path, before=c.before, after=c.after) for c in self._others if c.path.is_python]
        return gone_tests([f for f in sources if f.path not in {t.path for t in tests}], tests)

    def _removed(self) -> list[str]:
        gone = self._run.known.get("removed", ())
        assert isinstance(gone, tuple)
        return [f"tests are gone: {_names(gone)}"] if gone else []

    def _without_tests(self) -> Verification:
        """No test and no check: types and characterization are all there is."""
        run = self._run
        with run.timed("full-check"):
            answers = self._verifier.deltas(self._every)
        full = FullResult(
            accepted=not any(answer.refusal for answer in answers),
            reasons=tuple(answer.refusal for answer in answers if answer.refusal),
            fail_to_pass=(),
            pass_to_pass=(),
            pass_to_fail=(),
            still_failing=(),
            checks={answer.tool: answer.said for answer in answers},
            remarks=tuple(answer.remark for answer in answers if answer.remark),
        )
        run.known["full"] = full
        if full.reasons:
            return run.answer(VerifyVerdict.REFUSED, "; ".join(full.reasons), remedy=_remedy(full))
        return self._judged(None, full, gather(self._subject, None, full))

    def _judged(self, baseline: Baseline | None, full: FullResult, evidence: Evidence) -> Verification:
        run = self._run
        left = run.known.get("left_alone", ())
        assert isinstance(left, tuple)
        reached = {*left} - {*unreached(baseline, self._files)} if baseline is not None else set()
        claim, strength = self._claimed(baseline, full, evidence, reached)
        run.known.update(claim=claim, differential=evidence.differential, mutants=evidence.mutants, strength=strength)
        run.known.update(symbolic=evidence.symbolic, contracts=evidence.contracts, necessity=evidence.necessity)
        run.known["unrun"] = evidence.unrun
        run.warnings += [*evidence.notes, *full.remarks]
        rests = self._basis(full, evidence)
        run.known["rests_on"] = rests
        if (no := _contracts_say(evidence)) is not None:
            remedy = "look at the call, then mend the patch or confirm it"
            return run.answer(no[0], no[1], remedy=remedy, asked=PersonReason.CONTRACTS)
        if baseline is not None and (doctests := self._altered(baseline)):
            reason = f"it alters what doctests expect, so a person has to say what is right: {_names(doctests)}"
            remedy = "leave the examples as they are, or confirm them"
            return run.answer(VerifyVerdict.NEEDS_PERSON, reason, remedy=remedy, asked=PersonReason.DOCTESTS)
        case = Case(
            claim=claim,
            full=full,
            evidence=evidence,
            strength=strength,
            rests=rests,
            tested=baseline is not None,
            changes=bool(self._files),
            left=len(left) - len(reached),
            still=len(reached),
        )
        said = shown(case)
        if said.verdict.yes and (weak := self._too_weak(claim, strength)):
            return run.answer(VerifyVerdict.TOO_WEAK, weak, remedy="add tests for what the patch changes")
        reason = "; ".join((said.reason, *full.remarks))
        return run.answer(
            said.verdict, reason, remedy=said.remedy, headline=said.headline, asked=PersonReason.BEHAVIOUR
        )

    def _claimed(
        self, baseline: Baseline | None, full: FullResult, evidence: Evidence, reached: Collection[str]
    ) -> tuple[Claim, Strength | None]:
        """The claim, told or inferred, and the strength of its evidence; `reached` run the change and still fail."""
        checks = [i for i in full.fail_to_pass if i.startswith(CHECK_PREFIX)]
        claim = self._run.request.claim or inferred_claim(
            self._files,
            turned=(*evidence.turned, *checks),
            added=tuple(evidence.new | self._new_tests()),
            near=evidence.differential,
            data=self._changes_data(),
        )
        if evidence.strength is None:
            return claim, None
        limits = claim_limits(
            claim,
            evidence.differential,
            evidence.necessity,
            mutants=evidence.mutants,
            fails_on=sorted({*reached} - self._verifier.unmendable(baseline))
            if baseline is not None and reached
            else (),
            undecided=full.guard.undecided if full.guard is not None else (),
            by_checks=not evidence.turned and bool(checks),
            new_tests_ran=evidence.new_ran or not evidence.turned,
        )
        if not evidence.kept:
            limits += nothing_kept(claim)
        return claim, limited(evidence.strength, claim, limits)

    def _new_tests(self) -> frozenset[str]:
        """Tests that the patch brings."""
        added = self._run.known.get("added", ())
        assert isinstance(added, tuple)
        return frozenset(added)

    def _too_weak(self, claim: Claim, strength: Strength | None) -> str:
        """Why the strength does not do, "" where it does."""
        run, least = self._run, self._run.request.least
        if least is None or (strength is not None and strength.grade.reaches(least)):
            return ""
        if strength is None:
            return f"the strength of its evidence is not known, and {run.asks} asks for {least}"
        short = "; ".join((*strength.limits, *strength.short))
        found = f"its evidence for the claim {claim.value!r} is of strength {strength.grade}"
        return f"{found}, and {run.asks} asks for {least}" + (f" ({short})" if short else "")

    def _altered(self, baseline: Baseline) -> tuple[str, ...]:
        """Doctests that pytest collects here and that ask something else once the patch is there."""
        texts = {f.source: (f.before, f.after) for f in self._every}
        texts |= {c.source: (c.before, c.after) for c in self._others if not c.path.is_python}
        return altered(texts, [t.id for t in baseline.tests])

    def _basis(self, full: FullResult, evidence: Evidence) -> tuple[Basis, ...]:
        """What was asked and answered. Tests count only where one of them ran what the patch changes."""
        found = [Basis.GATES]
        tests = [i for i in (*full.fail_to_pass, *full.pass_to_pass) if not i.startswith(CHECK_PREFIX)]
        checks = [i for i in (*full.fail_to_pass, *full.pass_to_pass) if i.startswith(CHECK_PREFIX)]
        turned = any(not i.startswith(CHECK_PREFIX) for i in full.fail_to_pass)
        if tests and ((evidence.ran and not is_blind(evidence)) or turned or not self._files):
            found.append(Basis.TESTS)
        if checks:
            found.append(Basis.CHECKS)
        if evidence.differential is not None and any(f.reached_by_inputs for f in evidence.differential.functions):
            found.append(Basis.CHARACTERIZATION)
        if full.checks.get("mypy") == "nothing new":
            found.append(Basis.TYPES)
        return tuple(found)


def _contracts_say(evidence: Evidence) -> tuple[VerifyVerdict, str] | None:
    """What contracts have against the patch. Only where one was confirmed before is the patch alone at fault."""
    asked = evidence.contracts or ()
    broken = [(c, b) for c in asked for b in c.broken]
    told = [f"{c.function} breaks its contract `{b.contract}`: {b.found}" for c, b in broken]
    if any(b.held for _, b in broken):
        return VerifyVerdict.REFUSED, f"it breaks what held before: {_names(told)}"
    told += [f"{c.function} no longer has the contract `{text}`" for c in asked for text in c.dropped]
    if told:
        return VerifyVerdict.NEEDS_PERSON, f"a person has to say what is right: {_names(told)}"
    return None


def _remedy(full: FullResult, reasons: Sequence[str] = ()) -> str:
    if full.pass_to_fail or (full.guard is not None and full.guard.broken):
        return "run those tests on the patched tree; they passed before it"
    if reasons and all(reason.startswith("still failing") for reason in reasons):
        return (
            "they fail without the patch, too: where it is not for them, name those that it is for (--test), "
            "or say that it is to keep what the code does (--claim preserves)"
        )
    return "see the reasons; the patch has to answer them"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
