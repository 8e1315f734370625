"""`localagent policy show|check`: what holds, and every fault of a policy file."""

import argparse
from dataclasses import asdict
from pathlib import Path

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.policy.load import load_policy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`policy show [--policy FILE] [--json]` and `policy check FILE`."""
    verbs = parser.add_subparsers(dest="policy_verb", metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print a policy that is right", allow_abbrev=False)
    show.add_argument("--policy", type=Path, metavar="FILE", help="default: the bundled default policy")
    show.add_argument("--json", action="store_true", help="the parsed policy as one JSON object")
    check = verbs.add_parser("check", help="list every fault of a policy file", allow_abbrev=False)
    check.add_argument("file", type=Path, metavar="FILE")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Show or check a policy; UsageFault lists every fault."""
    path: Path = args.file if args.policy_verb == "check" else args.policy or settings.policies_dir / "default.toml"
    policy = load_policy(path)
    if args.policy_verb == "check":
        render.line(f"{path}: policy {policy.name!r} is right ({len(policy.dangers)} rules of dangers)")
    elif args.json:
        render.json({"file": str(path), **asdict(policy)})
    else:
        render.line(path.read_text(encoding="utf-8").rstrip("\n"))
    return 0
