"""`localagent reproduce`: the smallest program that still fails in the same way, or why a test is flaky. Reads only."""

import argparse
import sys
from pathlib import Path

from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.app.reproduce.request import ReproduceRequest
from localagent.app.reproduce.run import run_reproduce
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.fs.bounded_read import read_named, read_prefix
from localagent.report.reproduce_report import reproduction_json, reproduction_text
from localagent.reproduce.data_units import LARGEST_BYTES

LARGEST_TRACE_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument(
        "target",
        nargs="?",
        default="",
        metavar="TEST|SCRIPT|TRACEBACK",
        help="a pytest argument, a script of the repository, or a file with a traceback (-: standard input); "
        "default: the first failing test",
    )
    p.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")
    p.add_argument(
        "--input",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a data file the script is given; reduced",
    )
    p.add_argument("--flaky", action="store_true", help="find out why the test fails only sometimes")
    p.add_argument("--runs", type=int, default=0, metavar="N", help="how often the plain test is run (5; --flaky: 24)")
    p.add_argument("--out", type=Path, metavar="FILE", help="write the reduced pytest file to FILE")
    p.add_argument("--max-seconds", type=float, default=300.0, metavar="S", help="time limit in seconds (300)")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    add_backend(p)
    p.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/reproduce.md)")
    p.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 reproduced, or the cause of a flaky test is known; 1 any other answer; 130 interrupted."""
    request = _request(args)
    stop = Stop()
    stop_on_signals(stop)
    found = run_reproduce(request, settings, PlainSink(render, quiet=args.quiet or args.json), stop)
    if args.out is not None and found.file:
        write_through(args.out, found.file)
    if args.json:
        render.json(reproduction_json(found))
        return found.exit
    if found.file and args.out is None:
        render.text(found.file.decode("utf-8", "backslashreplace"))
    render.text(reproduction_text(found))
    return found.exit


def _request(args: argparse.Namespace) -> ReproduceRequest:
    faults: list[str] = []
    if not args.repo.is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    if args.runs < 0 or args.runs > 10_000:
        faults.append("--runs: between 1 and 10000")
    if not 1 <= args.max_seconds <= 86_400:
        faults.append("--max-seconds: between 1 and 86400")
    if args.input and (not args.target or "::" in args.target or not args.target.endswith(".py")):
        faults.append("--input: the data file is for a script; name one (SCRIPT.py --input FILE)")
    if args.out is not None and (args.out.is_dir() or not args.out.absolute().parent.is_dir()):
        faults.append(f"--out: {args.out} is no file in a directory that exists")
    inputs = tuple((path.name, read_named(path, LARGEST_BYTES)) for path in args.input)
    if len({name for name, _ in inputs}) < len(inputs):
        faults.append("--input: two files of the same name")
    if faults:
        raise UsageFault(faults, remedy="`localagent reproduce --help` lists the options")
    trace = _trace(args.target, args.repo)
    return ReproduceRequest(
        repo=args.repo.resolve(),
        target="" if trace else args.target,
        trace=trace,
        inputs=inputs,
        flaky=args.flaky,
        runs=args.runs,
        max_seconds=args.max_seconds,
        python=args.python,
        policy=args.policy,
        backend=backend_of(args),
        place=_path_in_repo(args.out, args.repo),
    )


def _trace(target: str, repo: Path) -> str:
    """The text of a traceback, where the target is a file with one; a file of the repository's tests is none."""
    if target == "-":
        return sys.stdin.buffer.read(LARGEST_TRACE_BYTES).decode("utf-8", "replace") or " "
    path = Path(target)
    if not target or "::" in target or target.endswith(".py") or (repo / target).is_dir() or not path.is_file():
        return ""
    return read_prefix(path, LARGEST_TRACE_BYTES).decode("utf-8", "replace") or " "


def _path_in_repo(out: Path | None, repo: Path) -> RepoPath | None:
    """Where in the repository the result is to lie; None outside."""
    if out is None or not out.resolve().is_relative_to(repo.resolve()) or out.suffix != ".py":
        return None
    return RepoPath(out.resolve().relative_to(repo.resolve()).as_posix())
