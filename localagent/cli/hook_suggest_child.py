"""The child's half of `localagent hook suggest`: looks for suggestions, keeps each as a file, and says so at once."""

import argparse
import os
import signal
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.app.fix.environment import own_python
from localagent.cli.deadline import Deadline
from localagent.cli.timeboxed_child import Say
from localagent.domain.paths import RepoPath
from localagent.domain.suggestion import Suggestion, SuggestRequest
from localagent.domain.task import Event
from localagent.fs.atomic_files import write_private
from localagent.precommit import fix_files
from localagent.protocol.http_client import DEFAULT_SOCKET
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.git import Git
from localagent.repo.staged_index import staged_files, unstaged, work_tree
from localagent.report.confidence_text import short
from localagent.report.task_report import confidence_json


def search(args: argparse.Namespace, settings: Settings, box: Deadline, say: Say) -> None:
    """Say `{"suggestion": …}` and `{"remark": …}` until the box is over."""
    git = Git(Path.cwd(), os.environ)
    root = work_tree(git)
    fix_files.refuse_outside(root, git.folder)
    git = git.at(root)
    changed = {f.path: f.data for f in staged_files(git) if f.data is not None}
    folder = settings.state_dir / "suggestions" / sha256(os.fsencode(root)).hexdigest()[:32]
    for old in folder.glob("*.patch"):
        old.unlink()
    if not changed:
        say({"remark": "no Python file is staged"})
        return
    from localagent.precommit.suggest_fixes import LocalSuggester  # noqa: PLC0415 - the repair loop takes long to import

    stop = Stop()
    suggester = LocalSuggester(settings, getattr(args, "policy", None), _Remarks(say), stop, daemon_of(args, root))

    def ask() -> None:
        request = SuggestRequest(repo=root, changed=changed, overlay=_overlay(git, changed), python=args.python)
        for number, suggestion in enumerate(suggester.suggest(request, box.left), 1):
            path = folder / f"{number}.patch"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            diff = unified_diff(suggestion.patch)
            write_private(path, diff)
            say({"suggestion": as_json(suggestion, diff, path)})

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: _interrupt(stop))
    if not box.run(ask, stop):
        say({"over": True})


def daemon_of(args: argparse.Namespace, root: Path) -> Path | None:
    """The daemon to ask: the one named, else the machine's where it is there for this user.

    None for a project with an interpreter of its own, which the daemon does not have.
    """
    if args.no_daemon or args.python or own_python(root) is not None:
        return None
    if args.daemon is not None:
        return Path(args.daemon)
    return DEFAULT_SOCKET if os.access(DEFAULT_SOCKET, os.W_OK) else None


def _overlay(git: Git, changed: Mapping[RepoPath, bytes]) -> dict[RepoPath, bytes | None]:
    return {**unstaged(git), **changed}


def as_json(suggestion: Suggestion, diff: bytes, path: Path) -> dict[str, Any]:
    """One suggestion, as it is said and shown."""
    return {
        "origin": suggestion.origin.value,
        "titles": list(suggestion.titles),
        "tests": list(suggestion.tests),
        "patch": diff.decode("utf-8", "surrogateescape"),
        "kept_at": str(path),
        "found_by": suggestion.finder.value,
        "confidence": short(confidence_json(suggestion.confidence)),
    }


class _Remarks:
    """Says warnings of the work."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def emit(self, event: Event) -> None:
        """Takes warnings, drops the rest."""
        if event.kind == "warning":
            self._say({"remark": str(event.data.get("text", ""))})


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def _interrupt(stop: "Stop") -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):  # once is enough
        signal.signal(number, signal.SIG_IGN)
    stop.now()
    raise _Stopped
