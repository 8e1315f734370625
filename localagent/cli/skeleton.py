"""`localagent skeleton TESTS`: modules, classes and functions that tests want and nothing has, as a patch."""

import argparse
from pathlib import Path

from localagent.app import Settings
from localagent.app.code.skeleton_patch import skeleton_patch
from localagent.cli.index_progress import add_repo
from localagent.cli.render import Render
from localagent.fs.atomic_files import write_through
from localagent.repo.diff.write_diff import unified_diff


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("tests", nargs="+", metavar="TESTS", help="test files or folders, relative to the repository")
    parser.add_argument(
        "--python", default="", metavar="PY", help="the project's interpreter: its packages are not written"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the patch to FILE, not to standard output")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_repo(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 with a patch, 1 where nothing is missing."""
    del settings
    found = skeleton_patch(args.repo, args.tests, python=args.python)
    diff = unified_diff(found.patch)
    if args.out is not None and diff:
        write_through(args.out, diff)
    if args.json:
        missing = {m.name: {"path": m.path, "names": sorted(m.names)} for m in found.missing}
        render.json(
            {"missing": missing, "patch": diff.decode("utf-8", "surrogateescape"), "left_out": dict(found.left_out)}
        )
        return 0 if diff else 1
    for path, reason in found.left_out:
        render.note(f"not read: {path}: {reason}")
    for module in found.missing:
        render.note(f"missing: {module.name}" + (f": {', '.join(sorted(module.names))}" if module.names else ""))
    if not diff:
        render.note("nothing is missing: every module and name that these tests import is there")
        return 1
    if args.out is None:
        render.patch(diff)
    return 0
