"""`localagent deps check|approve|approvals|install`: which distributions may come in, and bringing them in."""

import argparse
import os
import pwd
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.deps.check import Guard, pinned
from localagent.deps.known import load_known
from localagent.deps.locks import Locks, read_locks
from localagent.deps.reading import read_below, read_named
from localagent.deps.requirement import parse_requirement
from localagent.deps.sources import MOST_FILE_BYTES, Item, parse_project, parse_requirements
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import Answer, Approval, Ruling, Unreadable
from localagent.domain.policy import DependencyRules, Permission
from localagent.errors import AnswerIsNo, UsageFault
from localagent.policy.load import load_policy
from localagent.record.approvals import ApprovalStore

PROJECT = "pyproject.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    checking = actions.add_parser("check", help="may these distributions come in?", allow_abbrev=False)
    _requirements(checking)
    approving = actions.add_parser("approve", help="let a name in, on the record", allow_abbrev=False)
    approving.add_argument("name", metavar="NAME[==VERSION]")
    approving.add_argument("--reason", required=True, metavar="TEXT", help="why; kept in the journal of approvals")
    approving.add_argument("--distinct-from", default="", metavar="NAME", help="the known name that it is not")
    approving.add_argument("--withdraw", action="store_true", help="take every approval of NAME back instead")
    listing = actions.add_parser("approvals", help="what was approved, by whom and why", allow_abbrev=False)
    for action in (checking, approving, listing):
        action.add_argument("--policy", type=Path, metavar="FILE", help="default: the bundled default policy")
        action.add_argument("--json", action="store_true", help="one JSON object on standard output")


def _requirements(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="a requirement (PEP 508), such as 'attrs>=23'")
    parser.add_argument(
        "-r",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a requirements file; repeatable",
    )
    parser.add_argument("--repo", type=Path, metavar="DIR", help="the repository whose lock files count")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when everything asked for may come in (or was recorded), 1 when not."""
    path: Path = args.policy or settings.policies_dir / "default.toml"
    rules = load_policy(path).dependencies
    if args.action == "approvals":
        return _approvals(args, ApprovalStore(settings.state_dir), rules, render)
    known = load_known(path.parent / rules.known_names)
    if args.action == "approve":
        return _approve(args, ApprovalStore(settings.state_dir), path, rules, known, render)
    return _check(args, settings, rules, known, render)


def _check(
    args: argparse.Namespace, settings: Settings, rules: DependencyRules, known: KnownNames, render: Render
) -> int:
    guard, locks = guard_of(args, settings, rules, known)
    items = wanted_items(args, known)
    if not items and not (args.specs or args.files):
        items = project_items(args, known)
    rulings = [guard.rule(item) for item in items]
    answer = overall(rulings)
    if args.json:
        render.json({**verdict_json(rulings, locks), "answer": str(answer)})
    else:
        show(rulings, locks, render)
    return 0 if answer is Answer.ALLOWED else 1


def guard_of(
    args: argparse.Namespace, settings: Settings, rules: DependencyRules, known: KnownNames
) -> tuple[Guard, Locks]:
    """The guard that the arguments describe, and the lock files it counts."""
    if args.repo is not None and not args.repo.is_dir():
        raise UsageFault(f"--repo: {args.repo} is not a directory")
    locks = Locks() if args.repo is None else read_locks(args.repo, rules.lock_files, known)
    approvals = ApprovalStore(settings.state_dir).standing() if rules.approvals is Permission.ALLOW else ()
    option = str(args.policy) if args.policy else ""
    guard = Guard(rules=rules, known=known, locked=locks.entries, approvals=approvals, policy_option=option)
    return guard, locks


def wanted_items(args: argparse.Namespace, known: KnownNames) -> list[Item]:
    """What the command line and the files named on it ask for."""
    if not (args.specs or args.files or args.repo):
        raise UsageFault("nothing to check", remedy="name requirements, -r FILE, or --repo DIR")
    items = [parse_requirement(spec, "the command line", known) for spec in args.specs]
    for path in args.files:
        items += parse_requirements(read_named(path, MOST_FILE_BYTES), str(path), known)
    return items


def project_items(args: argparse.Namespace, known: KnownNames) -> list[Item]:
    """What the repository's pyproject.toml asks for."""
    try:
        data = read_below(args.repo, PROJECT, MOST_FILE_BYTES)
    except OSError as error:
        raise UsageFault(
            f"{args.repo / PROJECT}: cannot be read: {error.strerror or error}", remedy="name requirements or -r FILE"
        ) from error
    return parse_project(data, PROJECT, known)


def overall(rulings: Iterable[Ruling]) -> Answer:
    """REFUSED if anything is, else UNKNOWN if anything is, else ALLOWED."""
    answers = {ruling.answer for ruling in rulings}
    return next((a for a in (Answer.REFUSED, Answer.UNKNOWN) if a in answers), Answer.ALLOWED)


def verdict_json(rulings: list[Ruling], locks: Locks) -> dict[str, object]:
    """The answers as JSON."""
    return {
        "requirements": [{**asdict(ruling), "approve": ruling.approve or None} for ruling in rulings],
        "locks": list(locks.files),
        "not_locks": list(locks.left_out),
    }


def show(rulings: list[Ruling], locks: Locks, render: Render) -> None:
    """One line a requirement; the approval command below what a person may approve."""
    for line in locks.left_out:
        render.note(f"not counted as a lock: {line}")
    width = max((len(str(ruling.answer)) for ruling in rulings), default=0)
    for ruling in rulings:
        render.line(f"{ruling.answer:<{width}}  {ruling.shown}  ({ruling.source}): {ruling.why}")
        if ruling.approve:
            render.line(f"{'':<{width}}  a person may say: {ruling.approve}")
    if not rulings:
        render.line("nothing is asked for")


def _approve(
    args: argparse.Namespace,
    store: ApprovalStore,
    path: Path,
    rules: DependencyRules,
    known: KnownNames,
    render: Render,
) -> int:
    item = parse_requirement(args.name, "the command line", known)
    if isinstance(item, Unreadable):
        raise UsageFault(f"{args.name!r}: {item.why}")
    version = pinned(item.specifier)
    faults = [f"--reason {args.reason!r}: say why"] if not args.reason.strip() or len(args.reason) > 2000 else []
    if item.extras or item.marker or (item.specifier and not version):
        faults.append(f"{args.name!r}: a name, or a name and one version: NAME==VERSION")
    if version:
        try:
            Version(version)
        except InvalidVersion as error:
            faults.append(str(error))
    if faults:
        raise UsageFault(faults)
    approval = Approval(
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


def _refuse_approval(approval: Approval, rules: DependencyRules, known: KnownNames) -> None:
    """AnswerIsNo when the policy lets no approval of that name count."""
    if rules.approvals is Permission.DENY:
        raise AnswerIsNo(
            "this policy counts no approvals", remedy="whoever keeps the policy adds the name to `dependencies.allow`"
        )
    guard = Guard(rules=rules, known=known)
    denied = guard.rule(parse_requirement(approval.name, "", known))
    if denied.answer is Answer.REFUSED and denied.likeness is None:
        raise AnswerIsNo(f"{approval.name}: {denied.why}", remedy="an approval does not outweigh the policy's `deny`")
    likeness = known.look_alike(approval.name)
    if likeness is not None and approval.distinct_from != likeness.known:
        raise AnswerIsNo(
            f"{approval.name} looks like {likeness.known!r}: {likeness.family}, {likeness.detail}",
            remedy=f"if it is really meant, say so: --distinct-from {likeness.known}",
        )


def _user() -> str:
    number = os.getuid()
    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def _approvals(args: argparse.Namespace, store: ApprovalStore, rules: DependencyRules, render: Render) -> int:
    found = store.standing()
    counted = rules.approvals is Permission.ALLOW
    if args.json:
        render.json({"counted": counted, "journal": str(store.path), "approvals": [asdict(a) for a in found]})
        return 0
    for a in found:
        name = f"{a.name}{'==' + a.version if a.version else ''}"
        told = f", told apart from {a.distinct_from}" if a.distinct_from else ""
        render.line(f"{name}  {a.at}  {a.who}: {a.reason}{told}")
    if not found:
        render.line("nothing was approved")
    if not counted:
        render.note("this policy counts no approvals")
    return 0
