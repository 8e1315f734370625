"""Whether a person's word stands for exactly the change that is judged: same patch, same files before and after.

Where the policy says that who asked may not approve, words count that the service holds, and no others: it knows who
asked. They name a task, and count for the repository that this user ordered that task for.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from localagent.app.settings import Settings
from localagent.domain.diff import TreeChange
from localagent.domain.edit import digest_of
from localagent.domain.policy import ApprovalRules, Permission
from localagent.domain.review import PatchReview, PatchVerdict
from localagent.errors import UsageFault
from localagent.ports import Approvals
from localagent.record.approval_journal import patch_approvals
from localagent.record.store import TaskStore


def with_approval(
    review: PatchReview, repo: Path, rules: ApprovalRules, settings: Settings, service: Approvals | None = None
) -> PatchReview:
    """The review, allowed where an approval of exactly this change answers all that was asked of a person.

    A patch that could not be read makes no change, so nobody can have approved it.
    """
    if review.verdict is not PatchVerdict.NEEDS_PERSON or not review.change:
        return review
    where = str(repo.resolve())
    if rules.by_asker is Permission.DENY:
        found = () if service is None else service.standing(review.digest, review.change, where)
        found = tuple(one for one in found if _repo_of(one.task, settings) == where)
    else:
        found = tuple(one for one in patch_approvals(settings.state_dir).standing() if one.repo == where)
    asked = set(review.questions)
    for approval in reversed(found):
        same = (approval.patch, approval.change) == (review.digest, review.change)
        named = "*" in rules.people or approval.who in rules.people
        if same and named and asked <= set(approval.findings.split("\n")):
            return replace(review, verdict=PatchVerdict.ALLOWED, approval=approval)
    return review


def _repo_of(task: str, settings: Settings) -> str:
    """The repository that a task of this user is for, "" for a task that is not this user's."""
    try:
        return TaskStore(settings.state_dir).open(task).task.repo
    except UsageFault:
        return ""


def change_digest(entries: Sequence[TreeChange]) -> str:
    """One digest over what a patch makes of every file: paths, modes, bytes before and after."""
    whole = sha256()
    for entry in entries:
        for text in (entry.source, entry.path, entry.kind, entry.before_mode or "", entry.after_mode or ""):
            data = text.encode("utf-8", "surrogateescape")
            whole.update(b"%d:%s" % (len(data), data))
        whole.update(f"{digest_of(entry.before)}{digest_of(entry.after)}".encode())
    return f"sha256:{whole.hexdigest()}"
