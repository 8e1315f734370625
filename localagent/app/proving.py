"""Whether a patch that somebody made keeps what the repository's tests and checks say: asked in the jail.

Unlike a repair, such a patch has to turn nothing: tests that fail without it may go on failing. Not promised: that what
no test runs stays as it was; `runs` says which lines that concerns.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.app.fixing import Stop, interpreter_of
from localagent.app.least_level import least_level
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, Patch
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.domain.task import Budget, Task
from localagent.errors import AnswerIsNo
from localagent.jail.open import Kind, open_jail, scratch_folder
from localagent.ports import Jail, Sink, Verifier
from localagent.tree.overlay import overlaid
from localagent.tree.snapshot import SourceMap, take_snapshot
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
    backend: Kind | None = None
    overlay: Mapping[RepoPath, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """A snapshot of a repository and what runs it; ended by its opener."""

    task: Task
    jail: Jail
    verifier: Verifier
    sources: Mapping[RepoPath, bytes]


class Prover:
    """Answers for one snapshot. `baseline` holds what passed without any patch; nothing else has to."""

    def __init__(self, ground: Ground, baseline: Baseline | None = None) -> None:
        self._verifier = ground.verifier
        self._sources = ground.sources
        self._seed = ground.task.seed
        self._until = time.monotonic() + ground.task.budget.max_seconds
        self.baseline: Baseline = replace(baseline or ground.verifier.baseline(), failing=())
        if not self.baseline.passing and not any(check.outcome.good for check in self.baseline.checks):
            raise AnswerIsNo(
                "no test and no check passes without a patch, so none can vouch for one",
                remedy="name tests that pass with --test",
            )

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
        if time.monotonic() > self._until:
            return "the time for tests was used up before it was tried"
        answer = self._verifier.full(
            Candidate(number=1, patch=patch, edits=(), cost=0.0), self.baseline, seed=self._seed
        )
        return "; ".join(answer.reasons)


@contextlib.contextmanager
def open_prover(
    request: ProofRequest, settings: Settings, policy: Policy, sink: Sink, stop: Stop | None = None
) -> Iterator[Prover]:
    """A prover with its baseline made. CannotEnforce without a sound jail, AnswerIsNo where nothing can vouch."""
    with open_ground(request, settings, policy, sink, stop) as ground:
        yield Prover(ground)


@contextlib.contextmanager
def open_ground(
    request: ProofRequest,
    settings: Settings,
    policy: Policy,
    sink: Sink,
    stop: Stop | None = None,
    choose: Callable[[Mapping[RepoPath, bytes]], tuple[str, ...]] | None = None,
) -> Iterator[Ground]:
    """A snapshot with the request's overlay, and its verifier; nothing has run yet. `choose` picks tests from it."""
    jail = open_jail(
        backend=request.backend,
        allow_third_party=policy.third_party_binaries is Permission.ALLOW,
        least=least_level(settings, policy),
    )
    task = Task(
        id="",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        python=request.python,
        seed=request.seed,
        budget=Budget(max_seconds=request.max_seconds),
    )
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder(settings.scratch_dir))
        snapshot = overlaid(take_snapshot(Path(task.repo), scratch / "store"), request.overlay)
        sources = SourceMap(snapshot)
        task = replace(task, tests=choose(sources)) if choose is not None else task
        verifier = JailVerifier(
            jail=jail,
            task=task,
            snapshot=snapshot,
            python=interpreter_of(task),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            policy=policy,
            sink=sink,
        )
        stack.callback(verifier.cancel)
        if stop is not None:
            stack.enter_context(stop.calling(verifier.cancel))
        yield Ground(task=task, jail=jail, verifier=verifier, sources=sources)
