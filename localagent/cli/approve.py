"""`localagent approve`: a person lets in one change that needs a person, on the record."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from localagent.app import Settings
from localagent.app.approving import Approving, approve
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.record.patch_approvals import PatchApprovals
from localagent.record.store import TaskRecord, TaskStore
from localagent.tree.diff import unified_diff
from localagent.tree.unified import MAX_PATCH_BYTES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("what", metavar="ID|PATCH", help="a task, or a file with a diff; - is standard input")
    parser.add_argument("--repo", type=Path, metavar="DIR", help="the repository of a PATCH (default: .)")
    parser.add_argument("--choose", type=int, metavar="N", help="the proposal of a task, where there are several")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept in the journal of approvals")
    parser.add_argument("--withdraw", action="store_true", help="take every approval of this patch back instead")
    parser.add_argument("--policy", type=Path, metavar="NAME|FILE", help="default: default")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 recorded; 1 where no person may, or need, approve it; 4 where the service alone may take approvals."""
    request = _request(args, settings)
    approval, digest = approve(request, settings)
    state = "withdrawn" if request.withdraw else "approved"
    journal = str(PatchApprovals(settings.state_dir).path)
    if args.json:
        told = {**asdict(approval), "findings": approval.findings.split("\n")}
        render.json({"state": state, **told, "digest": digest, "journal": journal})
        return 0
    render.line(f"{state} {approval.patch} for {approval.repo} as {approval.who}; {digest} in {journal}")
    if not request.withdraw:
        for line in approval.findings.split("\n"):
            render.line(f"  {line}")
        if request.task:
            kept = TaskStore(settings.state_dir).open(request.task).patch() is not None
            number = "" if kept and args.choose is None else f" --choose {args.choose or 1}"
            render.note(f"to write it into the repository: localagent apply {request.task}{number}")
    return 0


def _request(args: argparse.Namespace, settings: Settings) -> Approving:
    is_file = args.what == "-" or Path(args.what).is_file()
    if not is_file:
        record = TaskStore(settings.state_dir).open(args.what)
        patch, repo, task = _of_task(record, args.choose), Path(record.task.repo), record.id
        if args.repo is not None and args.repo.resolve() != repo:
            raise UsageFault(f"--repo: task {task} is of {repo}, not of {args.repo}")
    else:
        repo, task = args.repo or Path(), ""
        faults = [f"--repo: {repo} is not a directory"] if not repo.is_dir() else []
        faults += ["--choose: only a task has proposals"] if args.choose is not None else []
        if faults:
            raise UsageFault(faults)
        patch = _read(args.what)
    return Approving(patch=patch, repo=repo, reason=args.reason, policy=args.policy, task=task, withdraw=args.withdraw)


def _of_task(record: TaskRecord, choose: int | None) -> bytes:
    """The diff of a task's patch, or of the proposal that is meant."""
    patch = record.proposal(choose) if choose is not None else record.patch()
    if patch is None and choose is None and record.proposal(2) is None:
        patch = record.proposal(1)
    if patch is None or not patch.changes:
        raise AnswerIsNo(
            f"task {record.id} has no such patch",
            remedy=f"`localagent show {record.id}` numbers its proposals: --choose N",
        )
    return unified_diff(patch)


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(MAX_PATCH_BYTES + 1)
        with Path(name).open("rb") as stream:
            return stream.read(MAX_PATCH_BYTES + 1)
    except OSError as error:
        raise UsageFault(f"{name}: cannot be read: {error.strerror or error}") from error
