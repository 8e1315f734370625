"""`localagent reject`: record that what a task found is wrong. Nothing in the repository changes."""

import argparse

from localagent.app import Settings
from localagent.app.evidence.task_evidence import reject_recorded
from localagent.cli.render import Render
from localagent.cli.show import newest_here
from localagent.errors import AnswerIsNo, UsageFault
from localagent.record.store import TaskStore
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandState

_MOST_CHARACTERS = 2_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("id", metavar="ID", nargs="?", help="task id (default: the newest of this repository)")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="what is wrong; stored with the task")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 recorded, 1 there is nothing to reject, or it is applied."""
    reason = args.reason.strip()
    if not 0 < len(reason) <= _MOST_CHARACTERS:
        raise UsageFault(f"--reason: 1 to {_MOST_CHARACTERS:,} characters")
    store = TaskStore(settings.state_dir)
    record = store.open(args.id) if args.id is not None else newest_here(store, render)
    report = record.result_json() or {}
    if report.get("patch") is None and not report.get("proposals"):
        raise AnswerIsNo(
            f"task {record.id} has no patch and no proposals", remedy=f"`localagent show {record.id}` says why"
        )
    if landing_state(record.dir / "undo") is LandState.LANDED:
        raise AnswerIsNo(f"the patch of task {record.id} is applied", remedy=f"`localagent undo {record.id}` first")
    reject_recorded(settings, record, reason)
    if args.json:
        render.json({"task": record.id, "rejected": True, "reason": reason})
    else:
        render.line(f"recorded: the result of task {record.id} is wrong")
    return 0
