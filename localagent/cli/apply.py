"""`localagent apply`: write an accepted patch into the repository, whole or not at all."""

import argparse
from pathlib import Path

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo
from localagent.record.store import TaskStore
from localagent.tree.land import land


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("id", metavar="ID", help="the task whose patch to write; the start of its id is enough")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 written, 1 refused (nothing was changed)."""
    record = TaskStore(settings.state_dir).open(args.id)
    patch = record.patch()
    if patch is None or not patch.changes:
        raise AnswerIsNo(f"task {record.id} has no accepted patch", remedy=f"`localagent show {record.id}` says why")
    land(patch, Path(record.task.repo), record.dir / "undo")
    names = [str(c.path) for c in patch.changes]
    if args.json:
        render.json({"task": record.id, "repo": record.task.repo, "applied": True, "files": names})
        return 0
    for name in names:
        render.line(f"changed {name}")
    render.note(f"to take it back: localagent undo {record.id}")
    return 0
