"""`localagent fix`: repair a repository until its failing tests pass."""

import argparse
import math
import shlex
import time
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path

from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.app.fix.edit_writers import NAMES, known_ways
from localagent.app.fix.model_setup import free_cores
from localagent.app.fix.request import FixOutcome, FixRequest
from localagent.app.fix.run import run_fix
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.deadline import process_age
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.gpu_layers import add_gpu_layers
from localagent.cli.progress import JsonSink, progress_sink
from localagent.cli.render import Render
from localagent.daemon.client.fix_client import run_remote
from localagent.domain.chat import PREFIX
from localagent.domain.guard import DEFAULT_SECONDS, guard_faults, guard_of
from localagent.domain.task import Budget, Choosing
from localagent.errors import UsageFault
from localagent.llm.model.gpu import checked_layers
from localagent.protocol.http_client import DEFAULT_SOCKET
from localagent.report.guard_text import guard_line
from localagent.report.strength_text import assessment_lines
from localagent.report.text import confidence_lines

_DIFFERENCES_SHOWN = 3


def add_guard(parser: argparse.ArgumentParser, seconds: float, *, beside: str = "") -> None:
    """The options of the guard; `guard_faults` reads what they say."""
    parser.add_argument(
        "--guard",
        action="append",
        default=[],
        metavar="SPEC|none",
        help="tests that must not break, as pytest takes them; may be repeated (default: the whole suite)",
    )
    told = (
        f"time limit for the guard, {beside} ({seconds:.0f})" if beside else f"time limit for the guard ({seconds:.0f})"
    )
    parser.add_argument("--guard-seconds", type=float, default=seconds, metavar="S", help=told)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("--repo", default=".", metavar="DIR", help="a git repository or a plain folder (default: .)")
    p.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="SPEC",
        help="tests to repair, as pytest takes them; may be repeated",
    )
    add_guard(p, DEFAULT_SECONDS, beside="on top of --max-seconds")
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must exit 0 (no shell)")
    p.add_argument("--task", default="", metavar="TEXT", help="a description of the task")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument(
        "--max-candidates", type=int, default=500, metavar="N", help="maximum number of candidates to try (500)"
    )
    p.add_argument(
        "--max-seconds", type=float, default=300.0, metavar="S", help="time limit (300); the guard has its own"
    )
    p.add_argument("--seed", type=int, default=0, metavar="K", help="random seed (0)")
    p.add_argument(
        "--jobs", type=int, default=0, metavar="J", help="parallel quick checks (default: free cores, up to 4)"
    )
    group = p.add_mutually_exclusive_group()
    group.add_argument("--no-model", action="store_true", help="do not use a language model")
    group.add_argument("--model", default="", metavar="M", help="a GGUF file or a registered name")
    add_gpu_layers(p)
    p.add_argument("--no-writing", action="store_true", help="the model ranks edits but does not write any")
    p.add_argument(
        "--write-by", action="append", default=[], metavar="WAY", help=f"how the model writes: {', '.join(NAMES)}"
    )
    ends = p.add_mutually_exclusive_group()
    ends.add_argument(
        "--assume", action="store_true", help="accept the best patch instead of asking a person to choose or review"
    )
    ends.add_argument("--first", action="store_true", help="stop at the first patch that passes every check")
    p.add_argument(
        "--min-confidence",
        type=float,
        metavar="P",
        help="raise the confidence (0 to 1) needed to accept a patch; cannot lower the policy's accept_at",
    )
    p.add_argument("--policy", default="", metavar="NAME|FILE", help="the policy to use (default: default)")
    add_backend(p)
    p.add_argument("--out", default="", metavar="FILE", help="write the accepted patch to FILE, as a unified diff")
    p.add_argument(
        "--report", default="", metavar="FILE", help="write the report to FILE, as JSON, whatever the outcome"
    )
    p.add_argument("--apply", action="store_true", help="write an accepted patch into the repository")
    p.add_argument(
        "--daemon",
        nargs="?",
        const=str(DEFAULT_SOCKET),
        metavar="SOCKET",
        help=f"let the daemon do the work (default: {DEFAULT_SOCKET})",
    )
    p.add_argument("--json", action="store_true", help="print events as JSON, one per line")
    p.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Exit codes as in docs/errors.md."""
    request = _request(args)
    stop = Stop()
    stop_on_signals(stop)
    shown = nullcontext(JsonSink(render)) if args.json else progress_sink(render, quiet=args.quiet)
    with shown as sink:
        if args.daemon is not None:
            outcome = run_remote(request, Path(args.daemon), settings, sink)
        else:
            outcome = run_fix(request, settings, sink, stop)
    if args.json:
        render.json({"event": "result", "task": outcome.task_id, "report": outcome.report})
    else:
        show_outcome(outcome, render, warned=() if isinstance(sink, JsonSink) else sink.warned)
        if args.out and outcome.report.get("proposals") and not outcome.diff:
            render.note(f"{args.out} was not written, because no patch was accepted")
    return outcome.exit


def _request(args: argparse.Namespace) -> FixRequest:
    faults = []
    if not Path(args.repo).is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    if args.max_candidates < 1:
        faults.append("--max-candidates: at least 1")
    if not 0 < args.max_seconds < math.inf:
        faults.append("--max-seconds: must be positive and finite")
    if args.jobs < 0:
        faults.append("--jobs: must not be negative (0: free cores)")
    if args.model.startswith(PREFIX):
        faults.append("--model: `fix` takes a GGUF; a model server is for `do` and `chat`")
    faults += guard_faults(args.guard, args.guard_seconds)
    if args.min_confidence is not None and not 0 < args.min_confidence <= 1:
        faults.append("--min-confidence: more than 0 and at most 1")
    faults += [fault for fault in map(command_fault, args.check) if fault]
    for name, value in (("--out", args.out), ("--report", args.report)):
        if value and not Path(value).absolute().parent.is_dir():
            faults.append(f"{name}: the directory {Path(value).absolute().parent} does not exist")
        if value and Path(value).is_dir():
            faults.append(f"{name}: {value} is a directory, not a file")
    if faults:
        raise UsageFault(faults)
    return FixRequest(
        repo=Path(args.repo),
        tests=tuple(args.test),
        checks=tuple(args.check),
        text=args.task,
        python=args.python,
        seed=args.seed,
        budget=Budget(
            max_candidates=args.max_candidates,
            max_seconds=args.max_seconds,
            jobs=args.jobs or (0 if args.daemon is not None else min(4, free_cores())),
        ),
        use_model=not args.no_model,
        model=args.model,
        gpu_layers=checked_layers(args.gpu_layers),
        writing=not args.no_writing,
        ways=known_ways(args.write_by),
        policy=Path(args.policy) if args.policy else None,
        out=Path(args.out) if args.out else None,
        report=Path(args.report) if args.report else None,
        apply=args.apply,
        choosing=_choosing(args),
        guard=guard_of(args.guard, args.guard_seconds),
        min_confidence=args.min_confidence or 0.0,
        backend=backend_of(args),
        begun=time.monotonic() - (process_age() if args.is_program else 0.0),
    )


def _choosing(args: argparse.Namespace) -> Choosing:
    if args.assume:
        return Choosing.ASSUME
    return Choosing.FIRST if args.first else Choosing.ASK


def command_fault(command: str) -> str:
    """Why a `--check` is no command, or ""."""
    try:
        return "" if shlex.split(command) else "--check: is empty"
    except ValueError as fault:
        return f"--check {command!r}: {fault}"


def show_outcome(outcome: FixOutcome, render: Render, *, warned: Collection[str] = ()) -> None:
    """What `fix` says at its end, without the warnings it has given before (`warned`)."""
    if outcome.diff:
        render.text(outcome.diff.decode("utf-8", "replace").rstrip("\n"))
        render.line()
    render.line(outcome.reason)
    if outcome.remedy:
        render.line(f"  what to do: {outcome.remedy}")
    if guard := outcome.report.get("guard"):
        render.note(guard_line(guard))
    for line in confidence_lines(outcome.report.get("confidence")):
        render.note(line)
    for proposal in outcome.report.get("proposals", ()):
        for line in (
            f"{proposal['number']}. {'; '.join(proposal['edits'])}",
            *confidence_lines(proposal["confidence"]),
        ):
            render.note(line)
    if told := outcome.report.get("assessment"):
        for line in assessment_lines(told, most=_DIFFERENCES_SHOWN):
            render.note(line)
    for warning in (text for text in outcome.warnings if text not in warned):
        render.note(f"warning: {warning}")
    if signed := outcome.report.get("attestation"):
        render.note(f"attested by key {signed['key'][:16]}: {signed['file']}, kept with the task")
    if outcome.task_id:
        render.note(f"details: localagent show {outcome.task_id}")
        if outcome.diff and not outcome.applied and not outcome.exit:
            render.note(f"to apply it: localagent apply {outcome.task_id}")
        if numbers := [str(p["number"]) for p in outcome.report.get("proposals", ())]:
            render.note(
                f"to write one of its proposals: localagent apply {outcome.task_id} --choose {'|'.join(numbers)}"
            )
        if outcome.applied:
            render.note(f"applied; to revert it: localagent undo {outcome.task_id}")
