"""`localagent stats`: success, candidates, tokens, seconds over past tasks."""

import argparse

from localagent.app import Settings
from localagent.app.fix.task_outcome import fate_of
from localagent.cli.render import Render
from localagent.record.store import TaskStore
from localagent.record.summary import row_of, stats_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`stats [--json]`."""
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Show sums over every readable task."""
    listing = TaskStore(settings.state_dir).scan()
    stats = stats_of(row_of(record, fate_of(record)) for record in listing.records)
    if args.json:
        render.json(stats)
    else:
        success = (
            "-" if stats["success"] is None else f"{stats['success']:.0%} ({stats['accepted']} of {stats['judged']})"
        )
        render.line(f"tasks       {stats['tasks']}")
        render.line(f"success     {success}")
        if told := stats["confidence"]:
            render.line(
                f"confidence  {told['predicted']:.1f} of {told['settled']} accepted patches predicted right,"
                f" {told['kept']} kept"
            )
        render.line(
            f"candidates  {stats['candidates_enumerated']} enumerated, {stats['candidates_denied']} denied, "
            f"{stats['candidates_verified']} run"
        )
        render.line(f"tokens      {stats['model_tokens']}")
        render.line(f"seconds     {stats['seconds']:.1f}")
        for outcome, count in stats["outcomes"].items():
            render.line(f"  {outcome:<16} {count}")
    for fault in listing.faults:
        render.note(fault)
    return 0
