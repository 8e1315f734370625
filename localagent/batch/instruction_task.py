"""An instruction as the work of a repository: a session of `do` on the tree as it stands, which lands nothing.

Nobody is there to be asked: what the gates leave to a person is a proposal in the morning.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localagent.agent.approval import Trust
from localagent.agent.limits import Limits
from localagent.app.agent.request import DoOutcome, DoRequest
from localagent.app.agent.run import run_do
from localagent.app.agent.session_run import Frontend
from localagent.app.settings import Settings
from localagent.batch.cache_key import policy_of
from localagent.batch.fleet import FleetMember, WorkKind
from localagent.batch.repair_tasks import STATES, SeenTree
from localagent.batch.stacked_patches import Patches, too_late
from localagent.batch.task_result import RepositoryState, WorkStep
from localagent.domain.task import Verdict
from localagent.text.visible_text import one_line

_SHOWN = 300  # characters of an instruction in the evidence


def instructed(
    member: FleetMember, folder: Path, patches: Patches, settings: Settings, left: Callable[[], float]
) -> tuple[WorkStep, tuple[str, ...]]:
    """`do` on the repository as it stands, without applying; and its warnings. AnswerIsNo where no model answers."""
    began, seconds = time.monotonic(), left()
    if seconds < 1:
        return too_late(WorkKind.INSTRUCTION, "the instruction was not begun"), ()
    patches.asked_model = bool(member.chat_model)
    request = DoRequest(
        instruction=member.instruction.strip(),
        repo=folder,
        tests=member.tests,
        checks=member.checks,
        python=member.python,
        model=member.chat_model,
        trust=Trust.AUTO,
        assume=member.assume,
        limits=Limits(seconds=seconds, tokens=member.max_tokens),
        seed=member.seed,
        policy=policy_of(member),
    )
    seen = SeenTree()
    outcome = run_do(request, settings, Frontend(sink=seen))
    report = outcome.report
    patches.asked_model = bool(report["agent"]["replies"])
    patches.moved = seen.digest not in ("", patches.digest)
    spent = time.monotonic() - began
    warnings = outcome.warnings
    if patches.moved:
        warnings = (*warnings, "the tree changed while it was worked on: this answer is not kept for later nights")
    return _step(member, outcome, spent=spent, by_clock=spent >= seconds), warnings


def _step(member: FleetMember, outcome: DoOutcome, *, spent: float, by_clock: bool) -> WorkStep:
    report = outcome.report
    verdict = Verdict(report["outcome"])
    accepted = verdict is Verdict.ACCEPTED
    state = RepositoryState.ACCEPTED if accepted else STATES[verdict]
    return WorkStep(
        work=WorkKind.INSTRUCTION,
        state=RepositoryState.OUT_OF_BUDGET if by_clock and verdict is Verdict.GAVE_UP else state,
        outcome=verdict.value,
        reason=outcome.reason,
        remedy=outcome.remedy,
        patch=report["patch"] or "" if accepted else "",
        patch_digest=report["patch_digest"] or "" if accepted else "",
        turned=tuple(sorted(report["fail_to_pass"])),
        kept_passing=len(report["pass_to_pass"]),
        proposals=tuple(proposal["patch"] for proposal in report["proposals"]),
        files=len(report["agent"]["changed"]),
        evidence=_evidence(member, report),
        task=outcome.session,
        seconds=round(spent, 3),
    )


def _evidence(member: FleetMember, report: dict[str, Any]) -> dict[str, Any]:
    """What was asked, by what it was done, and how far to believe it."""
    names = ("claim", "grade", "not_shown", "recipe", "steps", "tools", "prompt_tokens", "reply_tokens")
    told = {name: report["agent"][name] for name in (*names, "speaks_to_machine")}
    more = {name: report[name] for name in ("jail", "model", "checks", "python", "pytest")}
    return {"instruction": one_line(member.instruction, _SHOWN), **told, **more}
