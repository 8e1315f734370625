"""`localagent impact PATH:LINE|DIFF`: what a change may reach, and the tests for it."""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.code_questions import CodeQuestions
from localagent.cli.code_names import add_output
from localagent.cli.index_progress import opened
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_prefix
from localagent.repo.diff.parse_diff import MAX_PATCH_BYTES, parse_diff

_PLACE = re.compile(r"(.+\.pyi?):(\d{1,7})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "change",
        metavar="PATH:LINE|DIFF|-",
        help="a line of a file, or a file that holds a diff to apply, - for standard input",
    )
    parser.add_argument("--tests", action="store_true", help="only the tests, as pytest takes them")
    add_output(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when something is reached, else 1."""
    lines = sorted(_lines(args.change))
    questions = CodeQuestions(opened(args, settings, render))
    reached, tests = questions.impact(lines)
    if args.json:
        render.json(
            {
                "change": args.change,
                "root": str(questions.index.root),
                "reached": [asdict(one) for one in reached],
                "tests": [asdict(one) for one in tests],
            }
        )
    elif args.tests:
        for test in tests:
            render.line(f"{test.path}::{test.name.replace('.', '::')}")
    else:
        for one in reached:
            mark = "" if one.certainty == "certain" else "   (possibly)"
            render.line(f"{one.distance}  {one.path}:{one.line} {one.name}{mark}")
        render.line(f"{len(reached)} functions, {len(tests)} of them tests (--tests lists them)")
    unknown = sorted({path for path, _ in lines} - set(questions.graph.facts))
    for path in unknown:
        root = questions.index.root
        render.note(f"{path}: no such Python file in the index (paths are those below {root}; see `localagent index`)")
    if not reached and not unknown:
        render.note("no function or class of an indexed Python file is at the changed lines")
    return 0 if (tests if args.tests else reached) else 1


def _lines(change: str) -> Iterator[tuple[str, int]]:
    """The changed lines: the one that is named, or those that a diff takes out or puts something behind."""
    place = _PLACE.fullmatch(change)
    if place is not None:
        yield place.group(1), int(place.group(2))
        return
    if change == "-":
        data = sys.stdin.buffer.read(MAX_PATCH_BYTES + 1)
    else:
        data = read_prefix(Path(change), MAX_PATCH_BYTES, "name a line as PATH:LINE, or a file that holds a diff")
    if len(data) > MAX_PATCH_BYTES:
        raise UsageFault(f"{change}: more than {MAX_PATCH_BYTES:,} bytes")
    for file in parse_diff(data).files:
        for hunk in file.hunks:
            for number in range(hunk.head, max(len(hunk.old) - hunk.tail, hunk.head + 1)):
                yield file.old, hunk.old_start + number
