"""A session whose specification is tests: the skeleton first, then bodies by the search where there is no model."""

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from localagent.agent.events import (
    AgentEvent,
    Ended,
    writes_of,
)
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.recipe_run import NoModel
from localagent.app.agent.request import DoRequest
from localagent.app.agent.session_run import SessionRun
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.test_driven import TestDriven
from localagent.app.code.skeleton_patch import files_named
from localagent.app.fix.suggest import search
from localagent.app.review.patch_tests import Tree, open_test_runner
from localagent.domain.edit import Patch
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.paths import RepoPath
from localagent.domain.task import Choosing, Stage
from localagent.errors import AnswerIsNo
from localagent.repair.search.event_fanout import combined
from localagent.repo.patched_snapshot import patched
from localagent.repo.python_environment import installed_modules
from localagent.repo.source_map import SourceMap
from localagent.repo.top_level_modules import importable_names
from localagent.verify.baseline.test_discovery import NoTests
from localagent.verify.worker.worker_client import WorkerLost

_SEARCH_SECONDS = 120.0  # for one question; busy machines need them
_MOST_CANDIDATES = 1_000


def specification(request: DoRequest, tree: SnapshotTree) -> frozenset[RepoPath]:
    """The files of the tests that are the specification. AnswerIsNo where a name is none of a file of the copy."""
    named = {spec: files_named([spec], tree.paths) for spec in request.from_tests}
    for spec, paths in named.items():
        if not paths:
            raise AnswerIsNo(
                f"--from-tests: {spec}: no Python file of the repository, and no folder that holds one",
                remedy="name files or folders by their own path, not by a link, and none that git ignores",
            )
    return frozenset().union(*named.values())


def by_specification(session: SessionRun, tree: SnapshotTree, runs: JailRuns, judge: VerifyJudge) -> Ended | None:
    """The end of a session without a model; with one None, and the skeleton stands."""
    log = session.log

    def append(event: AgentEvent) -> None:
        log.append(event)
        session.tell(event)

    copy = WorkingCopy(tree, lambda: writes_of(log.events))
    own = importable_names(Path(tree.snapshot.store))
    work = TestDriven(
        copy=copy,
        runs=runs,
        specs=session.request.from_tests,
        installed=installed_modules(runs.python) - own,
        append=append,
    )
    if not writes_of(log.events):
        with session.timed("skeleton"):
            work.lay_skeleton()
    if not isinstance(session.model, NoModel):
        return None
    with session.timed(Stage.SEARCH.value):
        work.fill(lambda tests: _searched(session, tests, copy.writes, tree, runs))
    ended = work.proven(judge)
    append(ended)
    return ended


def _searched(
    session: SessionRun,
    tests: Sequence[str],
    writes: Mapping[RepoPath, str | None],
    tree: SnapshotTree,
    runs: JailRuns,
) -> Patch | None:
    """What the repair search makes of the copy as it is, so that some tests pass; None where it finds nothing.

    A question that cannot be asked finds nothing either: what the tests say is told in the end.
    """
    until = session.begin + session.request.limits.seconds
    end = min(time.monotonic() + _SEARCH_SECONDS, until)
    if end <= time.monotonic():
        return None
    settings, policy = session.settings, session.policy
    with (
        tempfile.TemporaryDirectory(prefix="search-", dir=runs.scratch) as made,
        contextlib.suppress(NoTests, WorkerLost),
    ):
        scratch = Path(made)
        snapshot = patched(tree.snapshot, scratch / "store", tree.changes(writes))
        task = replace(
            session.record.task,
            tests=tuple(tests),
            checks=(),
            python=runs.python,
            guard=Guard(scope=GuardScope.NONE),
            choosing=Choosing.FIRST,
        )
        asked = Tree(task=task, snapshot=snapshot, sources=SourceMap(snapshot), scratch=scratch)
        with open_test_runner(asked, runs.jail, settings, policy, combined(()), session.front.stop) as ground:
            suggestion = search(
                ground,
                ground.verifier.baseline(),
                settings,
                policy,
                session.sink,
                lambda: end - time.monotonic(),
                most_candidates=_MOST_CANDIDATES,
            )
            return suggestion.patch if suggestion is not None else None
    return None
