"""One patch from bytes to verdict: read, applied in memory, put to the gates. Nothing runs and nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.app.policies import open_policy
from localagent.app.review.approval_lookup import change_digest, with_approval
from localagent.app.settings import Settings
from localagent.domain.diff import DiffFault, TreeChange
from localagent.domain.edit import digest_of
from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.domain.review import FileNote, PatchReview, PatchVerdict, RuleText
from localagent.gate.patch_gates import PatchGates
from localagent.gate.rule_catalogue import rule_texts
from localagent.ports import Approvals
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff
from localagent.repo.top_level_modules import importable_names

READING = "patch"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRequest:
    """What the user asked for. `everything`: ask all gates though one refused. `approvals`: whether they count.

    `approved_for`: the repository that approvals name, where `repo` is a private copy of it. `service` holds those that
    count where who asked may not approve.
    """

    patch: bytes
    repo: Path
    policy: Path | None = None
    everything: bool = False
    approvals: bool = True
    approved_for: Path | None = None
    service: Approvals | None = None


def review_patch(request: GateRequest, settings: Settings) -> PatchReview:
    """The verdict. UsageFault for a wrong policy, CannotEnforce without a gate's tool, AnswerIsNo without a tree."""
    return review_changes(request, open_policy(settings, request.policy, request.repo).policy, settings)[0]


def review_changes(
    request: GateRequest, policy: Policy, settings: Settings
) -> tuple[PatchReview, tuple[TreeChange, ...]]:
    """The verdict under a loaded policy, and what the patch makes of the tree: nothing where it could not be read."""
    gates = PatchGates(policy)
    rules = rule_texts(policy)
    entries: tuple[TreeChange, ...] = ()
    files: tuple[FileNote, ...] = ()
    line, remedy, change = 0, "", ""
    try:
        entries = apply_diff(parse_diff(request.patch), request.repo)
        own = importable_names(request.repo)
        files, change = tuple(_note(entry) for entry in entries), change_digest(entries)
        read = Decision(gate=READING, answer=Allow.ALLOW)
        decisions: Sequence[Decision] = [read, *gates.review(entries, everything=request.everything, own_packages=own)]
    except DiffFault as fault:
        line, remedy = fault.line, fault.remedy
        found = Finding(rule=fault.rule, severity=Severity.HIGH, path=fault.path, line=0, message=str(fault))
        decisions = [Decision(gate=READING, answer=Allow.DENY, findings=(found,))]
    not_asked = gates.not_asked(entries)
    unread = decisions[0].answer is not Allow.ALLOW
    review = PatchReview(
        verdict=PatchVerdict.REFUSED if unread else verdict_of(decisions, rules),
        policy=policy.name,
        digest=digest_of(request.patch),
        gates=(READING, *(name for name in gates.names if name not in not_asked)),
        decisions=tuple(decisions),
        rules=rules,
        files=files,
        not_asked=not_asked,
        patch_line=line,
        remedy=remedy,
        change=change,
    )
    if request.approvals:
        where = request.approved_for or request.repo
        review = with_approval(review, where, policy.approvals, settings, request.service)
    return review, entries


def verdict_of(decisions: Sequence[Decision], rules: dict[str, RuleText]) -> PatchVerdict:
    """Allowed only if every gate said so; a person is asked only if nothing else stands against it."""
    if all(decision.answer is Allow.ALLOW for decision in decisions):
        return PatchVerdict.ALLOWED
    errors = any(decision.answer is Allow.ERROR for decision in decisions)
    found = [finding for decision in decisions for finding in decision.findings]
    person = bool(found) and all(f.rule in rules and rules[f.rule].asks_person for f in found)
    return PatchVerdict.NEEDS_PERSON if person and not errors else PatchVerdict.REFUSED


def _note(entry: TreeChange) -> FileNote:
    moved = tuple(n for n in entry.offsets if n)
    return FileNote(path=entry.path, source=entry.source, kind=entry.kind.value, moved_lines=moved)
