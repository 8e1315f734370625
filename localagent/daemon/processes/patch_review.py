"""What the gates ask of the patches that a task left, while its tree still lies there: kept for whoever may approve.

The policy is the daemon's, tightened by the tree's own; the gates are those of `localagent gate`. Not promised: that a
client's policy asks the same; a word is held against what is asked where the patch goes in.
"""

from pathlib import Path

from localagent.app.policies import open_policy
from localagent.app.review.patch_gate import GateRequest, review_changes
from localagent.app.settings import Settings
from localagent.daemon.store.approval_store import ReviewedPatch
from localagent.domain.edit import Patch
from localagent.record.store import TaskRecord
from localagent.repo.diff.write_diff import unified_diff

ACCEPTED = 0  # the number of the accepted patch; proposals count from 1


def judge_patches(
    record: TaskRecord, numbers: tuple[int, ...], repo: Path, policy: Path, settings: Settings
) -> tuple[ReviewedPatch, ...]:
    """The accepted patch and the proposals of these numbers, each put to all gates."""
    opened = open_policy(settings, policy, repo).policy
    people = "\n".join(opened.approvals.people)
    found = []
    for number in (ACCEPTED, *numbers):
        patch: Patch | None = record.patch() if number == ACCEPTED else record.proposal(number)
        if patch is None or not patch.changes:
            continue
        diff = unified_diff(patch)
        request = GateRequest(patch=diff, repo=repo, policy=policy, everything=True, approvals=False)
        review = review_changes(request, opened, settings)[0]
        found.append(
            ReviewedPatch(
                number=number,
                verdict=review.verdict.value,
                patch=review.digest,
                change=review.change,
                asked="\n".join(review.questions),
                policy=opened.name,
                people=people,
                diff=diff,
            )
        )
    return tuple(found)
