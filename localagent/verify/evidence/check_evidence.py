"""How much check commands alone show of a patch: which changed lines they run, which mutants of them they notice.

All run one after the other in one cold jail, for a jail each costs more than most checks do: whether the patched tree
still passes there afterwards says whether what they left behind matters. Limitations: lines come from a file that the
command could forge; they choose which mutants are asked, and raise the first part of a grade. A mutant that lives may
be equal in behaviour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localagent.domain.outcome import CheckResult, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.checks import check_commands
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.mutants import CPU_SECONDS, MutantFate, fate_of_run
from localagent.verify.evidence.patch_coverage import Covered, covered, nothing_covered
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.worker_client import WorkerLost
from localagent.verify.worker.worker_spec import WorkerUse

_TIMES, _WALL_SECONDS = 4, 4.0


@dataclass(kw_only=True, slots=True)
class CheckEvidence:
    """Commands that the patched tree passes. Ask for `lines`, each `fate`, then `steady`; then `close` it."""

    jails: JailPool
    commands: Sequence[str]
    pythonpath: Sequence[str]
    changes: Mapping[RepoPath, bytes]
    _worker: JailWorker | None = field(default=None, init=False)
    _slowest: float = field(default=0.0, init=False)
    _ran: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict, init=False)

    def lines(self, files: Sequence[ChangedFile], *, seconds: float) -> Covered:
        """Which changed statements the commands run on the patched tree. WorkerLost where the jail ended."""
        ran = [self._run(command, cpu=seconds, wall=seconds, trace=True) for command in self.commands]
        if any(r.outcome is not Outcome.PASSED for r in ran):
            return nothing_covered(files, "the check does not pass when its lines are traced")
        self._slowest = max((r.seconds for r in ran), default=0.0)
        results = [TestResult(id=r.command, outcome=r.outcome, seconds=r.seconds, lines=r.lines) for r in ran]
        paths = [f.path for f in files]
        self._ran = {p: frozenset(n for r in ran for n in (r.lines or {}).get(p, ())) for p in paths}
        return covered(files, results, {})

    def around(self, files: Sequence[ChangedFile]) -> Mapping[RepoPath, frozenset[int]]:
        """What the commands ran of the functions that are touched: an exit status says too little of one line alone."""
        found = {}
        for file in files:
            regions = [after for _, after in file.touched()] + list(file.fresh())
            lines = {n for region in regions for n in range(region.line, region.last_line + 1)}
            found[file.path] = (frozenset(lines) | file.executable()) & self._ran.get(file.path, frozenset())
        return found

    def fate(self, path: RepoPath, after: bytes, *, seconds: float) -> MutantFate | None:
        """What becomes of a mutant of the patched tree; None where our own `seconds` cut it off. Raises as `lines`."""
        limit = CPU_SECONDS + _TIMES * self._slowest
        wall = min(_WALL_SECONDS + 2 * limit, seconds)
        outcomes = []
        self._opened().workspace.write(path, after)
        try:
            for command in self.commands:
                outcomes.append(self._run(command, cpu=limit, wall=wall, trace=False).outcome)
                if not outcomes[-1].good:
                    break
            self._opened().workspace.write(path, self.changes[path])
        except WorkerLost:
            self.jails.check()
            self.close()  # what it did there is gone with it
            return None
        return fate_of_run(outcomes, whole=len(outcomes) == len(self.commands), in_time=wall < seconds)

    def steady(self) -> bool:
        """Whether the patched tree passes still, after all that its mutants did there. Raises as `lines`."""
        limit = CPU_SECONDS + 2 * _TIMES * self._slowest
        wall = _WALL_SECONDS + 2 * limit
        return all(self._run(c, cpu=limit, wall=wall, trace=False).outcome is Outcome.PASSED for c in self.commands)

    def close(self) -> None:
        """End the jail. Any number of times."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _opened(self) -> JailWorker:
        if self._worker is None:
            self._worker = self.jails.start(self.changes, WorkerUse.FULL)
        return self._worker

    def _run(self, command: str, *, cpu: float, wall: float, trace: bool) -> CheckResult:
        place = self.jails.place
        return check_commands.run_check(
            self._opened().client,
            command,
            repo=place.repo,
            python=place.executable,
            trace=trace,
            cpu_seconds=cpu,
            wall_seconds=wall,
            pythonpath=self.pythonpath,
        )
