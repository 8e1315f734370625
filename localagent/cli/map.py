"""`localagent map`: the main classes and functions of a repository, in so many tokens; or how its code is written."""

import argparse
from dataclasses import asdict
from itertools import groupby

from localagent.app import Settings
from localagent.app.code.map_code import conventions_of, map_of
from localagent.cli.index_progress import add_repo, opened
from localagent.cli.render import Render
from localagent.code.index.repo_map import MapEntry, map_line
from localagent.errors import UsageFault

_MOST_TOKENS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--tokens", type=int, default=1_500, metavar="N", help="size of the map (default: 1500)")
    parser.add_argument("--about", default="", metavar="TEXT", help="rank code related to these words higher")
    parser.add_argument("--conventions", action="store_true", help="show how the code is written instead")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_repo(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when there is something to show, else 1."""
    if not 1 <= args.tokens <= _MOST_TOKENS:
        raise UsageFault(f"--tokens must be between 1 and {_MOST_TOKENS:,}, not {args.tokens}")
    index = opened(args, settings, render)
    if args.conventions:
        found = conventions_of(index)
        if args.json:
            render.json({"root": str(index.root), "conventions": [asdict(one) for one in found]})
        else:
            for one in found:
                render.line(f"{one.topic}: {one.practice} ({one.share:.0%} of {one.count})")
        return 0 if found else 1
    entries = map_of(index, args.tokens, args.about)
    if args.json:
        render.json({"root": str(index.root), "entries": [asdict(entry) for entry in entries]})
    else:
        _show(entries, render)
    if not entries:
        render.note("nothing to show: no Python definitions, or none that fits in so few tokens")
    return 0 if entries else 1


def _show(entries: list[MapEntry], render: Render) -> None:
    in_order = sorted(entries, key=lambda entry: (entry.path, entry.line))
    for path, group in groupby(in_order, key=lambda entry: entry.path):
        render.line(path)
        for entry in group:
            render.line(map_line(entry))
