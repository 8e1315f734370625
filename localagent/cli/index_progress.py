"""Opens the index for a verb; says how far it is where that takes more than a second."""

import argparse
import time
from contextlib import ExitStack
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.repository_index import RepositoryIndex, open_index
from localagent.cli.progress import progress_sink
from localagent.cli.render import Render
from localagent.domain.task import Event
from localagent.ports import Sink

_QUIET_SECONDS = 1.0


def add_repo(parser: argparse.ArgumentParser) -> None:
    """`--repo DIR`."""
    parser.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")


def opened(args: argparse.Namespace, settings: Settings, render: Render, *, rebuild: bool = False) -> RepositoryIndex:
    """The index of `--repo`, up to date; says what it began anew."""
    started = time.monotonic()
    sink: Sink | None = None
    with ExitStack() as stack:

        def progress(done: int, total: int) -> None:
            nonlocal sink
            seconds = time.monotonic() - started
            if sink is None and seconds >= _QUIET_SECONDS:
                sink = stack.enter_context(progress_sink(render))
                sink.emit(Event(kind="stage", at_seconds=seconds, data={"stage": "index"}))
            if sink is not None:
                sink.emit(Event(kind="progress", at_seconds=seconds, data={"indexed": done, "files": total}))

        index = open_index(args.repo, settings, progress=progress, rebuild=rebuild)
    rebuilt = index.status().rebuilt
    if rebuilt and not rebuild:
        render.note(f"the index was built anew: {rebuilt}")
    return index
