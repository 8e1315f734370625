"""`localagent deps approve|approvals`: a person lets a name in, on the record; and what the record says."""

import argparse
import os
import pwd
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from localagent.cli.render import Render
from localagent.deps.choose import copied
from localagent.deps.dependency_check import DependencyGuard, pinned
from localagent.deps.requirement import parse_requirement
from localagent.deps.squat import KnownNames
from localagent.deps.wheel import read_wheel, sha256_of
from localagent.domain.dependency import DependencyApproval, DependencyVerdict, Locked, UnreadableRequirement
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
    if args.hash_from is not None and not version:
        faults.append("--hash-from: needs NAME==VERSION")
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
        sha256="" if args.hash_from is None else _sha256_of_wheel(args.hash_from, item.name, version),
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
        if approval.sha256:
            render.line(f"its wheel has sha256:{approval.sha256}")
        elif not args.withdraw and rules.require_hashes:
            render.note("to install it, name its SHA-256: --hash-from WHEEL, a lock file, or --hash in requirements")
    return 0


def _sha256_of_wheel(path: Path, name: str, version: str) -> str:
    """The SHA-256 of a wheel that is sound and of that name and version; AnswerIsNo for another."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(path, Path(folder))  # what is judged is what is hashed
        wheel = read_wheel(copy)
        if wheel.name != name or Version(wheel.version) != Version(version):
            raise AnswerIsNo(f"--hash-from: {path.name} is {wheel.name}=={wheel.version}, not {name}=={version}")
        return sha256_of(copy)


def approved_wheels(approvals: Sequence[DependencyApproval]) -> list[Locked]:
    """The wheels that were approved by their SHA-256, as entries of a lock."""
    return [
        Locked(name=one.name, version=one.version, hashes=frozenset({one.sha256}), lock=f"the approval by {one.who}")
        for one in approvals
        if one.sha256
    ]


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
        digest = f", sha256:{a.sha256}" if a.sha256 else ""
        render.line(f"{name}  {a.at}  {a.who}: {a.reason}{told}{digest}")
    if not found:
        render.line("no approvals")
    if not counted:
        render.note("this policy does not accept approvals")
    return 0
