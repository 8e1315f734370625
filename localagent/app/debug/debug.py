"""`debug`: the dossier of a failing test. Everything runs in the jail on a private copy."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.app.debug.chosen_test import NAME_ONE, chosen_failure, traced_test
from localagent.app.debug.explain import history_of
from localagent.app.debug.uncommitted_changes import uncommitted_changes, uncommitted_hunks
from localagent.app.debug.value_experiments import nearest_passing, value_experiments
from localagent.app.execute.known_secrets import open_sanitizer
from localagent.app.fix.failure_slice import failure_slice
from localagent.app.fix.learned_order import open_order
from localagent.app.fix.pipeline import answers_due
from localagent.app.fix.prior import load_prior
from localagent.app.fix.suggest import BegunVerifier
from localagent.app.policies import open_policy
from localagent.app.reproduce.request import path_of
from localagent.app.review.patch_tests import ProofRequest, TestedSnapshot, open_tested_snapshot
from localagent.app.settings import Settings
from localagent.bisect.revert_edits import REVERT, HunkLocalizer, revert_edits, reverted_files
from localagent.debug.departure import Departure, departure_of
from localagent.debug.dossier import MOST_SUSPECTS, Dossier, Hypothesis, HypothesisOutcome, Suspect, counted
from localagent.debug.dynamic_slice import accesses
from localagent.debug.explanation import Explanation, explain_traceback
from localagent.debug.forced_values import observed_run
from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.debug.value_outcomes import ValueExperiment, most_telling, with_experiments
from localagent.domain.bisection import RevertedHunk
from localagent.domain.edit import Candidate, Edit
from localagent.domain.failure_run import FailureRun, FrameValues, WrittenValue
from localagent.domain.outcome import Baseline, Failure, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Budget, Choosing, Event, Suspicion, TaskResult
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo
from localagent.gate.repair_gates import open_gate_chain
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import Sink, Sources
from localagent.repair.acceptance.acceptance import MORE_AFTER_FIRST
from localagent.repair.acceptance.confidence_model import load_confidence
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.state import Parts
from localagent.repo.discover import root_hint
from localagent.repo.git import Git
from localagent.text.secret_redaction import Sanitizer
from localagent.text.visible_text import shortened
from localagent.verify.baseline.test_discovery import NoTests

MOST_HYPOTHESES = 5
MOST_CONFIRMED_RANK = 5
MOST_CANDIDATES = 400
MOST_CHANGED = 20  # statements: to enumerate changes of more takes time that those of the first need
TRACED_CPU_SECONDS = 20.0
TRACED_PASSING = 3
VALUES_SHARE = 0.25
REVERTS_SHARE = 0.25
SEARCH_SHARE = 0.8
PROGRESS_SECONDS = 5.0
MOST_QUOTED = 2
LEAST_SHARE = 0.1  # of the first statement's score: what scores less merely ran
_UNCOMMITTED = "without its change since the last commit the test passes"
_BUILT_ON = 8.0  # nats that a second edit costs: what one statement does is asked of all suspicious ones first


@dataclass(frozen=True, kw_only=True, slots=True)
class DebugRequest:
    """What to look into. `test`: a test's id or a pytest argument, "" for the first that fails; `check`: a command.

    `trace`: a text with a traceback; the first test that fails as its last one does is meant.
    """

    repo: Path
    test: str = ""
    check: str = ""
    trace: bytes = b""
    python: str = ""
    max_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Localized:
    """What traced runs add: the failing one, the ranking before and with its slice, the nearest passing tests' runs."""

    run: FailureRun | None
    plain: tuple[Suspicion, ...]
    ranked: tuple[Suspicion, ...]
    passing: Mapping[str, FailureRun]


def debug(request: DebugRequest, settings: Settings, sink: Sink) -> Dossier:
    """The dossier. AnswerIsNo where nothing fails or nothing can be run, UsageFault for a test that is not there."""
    try:
        return _debug(request, settings, sink)
    except NoTests as no:
        raise AnswerIsNo(f"{no} in {request.repo.resolve()}", remedy=root_hint(request.repo) + NAME_ONE) from None


def _debug(request: DebugRequest, settings: Settings, sink: Sink) -> Dossier:
    begin = time.monotonic()
    policy = open_policy(settings, None, request.repo).policy
    file = str(path_of(request.test, request.repo)) if request.test else ""
    proof = ProofRequest(
        repo=request.repo,
        tests=(file,) if file else (),
        checks=(request.check,) if request.check else (),
        python=request.python,
        max_seconds=request.max_seconds,
    )
    told = _Progress(sink, begin)
    told.stage("running the tests, in the jail")
    with open_tested_snapshot(proof, settings, policy, sink) as ground:
        baseline = ground.verifier.baseline()
        ground.verifier.worker_pool.until = begin + answers_due(request.max_seconds)
        wanted = traced_test(request.trace, baseline, ground.sources) if request.trace else request.test
        test, failure = chosen_failure(baseline, wanted)
        told.stage(f"{len(baseline.passing)} pass, {len(baseline.failing)} fail; tracing {test}")
        located = localized(ground, baseline, test)

        def left() -> float:
            return request.max_seconds - (time.monotonic() - begin)

        changes = tuple(uncommitted_changes(baseline, test, Git(request.repo.resolve(), {}), ground.sources))
        if changes:
            told.stage(f"taking back what is not committed of {counted(len(changes), 'file')}")
        spared = (1 - REVERTS_SHARE) * left()
        new = uncommitted_hunks(ground, baseline, test, changes, lambda: left() - spared)
        told.stage("forcing other values at suspicious statements, one at a time")
        values = run_value_experiments(ground, baseline, test, located, left)
        ranked = with_experiments(located.ranked, values)
        if new is not None:
            ranked = HunkLocalizer(_Ranked(ranked), new.reverts, _UNCOMMITTED).localize(baseline, ground.sources)
        told.stage("trying changes at suspicious statements, one at a time")
        reverts = () if new is None else new.reverts
        result = experiments(ground, baseline, ranked, settings, policy, told, left, reverts)
        sanitizer = open_sanitizer()
        run = _redacted(located.run, sanitizer)
        failure = replace(failure, message=sanitizer.clean_text(failure.message).text)
        found = Dossier(
            test=test,
            failure=failure,
            failing=len(baseline.failing),
            run=run,
            sources={},
            writes=_last_writes(run, ground.sources),
            departure=_departure(located, baseline),
            suspects=tuple(
                replace(s, suspicion=replace(s.suspicion, why=sanitizer.clean_text(s.suspicion.why).text))
                for s in _suspects(_that_ran(ranked, baseline), ground.sources, request.repo)
            ),
            uncommitted=() if new is None else new.hunks,
            values=tuple(_clean(one, sanitizer) for one in most_telling(values, MOST_HYPOTHESES)),
            hypotheses=hypotheses_of(result, baseline, ranked),
            tried=None if result is None else result.verified,
            seconds=time.monotonic() - begin,
            quoted=_quoted(failure, ground.sources, request.repo),
        )
        return replace(found, sources=_texts(_named(found), ground.sources))


class _Progress:
    """What a person hears of a dossier in the making: its stages, and how many changes were tried."""

    def __init__(self, sink: Sink, begin: float) -> None:
        self._sink, self._begin, self._told = sink, begin, begin
        self._tried, self._found = 0, False

    def stage(self, text: str) -> None:
        """What begins now."""
        self._emit("stage", stage=text)

    def emit(self, event: Event) -> None:
        """Of the search for changes only how far it is, every few seconds."""
        if event.kind != "checked":
            return
        self._tried += 1
        passing = bool(event.data.get("plausible"))
        if (passing and not self._found) or time.monotonic() - self._told > PROGRESS_SECONDS:
            self._told = time.monotonic()
            self._emit("trial", text=f"{self._tried} tried" + ("; with the last one it passes" if passing else ""))
        self._found = self._found or passing

    def _emit(self, kind: str, **data: str) -> None:
        self._sink.emit(Event(kind=kind, at_seconds=round(time.monotonic() - self._begin, 3), data=data))


def localized(ground: TestedSnapshot, baseline: Baseline, test: str) -> Localized:
    """The ranking before and with the dynamic slice of one failing test, which `fix` takes."""
    plain = SpectrumLocalizer().localize(baseline, ground.sources)
    near = nearest_passing(baseline, test, TRACED_PASSING)
    found = failure_slice(ground.verifier, baseline, ground.sources, test, beside=near, cpu_seconds=TRACED_CPU_SECONDS)
    passing = {name: run for name, run in found.runs.items() if name != test}
    return Localized(run=found.runs.get(test), plain=plain, ranked=found.applied(plain), passing=passing)


def run_value_experiments(
    ground: TestedSnapshot, baseline: Baseline, test: str, located: Localized, left: Callable[[], float]
) -> tuple[ValueExperiment, ...]:
    """Values forced at the most suspicious statements, in a share of the time that is left."""
    if located.run is None:
        return ()
    spared = (1 - VALUES_SHARE) * left()
    failing = observed_run(test, located.run)
    passing = [observed_run(name, run) for name, run in located.passing.items() if not run.frames]
    return value_experiments(ground, baseline, test, located.ranked, failing, passing, lambda: left() - spared)


class _Ranked:
    """A localizer whose answer is known."""

    def __init__(self, ranked: tuple[Suspicion, ...]) -> None:
        self._ranked = ranked

    def localize(self, _baseline: Baseline, _sources: Sources) -> tuple[Suspicion, ...]:
        """The answer."""
        return self._ranked


def experiments(
    ground: TestedSnapshot,
    baseline: Baseline,
    ranked: tuple[Suspicion, ...],
    settings: Settings,
    policy: Policy,
    sink: Sink,
    left: Callable[[], float],
    reverts: Sequence[Sequence[RevertedHunk]] = (),
) -> TaskResult | None:
    """Small changes at suspicious statements, each run against the failing tests and the tests that run it.

    `reverts` are tried first.
    """
    if left() < 3:
        return None
    weights, ranker = open_order(settings)
    parts = Parts(
        verifier=BegunVerifier(ground.verifier, baseline, left),
        localizer=_Ranked(ranked[:MOST_CHANGED]),
        space=open_edit_space(load_prior(settings.models_dir / "prior.json")),
        gates=open_gate_chain(policy, ()),
        scorer=None,
        sink=sink,
        sources=ground.sources,
        weights=replace(weights, round=_BUILT_ON, moved=_BUILT_ON),
        ranker=ranker,
        confidence=load_confidence(settings.models_dir / "confidence.json"),
        context=lambda _path, _baseline: "",
        beside=MORE_AFTER_FIRST,
        given=tuple(revert_edits(reverts, ground.sources, "as in the last commit")),
        reverted=reverted_files(reverts, ground.sources),
    )
    budget = Budget(max_candidates=MOST_CANDIDATES, max_seconds=SEARCH_SHARE * left(), jobs=2)
    return Repair(replace(ground.task, budget=budget, choosing=Choosing.FIRST), parts).run()


def hypotheses_of(result: TaskResult | None, baseline: Baseline, ranked: Sequence[Suspicion]) -> tuple[Hypothesis, ...]:
    """What the experiments showed, the statements that may be confirmed first.

    Confirmed is the most suspicious of those whose change makes the tests pass, where no change farther than a line
    away does the same, and where the trace, that knows nothing of changes, puts it among the first: one that passes far
    from these more likely makes up for the fault than it mends it.
    """
    if result is None:
        return ()

    def rank(candidate: Candidate) -> int:
        return max(next((n for n, s in enumerate(ranked) if _at(s, e)), len(ranked)) for e in candidate.edits)

    checked = [(result.chosen, result.full), *zip(result.proposals, result.proposed, strict=False)]
    passing = [c for c, full in checked if c is not None and _passes_all(full)]
    others = [c for c in result.plausible_candidates if c.number not in {p.number for p in passing}]
    order = sorted((*passing, *others), key=rank)
    alone = all(_beside(c, order[0]) for c in order)
    first = bool(order) and rank(order[0]) < MOST_CONFIRMED_RANK
    taken_back = [c for c in passing if all(e.operator == REVERT for e in c.edits)]
    order.sort(key=lambda c: c not in taken_back)
    found: list[Hypothesis] = []
    for candidate in order:
        best = candidate in taken_back if taken_back else _lines_of(candidate) == _lines_of(order[0])
        elsewhere = (
            "taking back what is not committed does that, too"
            if taken_back and not best
            else "a change at another statement does that, too"
            if not alone
            else "a change of the line beside it does that, too"
            if len({_lines_of(c) for c in order}) > 1
            else "no change tried at another statement does that"
        )
        if alone and not first:
            elsewhere += f", but {MOST_CONFIRMED_RANK} statements are more suspicious"
        if not passing:
            elsewhere += "; the other tests were not all run with it"
        shown = _passing(baseline) if candidate in passing else f"{_turned(baseline)}, and what else runs it still does"
        confirmed = bool(passing) and best and (bool(taken_back) or (alone and first))
        found += _of(
            candidate,
            HypothesisOutcome.CONFIRMED if confirmed else HypothesisOutcome.POSSIBLE,
            f"{shown}; {elsewhere}",
        )
    for miss in result.near_misses:
        if len(found) >= MOST_HYPOTHESES or not miss.edits:
            break
        broken = f", and {counted(len(miss.broken), 'other test')} broke" if miss.broken else ""
        shown = f"{len(miss.turned)} of {counted(len(baseline.failing), 'failing test')} passed{broken}"
        found += [h for h in (_missed(miss.edits[-1], shown),) if h is not None]
    return tuple(found[:MOST_HYPOTHESES])


def _lines_of(candidate: Candidate) -> frozenset[tuple[RepoPath, int]]:
    return frozenset((e.path, e.line) for e in candidate.edits)


def _beside(candidate: Candidate, other: Candidate) -> bool:
    """Whether each place that it changes is one of the other's, or the line above or below one."""
    return all(
        any(path == there and abs(line - at) <= 1 for there, at in _lines_of(other))
        for path, line in _lines_of(candidate)
    )


def _turned(baseline: Baseline) -> str:
    failing = len(baseline.failing)
    return "the failing test passes" if failing == 1 else f"the {failing:,} failing tests pass"


def _passing(baseline: Baseline) -> str:
    """What a repair of everything that was run leaves."""
    others = len(baseline.passing)
    if not others:
        return f"{_turned(baseline)}; no other test was there to be run with it"
    still = "the other test that was run still does" if others == 1 else f"the {others:,} others that were run still do"
    return f"{_turned(baseline)}, and {still}"


def _at(suspicion: Suspicion, edit: Edit) -> bool:
    return suspicion.path == edit.path and suspicion.line <= edit.line <= suspicion.end_line


def _passes_all(full: FullResult | None) -> bool:
    """Whether every check passed and nothing that was asked for still fails."""
    return full is not None and full.accepted and not full.still_failing


def _of(candidate: Candidate, outcome: HypothesisOutcome, shown: str) -> Sequence[Hypothesis]:
    return [
        Hypothesis(path=e.path, line=e.line, experiment=e.description, outcome=outcome, shown=shown)
        for e in candidate.edits
    ]


def _missed(summary: str, shown: str) -> Hypothesis | None:
    """From `path:line: what` as a near miss tells its edit."""
    path, _, rest = summary.partition(":")
    line, _, what = rest.partition(" ")
    if not line.rstrip(":").isdigit():
        return None
    outcome = HypothesisOutcome.REFUTED
    return Hypothesis(path=RepoPath(path), line=int(line.rstrip(":")), experiment=what, outcome=outcome, shown=shown)


def _that_ran(ranked: tuple[Suspicion, ...], baseline: Baseline) -> tuple[Suspicion, ...]:
    """Without statements that neither a failing test nor an import ran; all of them where lines are not known."""
    failing = [t.lines for t in baseline.tests if t.id in baseline.failing]
    if not failing or any(lines is None for lines in failing) or baseline.collect_failures:
        return ranked
    every = (*(lines for lines in failing if lines is not None), baseline.import_lines)
    return tuple(
        s for s in ranked if any(n in lines.get(s.path, ()) for lines in every for n in range(s.line, s.end_line + 1))
    )


def _suspects(ranked: tuple[Suspicion, ...], sources: Sources, repo: Path) -> tuple[Suspect, ...]:
    history = history_of(repo, sources)
    found = []
    least = LEAST_SHARE * ranked[0].score if ranked else 0.0
    for one in [s for s in ranked if s.score >= least][:MOST_SUSPECTS]:
        lines = sources[one.path].decode("utf-8", "replace").splitlines()
        text = shortened(lines[one.line - 1].strip(), 160) if one.line <= len(lines) else ""
        found.append(Suspect(suspicion=one, text=text, change=history(one.path, (one.line,)).get(one.line)))
    return tuple(found)


def _departure(located: Localized, baseline: Baseline) -> Departure | None:
    """From the first of the nearest passing tests that does not only begin, or end, otherwise."""
    if located.run is None:
        return None
    found = (
        departure_of(located.run, name, run, baseline.test_files)
        for name, run in located.passing.items()
        if not run.frames
    )
    return next((one for one in found if one is not None), None)


def _clean(one: ValueExperiment, sanitizer: Sanitizer) -> ValueExperiment:
    def clean(text: str) -> str:
        return sanitizer.clean_text(text).text

    failure = one.failure
    return replace(
        one,
        forced=replace(one.forced, what=clean(one.forced.what), origin=clean(one.forced.origin)),
        failure=None if failure is None else replace(failure, message=clean(failure.message)),
    )


def _redacted(run: FailureRun | None, sanitizer: Sanitizer) -> FailureRun | None:
    if run is None:
        return None

    def clean(text: str) -> str:
        return sanitizer.clean_text(text).text

    def cleaned(frames: Iterable[FrameValues]) -> tuple[FrameValues, ...]:
        return tuple(replace(f, values=tuple((n, clean(v)) for n, v in f.values)) for f in frames)

    return replace(
        run,
        frames=cleaned(run.frames),
        threads=tuple(replace(t, message=clean(t.message), frames=cleaned(t.frames)) for t in run.threads),
        values=tuple(replace(v, value=clean(v.value)) for v in run.values),
    )


def _quoted(failure: Failure, sources: Sources, repo: Path) -> tuple[Explanation, ...]:
    """The last tracebacks in a failure's message, explained."""
    found = parse_tracebacks(failure.message.encode("utf-8", "replace"))[-MOST_QUOTED:]
    mapper, history = FrameMapper(sources, str(repo.resolve())), history_of(repo, sources)
    return tuple(explain_traceback(one, mapper, sources, history) for one in found)


def _texts(places: Iterable[tuple[RepoPath, int]], sources: Sources) -> dict[str, str]:
    """The lines at some places, by `path:line`."""
    found, files = {}, dict[RepoPath, list[str]]()
    for path, line in places:
        if path in sources:
            lines = files.setdefault(path, sources[path].decode("utf-8", "replace").splitlines())
            if 0 < line <= len(lines):
                found[f"{path}:{line}"] = shortened(lines[line - 1].strip(), 160)
    return found


def _named(d: Dossier) -> Iterator[tuple[RepoPath, int]]:
    """Everywhere that a dossier points."""
    if d.run is not None:
        yield from ((f.path, f.line) for frames in (d.run.frames, *(t.frames for t in d.run.threads)) for f in frames)
    yield from ((f.path, f.line) for f in d.failure.frames if f.path is not None)
    yield from ((s.suspicion.path, s.suspicion.line) for s in d.suspects)
    yield from ((v.forced.path, v.forced.line) for v in d.values)
    yield from ((h.path, h.line) for h in d.hypotheses)
    if d.departure is not None:
        yield from (d.departure.after, d.departure.line, d.departure.passing_line)


def _last_writes(run: FailureRun | None, sources: Sources) -> tuple[WrittenValue, ...]:
    """The last values written to the names that the failing statement reads, oldest first."""
    if run is None or not run.frames or run.frames[-1].path not in sources:
        return ()
    failing = run.frames[-1]
    access = accesses(sources[failing.path]).get(failing.line)
    wanted = access.reads | access.attribute_reads if access is not None else frozenset()
    found = [v for v in run.values if v.name.rpartition(".")[2] in wanted and (v.path == failing.path or "." in v.name)]
    last: dict[tuple[RepoPath, int, str], WrittenValue] = {}
    for one in found:
        last.pop((one.path, one.line, one.name), None)
        last[one.path, one.line, one.name] = one
    return tuple(last.values())
