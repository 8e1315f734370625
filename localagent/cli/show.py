"""`localagent show`: a past task's report, as text or JSON."""

import argparse

from localagent.app import Settings
from localagent.app.evidence.redacted_attestation import rules_of_ours
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.record.redacted.redacted_task import redacted_report
from localagent.record.store import TaskStore
from localagent.report.text import render_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`show [ID] [--json] [--redact]`."""
    parser.add_argument(
        "id", nargs="?", help="task id, a unique prefix, or its last six characters (default: the newest)"
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON, as --report writes it")
    parser.add_argument(
        "--redact", action="store_true", help="replace text, paths and names from the repository with numbers"
    )


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Show one report. UsageFault if no task is meant; exit 1 if the task has no report."""
    store = TaskStore(settings.state_dir)
    record = store.open(args.id) if args.id is not None else store.latest()
    if record is None:
        raise UsageFault("no tasks yet", remedy="run `localagent fix --repo DIR` first")
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
        render.line(render_text(report))
    return 0
