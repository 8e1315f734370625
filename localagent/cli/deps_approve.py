"""`localagent deps approve|approvals`: a person lets a name in, on the record; and what the record says."""

import argparse
import os
import pwd
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from localagent.cli.render import Render
from localagent.deps.dependency_check import DependencyGuard, pinned
from localagent.deps.requirement import parse_requirement
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import DependencyApproval, DependencyVerdict, UnreadableRequirement
from localagent.domain.policy import DependencyRules, Permission
from localagent.errors import AnswerIsNo, UsageFault
from localagent.record.approval_journal import ApprovalJournal


def approve(
    args: argparse.Namespace,
    store: ApprovalJournal[DependencyApproval],
    path: Path,
    rules: DependencyRules,
    known: KnownNames,
    render: Render,
) -> int:
    """Record an approval, or take one back; 0, or AnswerIsNo where the policy lets it not count."""
    item = parse_requirement(args.name, "the command line", known)
    if isinstance(item, UnreadableRequirement):
        raise UsageFault(f"{args.name!r}: {item.why}")
    version = pinned(item.specifier)
    faults = ["--reason: 1 to 2,000 characters"] if not args.reason.strip() or len(args.reason) > 2000 else []
    if item.extras or item.marker or (item.specifier and not version):
        faults.append(f"{args.name!r}: a name, or a name and one version: NAME==VERSION")
    if version:
        try:
            Version(version)
        except InvalidVersion as error:
            faults.append(str(error))
    if faults:
        raise UsageFault(faults)
    approval = DependencyApproval(
        name=item.name,
        version=version,
        reason=args.reason.strip(),
        who=_user(),
        at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        policy=str(path),
        distinct_from=args.distinct_from,
    )
    if args.withdraw:
        digest, what = store.withdraw(approval), "withdrawn"
    else:
        _refuse_approval(approval, rules, known)
        digest, what = store.approve(approval), "approved"
    if args.json:
        render.json({"state": what, **asdict(approval), "digest": digest, "journal": str(store.path)})
    else:
        render.line(
            f"{what} {item.name}{'==' + version if version else ''} as {approval.who}; {digest} in {store.path}"
        )
    return 0


def _refuse_approval(approval: DependencyApproval, rules: DependencyRules, known: KnownNames) -> None:
    """AnswerIsNo when the policy lets no approval of that name count."""
    if rules.approvals is Permission.DENY:
        raise AnswerIsNo(
            "this policy does not accept approvals", remedy="add the name to `dependencies.allow` in the policy"
        )
    guard = DependencyGuard(rules=rules, known=known)
    denied = guard.rule(parse_requirement(approval.name, "", known))
    if denied.answer is DependencyVerdict.REFUSED and denied.likeness is None:
        raise AnswerIsNo(f"{approval.name}: {denied.why}", remedy="an approval cannot override the policy's `deny`")
    likeness = known.look_alike(approval.name)
    if likeness is not None and approval.distinct_from != likeness.known:
        raise AnswerIsNo(
            f"{approval.name} looks like {likeness.known!r}: {likeness.family}, {likeness.detail}",
            remedy=f"if you do mean this one: --distinct-from {likeness.known}",
        )


def _user() -> str:
    number = os.getuid()
    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def approvals(
    args: argparse.Namespace, store: ApprovalJournal[DependencyApproval], rules: DependencyRules, render: Render
) -> int:
    """List what stands approved."""
    found = store.standing()
    counted = rules.approvals is Permission.ALLOW
    if args.json:
        render.json({"counted": counted, "journal": str(store.path), "approvals": [asdict(a) for a in found]})
        return 0
    for a in found:
        name = f"{a.name}{'==' + a.version if a.version else ''}"
        told = f", distinct from {a.distinct_from}" if a.distinct_from else ""
        render.line(f"{name}  {a.at}  {a.who}: {a.reason}{told}")
    if not found:
        render.line("no approvals")
    if not counted:
        render.note("this policy does not accept approvals")
    return 0
