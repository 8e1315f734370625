"""One `verify` from patch to verdict: gates first, then both trees in jails, compared. The user's tree is only read.

The patch is applied to a private copy: what the gates judge is what runs. Nothing is landed, whatever the verdict.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from localagent.app.cancellation import Stop
from localagent.app.command_rules import refuse_denied
from localagent.app.fix.environment import interpreter_of, left_out
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.review.changed_sources import change_of_tests, python_sources
from localagent.app.review.patch_evidence import Subject
from localagent.app.review.patch_gate import GateRequest, review_changes
from localagent.app.review.verify_run import VerifyRequest, VerifyRun
from localagent.app.review.verify_verdict import VerdictMaker
from localagent.app.settings import Settings
from localagent.domain.diff import DiffRule, TreeChange
from localagent.domain.policy import Policy
from localagent.domain.review import PatchReview, PatchVerdict
from localagent.domain.task import Budget, Snapshot, Task
from localagent.domain.verification import PersonReason, Verification, VerifyVerdict
from localagent.errors import AnswerIsNo, CannotEnforce, Interrupted
from localagent.jail.api import scratch_folder
from localagent.ports import Sink
from localagent.repo.commit_tree import commit_of, take_commit
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff
from localagent.repo.diff.reverse import reversed_diff
from localagent.repo.git import Git
from localagent.repo.patched_snapshot import patched
from localagent.repo.snapshot import take_snapshot
from localagent.verify.evidence.crosshair_equivalence import require_crosshair
from localagent.verify.patch_verifier import PatchVerifier

Reviewer = Callable[[GateRequest, Policy, Settings], tuple[PatchReview, tuple[TreeChange, ...]]]


def run_verify(
    request: VerifyRequest,
    settings: Settings,
    sink: Sink,
    stop: Stop | None = None,
    *,
    reviewer: Reviewer = review_changes,
) -> Verification:
    """The verification. UsageFault for a wrong policy, interpreter, revision, or check that `[commands]` denies.

    Every other outcome is returned. `reviewer` puts the patch to the gates.
    """
    policy = open_policy(settings, request.policy, request.repo).policy
    refuse_denied(request.checks, policy)
    demanded = policy.min_strength.grade
    if demanded is not None and (request.least is None or not request.least.reaches(demanded)):
        run = VerifyRun(request=replace(request, least=demanded), sink=sink, asks=f"the policy {policy.name!r}")
    else:
        run = VerifyRun(request=request, sink=sink)
    try:
        if request.crosshair:
            require_crosshair()
        return _work(run, policy, settings, stop or Stop(), reviewer)
    except (KeyboardInterrupt, Interrupted):
        return run.answer(VerifyVerdict.INTERRUPTED, "the tree is as it was", exit_code=130)
    except CannotEnforce as fault:
        verdict = VerifyVerdict.CANNOT_ENFORCE
        return run.answer(verdict, str(fault), remedy=fault.remedy, exit_code=fault.exit_code)
    except AnswerIsNo as no:
        return run.answer(VerifyVerdict.COULD_NOT, str(no), remedy=no.remedy)


def _work(run: VerifyRun, policy: Policy, settings: Settings, stop: Stop, reviewer: Reviewer) -> Verification:
    request = run.request
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(settings.scratch_dir))
        with run.timed("snapshot"):
            old = _tree_before(run, scratch / "old")
        with run.timed("gates"):
            review, changes = reviewer(
                GateRequest(
                    patch=request.patch,
                    repo=Path(old.store),
                    everything=True,
                    approved_for=request.repo,
                    service=request.service,
                ),
                policy,
                settings,
            )
        run.known["review"] = review
        if not review.may_run:
            return _refused(run, review, old)
        jail = open_policy_jail(settings, policy, request.backend)
        run.known.update(jail_backend=jail.backend, jail_level=jail.level)
        task, is_test = _task(request), change_of_tests(policy)
        brings_tests = any(is_test(change) for change in changes)
        after = patched(old, scratch / "after", changes)
        before = patched(old, scratch / "before", changes, is_test) if brings_tests else old
        run.warnings += left_out(old)
        verifier = PatchVerifier(
            jail=jail,
            task=task,
            before=before,
            after=after,
            python=interpreter_of(task),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            policy=policy,
        )
        stack.callback(verifier.cancel)
        stack.enter_context(stop.calling(verifier.cancel))
        files = tuple(python_sources(changes, is_test))
        subject = Subject(
            verifier=verifier,
            files=tuple(f for f in files if not (f.alike() or f.described())),
            settings=settings,
            timer=run,
            after=after,
            seed=request.seed,
            jobs=request.jobs,
            crosshair=request.crosshair,
        )
        sources = {file.path for file in files}
        others = tuple(change for change in changes if change.path not in sources)
        said = _asking(VerdictMaker(run, subject, files, others).verdict(old, brings_tests=brings_tests), review)
        return replace(said, warnings=(*said.warnings, *verifier.limits_reached))


def _task(request: VerifyRequest) -> Task:
    """The request as what a verifier runs."""
    return Task(
        id="verify",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        seed=request.seed,
        budget=Budget(max_seconds=request.seconds, jobs=request.jobs),
    )


def _tree_before(run: VerifyRun, store: Path) -> Snapshot:
    request = run.request
    if not request.baseline:
        return take_snapshot(request.repo, store)
    git = Git(request.repo.resolve(), {})
    commit = commit_of(git, request.baseline)
    run.known["baseline_commit"] = commit
    return take_commit(git, commit, store)


def _asking(said: Verification, review: PatchReview) -> Verification:
    """What was shown, where the gates ask a person what the change means: evidence is none, only an approval is."""
    if review.verdict is PatchVerdict.ALLOWED or not said.verdict.yes:
        return said
    shown = said.headline[:1].lower() + said.headline[1:]
    return replace(
        said,
        verdict=VerifyVerdict.NEEDS_PERSON,
        asked=PersonReason.GATES,
        headline="",
        reason=f"{_rules(review)} asks what the change means; {shown}: {said.reason}",
        remedy=review.remedy or "read the findings below; `localagent approve` records that a person did",
        exit=AnswerIsNo.exit_code,
    )


def _rules(review: PatchReview) -> str:
    return ", ".join(dict.fromkeys(f.rule for decision in review.decisions for f in decision.findings))


def _refused(run: VerifyRun, review: PatchReview, old: Snapshot) -> Verification:
    """The answer where the gates do not let it run: nothing has run then, and nothing will."""
    found = [f for decision in review.decisions for f in decision.findings]
    if any(f.rule == DiffRule.MISMATCH for f in found) and _holds_already(run.request.patch, Path(old.store)):
        where = f"the commit {run.request.baseline!r}" if run.request.baseline else "the tree"
        return run.answer(
            VerifyVerdict.COULD_NOT,
            f"{where} holds this patch already, so there is no tree before it to compare with",
            remedy="name the commit that it was made for: --baseline HEAD where it is not committed yet, "
            "--baseline HEAD~1 where it is the last commit",
        )
    if misfit := next((f for f in found if f.rule == DiffRule.MISMATCH), None):
        said = f"the patch does not apply: {misfit.message}; nothing ran"
        return run.answer(VerifyVerdict.REFUSED, said, remedy=review.remedy)
    person = review.verdict is PatchVerdict.NEEDS_PERSON
    said = "a person has to look at it before it may run" if person else "a gate refuses it"
    return run.answer(
        VerifyVerdict.NEEDS_PERSON if person else VerifyVerdict.REFUSED,
        f"{said}: {_rules(review)}; nothing ran",
        remedy=review.remedy or "see the findings; `localagent gate` tells them without running anything",
    )


def _holds_already(patch: bytes, store: Path) -> bool:
    try:
        apply_diff(reversed_diff(parse_diff(patch)), store)
    except AnswerIsNo:
        return False
    return True
