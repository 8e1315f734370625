"""`localagent hook suggest` and `hook check --suggest`: verified patches for what is staged, never applied.

A child looks for them (`hook_suggesting`); this process waits for it, and never past the end of the box.
"""

import argparse
import math
import signal
from typing import Any

from localagent.app import Settings
from localagent.cli.deadline import Deadline
from localagent.cli.render import Render
from localagent.cli.timeboxed_child import Say, work_apart
from localagent.errors import LocalagentError, UsageFault
from localagent.report.confidence_text import confidence_line, likeliest_first

_WORDS = {"s": 1.0, "ms": 0.001, "m": 60.0}
Suggested = tuple[list[dict[str, Any]], list[str]]


def seconds_of(text: str) -> float:
    """`3s`, `1500ms`, `2m` or a plain number of seconds. UsageFault for anything else."""
    number = text.rstrip("ms")
    try:
        seconds = float(number) * _WORDS[text[len(number) :] or "s"]
    except (ValueError, KeyError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageFault(f"--deadline: {text!r} is not a duration", remedy="use the form 3s, 1500ms or 2m")
    return seconds


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0, suggestions or none; 4 where nothing could be verified for want of a jail."""
    made, remarks = suggestions(args, settings)
    if args.json:
        render.json({"suggestions": made, "remarks": remarks})
    else:
        show(made, remarks, render)
    return 0


def suggestions(args: argparse.Namespace, settings: Settings) -> Suggested:
    """What was verified until the deadline, the likeliest first, each with where it is kept; and remarks."""
    box = Deadline(seconds_of(args.deadline))

    def search(say: Say) -> None:
        from localagent.cli import hook_suggest_child  # noqa: PLC0415 - the child's: it takes long to import

        hook_suggest_child.search(args, settings, box, say)

    signal.signal(signal.SIGTERM, _interrupt)
    told = work_apart(search, box.shown)
    made = [message["suggestion"] for message in told.said if "suggestion" in message]
    made.sort(key=lambda one: likeliest_first(one["confidence"]))
    remarks = [str(message["remark"]) for message in told.said if "remark" in message]
    if told.over or any("over" in message for message in told.said):
        remarks.append(f"the time ({args.deadline}) ran out; raise it with --deadline")
    return made, remarks


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def show(made: list[dict[str, Any]], remarks: list[str], render: Render) -> None:
    """Every suggestion with its diff, and how to take it."""
    for one in made:
        what = "makes failing tests pass:" if one["origin"] == "failing-tests" else "tests still pass with"
        who = ", verified by the daemon" if one["found_by"] == "daemon" else ""
        likely = f", {confidence_line(one['confidence'])}" if one["confidence"] else ""
        render.line(f"suggestion: {what} {'; '.join(one['titles'])} ({', '.join(one['tests'])}){who}{likely}")
        render.text(one["patch"].encode("utf-8", "surrogateescape").decode("utf-8", "replace").rstrip("\n"))
        render.line(f"to apply it: git apply {one['kept_at']}")
    for remark in remarks:
        render.note(f"suggestions: {remark}")


def beside(args: argparse.Namespace, settings: Settings, render: Render) -> dict[str, object]:
    """Suggestions after a check: whatever goes wrong with them is said, and blocks nothing."""
    try:
        made, remarks = suggestions(args, settings)
    except UsageFault:
        raise
    except LocalagentError as fault:
        made, remarks = [], [str(fault)]
    if not args.json:
        show(made, remarks, render)
    return {"suggested": made, "remarks": remarks}
