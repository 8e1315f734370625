"""Two kinds of work: tests that fail, as `fix` repairs them, and known mistakes, as the hook repairs them.

Each makes a step with a patch that goes on top of the one before. Nothing is written but the kept task.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from localagent.app.fix.request import FixOutcome, FixRequest
from localagent.app.fix.run import run_fix
from localagent.app.review.patch_tests import TestProof
from localagent.app.settings import Settings
from localagent.batch.batch_ports import Codemods
from localagent.batch.cache_key import policy_of
from localagent.batch.fleet import FleetMember, WorkKind
from localagent.batch.stacked_patches import Patches, Proofs, too_late
from localagent.batch.task_result import RepositoryState, WorkStep
from localagent.domain.edit import FileChange, Patch
from localagent.domain.guard import DEFAULT_SECONDS, MOST_CHECKS, Guard, guard_of
from localagent.domain.task import Budget, Event, Stage, Verdict
from localagent.record.store import TaskStore
from localagent.repo.diff.write_diff import unified_diff

_SHOWN = 200
GUARD_SHARE = 0.25  # of a repository's seconds, for the guard checks of all candidates
_RAN = frozenset(
    {
        Verdict.ACCEPTED,
        Verdict.NOTHING_TO_FIX,
        Verdict.PROGRESS,
        Verdict.GAVE_UP,
        Verdict.ALL_DENIED,
        Verdict.NEEDS_PERSON,
        Verdict.AMBIGUOUS,
        Verdict.LOW_CONFIDENCE,
    }
)
STATES = {
    Verdict.ACCEPTED: RepositoryState.FIXED,
    Verdict.NOTHING_TO_FIX: RepositoryState.CLEAN,
    Verdict.PROGRESS: RepositoryState.NEEDS_PERSON,
    Verdict.GAVE_UP: RepositoryState.GAVE_UP,
    Verdict.NO_TESTS: RepositoryState.REFUSED,
    Verdict.UNTRUSTED_TESTS: RepositoryState.REFUSED,
    Verdict.ALL_DENIED: RepositoryState.REFUSED,
    Verdict.AMBIGUOUS: RepositoryState.NEEDS_PERSON,
    Verdict.LOW_CONFIDENCE: RepositoryState.LOW_CONFIDENCE,
    Verdict.NEEDS_PERSON: RepositoryState.NEEDS_PERSON,
    Verdict.CANNOT_ENFORCE: RepositoryState.CANNOT_ENFORCE,
    Verdict.INTERRUPTED: RepositoryState.FAULT,
    Verdict.FAULT: RepositoryState.FAULT,
}


class SeenTree:
    """A sink that keeps one thing: the digest of the tree that `fix` or `do` worked on."""

    digest = ""

    def emit(self, event: Event) -> None:
        """Looks for that alone."""
        if event.kind == "snapshot":
            self.digest = str(event.data.get("digest"))


def guard_within(member: FleetMember, seconds: float) -> Guard:
    """The guard of a repository that has so many seconds: all its checks take at most a share of them."""
    return guard_of(member.guard, min(DEFAULT_SECONDS, GUARD_SHARE * seconds / MOST_CHECKS))


def failing_tests(
    member: FleetMember, folder: Path, patches: Patches, settings: Settings, left: Callable[[], float]
) -> tuple[WorkStep, tuple[str, ...]]:
    """`fix` on the repository as it stands, without applying; and its warnings."""
    began, seconds = time.monotonic(), left()
    if seconds < 1:
        return too_late(WorkKind.FAILING_TESTS, "the tests were not run"), ()
    seen = SeenTree()
    guard = guard_within(member, seconds)
    search_seconds = seconds - (guard.task_seconds if member.tests or guard.tests else 0.0)
    budget = Budget(max_candidates=member.max_candidates, max_seconds=search_seconds, jobs=1)
    request = FixRequest(
        repo=folder,
        tests=member.tests,
        guard=guard,
        checks=member.checks,
        python=member.python,
        seed=member.seed,
        budget=budget,
        use_model=member.use_model,
        policy=policy_of(member),
    )
    outcome = run_fix(request, settings, seen)
    patches.moved = seen.digest not in ("", patches.digest)
    if Verdict(outcome.report["outcome"]) in _RAN:
        patches.tested, patches.baseline_seconds = True, outcome.report["seconds"].get(Stage.BASELINE.value, 0.0)
    spent = time.monotonic() - began
    step = _fix_step(outcome, spent=spent, by_clock=spent >= search_seconds)
    if step.patch and (patch := TaskStore(settings.state_dir).open(outcome.task_id).patch()) is not None:
        patches.add(patch)
    warnings = outcome.warnings
    if patches.moved:
        warnings = (*warnings, "the tree changed while it was worked on: this answer is not kept for later nights")
    return step, warnings


def _fix_step(outcome: FixOutcome, *, spent: float, by_clock: bool) -> WorkStep:
    report = outcome.report
    verdict = Verdict(report["outcome"])
    accepted = verdict is Verdict.ACCEPTED
    late = by_clock and verdict is Verdict.GAVE_UP
    return WorkStep(
        work=WorkKind.FAILING_TESTS,
        state=RepositoryState.OUT_OF_BUDGET if late else STATES[verdict],
        outcome=verdict.value,
        reason=outcome.reason,
        remedy=outcome.remedy,
        patch=report["patch"] or "" if accepted else "",
        patch_digest=report["patch_digest"] or "" if accepted else "",
        failing=tuple(sorted(report["failing"], key=lambda one: str(one["id"]))),
        turned=tuple(sorted(report["fail_to_pass"])),
        kept_passing=len(report["pass_to_pass"]),
        proposals=tuple(proposal["patch"] for proposal in report["proposals"]),
        confidences=tuple(
            _without_signals(one["confidence"]) for one in ([report] if accepted else report["proposals"])
        ),
        files=str(report["patch"] or "").count("\ndiff --git ") + 1 if accepted else 0,
        evidence=_evidence(report),
        task=outcome.task_id,
        seconds=round(spent, 3),
    )


def _without_signals(told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if told is None else {name: value for name, value in told.items() if name != "signals"}


def _evidence(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the report says of how far to believe it."""
    names = ("candidates_verified", "candidates_denied", "plausible", "rounds", "jail", "model", "checks", "flaky")
    return {name: report[name] for name in (*names, "diagnosis", "python", "pytest")}


def codemods(
    member: FleetMember, patches: Patches, proofs: Proofs, rules: Codemods, left: Callable[[], float]
) -> WorkStep:
    """Every safe repair of every source, on top of what the tests' repair changed."""
    began = time.monotonic()
    if patches.moved:
        reason = "the tree changed while it was worked on: known mistakes were not looked for"
        return WorkStep(work=WorkKind.CODEMODS, state=RepositoryState.REFUSED, outcome="refused", reason=reason)
    policy = proofs.policy
    changes: list[FileChange] = []
    repaired: list[dict[str, Any]] = []
    refused: list[str] = []
    found: Counter[str] = Counter()
    for path in patches.sources:
        if left() <= 0:
            return too_late(WorkKind.CODEMODS, f"not all of {len(patches.sources):,} files were looked at")
        before = patches.now(path)
        file = rules.repair(path, before, member.rules, policy)
        found.update(file.left)
        refused += [f"{path}: {file.refused}"] if file.refused else []
        if file.after is not None:
            changes.append(FileChange(path=path, before=before, after=file.after))
            repaired += [{"path": path, "line": n, "rule": rule, "message": text} for n, rule, text in file.repaired]
    patch = Patch(changes=tuple(sorted(changes, key=lambda change: change.path)))
    if changes and proofs.wanted and left() < proofs.need_seconds:
        return too_late(WorkKind.CODEMODS, f"{len(repaired)} repairs were made, and no time is left to run the tests")
    proof, task = _borne(patch, patches, proofs, repaired, sum(found.values())) if changes else (TestProof(said=""), "")
    if against := proof.against:
        reason = f"{len(repaired)} repairs are not offered: {against}"
        return WorkStep(
            work=WorkKind.CODEMODS,
            state=RepositoryState.REFUSED,
            outcome="refused",
            reason=reason,
            remedy="read them with `localagent hook check`",
            left=dict(sorted((found + Counter(one["rule"] for one in repaired)).items())),
            task=task,
            seconds=round(time.monotonic() - began, 3),
        )
    return WorkStep(
        work=WorkKind.CODEMODS,
        state=RepositoryState.IMPROVED if changes else RepositoryState.CLEAN,
        outcome="repaired" if changes else "nothing",
        reason=_summary(len(repaired), len(changes), sum(found.values())),
        patch=unified_diff(patch).decode("utf-8", "surrogateescape"),
        patch_digest=patch.digest if changes else "",
        repaired=tuple(repaired[:_SHOWN]),
        left=dict(sorted(found.items())),
        files=len(changes),
        evidence={
            "repairs": len(repaired),
            "tests": proof.said or "none to run",
            "refused": refused[:_SHOWN],
            "files": len(patches.sources),
        },
        task=task,
        seconds=round(time.monotonic() - began, 3),
    )


def _borne(
    patch: Patch, patches: Patches, proofs: Proofs, repaired: Sequence[Mapping[str, Any]], left: int
) -> tuple[TestProof, str]:
    """What the tests say of the repairs, where there are any, and the task that has it on the record."""
    with proofs.task() as task:
        proof = proofs.prover().proof(patches.with_(patch)) if proofs.wanted else TestProof(said="")
        for one in repaired:
            task.answered(dict(one))
        if proof.against:
            reason = f"{len(repaired)} repairs are not offered: {proof.against}"
            task.end(proofs.remedy(Patch(changes=()), reason, remain=True))
        else:
            task.end(proofs.remedy(patch, _summary(len(repaired), len(patch.changes), left), remain=bool(left)))
        return proof, task.record.id


def _summary(repairs: int, files: int, left: int) -> str:
    if not repairs and not left:
        return "no known mistake was found"
    made = f"{repairs} safe repairs in {files} files" if repairs else "no safe repair to make"
    return f"{made}; {left} findings are left" if left else made
