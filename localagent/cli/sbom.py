"""`localagent sbom`: what this installation, or a kit, is made of, as CycloneDX 1.6 JSON. Nothing is fetched or run."""

import argparse
from pathlib import Path

from localagent.app import Settings
from localagent.app.inventory.kit_sbom import bill_of_kit
from localagent.app.inventory.sbom import bill_of_materials
from localagent.cli.render import Render
from localagent.fs.atomic_files import write_through


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--kit", type=Path, metavar="DIR", help="describe this kit instead of the installation")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when the bill was written."""
    text = bill_of_materials(settings) if args.kit is None else bill_of_kit(args.kit)
    if args.out is None:
        render.raw(text.encode(), b"")
    else:
        write_through(args.out, text.encode())
    return 0
