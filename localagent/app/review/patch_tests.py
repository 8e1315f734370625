"""Whether a patch that somebody made keeps what the repository's tests and checks say: asked in the jail.

Unlike a repair, such a patch has to turn nothing: tests that fail without it may go on failing. Not promised: that what
no test runs stays as it was; `runs` says which lines that concerns.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from localagent.app.cancellation import Stop
from localagent.app.fix.environment import interpreter_of
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, Patch
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Budget, Snapshot, Task
from localagent.errors import AnswerIsNo
from localagent.jail.api import BackendKind, scratch_folder
from localagent.ports import Jail, Sink
from localagent.repo.index_overlay import overlaid
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap
from localagent.verify.verifier import JailVerifier


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofRequest:
    """What is to be run. `tests` are pytest arguments, `checks` commands; with neither, all tests that pytest finds."""

    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    python: str = ""
    seed: int = 0
    max_seconds: float = 300.0
    backend: BackendKind | None = None
    overlay: Mapping[RepoPath, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A snapshot of a repository, and what is to be run there; `scratch` is its opener's, and gone at the end."""

    task: Task
    snapshot: Snapshot
    sources: Mapping[RepoPath, bytes]
    scratch: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class TestedSnapshot:
    """A snapshot of a repository, by digest, and what runs it; ended by its opener."""

    task: Task
    jail: Jail
    verifier: JailVerifier
    sources: Mapping[RepoPath, bytes]
    snapshot: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TestProof:
    """What the tests and checks say of a patch: `said` counts them, `against` is "" where they bear it."""

    said: str
    against: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Borne:
    """What is on the record of a proof: baseline, full check, jail, and the digest of the tree that was tested."""

    baseline: Baseline
    full: FullResult | None
    jail_backend: str
    jail_level: str
    snapshot: str


class Vouching(Protocol):
    """Who vouches for patches of a tree: a prover, or one that puts other patches below."""

    def same(self, path: RepoPath, data: bytes) -> bool:
        """Whether the tree holds these bytes."""
        ...

    def runs(self, path: RepoPath, first: int, last: int) -> bool:
        """Whether a test that passes is known to run one of some lines."""
        ...

    def against(self, patch: Patch) -> str:
        """Why the tests or checks do not bear a patch; "" where they do."""
        ...


class Prover:
    """Answers for one snapshot. What passed without a patch has to pass with it; what failed may go on failing."""

    def __init__(self, ground: TestedSnapshot, baseline: Baseline | None = None) -> None:
        self._verifier = ground.verifier
        self._sources = ground.sources
        self._seed = ground.task.seed
        self._until = time.monotonic() + ground.task.budget.max_seconds
        self._ground = ground
        self.baseline: Baseline = baseline or ground.verifier.baseline()
        self._borne: dict[str, FullResult] = {}

    @property
    def vouches(self) -> bool:
        """Whether anything passes without a patch."""
        return bool(self.baseline.passing) or any(check.outcome.good for check in self.baseline.checks)

    def same(self, path: RepoPath, data: bytes) -> bool:
        """Whether the snapshot holds these bytes."""
        return path in self._sources and self._sources[path] == data

    def runs(self, path: RepoPath, first: int, last: int) -> bool:
        """Whether a test that passes is known to run one of some lines."""
        lines = frozenset(range(first, last + 1))
        passing = set(self.baseline.passing)
        traced = (t.lines for t in self.baseline.tests if t.id in passing and t.lines)
        return any(lines & found.get(path, frozenset()) for found in traced)

    def against(self, patch: Patch) -> str:
        """Why the tests or checks do not bear a patch; "" where they do."""
        return self.proof(patch).against

    def borne(self, patch: Patch) -> "Borne":
        """What the tests and checks said of a patch that passed here; no full check for any other."""
        ground = self._ground
        return Borne(
            baseline=self.baseline,
            full=self._borne.get(patch.digest),
            jail_backend=ground.jail.backend,
            jail_level=ground.jail.level,
            snapshot=ground.snapshot,
        )

    def proof(self, patch: Patch) -> TestProof:
        """The full check of a patch. What failed before may go on failing."""
        if time.monotonic() > self._until:
            return TestProof(said="", against="the time for tests was used up before it was tried")
        candidate = Candidate(number=1, patch=patch, edits=(), cost=0.0)
        full = self._verifier.full(candidate, self.baseline, seed=self._seed, may_fail=self.baseline.failing)
        said = full.checks.get("tests", "")
        if full.accepted and not full.pass_to_pass and not full.fail_to_pass:
            return TestProof(said=said, against="no test passes, so nothing shows that it changes nothing")
        if full.accepted:
            self._borne[patch.digest] = full
        return TestProof(said=said, against="; ".join(full.reasons))


@contextlib.contextmanager
def open_prover(
    request: ProofRequest, settings: Settings, policy: Policy, sink: Sink, stop: Stop | None = None
) -> Iterator[Prover]:
    """A prover with its baseline made. CannotEnforce without a sound jail, AnswerIsNo where nothing can vouch."""
    with open_tested_snapshot(request, settings, policy, sink, stop) as ground:
        prover = Prover(ground)
        if not prover.vouches:
            raise AnswerIsNo(
                "no test and no check passes without a patch, so none can vouch for one",
                remedy="name tests that pass with --test",
            )
        yield prover


@contextlib.contextmanager
def open_tested_snapshot(
    request: ProofRequest,
    settings: Settings,
    policy: Policy,
    sink: Sink,
    stop: Stop | None = None,
    choose: Callable[[Mapping[RepoPath, bytes]], tuple[str, ...]] | None = None,
) -> Iterator[TestedSnapshot]:
    """A snapshot with the request's overlay, and its verifier; nothing has run yet. `choose` picks tests from it."""
    jail = open_policy_jail(settings, policy, request.backend)
    with (
        open_tree(request, settings, choose) as tree,
        open_test_runner(tree, jail, settings, policy, sink, stop) as ground,
    ):
        yield ground


@contextlib.contextmanager
def open_tree(
    request: ProofRequest,
    settings: Settings,
    choose: Callable[[Mapping[RepoPath, bytes]], tuple[str, ...]] | None = None,
) -> Iterator[Tree]:
    """A snapshot with the request's overlay, gone at the end. `choose` picks tests from it."""
    task = Task(
        id="",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        seed=request.seed,
        budget=Budget(max_seconds=request.max_seconds),
        guard=Guard(scope=GuardScope.NONE),  # a suggestion is one of seconds, for a person to judge
    )
    with scratch_folder(settings.scratch_dir) as scratch:
        snapshot = overlaid(take_snapshot(Path(task.repo), scratch / "store"), request.overlay)
        sources = SourceMap(snapshot)
        task = replace(task, tests=choose(sources)) if choose is not None else task
        yield Tree(task=task, snapshot=snapshot, sources=sources, scratch=scratch)


@contextlib.contextmanager
def open_test_runner(
    tree: Tree, jail: Jail, settings: Settings, policy: Policy, sink: Sink, stop: Stop | None = None
) -> Iterator[TestedSnapshot]:
    """What runs a tree's tests; ended at the end, or by `stop`."""
    verifier = JailVerifier(
        jail=jail,
        task=tree.task,
        snapshot=tree.snapshot,
        python=interpreter_of(tree.task),
        scratch=tree.scratch,
        sandbox_dir=settings.sandbox_dir,
        policy=policy,
        sink=sink,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(verifier.cancel)
        if stop is not None:
            stack.enter_context(stop.calling(verifier.cancel))
        yield TestedSnapshot(
            task=tree.task, jail=jail, verifier=verifier, sources=tree.sources, snapshot=tree.snapshot.digest
        )
