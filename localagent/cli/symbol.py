"""`localagent symbol NAME`: what a name is, from the sources alone."""

import argparse
from dataclasses import asdict

from localagent.app import Settings
from localagent.app.code.code_questions import CodeQuestions, ShownSymbol
from localagent.app.code.snippets import shown
from localagent.cli.code_names import add_name, say_unknown
from localagent.cli.index_progress import opened
from localagent.cli.render import Render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    add_name(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when the name is known, else 1."""
    questions = CodeQuestions(opened(args, settings, render))
    symbols = questions.symbols(args.name)
    found = [one for symbol in symbols for one in questions.symbol(symbol)]
    found += questions.in_other_languages(args.name)
    others = [{"path": shown(s.path), "name": questions.name(s)} for s in symbols if not questions.defines(s)]
    if args.json:
        render.json(
            {
                "query": args.name,
                "root": str(questions.index.root),
                "definitions": [asdict(one) for one in found],
                "names": others,
            }
        )
        return 0 if found or others else 1
    for one in found:
        _show(one, render)
    for other in others:
        render.line(f"{other['path']}  name {other['name']}")
    if not found and not others:
        say_unknown(args, render)
    return 0 if found or others else 1


def _show(one: ShownSymbol, render: Render) -> None:
    render.line(f"{one.path}:{one.first_line}-{one.last_line}  {one.kind} {one.name}")
    for text in (one.signature, one.summary):
        if text:
            render.line(f"    {text}")
    if one.bases:
        render.line(f"    bases: {', '.join(one.bases)}")
    for label, functions in (("overrides", one.overrides), ("overridden by", one.overridden_by)):
        for function in functions:
            render.line(f"    {label} {function.name} at {function.path}:{function.line}")
    for test in one.tests:
        mark = "" if test.certainty == "certain" else " (possibly)"
        render.line(f"    tested by {test.path}:{test.line} {test.name}{mark}")
    if one.commit:
        render.line(f"    last commit: {one.commit}")
