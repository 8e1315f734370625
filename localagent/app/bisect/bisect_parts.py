"""What a bisection works with: the jail, the judge of commits, the tests that are carried back."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from localagent.app.bisect.request import BisectRequest
from localagent.app.fix.environment import interpreter_of, left_out
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings
from localagent.bisect.carried_tests import CarriedTests, carried_tests
from localagent.bisect.commit_judge import CommitJudge
from localagent.bisect.result_cache import ResultCache
from localagent.bisect.tree_runner import TreeRunner
from localagent.domain.policy import Policy
from localagent.domain.task import Budget, FileKind, Snapshot, Task
from localagent.fs.bounded_read import read_below
from localagent.jail.api import scratch_folder
from localagent.jail.files.workspace import remove_tree
from localagent.repo.commit_tree import take_commit
from localagent.repo.git import Git

_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectParts:
    """Opened for one bisection. `hypothesis_home` is where Hypothesis may keep what it learns."""

    git: Git
    judge: CommitJudge
    runner: TreeRunner
    tests: CarriedTests
    scratch: Path
    hypothesis_home: Path
    warnings: tuple[str, ...]


def open_parts(
    request: BisectRequest, settings: Settings, policy: Policy, git: Git, bad: str, stack: contextlib.ExitStack
) -> BisectParts:
    """CannotEnforce without a sound jail; UsageFault for tests that are nowhere, and a wrong interpreter."""
    jail = open_policy_jail(settings, policy, request.backend)
    scratch = stack.enter_context(scratch_folder(settings.scratch_dir))
    tree = take_commit(git, bad, scratch / "bad")
    tests = carried_tests(request.tests, request.carry, tree, git.folder)
    warnings = [*left_out(tree), *_pointers(tree)]
    if tests.uncommitted:
        warnings.append(f"not committed, taken from the working tree: {', '.join(tests.uncommitted)}")
    remove_tree(scratch / "bad")
    task = Task(
        id="bisect",
        repo=str(git.folder),
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        budget=Budget(max_seconds=request.seconds),
    )
    python = interpreter_of(task)
    runner = TreeRunner(
        jail=jail,
        task=task,
        python=python,
        scratch=scratch,
        sandbox_dir=settings.sandbox_dir,
        policy=policy,
        seconds=request.seconds,
    )
    facts = (*request.tests, "checks", *request.checks, str(git.folder), f"{request.seconds}", *_environment(python))
    cache = ResultCache(settings.state_dir / "bisect" / "results", facts)
    judge = CommitJudge(git, bad, runner, cache, tests, scratch)
    return BisectParts(
        git=git,
        judge=judge,
        runner=runner,
        tests=tests,
        scratch=scratch,
        hypothesis_home=settings.state_dir / "hypothesis",
        warnings=tuple(warnings),
    )


def _environment(python: str) -> tuple[str, ...]:
    """What a change of the interpreter or of its packages changes: where it is, and what is installed beside it."""
    found = [python, os.path.realpath(python)]
    for site in sorted(Path(python).parent.parent.glob("lib/python*/site-packages")):
        found += sorted(entry.name for entry in site.glob("*.dist-info"))
    return tuple(found)


def _pointers(tree: Snapshot) -> tuple[str, ...]:
    """A warning where files are pointers of Git LFS."""
    found = [
        path
        for path, entry in tree.entries.items()
        if entry.kind is FileKind.REGULAR
        and len(_POINTER) < entry.size < _POINTER_BYTES
        and read_below(Path(tree.store), path, _POINTER_BYTES).startswith(_POINTER)
    ]
    if not found:
        return ()
    return (f"{len(found)} files are Git LFS pointers, whose contents are not fetched: {', '.join(found[:3])}",)
