"""One patch from bytes to verdict: read, applied in memory, put to the gates. Nothing runs and nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.diff import DiffFault, TreeChange
from localagent.domain.edit import digest_of
from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.policy import ApprovalRules, Permission, Policy
from localagent.domain.review import FileNote, PatchReview, PatchVerdict, RuleText
from localagent.errors import UsageFault
from localagent.gate.patch_gates import PatchGates
from localagent.gate.rule_catalogue import rule_texts
from localagent.jail.api import scratch_folder
from localagent.ports import Approvals
from localagent.record.approval_journal import patch_approvals
from localagent.record.store import TaskStore
from localagent.repo.commit_tree import commit_of, take_commit
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff
from localagent.repo.git import Git
from localagent.repo.top_level_modules import importable_names

# Whether a person's word stands for exactly the change that is judged: same patch, same files before and after.
#
# Where the policy says that who asked may not approve, words count that the service holds, and no others: it knows who
# asked. They name a task, and count for the repository that this user ordered that task for.


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


READING = "patch"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRequest:
    """What the user asked for. `everything`: ask all gates though one refused. `approvals`: whether they count.

    `approved_for`: the repository that approvals name, where `repo` is a private copy of it. `service` holds those that
    count where who asked may not approve. `baseline`: the commit the patch is for, "" for the working tree.
    """

    patch: bytes
    repo: Path
    policy: Path | None = None
    everything: bool = False
    approvals: bool = True
    approved_for: Path | None = None
    service: Approvals | None = None
    baseline: str = ""


def review_patch(request: GateRequest, settings: Settings) -> PatchReview:
    """The verdict. UsageFault for a wrong policy, CannotEnforce without a gate's tool, AnswerIsNo without a tree."""
    policy = open_policy(settings, request.policy, request.repo).policy
    if not request.baseline:
        return review_changes(request, policy, settings)[0]
    git = Git(request.repo.resolve(), {})
    commit = commit_of(git, request.baseline)
    with scratch_folder(settings.scratch_dir) as scratch:
        tree = Path(take_commit(git, commit, scratch / "old").store)
        return review_changes(replace(request, repo=tree, approved_for=request.repo), policy, settings)[0]


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
    not_asked = gates.not_applicable(entries)
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
