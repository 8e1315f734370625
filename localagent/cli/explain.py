"""`localagent explain`: a traceback, a line, a rule or a task in plain sentences. Nothing runs, nothing is changed."""

import argparse
import sys
from pathlib import Path

from localagent.app import Settings
from localagent.app.debug.explain import ExplainRequest, explain
from localagent.cli.render import Render
from localagent.debug.explanation_text import explanation_json, explanation_text
from localagent.debug.traceback_text import HEAD_BYTES, MAX_BYTES
from localagent.errors import UsageFault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`explain WHAT [--repo DIR] [--json]`."""
    parser.add_argument(
        "what",
        metavar="TRACEBACK-FILE|-|FILE:LINE|RULE|ID",
        help="a file with a traceback (or the log it is in), - for standard input; a line; a rule as findings name it; "
        "a task",
    )
    parser.add_argument(
        "--repo", type=Path, default=Path(), metavar="DIR", help="the repository it is about (default: .)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/debug.md)")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0; 1 where a text holds no traceback or a task has no report; 2 where nothing of that name is known."""
    if not args.repo.is_dir():
        raise UsageFault(f"--repo: {args.repo} is not a directory")
    found = explain(ExplainRequest(what=args.what, repo=args.repo, text=trace_text(args.what)), settings)
    if args.json:
        render.json({"explanations": [explanation_json(one) for one in found]})
        return 0
    for number, one in enumerate(found):
        if number:
            render.line()
        render.text(explanation_text(one))
    return 0


def trace_text(name: str) -> bytes | None:
    """The text that a name stands for, bounded: of a long one the beginning and the end; None where it is no file."""
    if name == "-":
        return _bounded_standard_input()
    try:
        path = Path(name)
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            head = stream.read(MAX_BYTES + 1)
            if len(head) > MAX_BYTES:
                stream.seek(HEAD_BYTES - MAX_BYTES, 2)
                head = head[:HEAD_BYTES] + b"\n...\n" + stream.read(MAX_BYTES - HEAD_BYTES)
            return head
    except (OSError, ValueError) as error:
        raise UsageFault(f"{name!r}: cannot be read: {error}") from error


def _bounded_standard_input() -> bytes:
    """The first MiB and the last seven of standard input, whatever its length."""
    stream = sys.stdin.buffer
    data = stream.read(2 * MAX_BYTES)
    while more := stream.read(MAX_BYTES):
        data = data[:HEAD_BYTES] + b"\n...\n" + (data[HEAD_BYTES:] + more)[HEAD_BYTES - MAX_BYTES :]
    return data
