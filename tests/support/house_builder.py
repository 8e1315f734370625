"""Builds small repositories, verifiers over them in real jails, and candidates with their scopes."""

import ast
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Scope, Splice
from localagent.domain.guard import Guard
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Event, Snapshot, Task
from localagent.jail.api import open_jail
from localagent.verify.verifier import JailVerifier

SANDBOX = Path(__file__).resolve().parents[2] / "sandbox"


class TaskOptions(TypedDict, total=False):
    """What a test may ask of the task."""

    tests: tuple[str, ...]
    checks: tuple[str, ...]
    text: str
    python: str
    seed: int
    guard: Guard


class Silent:
    def emit(self, event: Event) -> None:
        return


class House:
    """A repository below `root` and its verifier."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes], **task: Unpack[TaskOptions]) -> None:
        self.root = root
        self.files = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
        store = root / "store"
        for name, data in self.files.items():
            path = store / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        store.mkdir(exist_ok=True)
        self.task = Task(id="t", repo=str(root / "repo"), budget=Budget(max_seconds=100.0), **task)
        self.verifier = JailVerifier(
            jail=open_jail(),
            task=self.task,
            snapshot=Snapshot(root=self.task.repo, store=str(store), entries={}, digest=""),
            python=self.task.python or sys.executable,
            scratch=root,
            sandbox_dir=SANDBOX,
            policy=None,
            sink=Silent(),
        )

    def candidate(self, name: str, old: str, new: str, *, scoped: bool = True) -> Candidate:
        """One edit of the snapshot."""
        edit = self._edit(name, self.files[name], old, new, scoped=scoped)
        return self._built(1, None, (edit,))

    def variant(self, number: int, name: str, old: str, new: str) -> Candidate:
        """One unscoped edit of the snapshot, under a number of its own."""
        return self._built(number, None, (self._edit(name, self.files[name], old, new, scoped=False),))

    def upon(self, parent: Candidate, number: int, name: str, old: str, new: str) -> Candidate:
        """One more edit on a candidate."""
        before = parent.patch.after(RepoPath(name)) or self.files[name]
        return self._built(number, parent.number, (*parent.edits, self._edit(name, before, old, new)))

    def _edit(self, name: str, before: bytes, old: str, new: str, *, scoped: bool = True) -> Edit:
        at = before.index(old.encode())
        line = before.count(b"\n", 0, at) + 1
        return Edit(
            path=RepoPath(name),
            splices=(Splice(start=at, end=at + len(old.encode()), text=new.encode()),),
            operator="test",
            line=line,
            end_line=line + old.count("\n"),
            prior=0.0,
            scope=scope_at(before, line) if scoped else None,
        )

    def _built(self, number: int, parent: int | None, edits: tuple[Edit, ...]) -> Candidate:
        files: dict[RepoPath, bytes] = {}
        for edit in edits:
            files[edit.path] = edit.apply(files.get(edit.path, self.files[edit.path]))
        changes = tuple(FileChange(path=p, before=self.files[p], after=text) for p, text in sorted(files.items()))
        return Candidate(
            number=number, patch=Patch(changes=changes), edits=edits, cost=0.0, round=len(edits), parent=parent
        )


def scope_at(source: bytes, line: int) -> Scope | None:
    """The outermost function around a line."""
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def visit(body: list[ast.stmt], classes: list[str]) -> Scope | None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found = visit(node.body, [*classes, node.name])
                if found:
                    return found
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if first <= line <= (node.end_lineno or 0):
                    top = node.body[0]
                    return Scope(
                        name=node.name,
                        qualname=".".join([*classes, node.name]),
                        class_name=classes[-1] if classes else None,
                        first_line=first,
                        last_line=node.end_lineno or 0,
                        start=starts[first - 1] + node.col_offset,
                        body_start=starts[top.lineno - 1] + top.col_offset,
                        end=starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0),
                    )
        return None

    return visit(ast.parse(source).body, [])


@contextlib.contextmanager
def house(files: Mapping[str, str | bytes], **task: Unpack[TaskOptions]) -> Iterator[House]:
    with tempfile.TemporaryDirectory(prefix="la-house-") as folder:
        Path(folder).chmod(0o711)
        built = House(Path(folder), files, **task)
        try:
            yield built
        finally:
            built.verifier.cancel()
