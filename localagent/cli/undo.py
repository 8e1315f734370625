"""`localagent undo`: take an applied patch back, exactly, outside the user's git."""

import argparse
import os
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.integrity import hold_undo
from localagent.app.evidence.task_evidence import undo_recorded
from localagent.cli.render import Render
from localagent.cli.show import here
from localagent.errors import AnswerIsNo
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("id", metavar="ID", nargs="?", default="", help="task id (default: the last one applied here)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 taken back, 1 refused (nothing was changed)."""
    store = TaskStore(settings.state_dir)
    record = store.open(args.id) if args.id else _latest_applied(store, render)
    hold_undo(settings, record)
    names = undo_recorded(settings, record)
    if args.json:
        render.json({"task": record.id, "repo": record.task.repo, "undone": True, "files": names})
        return 0
    if not names:
        render.line(f"its files stand as they did before it already: task {record.id} is no longer applied")
    for name in names:
        render.line(f"{'restored' if os.path.lexists(Path(record.task.repo, name)) else 'removed'} {name}")
    return 0


def _latest_applied(store: TaskStore, render: Render) -> TaskRecord:
    """The last one applied to this repository; outside of one the last of all, which is said."""
    repo = here(store)
    for record in store.list():
        if repo and not record.is_of(repo):
            continue
        if landing_state(record.dir / "undo") in (LandState.LANDED, LandState.UNDOING):
            if not repo:
                render.note(f"not in a git repository: the last patch applied, {record.id}, is of {record.task.repo}")
            return record
    raise AnswerIsNo(
        f"no patch is applied{f' to {repo}' if repo else ''}", remedy="`localagent history` lists the tasks"
    )
