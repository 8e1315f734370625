"""The review of a change that was made for an instruction: the gates of patches, less what the instruction answers."""

from collections.abc import Collection
from dataclasses import replace

from localagent.app.review.patch_gate import GateRequest, review_changes, verdict_of, with_approval
from localagent.app.review.verify_patch import Reviewer
from localagent.app.settings import Settings
from localagent.domain.diff import TreeChange
from localagent.domain.policy import Policy
from localagent.domain.review import PatchReview, PatchVerdict
from localagent.gate.instruction_gates import for_instruction, instructed


def instruction_reviewer(instruction: str, assumed: Collection[str] = ()) -> Reviewer:
    """Reviews patches as made for some instruction. `assumed`: rules that nobody wants to be asked about."""

    def review(request: GateRequest, policy: Policy, settings: Settings) -> tuple[PatchReview, tuple[TreeChange, ...]]:
        asked, entries = review_changes(replace(request, approvals=False), instructed(policy), settings)
        decisions = tuple(for_instruction(asked.decisions, entries, instruction, policy, assumed))
        told = for_instruction(asked.decisions, entries, instruction, policy) if assumed else ()
        open_ = [f for d in decisions for f in d.findings]
        unread = asked.verdict is PatchVerdict.REFUSED and not entries
        verdict = asked.verdict if unread else verdict_of(decisions, asked.rules)
        left = tuple(f for d in told for f in d.findings if f not in open_)
        found = replace(asked, decisions=decisions, verdict=verdict, assumed=left)
        if request.approvals:
            found = with_approval(
                found, request.approved_for or request.repo, policy.approvals, settings, request.service
            )
        return found, entries

    return review
