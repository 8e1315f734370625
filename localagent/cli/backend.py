"""The option `--backend`: which program makes the jail. Not promised: that it is sound; opening the jail says."""

import argparse

from localagent.jail.api import BackendKind


def add_backend(parser: argparse.ArgumentParser) -> None:
    """The choice of what makes the jail."""
    names = ("auto", *(str(kind) for kind in BackendKind))
    parser.add_argument(
        "--backend",
        choices=names,
        default="auto",
        help="jail backend (auto: bubblewrap, or nsjail if that does not work)",
    )


def backend_of(args: argparse.Namespace) -> BackendKind | None:
    """The kind of backend asked for; None for auto."""
    return None if args.backend == "auto" else BackendKind(args.backend)
