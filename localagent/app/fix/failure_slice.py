"""One failing test run again under the tracer of events, and its dynamic slice as evidence beside the localization."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from localagent.debug.dynamic_slice import VariableAccess, accesses, slice_of, written_names
from localagent.debug.suspicions import combined
from localagent.domain.failure_run import FailureRun
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.ports import Localizer, Sources
from localagent.verify.baseline.traced_failure import traced_runs
from localagent.verify.verifier import JailVerifier

_MOST_FILES = 200
_MOST_CPU_SECONDS = 3.0
_SHARE_OF_BUDGET = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureSlice:
    """Traced runs by test id, and how far statements (path, first line) are from the failure; {} where none is known.

    `tables` are the statements of the files that the failing test ran, by line.
    """

    runs: Mapping[str, FailureRun]
    distances: Mapping[tuple[RepoPath, int], int]
    tables: Mapping[RepoPath, Mapping[int, VariableAccess]]

    def applied(self, ranked: tuple[Suspicion, ...]) -> tuple[Suspicion, ...]:
        """A ranking, with what led to the failure above what merely ran."""
        return combined(ranked, self.distances, self.tables) if self.distances else ranked


def failure_slice(
    verifier: JailVerifier,
    baseline: Baseline,
    sources: Sources,
    test: str,
    *,
    beside: Sequence[str] = (),
    cpu_seconds: float,
) -> FailureSlice:
    """The slice of a failing test. `beside` are passing ones to trace in the same jail, each for `cpu_seconds`, too."""
    lines = next((t.lines for t in baseline.tests if t.id == test), None) or {}
    near = dict.fromkeys([*sorted(lines), *sorted({*baseline.import_lines, *baseline.test_files})])
    paths = [p for p in near if p in sources][:_MOST_FILES]
    pool = verifier.worker_pool
    tables: dict[RepoPath, dict[int, VariableAccess]] = {}
    for path in takewhile(lambda _: not pool.late, paths):
        tables[path] = dict(accesses(sources[path]))
    writes = {p: written_names(table) for p, table in tables.items()}
    runs = traced_runs(pool, verifier.request, (test, *beside), writes, cpu_seconds=cpu_seconds)
    run = runs.get(test)
    return FailureSlice(runs=runs, distances=slice_of(run, tables) if run is not None else {}, tables=tables)


class SliceLocalizer:
    """Another localizer, with the slice of the first failing test. One run more, in a small share of the budget."""

    def __init__(self, localizer: Localizer, verifier: JailVerifier, *, budget_seconds: float) -> None:
        self._localizer, self._verifier = localizer, verifier
        self._cpu_seconds = min(_MOST_CPU_SECONDS, _SHARE_OF_BUDGET * budget_seconds)

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
        """Most suspicious first."""
        ranked = self._localizer.localize(baseline, sources)
        failing = set(baseline.failing)
        test = next((t.id for t in baseline.tests if t.id in failing and t.lines), None)
        if test is None or len(ranked) < 2:
            return ranked
        found = failure_slice(self._verifier, baseline, sources, test, cpu_seconds=self._cpu_seconds)
        return found.applied(ranked)
