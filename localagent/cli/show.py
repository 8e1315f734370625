"""`localagent show`: a past task's report, as text or JSON."""

import argparse
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.redacted_attestation import rules_of_ours
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.record.redacted.redacted_task import redacted_report
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.discover import GitKind, git_kind, repository_root
from localagent.report.text import render_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`show [ID] [--json] [--redact]`."""
    parser.add_argument(
        "id",
        nargs="?",
        help="task id, a unique prefix, or its last six characters (default: the newest of this repository)",
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON, as --report writes it")
    parser.add_argument(
        "--redact", action="store_true", help="replace text, paths and names from the repository with numbers"
    )


def here() -> str:
    """The git repository that the working directory is in, "" where it is in none."""
    root = repository_root(Path())
    return "" if git_kind(root) is GitKind.NONE else str(root)


def newest_here(store: TaskStore, render: Render) -> TaskRecord:
    """The newest task of this repository; outside of one the newest of all, which is said. UsageFault without one."""
    record = store.latest(here())
    if record is None:
        where = f" of {here()}" if here() and store.latest() is not None else " yet"
        raise UsageFault(f"no tasks{where}", remedy="run `localagent fix --repo DIR` first, or name a task by its ID")
    if not here():
        render.note(f"not in a git repository: the newest task of all, {record.id}, is of {record.task.repo}")
    return record


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Show one report. UsageFault if no task is meant; exit 1 if the task has no report."""
    store = TaskStore(settings.state_dir)
    record = store.open(args.id) if args.id is not None else newest_here(store, render)
    report = record.result_json()
    if report is None:
        raise AnswerIsNo(
            f"task {record.id} has no report: it is still running, or was killed",
            remedy=f"its events are in {record.journal_path}",
        )
    if args.redact:
        report = redacted_report(report, rules_of_ours(settings))
    if args.json:
        render.json(report)
    else:
        render.text(render_text(report))
    return 0
