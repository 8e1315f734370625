"""`localagent model qualify|compare`: what a model can be trusted with as an agent, shown by tasks."""

import argparse
import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.agent.challenges import Challenge, built_in, load_challenges
from localagent.app.agent.model_profile import Fitness, ModelProfile, profile_json
from localagent.app.agent.qualification import QualificationExtent, Standing, compare, qualify
from localagent.app.cancellation import Stop
from localagent.cli.columns import aligned
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.gpu_layers import add_gpu_layers, with_layers
from localagent.cli.render import Render
from localagent.domain.strength import Share
from localagent.errors import UsageFault

_MOST_EACH = 20
_SEEDS = 1_000_000


def add_qualify(parser: argparse.ArgumentParser) -> None:
    """Arguments of `model qualify`."""
    parser.add_argument("model", metavar="M", help="unix:SOCKET of a model server, or a registered GGUF")
    parser.add_argument("--each", type=int, default=3, metavar="N", help="tasks of each skill (3)")
    _shared(parser)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Arguments of `model compare`."""
    parser.add_argument("models", nargs="+", metavar="M", help="unix:SOCKET of a model server, or a registered GGUF")
    parser.add_argument(
        "--tasks", default="", metavar="FILE", help="tasks of your own, as TOML (default: built-in ones)"
    )
    parser.add_argument("--each", type=int, default=1, metavar="N", help="built-in tasks of each skill (1)")
    _shared(parser)


def _shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-seconds", type=float, default=1800.0, metavar="S", help="seconds for one model (1800)")
    parser.add_argument("--task-seconds", type=float, default=300.0, metavar="S", help="seconds for one task (300)")
    parser.add_argument("--seed", type=int, metavar="K", help="draw the tasks of an earlier run (default: new ones)")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    add_gpu_layers(parser)


def run_qualify(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 where the model is fit for something, 1 where it is not."""
    extent = _extent(args, [])
    render.quiet = render.quiet or args.quiet
    stop = Stop()
    stop_on_signals(stop)
    profile = qualify(args.model, with_layers(args, settings), render.note, extent, stop)
    if args.json:
        render.json(profile_json(profile))
    else:
        for line in profile_lines(profile):
            render.line(line)
    return 1 if profile.fitness is Fitness.UNFIT else 0


def run_compare(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when every model was asked for every task, 1 where there was no time for some."""
    twice = sorted({name for name in args.models if args.models.count(name) > 1})
    extent = _extent(args, [f"{name} is named more than once" for name in twice])
    challenges = load_challenges(Path(args.tasks)) if args.tasks else built_in(extent.seed, extent.each)
    render.quiet = render.quiet or args.quiet
    stop = Stop()
    stop_on_signals(stop)
    found = compare(args.models, with_layers(args, settings), render.note, challenges, extent, stop)
    if args.json:
        render.json({"seed": extent.seed, "models": [_standing_json(one) for one in found]})
    else:
        for line in compare_lines(found, challenges):
            render.line(line)
        if not args.tasks:
            render.line(f"the same tasks again: --seed {extent.seed} --each {extent.each}")
    return 1 if any(one.cut for one in found) else 0


def _extent(args: argparse.Namespace, faults: list[str]) -> QualificationExtent:
    """What is to be measured. UsageFault with every fault of the arguments."""
    if not 1 <= args.each <= _MOST_EACH:
        faults.append(f"--each: from 1 to {_MOST_EACH}")
    for name, value in (("--max-seconds", args.max_seconds), ("--task-seconds", args.task_seconds)):
        if not 0 < value < math.inf:
            faults.append(f"{name}: must be positive and finite")
    if args.seed is not None and not 0 <= args.seed < _SEEDS:
        faults.append(f"--seed: from 0 to {_SEEDS - 1}")
    if faults:
        raise UsageFault(faults, remedy=f"`localagent model {args.action} --help` lists the options")
    seed = secrets.randbelow(_SEEDS) if args.seed is None else args.seed
    return QualificationExtent(seed=seed, each=args.each, seconds=args.max_seconds, task_seconds=args.task_seconds)


def profile_lines(profile: ModelProfile) -> Iterator[str]:
    """What was measured, aligned; the verdict first."""
    yield f"{profile.name}: {profile.verdict}"
    rows: list[tuple[str, str]] = []
    for way, calls in profile.dialects.items():
        used = ", used" if way == profile.dialect else ""
        rows.append((f"{way} format", f"{calls.well_formed} calls well-formed, {calls.right} as asked{used}"))
    rows += [("calls tools well", f"{profile.calls} replies")] if profile.calls.whole else []
    rows += [("ends by itself", _tasks(profile.stops))] if profile.stops.whole else []
    rows += [(skill, _tasks(share)) for skill, share in profile.skills.items()]
    rows += [(f"tool {tool}", f"{share} calls did something") for tool, share in profile.edits.items()]
    rows += [("reviews", f"{profile.reviews} changes judged rightly")] if profile.reviews.whole else []
    if profile.reviews.whole:
        claimed = f", of {profile.context_tokens:,}" if profile.context_tokens else ""
        rows.append(("context", f"{profile.shown_context:,} tokens in which a line was found again{claimed}"))
    speeds = ((profile.prompt_speed, "read"), (profile.reply_speed, "written"))
    if told := ", ".join(f"{speed:.0f} tokens a second {what}" for speed, what in speeds if speed):
        rows.append(("speed", told))
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        yield f"  {name:<{width}}  {text}"
    for warning in profile.warnings[1 if profile.fitness is not Fitness.CHANGES else 0 :]:
        yield f"  warning: {warning}"
    for text in profile.cut:
        yield f"  not measured: {text}"
    yield f"  the same tasks again: --seed {profile.seed}"


def _tasks(share: Share) -> str:
    missing = f" (not {', '.join(share.missing)})" if share.missing else ""
    return f"{share} tasks{missing}"


def compare_lines(found: Sequence[Standing], challenges: Sequence[Challenge]) -> Iterator[str]:
    """A row for each model, then for each task who did it; aligned columns."""
    heads = ("model", "done", "calls well", "replies", "tokens", "seconds")
    rows: list[tuple[str, ...]] = [heads]
    for one in found:
        tokens = sum(r.prompt_tokens + r.reply_tokens for r in one.results)
        seconds = sum(r.seconds for r in one.results)
        rows.append((one.name, str(one.done), str(one.calls), str(one.calls.whole), f"{tokens:,}", f"{seconds:.0f}"))
    yield from aligned(rows)
    yield ""
    marks = [{r.name: "done" if r.done else "no" for r in one.results} for one in found]
    tasks = [(c.name, *(mark.get(c.name, "not asked") for mark in marks)) for c in challenges]
    yield from aligned([("task", *(one.name for one in found)), *tasks])


def _standing_json(one: Standing) -> dict[str, Any]:
    return {
        "model": one.name,
        "digest": one.digest,
        "done": one.done.part,
        "tried": one.done.whole,
        "tasks": [asdict(result) for result in one.results],
        "not_asked": list(one.cut),
    }
