"""The option `--gpu-layers` of the verbs that load a model, in the place of what the environment says.

Not promised: that a GPU serves; whoever opens the model says whether one does, and why not.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

from localagent.app import Settings
from localagent.llm.model.gpu import checked_layers, offload_of


def add_gpu_layers(parser: argparse.ArgumentParser, more: str = "") -> None:
    """The option. `more` is said of it beside what it is."""
    text = "layers of the model to run on a GPU (default: none, or LOCALAGENT_GPU_LAYERS)" + more
    parser.add_argument("--gpu-layers", default="", metavar="auto|N", help=text)


def with_layers(args: argparse.Namespace, settings: Settings) -> Settings:
    """The settings with what was asked for. UsageFault where that is neither `auto` nor a number."""
    return replace(settings, gpu_layers=checked_layers(args.gpu_layers) or settings.gpu_layers)


def describe_layers(settings: Settings, say: Callable[[str], None]) -> None:
    """One line on what becomes of them, before anything runs; nothing where none were asked for.

    CannotEnforce where a number of layers was asked for and there is no GPU to run them.
    """
    if said := offload_of(settings.gpu_layers).said:
        say(f"--gpu-layers: {said}")
