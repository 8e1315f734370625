"""NAME as the verbs about code take it, and the symbols that it means."""

import argparse

from localagent.app import Settings
from localagent.app.code.code_questions import CodeQuestions
from localagent.cli.index_progress import add_repo, opened
from localagent.cli.render import Render
from localagent.code.graph.values import Symbol

MAX_LIMIT = 100_000


def add_name(parser: argparse.ArgumentParser) -> None:
    """NAME, --json, --repo."""
    parser.add_argument("name", metavar="NAME", help="func, Class.method, pkg.mod.func, path.py:func or path.py:12")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """--json, --repo."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_repo(parser)


def requested_symbols(
    args: argparse.Namespace, settings: Settings, render: Render
) -> tuple[CodeQuestions, tuple[Symbol, ...]]:
    """The graph, and what NAME means in it; says so where it means nothing."""
    questions = CodeQuestions(opened(args, settings, render))
    symbols = questions.symbols(args.name)
    if not symbols:
        say_unknown(args, render, in_python=bool(questions.in_other_languages(args.name)))
    return questions, symbols


def say_unknown(args: argparse.Namespace, render: Render, *, in_python: bool = False) -> None:
    """Say that NAME means nothing, or only `in_python`, where the answer is for a person."""
    if not args.json:
        where = " in Python" if in_python else ""
        render.note(f"nothing is called {args.name!r}{where}; `localagent search` finds what is like it")
