"""A person's word on a patch that needs one: recorded for exactly the change that was judged, and asked for later.

The person is the account that runs localagent (the real uid). That this is not who asked for the patch can be known to
the service alone: where a policy wants it, no word is taken here, and those count that the service holds.
"""

import os
import pwd
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from localagent.app.policies import open_policy
from localagent.app.review.instruction_review import instruction_reviewer
from localagent.app.review.patch_gate import GateRequest, review_patch
from localagent.app.settings import Settings
from localagent.domain.edit import Patch
from localagent.domain.policy import ApprovalRules, Permission, Policy
from localagent.domain.review import PatchApproval, PatchReview, PatchVerdict
from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.gate.approval_required import files_needing_approval
from localagent.gate.assumed_answers import ASSUMED, TESTS
from localagent.ports import Approvals
from localagent.record.approval_journal import patch_approvals
from localagent.repo.diff.write_diff import unified_diff

ONLY_THE_SERVICE = 'the policy says `approvals.by_asker = "deny"`: only the service knows who asked'
BY_THE_SERVICE = (
    "order it with `localagent fix --daemon`; then another account that the policy names says"
    " `localagent approve ID --daemon --reason WHY`, and `localagent apply ID` here asks the daemon"
)
_MOST_REASON = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Approving:
    """What is approved, or taken back: a diff for a repository. `task` is the task it came from, if any.

    `instruction`: what it was made for, where it was made for one.
    """

    patch: bytes
    repo: Path
    reason: str
    policy: Path | None = None
    task: str = ""
    withdraw: bool = False
    instruction: str = ""


def account() -> str:
    """The name of the account that runs this, by its real uid; the number where it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def refuse_approver(rules: ApprovalRules, who: str) -> None:
    """CannotEnforce where the service alone may take approvals, AnswerIsNo for an account that may not approve."""
    if rules.by_asker is Permission.DENY:
        raise CannotEnforce(f"cannot take an approval here: {ONLY_THE_SERVICE}", remedy=BY_THE_SERVICE)
    if "*" not in rules.people and who not in rules.people:
        named = ", ".join(rules.people) or "nobody"
        raise AnswerIsNo(f"{who} may not approve: the policy names {named}", remedy="ask one of them")


def approve(request: Approving, settings: Settings) -> tuple[PatchApproval, str]:
    """The recorded approval and the digest of its line. AnswerIsNo for what no person may, or need, approve."""
    if not request.reason.strip() or len(request.reason) > _MOST_REASON:
        raise UsageFault(f"--reason: say why, in at most {_MOST_REASON} characters")
    policy = open_policy(settings, request.policy, request.repo).policy
    who = account()
    refuse_approver(policy.approvals, who)
    gate = GateRequest(patch=request.patch, repo=request.repo, policy=request.policy, everything=True, approvals=False)
    if request.instruction:
        review = instruction_reviewer(request.instruction)(gate, policy, settings)[0]
    else:
        review = review_patch(gate, settings)
    approval = PatchApproval(
        patch=review.digest,
        change=review.change,
        repo=str(request.repo.resolve()),
        findings="\n".join(review.questions),
        policy=policy.name,
        who=who,
        reason=request.reason.strip(),
        at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        task=request.task,
    )
    store = patch_approvals(settings.state_dir)
    if request.withdraw:
        return approval, store.withdraw(approval)
    if review.verdict is PatchVerdict.ALLOWED:
        raise AnswerIsNo("this patch needs no person: every gate allows it", remedy="nothing is to be approved")
    if review.verdict is PatchVerdict.REFUSED:
        found = sorted({f.rule for d in review.decisions for f in d.findings if not _asks(review, f.rule)})
        raise AnswerIsNo(
            f"this patch is refused whoever approves it: {', '.join(found)}", remedy="`localagent gate --all` says why"
        )
    return approval, store.approve(approval)


def _asks(review: PatchReview, rule: str) -> bool:
    return rule in review.rules and review.rules[rule].asks_person


def needs_person(patch: Patch, policy: Policy) -> tuple[str, ...]:
    """The files of a repair's patch that the policy wants a person to look at."""
    return files_needing_approval(patch, policy)


def refuse_unapproved(
    patch: Patch,
    repo: Path,
    named: Path | None,
    settings: Settings,
    *,
    task: str,
    service: Approvals | None = None,
    instruction: str = "",
    assumed: bool = False,
) -> None:
    """AnswerIsNo where a patch touches what needs a person and nobody approved it for the tree as it stands.

    CannotEnforce where only the service may take approvals and there is none to ask. `instruction`: what the patch was
    made for, where it was made for one; then the policy's `[instruction]` says what may change. `assumed`: nobody
    wanted to be asked what it means.
    """
    policy = open_policy(settings, named, repo).policy
    if instruction:
        asked = GateRequest(patch=unified_diff(patch), repo=repo, policy=named, everything=True, service=service)
        reviewer = instruction_reviewer(instruction, ASSUMED | TESTS if assumed else ())
        _refuse_unless_allowed(reviewer(asked, policy, settings)[0], policy, task)
        return
    critical = needs_person(patch, policy)
    if not critical:
        return
    others = policy.approvals.by_asker is Permission.DENY
    if others and service is None:
        raise CannotEnforce(f"{', '.join(critical)} needs a person, and {ONLY_THE_SERVICE}", remedy=BY_THE_SERVICE)
    review = review_patch(GateRequest(patch=unified_diff(patch), repo=repo, policy=named, service=service), settings)
    if review.verdict is PatchVerdict.ALLOWED:
        return
    if review.verdict is PatchVerdict.REFUSED:
        found = sorted({f.message for d in review.decisions for f in d.findings if not _asks(review, f.rule)})
        raise AnswerIsNo(f"the gates refuse this patch: {'; '.join(found)}", remedy="see `localagent gate`")
    raise AnswerIsNo(
        f"{', '.join(critical)} needs a person, and nobody {'else ' if others else ''}approved this change",
        remedy=approve_by(task, policy.approvals),
    )


def _refuse_unless_allowed(review: PatchReview, policy: Policy, task: str) -> None:
    """AnswerIsNo for a patch that the gates refuse, or ask a person about."""
    if review.verdict is PatchVerdict.ALLOWED:
        return
    found = "; ".join(sorted({f"{f.message} [{f.rule}]" for d in review.decisions for f in d.findings}))
    if review.verdict is PatchVerdict.REFUSED:
        raise AnswerIsNo(f"the gates refuse this patch: {found}", remedy="see `localagent gate`")
    raise AnswerIsNo(
        f"this patch needs a person, and nobody approved it: {found}", remedy=approve_by(task, policy.approvals)
    )


def approve_by(task: str, rules: ApprovalRules) -> str:
    """How a patch of a task is approved under a policy."""
    if rules.by_asker is Permission.DENY:
        return f"`localagent approve {task} --daemon --reason WHY`, by another account that the policy names"
    return f"`localagent approve {task} --reason WHY`, by somebody whom the policy names"
