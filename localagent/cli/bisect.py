"""`localagent bisect`: the commit that broke a test, found in jails on private trees. Nothing is checked out."""

import argparse
import math
from dataclasses import replace
from pathlib import Path

from localagent.app import Settings
from localagent.app.bisect.request import BisectRequest, request_from
from localagent.app.bisect.run import read_session, run_bisect
from localagent.app.cancellation import Stop
from localagent.app.fix.request import FixRequest
from localagent.app.fix.run import run_fix
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.fix import command_fault, show_outcome
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.domain.bisection import BisectEnd, BisectResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.fs.bounded_read import read_named
from localagent.report.bisect_report import bisect_json, bisect_log, bisect_text

_LOG_BYTES = 4 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("--test", action="append", default=[], metavar="SPEC", help="the failing test; may be repeated")
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must exit 0 (no shell)")
    p.add_argument("--good", action="append", default=[], metavar="REV", help="a commit at which it passes")
    p.add_argument("--bad", default="", metavar="REV", help="a commit at which it fails (default: HEAD)")
    p.add_argument("--since", default="", metavar="DATE|REV", help="search no older commits (without --good)")
    p.add_argument("--first-parent", action="store_true", help="follow only the first parent of merges")
    p.add_argument("--any-failure", action="store_true", help="count every failure, not only the one at --bad")
    p.add_argument("--carry", action="append", default=[], metavar="FILE", help="also lay FILE over older trees")
    p.add_argument("--log", type=Path, metavar="FILE", help="begin with the verdicts that `git bisect log` wrote")
    p.add_argument("--write-log", type=Path, metavar="FILE", help="write all verdicts, for `git bisect replay`")
    p.add_argument("--resume", action="store_true", help="continue the last bisection of this repository")
    p.add_argument(
        "--no-hunks",
        action="store_true",
        help="find the commit alone: neither its hunks that matter nor what it changed",
    )
    p.add_argument("--fix", action="store_true", help="then repair the working tree, starting from that commit's hunks")
    p.add_argument("--jobs", type=int, default=1, metavar="N", help="commits to test at the same time (1)")
    p.add_argument("--max-seconds", type=float, default=120.0, metavar="S", help="time for one commit's tests (120)")
    p.add_argument(
        "--fix-seconds", type=float, default=300.0, metavar="S", help="with --fix: time for the repair (300)"
    )
    p.add_argument("--no-model", action="store_true", help="with --fix: search without a model")
    p.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    add_backend(p)
    p.add_argument("--json", action="store_true", help="JSON on standard output (docs/bisect.md)")
    p.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 the first bad commit was found; 1 any other answer. UsageFault lists every fault of the arguments."""
    request = _request(args, settings)
    stop = Stop()
    stop_on_signals(stop)
    result = run_bisect(request, settings, PlainSink(render, quiet=args.quiet or args.json), stop)
    if args.write_log is not None:
        write_through(args.write_log, bisect_log(result).encode())
    if args.json:
        render.json(bisect_json(result))
    else:
        render.text(bisect_text(result))
        if result.remedy:
            render.note(f"  what to do: {result.remedy}")
        elif result.end is BisectEnd.FOUND and not args.fix:
            render.note(
                "  what to do: `localagent bisect --resume --fix` looks for a repair that starts from this commit"
            )
        for warning in result.warnings:
            render.note(f"warning: {warning}")
    if args.fix and result.end is BisectEnd.FOUND:
        return _fix(args, request, result, settings, render, stop)
    return result.exit


def _fix(
    args: argparse.Namespace,
    request: BisectRequest,
    result: BisectResult,
    settings: Settings,
    render: Render,
    stop: Stop,
) -> int:
    """`fix` on the working tree, with what is known of the commit."""
    asked = FixRequest(
        repo=request.repo,
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        policy=request.policy,
        backend=request.backend,
        use_model=not args.no_model,
        reverts=result.hunks.reverts if result.hunks is not None else (),
        budget=Budget(jobs=request.jobs, max_seconds=args.fix_seconds),
    )
    sink = PlainSink(render, quiet=args.quiet or args.json)
    outcome = run_fix(asked, settings, sink, stop)
    if args.json:
        render.json({"event": "result", "task": outcome.task_id, "report": outcome.report})
    else:
        show_outcome(outcome, render, warned=sink.warned)
    return outcome.exit


def _request(args: argparse.Namespace, settings: Settings) -> BisectRequest:
    faults: list[str] = []
    if not args.repo.is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    if args.jobs < 1:
        faults.append("--jobs: at least 1")
    for option, seconds in (("--max-seconds", args.max_seconds), ("--fix-seconds", args.fix_seconds)):
        if not 0 < seconds < math.inf:
            faults.append(f"{option}: must be positive and finite")
    faults += [fault for fault in map(command_fault, args.check) if fault]
    if not args.resume and not args.test and not args.check:
        faults.append("what fails? name it with --test or --check")
    if args.resume and (args.test or args.check or args.good or args.bad or args.log):
        faults.append(
            "--resume: takes what the last bisection was asked; leave out --test, --check, --good, --bad, --log"
        )
    if args.write_log is not None and not args.write_log.absolute().parent.is_dir():
        faults.append(f"--write-log: the directory {args.write_log.absolute().parent} does not exist")
    carried = []
    for name in args.carry:
        try:
            carried.append(RepoPath(name.removeprefix("./").rstrip("/")))
        except UsageFault as fault:
            faults.append(f"--carry: {fault}")
    if faults:
        raise UsageFault(faults, remedy="`localagent bisect --help` lists the options")
    asked = BisectRequest(
        repo=args.repo,
        tests=tuple(args.test),
        checks=tuple(args.check),
        good=tuple(args.good),
        bad=args.bad,
        since=args.since,
        log="" if args.log is None else read_named(args.log, _LOG_BYTES).decode("utf-8", "replace"),
        carry=tuple(carried),
        jobs=args.jobs,
        first_parent=args.first_parent,
        any_failure=args.any_failure,
        hunks=not args.no_hunks,
        python=args.python,
        seconds=args.max_seconds,
        policy=args.policy,
        backend=backend_of(args),
    )
    return _resumed(asked, settings) if args.resume else asked


def _resumed(asked: BisectRequest, settings: Settings) -> BisectRequest:
    try:
        record = request_from(read_session(settings, asked.repo))
    except (ValueError, KeyError, TypeError) as fault:
        raise UsageFault(f"--resume: the record of the last bisection is damaged: {fault}") from None
    return replace(record, repo=asked.repo, jobs=asked.jobs, policy=asked.policy, backend=asked.backend)
