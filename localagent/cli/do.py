"""`localagent do`: from an instruction to a proven patch, by a model that calls tools."""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from localagent.agent.agent_ports import Person
from localagent.agent.approval import Trust
from localagent.agent.events import AgreedBy, Objection
from localagent.app import Settings
from localagent.app.agent.request import DoOutcome, DoRequest
from localagent.app.agent.run import run_do
from localagent.app.agent.session_run import Absent, Frontend
from localagent.app.agent.test_driven import INSTRUCTION
from localagent.app.cancellation import Stop
from localagent.cli.analysis_outcome import analysis_faults, show_analysis
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.progress import JsonSink, PlainSink
from localagent.cli.render import Render
from localagent.cli.session_options import SessionDefaults, add_session_options, defaults_of, session_request
from localagent.cli.terminal_person import TerminalPerson
from localagent.daemon.client.do_client import run_do_remote
from localagent.domain.instruction import instruction_fault
from localagent.errors import UsageFault
from localagent.ports import Sink
from localagent.protocol.http_client import DEFAULT_SOCKET

_AGREED = {
    AgreedBy.PERSON.value: "agreed to by a person",
    AgreedBy.ASSUMED.value: "assumed (--assume)",
    AgreedBy.NOBODY.value: "agreed to by nobody",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("instruction", metavar="INSTRUCTION", nargs="?", default="", help="what is to be changed, in words")
    add_session_options(p)
    p.add_argument(
        "--from-tests",
        action="append",
        default=[],
        metavar="SPEC",
        help="tests that specify the change: write the code that they import and that does not exist; may be repeated",
    )
    p.add_argument("--assume", action="store_true", help="do not ask a person unless the policy requires it")
    p.add_argument("--file", action="append", default=[], metavar="DATA", help="analyse this file or folder")
    p.add_argument("--results", default="", metavar="DIR", help="new folder for the script, tables and plots")
    p.add_argument("--out", default="", metavar="FILE", help="write the accepted patch to FILE, as a unified diff")
    p.add_argument("--report", default="", metavar="FILE", help="write the report to FILE, as JSON, always")
    p.add_argument("--apply", action="store_true", help="write an accepted patch into the repository")
    p.add_argument(
        "--daemon",
        nargs="?",
        const=str(DEFAULT_SOCKET),
        metavar="SOCKET",
        help=f"let the daemon do the work, with --trust auto (default: {DEFAULT_SOCKET})",
    )
    p.add_argument("--json", action="store_true", help="print events as JSON, one per line")
    p.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Exit codes as in docs/errors.md."""
    request = _request(args, settings)
    stop = Stop()
    stop_on_signals(stop)
    sink = sink_of(args, render)
    if args.daemon is not None:
        outcome = run_do_remote(request, Path(args.daemon), settings, sink)
    else:
        outcome = run_do(request, settings, Frontend(sink=sink, stop=stop, person=person_of(args, request, render)))
    show_outcome(outcome, args, render)
    return outcome.exit


def sink_of(args: argparse.Namespace, render: Render) -> Sink:
    """Where progress goes."""
    return JsonSink(render) if args.json else PlainSink(render, quiet=args.quiet)


def person_of(args: argparse.Namespace, request: DoRequest, render: Render) -> Person:
    """Whoever sits at the terminal; nobody where there is none, or where no question is wanted."""
    ask = sys.stdin.isatty() and sys.stderr.isatty() and not args.json and not request.assume
    return TerminalPerson(render) if ask and request.trust is not Trust.AUTO else Absent()


def show_outcome(outcome: DoOutcome, args: argparse.Namespace, render: Render) -> None:
    """The outcome, as JSON or for a person."""
    if args.json:
        render.json({"event": "result", "session": outcome.session, "report": outcome.report})
        return
    if (analysis := outcome.report.get("agent", {}).get("analysis")) is not None:
        show_analysis(outcome, analysis, render)
        return
    if shown := outcome.diff or outcome.proposal:
        render.text(shown.decode("utf-8", "replace").rstrip("\n"))
        render.line()
    render.line(outcome.reason)
    agent = outcome.report.get("agent", {})
    if outcome.diff and agent.get("grade"):
        render.line(f"strength {agent['grade']} of A to E for the claim {agent['claim']!r}")
    for text in agent.get("not_shown", ()) if outcome.diff else ():
        render.note(f"not shown: {text}")
    show_agreed(agent, render)
    if outcome.remedy:
        render.line(f"  what to do: {outcome.remedy}")
    for warning in outcome.warnings:
        render.note(f"warning: {warning}")
    if outcome.proposal and getattr(args, "out", None):
        render.note(f"{args.out} was not written, because no patch was accepted")
    render.note(f"details: localagent show {outcome.session}; localagent session show {outcome.session}")
    if outcome.applied:
        render.note(f"applied; to revert it: localagent undo {outcome.session}")
    elif outcome.diff:
        render.note(f"to apply it: localagent apply {outcome.session}")


def show_agreed(agent: Mapping[str, Any], render: Render) -> None:
    """Plan, tests and reviews of a session's report, who agreed to them, and what was not obeyed."""
    if (plan := agent.get("agreed_plan")) is not None:
        render.note(f"plan: {len(plan['files'])} files, {_AGREED[plan['by']]}: {', '.join(plan['files'])}")
    if (tests := agent.get("acceptance")) is not None:
        render.note(_shown_tests(tests))
    for review in agent.get("reviews", ()):
        said = review["reason"] or "; ".join(str(Objection(**one)) for one in review["objections"])
        render.note(f"review by {review['model']}, a model's words and no proof: {review['answer']}: {said}")
    for text in agent.get("speaks_to_machine", ()):
        render.note(f"warning: speaks to a machine, and was not obeyed: {text}")


def _shown_tests(tests: Mapping[str, Any]) -> str:
    if not tests["files"]:
        return f"no acceptance tests: a model says that none can show it ({tests['no_test']})"
    many = f"{len(tests['tests'])} tests in {', '.join(tests['files'])}"
    return f"acceptance tests, written by a model, {_AGREED[tests['by']]}: {many}"


def _request(args: argparse.Namespace, settings: Settings) -> DoRequest:
    faults: list[str] = []
    instruction = args.instruction.strip() or (INSTRUCTION if args.from_tests else "")
    if fault := instruction_fault(instruction):
        faults.append(f"INSTRUCTION: {fault}")
    request = session_request(args, _defaults(args, settings), faults)
    for spec in args.from_tests:
        named = spec.partition("::")[0]
        if not (Path(args.repo) / named).exists():
            faults.append(f"--from-tests: {spec}: no such file or folder in {args.repo}")
        elif Path(named).is_absolute() or not Path(named).parts or ".." in Path(named).parts:
            faults.append(f"--from-tests: {spec!r}: name test files, or folders of tests, relative to the repository")
    if request.trust is Trust.AUTO and args.apply:
        faults.append("--trust auto and --apply: what nobody looks at is not written into the tree; use `apply` later")
    for name, value in (("--out", args.out), ("--report", args.report)):
        if value and (not Path(value).absolute().parent.is_dir() or Path(value).is_dir()):
            faults.append(f"{name}: {value} is a directory, or its directory does not exist")
    faults += analysis_faults(args)
    if faults:
        raise UsageFault(faults, remedy="`localagent do --help` lists the options")
    specification = tuple(map(_plain, args.from_tests))
    path: Callable[[str], Path | None] = lambda value: Path(value) if value else None  # noqa: E731
    return replace(
        request,
        instruction=instruction,
        tests=tuple(dict.fromkeys((*args.test, *specification))),
        from_tests=specification,
        assume=args.assume,
        out=path(args.out),
        report=path(args.report),
        apply=args.apply,
        files=tuple(map(Path, args.file)),
        results=path(args.results),
    )


def _defaults(args: argparse.Namespace, settings: Settings) -> SessionDefaults:
    """What holds where an option is left out. An analysis asks for the work alone; the daemon has its own models."""
    if args.daemon is not None:
        return SessionDefaults(trust=Trust.AUTO.value)
    known = defaults_of(settings)
    return SessionDefaults(model=known.model, trust=known.trust) if args.file else known


def _plain(spec: str) -> str:
    """A pytest argument with its path as the tree spells it: without `./` and doubled slashes."""
    path, mark, rest = spec.partition("::")
    return f"{PurePosixPath(path)}{mark}{rest}"
