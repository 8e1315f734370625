"""Tests as the specification: a skeleton of what they import and nothing has, then bodies, by the model or the search.

Both are calls of the agent's own tools, so they pass the same choke point and gates, and stand in the journal, as a
model's calls do.
"""

import ast
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from localagent.agent.tools.working_copy import WorkingCopy
from localagent.code.names import last_name
from localagent.code.skeleton import missing_names, skeletons
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest, ToolCall
from localagent.domain.edit import FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.ports import ChatModel

INSTRUCTION = "make these tests pass"
NOTE = "Missing modules, classes and functions that the tests import get a skeleton first; fill in their bodies."
_ROUNDS = 12  # of the search; each fills one body or more


class NoWritingModel:
    """The model of a session that has none: it never replies."""

    name = ""
    digest = ""
    context_tokens: int | None = None

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure:
        """A failure, always."""
        del request, timeout_seconds, on_text, cancelled
        return ChatFailure(fault=ChatFault.UNREACHABLE, reason="there is none in this session")

    def count_tokens(self, text: str) -> int | None:
        """Not known."""
        del text
        return None

    def close(self) -> None:
        """Nothing is open."""


@dataclass(kw_only=True, slots=True)
class SpecificationModel:
    """Replies with the skeleton first, then with what `search` finds, then as `model` does.

    `search` gives a patch on the copy as some writes made it, or None; without it the model fills the bodies. `passes`
    says whether the named tests pass with some writes. `installed`: top-level modules of the project's Python.
    """

    model: ChatModel
    copy: WorkingCopy
    tests: Sequence[str]
    installed: frozenset[str]
    passes: Callable[[], bool]
    search: Callable[[], Patch | None] | None
    fresh: bool  # whether the session has just begun
    _laid: bool = False
    _rounds: int = 0
    _finished: bool = False
    _number: int = field(default=0)

    @property
    def name(self) -> str:
        """The writing model's."""
        return self.model.name

    @property
    def digest(self) -> str:
        """The writing model's."""
        return self.model.digest

    @property
    def context_tokens(self) -> int | None:
        """The writing model's."""
        return self.model.context_tokens

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure:
        """The next reply; never raises for what it says."""
        if self.fresh and not self._laid:
            self._laid = True
            if files := skeleton_files(self.copy, self.tests, self.installed):
                return self._writing("The skeleton of what the tests import.", files)
        if self.search is not None and not self._finished:
            if self.passes():
                self._finished = True
                return self._reply("", [("finish", {"summary": "the named tests pass"})])
            found = self.search() if self._rounds < _ROUNDS else None
            self._rounds += 1
            if found is not None:
                files = {c.path: c.after.decode("utf-8") for c in found.changes if c.fate is FileFate.CHANGED}
                return self._writing("Bodies that the search found.", files)
            self._finished = True
        return self.model.complete(request, timeout_seconds=timeout_seconds, on_text=on_text, cancelled=cancelled)

    def count_tokens(self, text: str) -> int | None:
        """As the writing model counts."""
        return self.model.count_tokens(text)

    def close(self) -> None:
        """Close the writing model."""
        self.model.close()

    def _writing(self, text: str, files: Mapping[RepoPath, str]) -> ChatReply:
        calls: list[tuple[str, Mapping[str, str]]] = []
        for path, after in files.items():
            before = self.copy.get(path)
            if before is None:
                calls.append(("create", {"path": path, "content": after}))
            else:
                calls.append(("edit", {"path": path, "old": before, "new": after}))
        return self._reply(text, calls)

    def _reply(self, text: str, calls: Sequence[tuple[str, Mapping[str, str]]]) -> ChatReply:
        made = []
        for name, arguments in calls:
            self._number += 1
            made.append(ToolCall(id=f"from-tests-{self._number}", name=name, arguments=json.dumps(arguments)))
        return ChatReply(text=text, calls=tuple(made), prompt_tokens=0, reply_tokens=0)


def named_test_files(paths: Sequence[RepoPath], specs: Sequence[str]) -> frozenset[RepoPath]:
    """The Python files that some pytest arguments name."""
    named = [spec.partition("::")[0].removeprefix("./").rstrip("/") for spec in specs]
    return frozenset(p for p in paths if p.is_python and any(p == n or p.startswith(f"{n}/") for n in named))


def skeleton_files(copy: WorkingCopy, specs: Sequence[str], installed: frozenset[str]) -> dict[RepoPath, str]:
    """The files that lack what the tests import, with skeletons of it."""
    python = {path: text.encode() for path in copy.paths() if path.is_python and (text := copy.get(path)) is not None}
    named = named_test_files(list(python), specs)
    tests = {path: data for path, data in python.items() if path in named}
    sources = {path: data for path, data in python.items() if path not in named}
    missing = missing_names(tests, sources, installed=installed)
    return {path: data.decode() for path, data in skeletons(missing, sources).items()}


def open_functions(writes: Mapping[RepoPath, str | None]) -> list[str]:
    """`name (path:line)` of the functions of some files that only raise NotImplementedError."""
    return [
        f"{node.name} ({path}:{node.lineno})"
        for path, text in writes.items()
        if text is not None and path.is_python and (tree := parse_or_none(text)) is not None
        for node in ast.walk(tree)
        if isinstance(node, Function) and _is_open(node)
    ]


def _is_open(node: Function) -> bool:
    last = node.body[-1]
    if not isinstance(last, ast.Raise) or last.exc is None or len(node.body) > 2:
        return False
    raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    return last_name(raised) == "NotImplementedError"
