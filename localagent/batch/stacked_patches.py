"""What the steps of one repository share: the tree that was seen, what was changed of it so far, and who vouches.

Every step's patch goes on top of those before it, and is proven together with them against the tree as it was.
"""

import contextlib
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from localagent.app.evidence.recorded_patch import Remedied, Remedy, Remedying, remedied
from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.review.patch_tests import ProofRequest, Prover, TestedSnapshot, open_tested_snapshot
from localagent.app.settings import Settings
from localagent.batch.cache_key import policy_of
from localagent.batch.fleet import FleetMember, WorkKind
from localagent.batch.task_result import RepositoryState, WorkStep
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Budget, Event, Snapshot, Task
from localagent.repo.source_map import SourceMap


class Patches:
    """The tree that was seen, and what earlier steps changed of it. `moved`: it changed while the work went on.

    `tested`: there are tests to run, which took `baseline_seconds` once. `steps`: digests of the steps' patches.
    `asked_model`: a model that may say something else the next time had a part in the answer.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.digest = snapshot.digest
        self.root = Path(snapshot.root)
        self.sources = SourceMap(snapshot)
        self.changed: dict[RepoPath, bytes] = {}
        self.steps: tuple[str, ...] = ()
        self.moved = False
        self.tested = False
        self.baseline_seconds = 0.0
        self.asked_model = False

    def now(self, path: RepoPath) -> bytes:
        """A file as it is after the earlier steps. FileNotFoundError where no source of that name was seen."""
        if path in self.changed:
            return self.changed[path]
        if path not in self.sources:
            raise FileNotFoundError(path)
        return self.sources[path]

    def add(self, patch: Patch) -> None:
        """Take a step's patch."""
        self.changed.update({change.path: change.after for change in patch.changes})
        self.steps += (patch.digest,) if patch.changes else ()

    def with_(self, patch: Patch) -> Patch:
        """Everything so far and a step's patch, against the tree that was seen."""
        after = {**self.changed, **{change.path: change.after for change in patch.changes}}
        return Patch(
            changes=tuple(FileChange(path=p, before=self.sources[p], after=data) for p, data in sorted(after.items()))
        )

    def lines(self, path: RepoPath) -> "LineMap":
        """Where the lines of a file went."""
        before = self.sources[path]
        return LineMap(before, self.changed.get(path, before))


class LineMap:
    """Lines of a text and of the text after a change, 1-based; 0 for a line that was changed or taken away."""

    def __init__(self, before: bytes, after: bytes) -> None:
        old, new = before.splitlines(), after.splitlines()
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks() if old != new else ()
        self._same = old == new
        self._pairs = {a + n + 1: b + n + 1 for a, b, size in blocks for n in range(size)}
        self._back = {b: a for a, b in self._pairs.items()}

    def now(self, line: int) -> int:
        """Where a line of before stands."""
        return line if self._same else self._pairs.get(line, 0)

    def before(self, line: int) -> int:
        """Where a line of now stood."""
        return line if self._same else self._back.get(line, 0)


class Proofs:
    """The tests' judgement, and the ground that tools run on; opened when first asked for, on the tree as it was."""

    def __init__(
        self,
        member: FleetMember,
        folder: Path,
        patches: Patches,
        settings: Settings,
        left: Callable[[], float],
        stack: contextlib.ExitStack,
    ) -> None:
        self._member, self._folder, self._patches = member, folder, patches
        self._settings, self._left, self._stack = settings, left, stack
        self._ground: TestedSnapshot | None = None
        self._prover: Prover | None = None

    @property
    def wanted(self) -> bool:
        """Whether tests are to vouch: some ran already, or were named."""
        return self._patches.tested or bool(self._member.tests or self._member.checks)

    @property
    def need_seconds(self) -> float:
        """What a proof may take: the tests thrice, and jails."""
        return 5 + 3 * self._patches.baseline_seconds

    @cached_property
    def opened(self) -> OpenPolicy:
        """What holds for the repository, its own layer with it, and where that stands."""
        return open_policy(self._settings, policy_of(self._member), self._patches.root)

    @property
    def policy(self) -> Policy:
        """What holds for the repository."""
        return self.opened.policy

    def task(self, findings: tuple[str, ...] = ()) -> contextlib.AbstractContextManager[Remedied]:
        """A step that has something to repair, as a task on the record. `findings`: digests of the logs."""
        member = self._member
        task = Task(
            id="",
            repo=str(self._folder),
            tests=member.tests,
            checks=member.checks,
            python=member.python,
            seed=member.seed,
            budget=Budget(max_seconds=member.max_seconds),
        )
        asked = Remedying(task=task, policy=self.opened, findings=findings, below=self._patches.steps)
        return remedied(asked, self._settings)

    def remedy(self, patch: Patch, reason: str, *, remain: bool) -> Remedy:
        """What came of a step, with what the tests said of its patch on top of the earlier ones."""
        said = None if self._prover is None else self._prover.borne(self._patches.with_(patch))
        borne = said if said is not None and said.full is not None else None
        return Remedy(patch=patch, reason=reason, remain=remain, borne=borne, snapshot=self._patches.digest)

    def open_snapshot(self) -> TestedSnapshot:
        """CannotEnforce without a sound jail."""
        if self._ground is None:
            member = self._member
            request = ProofRequest(
                repo=self._folder,
                tests=member.tests,
                checks=member.checks,
                python=member.python,
                seed=member.seed,
                max_seconds=max(1.0, self._left()),
            )
            self._ground = self._stack.enter_context(
                open_tested_snapshot(request, self._settings, self.policy, _Nowhere())
            )
        return self._ground

    def prover(self) -> Prover:
        """AnswerIsNo where there is nothing to run."""
        if self._prover is None:
            self._prover = Prover(self.open_snapshot())
        return self._prover

    def on_top(self) -> "OnTop | None":
        """Who judges patches of the tree as it is now; None where no test is to vouch."""
        return OnTop(self.prover(), self._patches) if self.wanted else None


@dataclass(frozen=True, slots=True)
class OnTop:
    """app.proving.Vouching for patches on top of the earlier steps'."""

    prover: Prover
    patches: Patches

    def same(self, path: RepoPath, data: bytes) -> bool:
        """Whether the tree as it is now holds these bytes."""
        return path in self.patches.sources and self.patches.now(path) == data

    def runs(self, path: RepoPath, first: int, last: int) -> bool:
        """Whether a test that passed before is known to run one of some lines that stood there before."""
        lines = self.patches.lines(path)
        stood = [line for n in range(first, last + 1) if (line := lines.before(n))]
        return any(self.prover.runs(path, line, line) for line in stood)

    def against(self, patch: Patch) -> str:
        """Why the tests do not bear it together with the earlier steps."""
        return self.prover.against(self.patches.with_(patch))


class _Nowhere:
    """A sink for what nobody follows: the proof is one sentence."""

    def emit(self, event: Event) -> None:
        del event


def too_late(work: WorkKind, what: str) -> WorkStep:
    """A step that the time ended."""
    reason = f"the budget of time was spent: {what}"
    return WorkStep(
        work=work,
        state=RepositoryState.OUT_OF_BUDGET,
        outcome="out-of-time",
        reason=reason,
        remedy="raise its max_seconds",
    )
