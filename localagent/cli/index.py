"""`localagent index`: brings the index up to date and says what it holds. Seldom needed: every verb does it first."""

import argparse

from localagent.app import Settings
from localagent.app.code.repository_index import IndexStatus, index_status
from localagent.cli.index_progress import add_repo, opened
from localagent.cli.render import Render

_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--status", action="store_true", help="show the index as it is, without updating it")
    action.add_argument("--rebuild", action="store_true", help="build the index from nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_repo(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when there is an index; 1 where `--status` finds none."""
    if args.status:
        status = index_status(args.repo, settings)
        if status is None:
            render.error("there is no index of this repository yet", "`localagent index` builds it")
            return 1
    else:
        status = opened(args, settings, render, rebuild=args.rebuild).status()
    if args.json:
        render.json(_json(status))
    else:
        _show(status, render)
    return 0


def _json(status: IndexStatus) -> dict[str, object]:
    return {
        "path": str(status.path), "bytes": status.bytes, "files": status.files, "chunks": status.chunks,
        "lines": status.lines, "updated": status.updated, "removed": status.removed, "outdated": status.outdated,
        "seconds": round(status.seconds, 3), "rebuilt": status.rebuilt, "unreadable": dict(status.unreadable),
        "as_text": dict(status.as_text),
    }  # fmt: skip


def _show(status: IndexStatus, render: Render) -> None:
    render.line(f"{status.files} files, {status.lines} lines, {status.chunks} chunks")
    render.line(f"{status.bytes / 1e6:.1f} MB in {status.path}")
    if status.outdated:
        render.line(f"{status.outdated} files changed since; the next search brings them in")
    if status.updated or status.removed:
        render.line(f"{status.updated} files read, {status.removed} removed in {status.seconds:.1f} s")
    if status.as_text:
        told = ", ".join(f"{count} of {name}" for name, count in sorted(status.as_text.items()))
        render.line(f"files searched as text alone: {told}; the extra [languages] finds their functions and types")
    for path, reason in list(status.unreadable.items())[:_NAMED]:
        render.line(f"  {path}: {reason}")
    if len(status.unreadable) > _NAMED:
        render.line(f"  and {len(status.unreadable) - _NAMED} more; --json names all")
