"""`localagent help [VERB]`: every verb with its line of help, or the options of one."""

import argparse

from localagent.app import Settings
from localagent.cli.main import GROUPS, VERBS, main
from localagent.cli.render import Render
from localagent.errors import UsageFault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One argument, not needed: the verb."""
    parser.add_argument(
        "of", nargs="?", metavar="VERB", help="print the options of this verb (default: list the verbs)"
    )


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:  # noqa: ARG001 - every verb's signature
    """Exit 0; UsageFault for what is no verb."""
    if args.of is None:
        for group, verbs in GROUPS.items():
            for line in (f"{group}:", *(f"  {verb:14} {text}" for verb, (_, text) in verbs.items()), ""):
                render.line(line)
        return 0
    if args.of not in VERBS:
        raise UsageFault(f"unknown verb {args.of!r}", remedy="localagent help lists the verbs")
    return main([args.of, "--help"])
