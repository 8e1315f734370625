"""`localagent session`: the sessions of `do`: list, show, resume, undo, export."""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from localagent.agent.events import Answered, EndKind, writes_of
from localagent.agent.limits import Limits
from localagent.app import Settings
from localagent.app.agent.chat_model import refuse_absent
from localagent.app.agent.request import DoOutcome
from localagent.app.agent.run import resume_do
from localagent.app.agent.session_control import as_atif, as_json_lines, as_markdown, as_patch, say, undo_steps
from localagent.app.agent.session_outcome import settled_outcome
from localagent.app.agent.session_run import Frontend
from localagent.app.agent.session_store import Session, find_session, sessions
from localagent.app.cancellation import Stop
from localagent.cli.actions import add_action
from localagent.cli.do import person_of, show_outcome, sink_of
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.render import Render
from localagent.daemon.client.approval_client import refuse_remote
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.report.task_report import write_report
from localagent.text.visible_text import one_line

_FORMATS = {
    "markdown": lambda kept: as_markdown(kept).encode(),
    "jsonl": as_json_lines,
    "atif": as_atif,
    "patch": as_patch,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`session list|show|resume|undo|export`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    p = add_action(actions, "list", "list the sessions, newest first")
    p.add_argument("--json", action="store_true", help="one JSON object per line")
    p = add_action(actions, "show", "show a session's transcript")
    _id(p)
    p.add_argument("--json", action="store_true", help="its events, one JSON object per line")
    p = add_action(actions, "resume", "continue a session")
    _id(p)
    p.add_argument("--say", default="", metavar="TEXT", help="tell the model something first: an answer, a correction")
    p.add_argument("--model", default="", metavar="M", help="another model (default: the session's)")
    p.add_argument("--assume", action="store_true", help="do not ask a person unless the policy requires it")
    p.add_argument("--max-steps", type=int, metavar="N", help="maximum number of replies from here on")
    p.add_argument("--out", type=Path, metavar="FILE", help="write the accepted patch to FILE, as a unified diff")
    p.add_argument("--report", type=Path, metavar="FILE", help="write the report to FILE, as JSON, always")
    p.add_argument("--json", action="store_true", help="print events as JSON, one per line")
    p.add_argument("--quiet", action="store_true", help="do not show progress")
    p = add_action(actions, "undo", "undo the last step in the session's copy, or all")
    _id(p)
    p.add_argument("--all", action="store_true", help="every step")
    p = add_action(actions, "export", "write a session's transcript, or its patch")
    _id(p)
    p.add_argument(
        "--format",
        choices=sorted(_FORMATS),
        default="markdown",
        help="default: markdown; patch: what it ended with, accepted or not",
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")


def _id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="a unique prefix is enough (default: the newest)")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 done; `resume` ends as `do` does."""
    if args.action == "list":
        for kept in sessions(settings):
            _listed(kept, args, render)
        return 0
    kept = _session(args.id, settings)
    if args.action == "resume":
        return _resume(kept, args, settings, render)
    if args.action == "undo":
        refuse_remote(kept.record)
        for path in undo_steps(kept, time.monotonic(), every=args.all):
            render.line(f"taken back in the session: {path}")
        return 0
    as_json = args.action == "show" and args.json
    data = as_json_lines(kept) if as_json else _FORMATS[getattr(args, "format", "markdown")](kept)
    out = getattr(args, "out", None)
    if out is not None:
        write_through(out, data)
    elif getattr(args, "format", "") == "patch" and not sys.stdout.isatty():
        render.raw(data, b"")  # for `git apply`: every byte counts
    else:
        render.text(data.decode("utf-8", "replace").rstrip("\n"))
    return 0


def _session(wanted: str | None, settings: Settings) -> Session:
    if wanted is not None:
        return find_session(settings, wanted)
    found = sessions(settings)
    if not found:
        raise UsageFault("there is no session yet", remedy="`localagent do INSTRUCTION` begins one")
    return found[0]


def _listed(kept: Session, args: argparse.Namespace, render: Render) -> None:
    steps = sum(isinstance(e, Answered) for e in kept.events)
    files = [str(path) for path in writes_of(kept.events)]
    if args.json:
        render.json(
            {
                "session": kept.record.id,
                "state": kept.state,
                "repo": str(kept.request.repo),
                "instruction": kept.request.instruction,
                "steps": steps,
                "changed": files,
            }
        )
        return
    told = f"{steps} step{'s' * (steps != 1)}, {len(files)} file{'s' * (len(files) != 1)}"
    render.line(f"{kept.record.id}  {kept.state:15} {told:20} {one_line(kept.request.instruction, 60)}")


def _resume(kept: Session, args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Go on; where nothing is left to do and nothing new is said, what it came to, with its exit code."""
    anew = args.say.strip() or (kept.state != EndKind.FINISHED.value and (args.model or args.assume))
    if not anew and (outcome := settled_outcome(kept)) is not None:
        return _settled(outcome, args, render)
    refuse_remote(kept.record)
    limits = kept.request.limits
    if args.max_steps is not None:
        limits = Limits(steps=args.max_steps, seconds=limits.seconds, tokens=limits.tokens)
    said = args.say.strip()[:4000]
    request = replace(
        kept.request,
        limits=limits,
        model=args.model or kept.request.model or (settings.chat_model if said else ""),
        assume=args.assume or kept.request.assume,
        out=args.out,
        report=args.report,
    )
    kept = replace(kept, request=request)
    if said:
        refuse_absent(request.model, settings)  # or a session that needs no model would be told what nobody reads
        kept = say(kept, time.monotonic(), said)
    stop = Stop()
    stop_on_signals(stop)
    front = Frontend(sink=sink_of(args, render), stop=stop, person=person_of(args, request, render))
    outcome = resume_do(kept, settings, front)
    show_outcome(outcome, args, render)
    return outcome.exit


def _settled(outcome: DoOutcome, args: argparse.Namespace, render: Render) -> int:
    """What a session came to, shown and written as at its end."""
    if not args.quiet:
        how = "waits for you" if outcome.exit else "is finished"
        render.note(f"nothing to resume: session {outcome.session} {how}; --say TEXT has the model go on")
    if outcome.diff and args.out is not None:
        write_through(args.out, outcome.diff)
    if args.report is not None:
        write_report(args.report, outcome.report)
    show_outcome(outcome, args, render)
    return outcome.exit
