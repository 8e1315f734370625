"""`localagent debug`: the dossier of a failing test, or the explanation of a pasted traceback."""

import argparse
import math
from pathlib import Path

from localagent.app import Settings
from localagent.app.debug.debug import DebugRequest, debug
from localagent.app.debug.explain import explain_text
from localagent.cli.explain import trace_text
from localagent.cli.fix import command_fault
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.debug.dossier import dossier_json, dossier_page, dossier_text
from localagent.debug.explanation_text import explanation_json, explanation_text
from localagent.debug.tracebacks import parse_tracebacks
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`debug [TEST|TRACEBACK-FILE|-] [--check CMD] ...`."""
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        metavar="TEST|TRACEBACK-FILE|-",
        help="a test as pytest names it, or a file with a traceback (default: the first test that fails)",
    )
    parser.add_argument("--check", default="", metavar="CMD", help="a command that must exit 0 (no shell)")
    parser.add_argument("--run", action="store_true", help="of a traceback: run the tests and find one that fails so")
    parser.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")
    parser.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    parser.add_argument("--max-seconds", type=float, default=60.0, metavar="S", help="time limit in seconds (60)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/debug.md)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page, too")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 a dossier; 1 nothing fails; 2 usage; 4 no sound jail."""
    faults = [] if args.repo.is_dir() else [f"--repo: {args.repo} is not a directory"]
    if not 0 < args.max_seconds < math.inf:
        faults.append("--max-seconds: must be positive and finite")
    if args.check and (fault := command_fault(args.check)):
        faults.append(fault)
    if faults:
        raise UsageFault(faults)
    text = trace_text(args.what) if args.what and not args.what.endswith(".py") else None
    trace = text if text is not None and (args.what == "-" or parse_tracebacks(text)) else None
    if args.run and trace is None:
        raise UsageFault(["--run: goes with a traceback (`localagent debug app.log --run`)"])
    if trace is not None and not args.run:
        if args.html is not None:
            raise UsageFault(["--html: only the dossier of a test or command is written as a page"])
        found = explain_text(trace, args.what, args.repo, settings)
        if args.json:
            render.json({"explanations": [explanation_json(one) for one in found]})
        else:
            render.text("\n\n".join(explanation_text(one) for one in found))
        return 0
    request = DebugRequest(
        repo=args.repo,
        test="" if trace is not None else args.what,
        check=args.check,
        trace=trace or b"",
        python=args.python,
        max_seconds=args.max_seconds,
    )
    dossier = debug(request, settings, PlainSink(render, quiet=args.json))
    if args.html is not None:
        write_through(args.html, dossier_page(dossier))
    if args.json:
        render.json(dossier_json(dossier))
    else:
        render.text(dossier_text(dossier))
    return 0
