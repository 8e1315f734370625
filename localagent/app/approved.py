"""Whether a person's word stands for exactly the change that is judged: same patch, same files before and after."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from localagent.app.settings import Settings
from localagent.domain.diff import TreeChange
from localagent.domain.edit import digest_of
from localagent.domain.policy import ApprovalRules, Permission
from localagent.domain.review import PatchReview, PatchVerdict
from localagent.record.patch_approvals import PatchApprovals


def with_approval(review: PatchReview, repo: Path, rules: ApprovalRules, settings: Settings) -> PatchReview:
    """The review, allowed where an approval of exactly this change answers all that was asked of a person.

    A patch that could not be read makes no change, so nobody can have approved it.
    """
    if review.verdict is not PatchVerdict.NEEDS_PERSON or not review.change or rules.by_asker is Permission.DENY:
        return review
    asked = set(review.asked)
    store = PatchApprovals(settings.state_dir)
    for approval in reversed(store.standing(review.digest, review.change, str(repo.resolve()))):
        named = "*" in rules.people or approval.who in rules.people
        if named and asked <= set(approval.findings.split("\n")):
            return replace(review, verdict=PatchVerdict.ALLOWED, approval=approval)
    return review


def change_digest(entries: Sequence[TreeChange]) -> str:
    """One digest over what a patch makes of every file: paths, modes, bytes before and after."""
    whole = sha256()
    for entry in entries:
        for text in (entry.source, entry.path, entry.kind, entry.before_mode or "", entry.after_mode or ""):
            data = text.encode("utf-8", "surrogateescape")
            whole.update(b"%d:%s" % (len(data), data))
        whole.update(f"{digest_of(entry.before)}{digest_of(entry.after)}".encode())
    return f"sha256:{whole.hexdigest()}"
