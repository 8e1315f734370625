"""`localagent callers NAME` and `localagent callees NAME`: calls over all files and through inheritance."""

import argparse
from dataclasses import asdict

from localagent.app import Settings
from localagent.cli.code_names import add_name, requested_symbols
from localagent.cli.render import Render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of both verbs."""
    add_name(parser)
    parser.add_argument("--certain", action="store_true", help="leave out what is only possible")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when there are calls, else 1."""
    questions, symbols = requested_symbols(args, settings, render)
    found = questions.callers(symbols) if args.verb == "callers" else questions.callees(symbols)
    found = [one for one in found if not args.certain or one.certainty == "certain"]
    if args.json:
        names = [questions.name(symbol) for symbol in symbols]
        calls = [asdict(one) for one in found]
        render.json({"query": args.name, "root": str(questions.index.root), "symbols": names, "calls": calls})
        return 0 if found else 1
    for one in found:
        other = one.caller if args.verb == "callers" else one.callee
        mark = "" if one.certainty == "certain" else "   (possibly)"
        render.line(f"{other.path}:{other.line} {other.name}{mark}")
        render.line(f"    {one.caller.path}:{one.line}: {one.text}")
    if symbols and not found:
        render.note(f"no calls {'of' if args.verb == 'callers' else 'in'} {args.name!r} are known")
    return 0 if found else 1
