"""`localagent hook suggest` and `hook check --suggest`: verified patches for what is staged, never applied."""

import argparse
import math
import os
import signal
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from localagent.app import Settings
from localagent.app.fixing import Stop
from localagent.cli.box import Box
from localagent.cli.render import Render
from localagent.domain.paths import RepoPath
from localagent.domain.suggestion import Suggestion, SuggestRequest
from localagent.domain.task import Event
from localagent.errors import LocalagentError, UsageFault
from localagent.hook import work
from localagent.hook.suggest import LocalSuggester
from localagent.record.files import write_private
from localagent.tree.diff import unified_diff
from localagent.tree.git import Git
from localagent.tree.staged import staged_files, unstaged, work_tree

_WORDS = {"s": 1.0, "ms": 0.001, "m": 60.0}


def seconds_of(text: str) -> float:
    """`3s`, `1500ms`, `2m` or a plain number of seconds. UsageFault for anything else."""
    number = text.rstrip("ms")
    try:
        seconds = float(number) * _WORDS[text[len(number) :] or "s"]
    except (ValueError, KeyError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageFault(f"--deadline: {text!r} is no time", remedy="say 3s, 1500ms or 2m")
    return seconds


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0, suggestions or none; 4 where nothing could be verified for want of a jail."""
    made, remarks = suggestions(args, settings)
    if args.json:
        render.json({"suggestions": [as_json(s, p) for s, p in made], "remarks": remarks})
    else:
        show(made, remarks, render)
    return 0


def suggestions(args: argparse.Namespace, settings: Settings) -> tuple[list[tuple[Suggestion, Path]], list[str]]:
    """What was verified until the deadline, with where it is kept; and remarks."""
    box = Box(seconds_of(args.deadline))
    git = Git(Path.cwd(), os.environ)
    root = work_tree(git)
    work.refuse_outside(root, git.folder)
    git = git.at(root)
    changed = {f.path: f.data for f in staged_files(git) if f.data is not None}
    folder = settings.state_dir / "suggestions" / sha256(os.fsencode(root)).hexdigest()[:32]
    for old in folder.glob("*.patch"):
        old.unlink()
    made: list[tuple[Suggestion, Path]] = []
    remarks: list[str] = []
    if not changed:
        return made, ["no Python file is staged"]
    stop = Stop()
    sink = _Remarks(remarks)
    suggester = LocalSuggester(settings, getattr(args, "policy", None), sink, stop)

    def ask() -> None:
        request = SuggestRequest(repo=root, changed=changed, overlay=_overlay(git, changed), python=args.python)
        for suggestion in suggester.suggest(request, box.left):
            path = folder / f"{len(made) + 1}.patch"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, unified_diff(suggestion.patch))
            made.append((suggestion, path))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: _interrupt(stop))
    if not box.run(ask, stop):
        remarks.append(f"the time ({args.deadline}) was up; --deadline gives it more")
    return made, remarks


def _overlay(git: Git, changed: Mapping[RepoPath, bytes]) -> dict[RepoPath, bytes | None]:
    return {**unstaged(git), **changed}


def show(made: list[tuple[Suggestion, Path]], remarks: list[str], render: Render) -> None:
    """Every suggestion with its diff, and how to take it."""
    for suggestion, path in made:
        what = "failing tests pass with" if suggestion.origin == "failing-tests" else "the tests bear"
        render.line(f"suggestion: {what} {'; '.join(suggestion.titles)} ({', '.join(suggestion.tests)})")
        render.line(unified_diff(suggestion.patch).decode("utf-8", "replace").rstrip("\n"))
        render.line(f"to take it: git apply {path}")
    for remark in remarks:
        render.note(f"suggestions: {remark}")


def as_json(suggestion: Suggestion, path: Path) -> dict[str, object]:
    """One suggestion for other programs."""
    return {
        "origin": suggestion.origin.value,
        "titles": list(suggestion.titles),
        "tests": list(suggestion.tests),
        "patch": unified_diff(suggestion.patch).decode("utf-8", "surrogateescape"),
        "kept_at": str(path),
    }


def beside(args: argparse.Namespace, settings: Settings, render: Render) -> dict[str, object]:
    """Suggestions after a check: whatever goes wrong with them is said, and blocks nothing."""
    try:
        made, remarks = suggestions(args, settings)
    except UsageFault:
        raise
    except LocalagentError as fault:
        made, remarks = [], [str(fault)]
    if not args.json:
        show(made, remarks, render)
    return {"suggested": [as_json(s, p) for s, p in made], "remarks": remarks}


class _Remarks:
    """Keeps warnings of the work."""

    def __init__(self, remarks: list[str]) -> None:
        self._remarks = remarks

    def emit(self, event: Event) -> None:
        """Takes warnings, drops the rest."""
        if event.kind == "warning":
            self._remarks.append(str(event.data.get("text", "")))


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def _interrupt(stop: Stop) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):  # once is enough
        signal.signal(number, signal.SIG_IGN)
    stop.now()
    raise _Stopped
