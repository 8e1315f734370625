"""`localagent history`: past tasks, newest first."""

import argparse

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.record.store import TaskStore
from localagent.record.summary import row_of
from localagent.report.confidence_text import shown_probability


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`history [--limit N] [--json]`."""
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="number of tasks to list (default: 20)")
    parser.add_argument("--json", action="store_true", help="one JSON list")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """List past tasks; damaged ones are named on stderr."""
    if args.limit < 1:
        raise UsageFault(f"--limit must be 1 or more, not {args.limit}")
    listing = TaskStore(settings.state_dir).scan()
    rows = [row_of(record) for record in listing.records[: args.limit]]
    if args.json:
        render.json([row.json() for row in rows])
    else:
        for row in rows:
            likely = "" if row.confidence is None else shown_probability(row.confidence)
            render.line(
                f"{row.id}  {row.outcome:<16} {likely:>4} {row.candidates_verified:>6} run {row.seconds:>8.1f} s"
                f"  {row.repo}"
            )
        if not rows:
            render.line("no tasks yet")
    for fault in listing.faults:
        render.note(fault)
    return 0
