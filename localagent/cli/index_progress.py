"""Opens the index for a verb, with a line on standard error every second that it takes."""

import argparse
import time
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.repository_index import RepositoryIndex, open_index
from localagent.cli.render import Render

_EVERY_SECONDS = 1.0


def add_repo(parser: argparse.ArgumentParser) -> None:
    """`--repo DIR`."""
    parser.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")


def opened(args: argparse.Namespace, settings: Settings, render: Render, *, rebuild: bool = False) -> RepositoryIndex:
    """The index of `--repo`, up to date; says what it began anew."""
    next_at = time.monotonic() + _EVERY_SECONDS

    def progress(done: int, total: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            render.note(f"indexing: {done} of {total} files")
            next_at = time.monotonic() + _EVERY_SECONDS

    index = open_index(args.repo, settings, progress=progress, rebuild=rebuild)
    rebuilt = index.status().rebuilt
    if rebuilt and not rebuild:
        render.note(f"the index was built anew: {rebuilt}")
    return index
