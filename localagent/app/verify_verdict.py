"""From two trees to a verdict: the first "no" ends it; a "yes" says what it rests on.

Tests count where one of them ran a changed statement and passes. Without that, old against new is all there is.
"""

from collections.abc import Sequence

from localagent.app.patch_evidence import Evidence, Subject, gather
from localagent.app.verify_run import Run
from localagent.domain.diff import TreeChange
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.strength import LEAST_MUTANTS
from localagent.domain.task import Snapshot
from localagent.domain.verification import Basis, Verification, VerifyVerdict
from localagent.verify.baseline import NoTests
from localagent.verify.changed import ChangedFile
from localagent.verify.doctests import altered
from localagent.verify.patches import unreached

_NAMED = 5
_DOCUMENTS = (".md", ".rst", ".txt")


class Judge:
    """From the two trees to the verdict. `files` are all changed sources, `others` what else changes (tests, data)."""

    def __init__(
        self, run: Run, subject: Subject, files: tuple[ChangedFile, ...], others: Sequence[TreeChange]
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
        if brings_tests:
            with run.timed("baseline"):
                self._added(self._verifier.ids(old), baseline)
        excused = self._excused(baseline)
        with run.timed("full-check"):
            full = self._verifier.full(self._every, baseline, seed=request.seed, may_fail=excused)
        run.known["full"] = full
        run.known["unreached"] = tuple(i for i in full.still_failing if i in excused)
        reasons = [*full.reasons, *self._removed()]
        if reasons:
            return run.answer(VerifyVerdict.REFUSED, "; ".join(reasons), remedy=_remedy(full))
        return self._judged(baseline, full, gather(self._subject, baseline, full))

    def _excused(self, baseline: Baseline) -> tuple[str, ...]:
        """Failing tests that may fail on: those that have nothing to do with the patch, for all that can be told.

        Not what was named, nor tests of files that the patch touches; none at all where it touches fixtures or data.
        """
        paths = {p for change in self._others for p in (change.path, change.source)}
        shared = any(p.name == "conftest.py" or (not p.is_python and not p.endswith(_DOCUMENTS)) for p in paths)
        if self._run.request.tests or self._run.request.checks or shared:
            return ()
        touched = {t.id for t in baseline.tests if t.path in paths}
        return tuple(i for i in unreached(baseline, self._files) if i not in touched)

    def _added(self, old: frozenset[str], baseline: Baseline) -> None:
        now = {t.id for t in baseline.tests}
        if old:
            self._run.known["added"] = tuple(sorted(now - old))
            self._run.known["removed"] = tuple(sorted(old - now - set(baseline.unstable)))

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
        run, least = self._run, self._run.request.least
        run.known.update(differential=evidence.differential, mutants=evidence.mutants, strength=evidence.strength)
        run.known.update(symbolic=evidence.symbolic, contracts=evidence.contracts)
        run.warnings += [*evidence.notes, *full.remarks]
        rests = self._basis(full, evidence)
        run.known["rests_on"] = rests
        if (no := _contracts_say(evidence)) is not None:
            return run.answer(no[0], no[1], remedy="look at the call, then mend the patch or confirm it")
        if baseline is not None and (doctests := self._altered(baseline)):
            reason = f"it alters what doctests expect, so a person has to say what is right: {_names(doctests)}"
            return run.answer(
                VerifyVerdict.NEEDS_PERSON, reason, remedy="leave the examples as they are, or confirm them"
            )
        verdict, reason, remedy = self._said(baseline, full, evidence, rests)
        grade = evidence.strength.grade if evidence.strength is not None else None
        if verdict.yes and least is not None and (grade is None or not grade.reaches(least)):
            found = f"its evidence is of strength {grade}" if grade else "the strength of its evidence is not known"
            short = "; ".join(evidence.strength.short) if evidence.strength is not None else ""
            reason = f"{found}, and {run.asks} asks for {least}" + (f" ({short})" if short else "")
            return run.answer(VerifyVerdict.TOO_WEAK, reason, remedy="add tests for what the patch changes")
        return run.answer(verdict, "; ".join((reason, *full.remarks)), remedy=remedy)

    def _altered(self, baseline: Baseline) -> tuple[str, ...]:
        """Doctests that pytest collects here and that ask something else once the patch is there."""
        texts = {f.source: (f.before, f.after) for f in self._every}
        texts |= {c.source: (c.before, c.after) for c in self._others if not c.path.is_python}
        return altered(texts, [t.id for t in baseline.tests])

    def _basis(self, full: FullResult, evidence: Evidence) -> tuple[Basis, ...]:
        """What was asked and answered. Tests count only where one of them ran what the patch changes."""
        found = [Basis.GATES]
        tests = [i for i in (*full.fail_to_pass, *full.pass_to_pass) if not i.startswith("check:")]
        checks = [i for i in (*full.fail_to_pass, *full.pass_to_pass) if i.startswith("check:")]
        turned = any(not i.startswith("check:") for i in full.fail_to_pass)
        if tests and ((evidence.ran and not _blind(evidence)) or turned or not self._files):
            found.append(Basis.TESTS)
        if checks:
            found.append(Basis.CHECKS)
        if evidence.differential is not None and any(f.reached for f in evidence.differential.functions):
            found.append(Basis.CHARACTERIZATION)
        if full.checks.get("mypy") == "nothing new":
            found.append(Basis.TYPES)
        return tuple(found)

    def _said(
        self, baseline: Baseline | None, full: FullResult, evidence: Evidence, rests: Sequence[Basis]
    ) -> tuple[VerifyVerdict, str, str]:
        counts = f"{len(full.fail_to_pass)} fail-to-pass, {len(full.pass_to_pass)} pass-to-pass, 0 pass-to-fail"
        left = self._run.known.get("unreached", ())
        assert isinstance(left, tuple)
        tail = f"; {len(left)} failing tests never run what it changes and are left alone" if left else ""
        if Basis.TESTS in rests or (Basis.CHECKS in rests and full.fail_to_pass):
            same = "" if self._files else "no statement of Python outside tests is changed; "
            return VerifyVerdict.VERIFIED, f"{same}{counts}{tail}", ""
        told = "no test was found" if baseline is None else "no test that passes runs what it changes"
        if baseline is not None and evidence.mutants is not None and _blind(evidence):
            told = f"the tests that run what it changes notice none of {evidence.mutants.tried} mutants of it"
        near = evidence.differential
        if near is None or not near.functions or not all(f.reached for f in near.functions) or evidence.around:
            reason = f"{told}, and old and new could not be compared on all that it changes{tail}"
            return VerifyVerdict.UNPROVEN, reason, "add a test that runs what the patch changes"
        if near.differences:
            many = len(near.differences) + near.differences_left_out
            reason = (
                f"{told}, and it answers otherwise on {many} of {near.inputs} inputs: a person has to say what is right"
            )
            return VerifyVerdict.NEEDS_PERSON, reason, "look at the table of differences, or add a test that wants them"
        reason = f"{told}; what it touches answers as before on all {near.inputs} inputs that were tried{tail}"
        return VerifyVerdict.CHARACTERIZED, reason, ""


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


def _blind(evidence: Evidence) -> bool:
    """Whether the tests would pass whatever the changed lines did: the control that they can fail at all."""
    mutants = evidence.mutants
    return mutants is not None and mutants.tried >= LEAST_MUTANTS and not mutants.killed


def _remedy(full: FullResult) -> str:
    if full.pass_to_fail:
        return "run those tests on the patched tree; they passed before it"
    return "see the reasons; the patch has to answer them"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
