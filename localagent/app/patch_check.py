"""The full check of a patch that no search made: the tests before it and after it, in cold jails. Nothing is written.

Not promised: that a repair which no test reaches changes nothing.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from localagent.app.fixing import FixRequest, verifier_of
from localagent.app.least_level import least_level
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, Patch
from localagent.domain.outcome import FullResult
from localagent.domain.policy import Permission
from localagent.domain.task import Event, Task
from localagent.jail.open import open_jail, scratch_folder
from localagent.tree.snapshot import take_snapshot

_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the tests say of a patch: `against` is "" where nothing that passed before is lost."""

    said: str
    against: str = ""


class _Nowhere:
    """A sink for what nobody follows: the proof is one sentence."""

    def emit(self, event: Event) -> None:
        del event


def prove_patch(request: FixRequest, patch: Patch, settings: Settings) -> Proof:
    """Run everything without and with the patch. AnswerIsNo without anything to run, CannotEnforce without a jail."""
    policy = open_policy(settings, request.policy, request.repo).policy
    jail = open_jail(
        backend=request.backend,
        allow_third_party=policy.third_party_binaries is Permission.ALLOW,
        least=least_level(settings, policy),
    )
    task = Task(
        id="",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        seed=request.seed,
        budget=request.budget,
    )
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(settings.scratch_dir))
        snapshot = take_snapshot(Path(task.repo), scratch / "store")
        verifier = verifier_of(task, jail, snapshot, scratch, settings, policy, _Nowhere())
        stack.callback(verifier.cancel)
        baseline = verifier.baseline()
        full = verifier.full(Candidate(number=1, patch=patch, edits=(), cost=0.0), baseline, seed=request.seed)
    return _judged(full)


def _judged(full: FullResult) -> Proof:
    """What failed before may go on failing; what passed must pass, in order and shuffled."""
    said = full.checks.get("tests", "")
    if full.accepted:
        return Proof(said=said)
    if full.pass_to_fail:
        more = f" and {len(full.pass_to_fail) - _NAMED} more" if len(full.pass_to_fail) > _NAMED else ""
        named = ", ".join(full.pass_to_fail[:_NAMED])
        return Proof(said=said, against=f"tests that passed fail with them: {named}{more}")
    if full.still_failing and len(full.reasons) == 1:
        if full.pass_to_pass:
            return Proof(said=said)
        return Proof(said=said, against="no test passes, so nothing shows that they change nothing")
    return Proof(said=said, against="; ".join(full.reasons))
