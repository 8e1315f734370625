"""`localagent replay`: verify a past task's patch again, run the task again, and compare the two journals."""

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.agent.session_replay import SessionReplayed, replay_session
from localagent.app.agent.session_store import is_session
from localagent.app.cancellation import Stop
from localagent.app.evidence.replay_task import PatchCheck, Replayed, replay
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.record.store import TaskStore
from localagent.record.trajectory import TrajectoryDifference
from localagent.text.visible_text import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("id", metavar="ID", help="task id; a unique prefix is enough")
    parser.add_argument("--repo", type=Path, metavar="DIR", help="a copy of the tree as the task saw it")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 the patch passes again and the task came to the same, 1 it does not, or cannot be done again."""
    if args.repo is not None and not args.repo.is_dir():
        raise UsageFault(f"--repo: {args.repo} is not a directory")
    record = TaskStore(settings.state_dir).open(args.id)
    stop = Stop()
    stop_on_signals(stop)
    sink = PlainSink(render, quiet=args.quiet or args.json)
    if is_session(record):
        return _session(replay_session(record, settings, sink, stop, repo=args.repo), args, render)
    answer = replay(record, settings, sink, stop, repo=args.repo)
    if args.json:
        render.json(_json(answer))
    else:
        _show(answer, render)
    return 0 if answer.confirmed else 1


def _json(answer: Replayed) -> dict[str, Any]:
    departure, told = answer.departure, answer.explanation
    return {
        "task": answer.task,
        "confirmed": answer.confirmed,
        "verified": {"check": answer.verified.check.value, "reasons": list(answer.verified.reasons)},
        "same": answer.same,
        "events": answer.events,
        "trajectory": answer.digest,
        "same_patch": answer.same_patch,
        "departure": None
        if departure is None
        else {
            "event": departure.event,
            "recorded": departure.recorded,
            "replayed": departure.replayed,
            "differs": list(told.differs) if told is not None else [],
            "causes": list(told.causes) if told is not None else [],
        },
        "changed": list(answer.changed),
    }


def _session(answer: SessionReplayed, args: argparse.Namespace, render: Render) -> int:
    """A session's answer, shown; the exit code."""
    code = 0 if answer.confirmed else 1
    if args.json:
        told = {"check": answer.verified.check.value, "reasons": list(answer.verified.reasons)}
        departures = [asdict(departure) for departure in answer.departures]
        names = ("task", "confirmed", "calls", "left", "other_texts", "same_patch")
        render.json({**{n: getattr(answer, n) for n in names}, "verified": told, "departures": departures})
        return code
    if answer.verified.check is PatchCheck.PASSES:
        render.line("the patch of the record passes every check again")
    for reason in answer.verified.reasons:
        render.line(f"the patch of the record fails now: {one_line(reason, 300)}")
    for at in answer.departures:
        render.line(f"departs at call {at.number}, {at.tool}: {at.recorded}")
        render.line(f"  now {at.now}")
    same = "did the same" if not answer.departures else f"{len(answer.departures)} did something else"
    patch = "the same patch" if answer.same_patch else "another patch"
    render.line(f"{answer.calls} calls of the model carried out again, {same}; {patch}")
    if answer.left:
        render.note(f"not carried out again: {answer.left} of a person's answers, plans, ends, interrupted calls")
    if answer.other_texts:
        render.note(f"{answer.other_texts} of them printed another text, as output that holds times does")
    return code


def _show(answer: Replayed, render: Render) -> None:
    if answer.verified.check is PatchCheck.PASSES:
        render.line("the patch of the record passes every check again")
    for reason in answer.verified.reasons:
        render.line(f"the patch of the record fails now: {one_line(reason, 300)}")
    if answer.same:
        render.line(f"the same: {answer.events} events, trajectory {answer.digest}")
    elif answer.departure is None:
        render.line(f"the same {answer.events} events, but another patch")
    else:
        _departed(answer, answer.departure, render)
    for line in answer.changed:
        render.line(f"  changed since: {line}")


def _departed(answer: Replayed, at: TrajectoryDifference, render: Render) -> None:
    """Where, what differs, what may have made it, and what it comes to."""
    kind = (at.recorded or at.replayed or {}).get("kind", "")
    patch = "the same" if answer.same_patch else "another one"
    render.line(f"departs at event {at.event + 1} of {answer.events} ({one_line(str(kind), 40)}); the patch is {patch}")
    told = answer.explanation
    if told is not None:
        for line in told.differs:
            render.line(f"  {line}")
        for line in told.causes:
            render.line(f"  may be: {line}")
    load, cores = os.getloadavg()[0], os.cpu_count()
    render.note(f"the load of this machine is {load:.1f} on {cores} processors; --json prints both events in full")
    if answer.same_patch:
        render.note("the search took another way but found the same patch")
    else:
        render.note(
            f"replay it again on a quiet machine; `localagent show {answer.task}` shows the evidence in the record"
        )
