"""`localagent apply`: write an accepted or a chosen patch into the repository, whole or not at all.

What touches critical files is written only where a person approved exactly that change (`localagent approve`).
"""

import argparse
from contextlib import suppress
from pathlib import Path

from localagent.app import Settings
from localagent.app.agent.session_store import assumed_of, instruction_of
from localagent.app.evidence.integrity import hold_patch
from localagent.app.evidence.task_evidence import land_recorded
from localagent.app.fix.proposal_test_file import answer_test
from localagent.app.policies import open_policy
from localagent.app.review.approvals import refuse_unapproved
from localagent.cli.gate import add_daemon
from localagent.cli.render import Render
from localagent.cli.show import newest_here
from localagent.daemon.client.approval_client import service_of
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.store import TaskRecord, TaskStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        help="task id; a unique prefix is enough (default: the newest of this repository)",
    )
    parser.add_argument(
        "--choose",
        type=int,
        metavar="N",
        help="the number of the proposal to apply, as listed by `show`",
    )
    parser.add_argument(
        "--write-test",
        metavar="FILE",
        help="with --choose: also write a pytest test of the proposal's result where the proposals differ; FILE "
        "is in the repository: a new one, or one to whose end it goes",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="NAME|FILE",
        help="the policy whose critical and denied files apply (default: default)",
    )
    add_daemon(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 written, 1 refused (nothing was changed)."""
    if args.write_test is not None and args.choose is None:
        raise UsageFault("--write-test needs --choose", remedy="the test records the answer of the chosen proposal")
    store = TaskStore(settings.state_dir)
    record = store.open(args.id) if args.id is not None else newest_here(store, render)
    patch = record.patch() if args.choose is None else record.proposal(args.choose)
    if patch is None or not patch.changes:
        raise _nothing(record, args.choose, None if args.id is not None else _newest_with_patch(store, record))
    hold_patch(settings, record, patch)
    service = service_of(args.daemon, record)
    repo = Path(record.task.repo)
    asked = instruction_of(record)
    assumed = args.choose is None and assumed_of(record)
    refuse_unapproved(
        patch, repo, args.policy, settings, task=record.id, service=service, instruction=asked, assumed=assumed
    )
    test = None
    if args.write_test is not None:
        policy = open_policy(settings, args.policy, repo).policy
        test = answer_test(record.result_json() or {}, args.choose, patch, args.write_test, repo, policy)
    land_recorded(settings, record, patch, repo, chosen=args.choose, test=test)
    names = [str(c.path) for c in patch.changes]
    if args.json:
        written = {} if test is None else {"test": str(test.change.path)}
        render.json({"task": record.id, "repo": record.task.repo, "applied": True, "files": names, **written})
        return 0
    for name in names:
        render.line(f"changed {name}")
    if test is not None:
        render.line(f"{'wrote' if test.new else 'added to'} {test.change.path}:")
        for line in test.source.splitlines():
            render.line(f"  {line}".rstrip())
    render.note(f"to revert it: localagent undo {record.id}")
    return 0


def _newest_with_patch(store: TaskStore, record: TaskRecord) -> TaskRecord | None:
    """The newest task of the same repository that has an accepted patch; one that cannot be read is none."""
    for other in store.list():
        with suppress(RecordDamaged):
            if other.is_of(record.task.repo) and (patch := other.patch()) is not None and patch.changes:
                return other
    return None


def _nothing(record: TaskRecord, chosen: int | None, other: TaskRecord | None) -> AnswerIsNo:
    """The refusal; `other` is a task that may have been meant."""
    report = record.result_json() or {}
    numbers = [str(p["number"]) for p in report.get("proposals", ())]
    accepted = chosen is not None and record.patch() is not None
    what = "no accepted patch" if chosen is None else f"no proposal {chosen}"
    if numbers:
        remedy = f"`localagent show {record.id}` lists its proposals; --choose {'|'.join(numbers)} applies one"
    elif accepted:
        remedy = f"it has one accepted patch and no proposals: `localagent apply {record.id}` writes it"
    else:
        remedy = f"`localagent show {record.id}` says why"
        if other is not None:
            remedy += f"; the newest task with a patch is {other.id}: `localagent apply {other.id}`"
    return AnswerIsNo(f"task {record.id} has {what}", remedy=remedy)
