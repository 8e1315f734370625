"""Fusion of the three signals into one ranked list of statements over all files.

score = 0.55 * spectrum + 0.30 * frame + 0.15 * nearness, each in [0, 1]:
spectrum: Ochiai of the statement's best line, relative to the best of all files;
frame: 1 for the innermost source frame of a failure, falling by a third per frame outwards;
nearness: 1 / (1 + call distance) of the function from the names that the failing tests' files mention.
Statements no failing test covers are left out when a trace exists; without any trace (a test that hung or died) every
statement of the files that the tests mention stays in, ranked by the other two signals.
"""

from collections.abc import Mapping, Sequence

from localagent.domain.outcome import Baseline, Failure, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.localize.spectrum import ochiai
from localagent.localize.statements import Statement, statements_of
from localagent.ports import Sources

_SPECTRUM, _FRAME, _NEAR = 0.55, 0.30, 0.15
_SOURCE_LIMIT_BYTES = 2 << 20


class SpectrumLocalizer:
    """Ranks statements from a traced baseline. Pure: reads only what it is given."""

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
        """Most suspicious first. Never names a test file; empty when nothing of the sources can be blamed."""
        failing = _failing(baseline)
        failures = _failures(baseline, failing)
        spectrum = _spectrum(baseline, failing)
        frames = _frame_scores(failures, baseline.test_files)
        mentioned = _mentioned(baseline, failing, sources)
        traced = bool(spectrum)
        paths = (
            (set(spectrum) | {p for p, _ in frames})
            if traced
            else _reachable_files(sources, baseline, mentioned, {p for p, _ in frames})
        )
        out: list[Suspicion] = []
        per_file: dict[RepoPath, tuple[Statement, ...]] = {}
        for path in sorted(paths):
            if path in baseline.test_files or path not in sources or len(sources[path]) > _SOURCE_LIMIT_BYTES:
                continue
            per_file[path] = statements_of(sources[path])
            if not per_file[path]:
                out.extend(_unparsed(path, sources[path], frames))
        distance = _call_distance(per_file, mentioned)
        best = max((v for lines in spectrum.values() for v in lines.values()), default=1.0) or 1.0
        import_time = baseline.import_lines
        for path, statements in per_file.items():
            lines = spectrum.get(path, {})
            for s in statements:
                value = max((lines.get(k, 0.0) for k in range(s.line, s.end_line + 1)), default=0.0) / best
                frame = max((frames.get((path, k), 0.0) for k in range(s.line, s.end_line + 1)), default=0.0)
                if traced and not value and not frame:
                    continue
                near = 1.0 / (1.0 + distance.get((path, s.function), 6))
                score = _SPECTRUM * value + _FRAME * frame + _NEAR * near
                if not s.function and not frame and s.line in import_time.get(path, frozenset()):
                    score *= 0.25  # module level: covered by everything, rarely to blame
                why = f"ochiai {value:.2f}, frame {frame:.2f}, nearness {near:.2f}"
                out.append(Suspicion(path=path, line=s.line, end_line=s.end_line, score=min(score, 1.0), why=why))
        return tuple(sorted(out, key=lambda x: (-x.score, x.path, x.line)))


def _failing(baseline: Baseline) -> tuple[TestResult, ...]:
    wanted = set(baseline.failing)
    return tuple(t for t in baseline.tests if t.id in wanted)


def _failures(baseline: Baseline, failing: Sequence[TestResult]) -> tuple[Failure, ...]:
    wanted = set(baseline.failing)
    out = [t.failure for t in failing if t.failure is not None]
    out += baseline.collect_failures.values()
    out += [c.failure for c in baseline.checks if c.failure is not None and f"check:{c.command}" in wanted]
    return tuple(out)


def _spectrum(baseline: Baseline, failing: Sequence[TestResult]) -> dict[RepoPath, dict[int, float]]:
    bad = [t.lines for t in failing if t.lines]
    bad += [c.lines for c in baseline.checks if c.lines and not c.outcome.good]
    passing = set(baseline.passing)
    good = [t.lines for t in baseline.tests if t.id in passing and t.lines]
    good += [c.lines for c in baseline.checks if c.lines and c.outcome.good]
    scores = ochiai(bad, good)
    return {p: lines for p, lines in scores.items() if p not in baseline.test_files}


def _frame_scores(failures: Sequence[Failure], test_files: frozenset[RepoPath]) -> dict[tuple[RepoPath, int], float]:
    out: dict[tuple[RepoPath, int], float] = {}
    for failure in failures:
        inside = [f for f in failure.frames if f.path is not None and f.path not in test_files]
        weight = 1.0
        for frame in reversed(inside[-6:]):
            assert frame.path is not None
            key = (frame.path, frame.line)
            out[key] = max(out.get(key, 0.0), weight)
            weight *= 2 / 3
    return out


def _mentioned(baseline: Baseline, failing: Sequence[TestResult], sources: Sources) -> frozenset[str]:
    paths = {t.path for t in failing if t.path is not None} or set(baseline.test_files)
    names: set[str] = set()
    for path in paths:
        if path in sources:
            for s in statements_of(sources[path]):
                names |= s.names
    return frozenset(names)


def _reachable_files(
    sources: Sources, baseline: Baseline, mentioned: frozenset[str], framed: set[RepoPath]
) -> set[RepoPath]:
    """Without a trace: files imported while collecting, else files whose module name the tests mention, else all."""
    imported = {p for p in baseline.import_lines if p not in baseline.test_files}
    if imported or framed:
        return imported | framed
    named = {p for p in sources if p.is_python and p.name.removesuffix(".py") in mentioned}
    return (named or {p for p in sources if p.is_python}) - baseline.test_files


def _call_distance(
    per_file: Mapping[RepoPath, tuple[Statement, ...]], mentioned: frozenset[str]
) -> dict[tuple[RepoPath, str], int]:
    """Breadth first over names: functions the tests mention are at 0, those they mention at 1, and so on (cap 6)."""
    functions: dict[str, list[tuple[RepoPath, str]]] = {}
    calls: dict[tuple[RepoPath, str], set[str]] = {}
    for path, statements in per_file.items():
        for s in statements:
            key = (path, s.function)
            if key not in calls:
                calls[key] = set()
                for part in s.function.split("."):
                    functions.setdefault(part, []).append(key)
            calls[key] |= s.names
    distance: dict[tuple[RepoPath, str], int] = {}
    ring = {key for name in mentioned for key in functions.get(name, ())}
    for depth in range(6):
        for key in ring:
            distance.setdefault(key, depth)
        ring = {k for key in ring for name in calls[key] for k in functions.get(name, ())} - set(distance)
    return distance


def _unparsed(path: RepoPath, source: bytes, frames: Mapping[tuple[RepoPath, int], float]) -> list[Suspicion]:
    """A file that does not parse: the line the parser names, or its first."""
    lines = [line for p, line in frames if p == path]
    if not lines:
        try:
            compile(source, str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            lines = [error.lineno or 1]
        except (ValueError, RecursionError, MemoryError):
            lines = [1]
    return [Suspicion(path=path, line=n, end_line=n, score=1.0, why="does not parse") for n in sorted(set(lines))[:3]]
