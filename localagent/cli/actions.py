"""The actions of a verb (`audit verify`): each says in its own help what it does."""

import argparse
from typing import Any


def add_action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    """A parser for one action. `actions` is what `add_subparsers` returned; `text` goes into both helps."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
    return parser
