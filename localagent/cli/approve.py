"""`localagent approve`: a person lets in a change that needs a person, on the record; here, or at the daemon."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.agent.session_store import instruction_of
from localagent.app.review.approvals import Approving, approve
from localagent.cli.gate import read_patch
from localagent.cli.render import Render
from localagent.daemon.client.approval_client import patches_of, speak
from localagent.domain.review import PatchVerdict
from localagent.errors import AnswerIsNo, UsageFault
from localagent.protocol.http_client import DEFAULT_SOCKET, Client
from localagent.record.approval_journal import patch_approvals
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("what", metavar="ID|PATCH", help="a task, or a file with a diff; - is standard input")
    parser.add_argument("--repo", type=Path, metavar="DIR", help="the repository of a PATCH (default: .)")
    parser.add_argument("--choose", type=int, metavar="N", help="the number of the proposal, if there are several")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason; recorded with the approval")
    parser.add_argument(
        "--daemon",
        nargs="?",
        const=str(DEFAULT_SOCKET),
        metavar="SOCKET",
        help=f"the task belongs to somebody else and ran on this daemon (default: {DEFAULT_SOCKET})",
    )
    parser.add_argument("--withdraw", action="store_true", help="withdraw every approval of this patch")
    parser.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 recorded; 1 where no person may, or need, approve it; 4 where the service alone may take approvals."""
    if args.daemon is not None:
        return _by_daemon(args, render)
    request = _request(args, settings)
    approval, digest = approve(request, settings)
    state = "withdrawn" if request.withdraw else "approved"
    journal = str(patch_approvals(settings.state_dir).path)
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
            render.note(f"to apply it: localagent apply {request.task}{number}")
    return 0


def _by_daemon(args: argparse.Namespace, render: Render) -> int:
    """The daemon decides who may: it knows who asked for the task, and who speaks here."""
    odd = [f"--{name}" for name in ("repo", "policy") if getattr(args, name) is not None]
    if odd:
        raise UsageFault([f"{name}: the daemon's task and policy hold" for name in odd], remedy="leave it out")
    client = Client(Path(args.daemon))
    try:
        patch = _chosen(patches_of(client, args.what), args.what, args.choose)
        told = speak(client, args.what, patch, args.reason, withdraw=args.withdraw)
    finally:
        client.close()
    if args.json:
        render.json(told)
        return 0
    state = "withdrawn" if args.withdraw else "approved"
    render.line(f"{state} {patch['patch']} of task {args.what} as {told['who']}")
    if not args.withdraw:
        for line in patch["asked"]:
            render.line(f"  {line}")
        number = f" --choose {patch['number']}" if patch["number"] else ""
        render.note(f"the task's owner can apply it: localagent apply {args.what}{number}")
    if not told["recorded"]:
        render.note("not in effect yet: the daemon is waiting for its recorder")
    return 0


def _chosen(patches: list[dict[str, Any]], task: str, number: int | None) -> dict[str, Any]:
    """The patch that is meant; the only one where none is named."""
    asking = [one for one in patches if one["verdict"] == PatchVerdict.NEEDS_PERSON.value]
    if number is None and len(asking) == 1:
        return asking[0]
    found = [one for one in patches if one["number"] == number]
    if found:
        return found[0]
    numbers = "|".join(str(one["number"]) for one in asking) or "no patch there needs approval"
    raise AnswerIsNo(
        f"task {task}: {len(asking)} patches need approval; choose one",
        remedy=f"--choose {numbers}; `localagent tasks patches {task}` shows them",
    )


def _request(args: argparse.Namespace, settings: Settings) -> Approving:
    is_file, instruction = args.what == "-" or Path(args.what).is_file(), ""
    if not is_file:
        record = TaskStore(settings.state_dir).open(args.what)
        patch, repo, task = _of_task(record, args.choose), Path(record.task.repo), record.id
        instruction = instruction_of(record)
        if args.repo is not None and args.repo.resolve() != repo:
            raise UsageFault(f"--repo: task {task} is of {repo}, not of {args.repo}")
    else:
        repo, task = args.repo or Path(), ""
        faults = [f"--repo: {repo} is not a directory"] if not repo.is_dir() else []
        faults += ["--choose: only a task has proposals"] if args.choose is not None else []
        if faults:
            raise UsageFault(faults)
        patch = _read(args.what)
    return Approving(
        patch=patch,
        repo=repo,
        reason=args.reason,
        policy=args.policy,
        task=task,
        withdraw=args.withdraw,
        instruction=instruction,
    )


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
    faults: list[str] = []
    data = read_patch(name, faults)
    if faults:
        raise UsageFault(faults)
    return data
