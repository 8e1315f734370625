"""`localagent refs NAME`: every place where a name is used, with its kind, and whether that is certain."""

import argparse
from dataclasses import asdict

from localagent.app import Settings
from localagent.cli.code_names import add_name, requested_symbols
from localagent.cli.render import Render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    add_name(parser)
    parser.add_argument("--certain", action="store_true", help="leave out what is only possible")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when there are references, else 1."""
    questions, symbols = requested_symbols(args, settings, render)
    found = questions.references(symbols) if symbols else []
    found = [one for one in found if not args.certain or one.certainty == "certain"]
    if args.json:
        names = [questions.name(symbol) for symbol in symbols]
        shown = [asdict(one) for one in found]
        render.json({"query": args.name, "root": str(questions.index.root), "symbols": names, "references": shown})
        return 0 if found else 1
    for certainty in ("certain", "possible"):
        some = [one for one in found if one.certainty == certainty]
        if some:
            render.line(f"{certainty}: {len(some)}")
        for one in some:
            inside = f"   [{one.inside}]" if one.inside else ""
            render.line(f"  {one.path}:{one.line}:{one.column}: {one.kind}: {one.text}{inside}")
    return 0 if found else 1
