"""`localagent train`: learn the search's order from the user's own repositories, kept only if it is better."""

import argparse
import importlib
import os
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.cli.gpu_layers import add_gpu_layers, describe_layers, with_layers
from localagent.cli.render import Render
from localagent.errors import UsageFault

_MOST_HOURS = 1_000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument(
        "--from", dest="repos", type=Path, nargs="+", default=[], metavar="REPO", help="git repositories to learn from"
    )
    parser.add_argument("--hours", type=float, default=1.0, metavar="H", help="time limit in hours (default: 1)")
    parser.add_argument(
        "--preset",
        choices=("ranker", "cpu", "cuda"),
        help="ranker: the order alone; cpu, cuda: an adapter of the language model too, learned there "
        "(default: cpu where the extra `train` is installed, else ranker)",
    )
    add_gpu_layers(parser, "; edits are scored there, adapters are learned where --preset says")
    parser.add_argument("--no-model", action="store_true", help="learn the order of tasks without the language model")
    parser.add_argument("--forget", action="store_true", help="delete the learned order and its samples")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0: an order was learned, was better, and is in use from now on; 1: it was not better."""
    faults = []
    if bool(args.repos) == args.forget:
        faults.append("give either --from REPO ... or --forget")
    if not 0 < args.hours <= _MOST_HOURS:
        faults.append(f"--hours: {args.hours:g} is not above 0 and at most {_MOST_HOURS:g}")
    if faults:
        raise UsageFault(faults)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads wait for each other
    learning: Any = importlib.import_module("localagent.training.ranker_run")
    if args.forget:
        gone = learning.forget(settings)
        render.line(f"removed {len(gone)} files; tasks use the bundled order again")
        return 0
    device = _device(args)
    settings = with_layers(args, settings)
    if not args.no_model:
        describe_layers(settings, render.note)
    done = learning.train(
        args.repos, settings, render.note, hours=args.hours, use_model=not args.no_model, device=device
    )
    adapter = done.adapter
    kept = adapter is not None and adapter.registered is not None
    registered = str(done.registered) if done.registered is not None else None
    if args.json:
        told = {"found": done.found, "data": done.digest, "judged": done.figures, "registered": registered}
        render.json({**told, "adapter": None if adapter is None else {**adapter.about, "kept": kept}})
    else:
        for kind, told in done.figures.items():
            render.line(f"{kind}: {_sentence(told)}")
            if "in-use" in told:
                render.line(f"{kind}, beside the order in use: {_sentence(told['in-use'], 'in use')}")
        if adapter is not None:
            render.line(f"adapter: {_sentence(adapter.judged.told(), 'without it', 'with it')}")
        render.line(f"registered: {registered}" if registered else "not better than the order in use: nothing is kept")
    return 0 if registered or kept else 1


def _device(args: argparse.Namespace) -> str | None:
    """Where an adapter is to be learned, None where none is. UsageFault where what was asked cannot be."""
    if args.preset in ("cpu", "cuda") and args.no_model:
        raise UsageFault([f"--preset {args.preset} needs the language model, which --no-model excludes"])
    if args.preset is None:
        learning: Any = importlib.import_module("localagent.training.adapter_run")
        return "cpu" if not args.no_model and not learning.missing() else None
    return args.preset if args.preset != "ranker" else None


def _sentence(told: dict[str, Any], one: str = "by hand", other: str = "learned") -> str:
    """One order against the other, in words."""
    if not told["fixes"]:
        return "no fixes to evaluate with"
    hand, learned = told["hand"], told["learned"]
    return (
        f"{told['fixes']} held-back fixes, median rank {hand['median']:g} {one}, {learned['median']:g} {other}; "
        f"among the first ten {hand['first-10']:.0%} and {learned['first-10']:.0%}; "
        f"{told['better']} earlier, {told['worse']} later (chance {told['chance']:g}): "
        + ("kept" if told["kept"] else "not kept")
    )
