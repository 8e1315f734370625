"""The file that gets the test of a chosen answer: a new one, or the end of one that is there. Nothing is written."""

import ast
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import pathspec

from localagent.app.fix.proposal_test_source import NO_SOURCE, called, defines, source_of
from localagent.app.review.approvals import needs_person
from localagent.code.source_text import parse_or_none
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.errors import UsageFault
from localagent.fs import openat
from localagent.gate.files.patch_paths import PatchPaths
from localagent.repo.diff.apply_in_memory import alias_of

_MOST_BYTES = 16 << 20
_COLLECTED = ("test_*.py", "*_test.py")
_HELD_BACK = frozenset({"skip", "skipif", "xfail"})
_LEAVES = frozenset({"skip", "SkipTest", "exit"})


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTest:
    """What becomes of the file, whether it is `new`, and the test alone."""

    change: FileChange
    new: bool
    source: str


def answer_test(
    report: Mapping[str, Any], number: int, patch: Patch, file: str, repo: Path, policy: Policy
) -> AnswerTest:
    """The test of what a proposal, `patch`, answers. UsageFault says why there is none, or why not in that file."""
    path = RepoPath(str(PurePosixPath(file)) if file else file)
    stood = _read(repo, path)
    beside = _text(path, stood)
    source = source_of(report.get("ambiguity"), number, beside)
    place, names = called(report["ambiguity"])
    if not defines(patch.after(place) or _read(repo, place) or b"", names):
        raise UsageFault(f"--write-test: {place} has no function {'.'.join(names)}", remedy="write the test by hand")
    before = stood or b""
    lines = ("" if not beside or beside.endswith("\n") else "\n") + ("\n\n" if beside.strip() else "") + source
    after = before + (lines.replace("\n", "\r\n") if "\r\n" in beside else lines).encode()
    if not _ends_so(after, source):
        raise UsageFault(f"--write-test: nothing can be added to the end of {path}", remedy="name another file")
    if held := _holds_back(before):
        raise UsageFault(f"--write-test: a test in {path} would not be asked: {held}", remedy="name another file")
    change = FileChange(path=path, before=before, after=after)
    _hold(change, patch, policy, repo, new=stood is None)
    return AnswerTest(change=change, new=stood is None, source=source)


def _hold(change: FileChange, patch: Patch, policy: Policy, repo: Path, *, new: bool) -> None:
    """UsageFault where the test may not stand in that file, or would not run there."""
    path = change.path
    if policy.patches.tests is not Permission.ALLOW:
        raise UsageFault(
            f"--write-test: the patches.tests of the policy {policy.name!r} denies tests",
            remedy="--policy names another policy; without a test, leave --write-test out",
        )
    fault = ""
    if any(c.path == path for c in patch.changes):
        fault = f"the proposal itself changes {path}"
    elif any(part.startswith(".") for part in path.parts):
        fault = f"{path} is hidden: a part of it begins with a dot"
    elif not _is_test(path, policy, new=new):
        fault = f"pytest does not look for tests in a file named {path.name}"
    elif found := PatchPaths(policy).found([_entry(change, repo, new=new)]):
        fault = found[0].message
    elif needs_person(Patch(changes=(change,)), policy):
        fault = f"the policy {policy.name!r} asks a person about changes of {path}"
    if fault:
        raise UsageFault(f"--write-test: {fault}", remedy="name another file, as test_NAME.py")


def _is_test(path: RepoPath, policy: Policy, *, new: bool) -> bool:
    """By its own name. One that is there may be named as the policy's tests are: a project's own names are not read."""
    if not path.endswith(".py") or path.name == "conftest.py":
        return False
    named = any(fnmatchcase(path.name, one) for one in _COLLECTED)
    return named or (not new and pathspec.GitIgnoreSpec.from_lines(policy.paths.tests).match_file(path.name))


def _holds_back(source: bytes) -> str:
    """What may keep pytest from asking a test that is added to a module; "" for nothing that can be seen there."""
    tree = parse_or_none(source)
    for statement in tree.body if tree is not None else ():
        names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        said = {n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
        said |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if "pytestmark" in names and said & _HELD_BACK:
            return f"line {statement.lineno} marks every test in it ({', '.join(sorted(said & _HELD_BACK))})"
        if "__test__" in names:
            return f"line {statement.lineno} sets __test__"
        if isinstance(statement, ast.Expr | ast.Raise) and said & _LEAVES:
            return f"line {statement.lineno} skips the module"
    return ""


def _entry(change: FileChange, repo: Path, *, new: bool) -> TreeChange:
    """What the path review is shown."""
    return TreeChange(
        path=change.path,
        source=change.path,
        kind=ChangeKind.ADDED if new else ChangeKind.MODIFIED,
        before=change.before,
        after=change.after,
        before_mode=None if new else FileMode.REGULAR,
        after_mode=FileMode.REGULAR,
        alias=alias_of(change.path, repo),
    )


def _read(repo: Path, path: RepoPath) -> bytes | None:
    """A file of the repository, None where nothing stands. UsageFault for links and all else, and without a folder."""
    with openat.root_directory(Path(os.path.realpath(repo))) as root:
        try:
            with openat.parent_directory(root, path.parts) as parent:
                try:
                    return openat.read_regular(path.name, parent, _MOST_BYTES)[0]
                except FileNotFoundError:
                    return None
        except OSError as error:
            raise UsageFault(
                f"--write-test: {path!r} cannot be read: {error.strerror or error}",
                remedy="name a regular file, or a new one in a folder that is there; links are not followed",
            ) from error


def _text(path: RepoPath, stood: bytes | None) -> str:
    try:
        return (stood or b"").decode()
    except UnicodeDecodeError as error:
        raise UsageFault(f"--write-test: {path} is not UTF-8", remedy="name another file") from error


def _ends_so(after: bytes, source: str) -> bool:
    """Whether a file is Python, and its last statement the test."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.dump(ast.parse(after).body[-1]) == ast.dump(ast.parse(source).body[0])
    except NO_SOURCE:
        return False
