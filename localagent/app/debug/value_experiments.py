"""Values forced at suspicious statements, one experiment at a time, each run in the jail: does the failure go away?

Every experiment is an edit on a private copy, run as the candidates of a repair are. It shows what happens with the
value and nothing more: a result that is forced after the fault makes the failure go away as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from localagent.app.review.patch_tests import TestedSnapshot
from localagent.code.related_tests import is_test
from localagent.code.source_text import parse_or_none
from localagent.code.symbols import FactIndex
from localagent.debug.forced_values import ForcedValue, ObservedRun, forced_values
from localagent.debug.value_outcomes import ValueExperiment, ValueOutcome
from localagent.domain.edit import Candidate, Edit, FileChange, Patch
from localagent.domain.outcome import Baseline, Failure, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.edit.external_edits import Page

MOST_STATEMENTS = 12
MOST_OF_A_STATEMENT = 4
CPU_SECONDS = 5.0
MOST_SECONDS = 1.0
_OPERATOR = "forced-value"


def nearest_passing(baseline: Baseline, test: str, most: int) -> list[str]:
    """The passing tests that share most lines with a test, by Jaccard's index.

    Without those that share none, or take longer than `MOST_SECONDS`: a tracer makes them slower still.
    """
    lines = {t.id: {(p, n) for p, ns in (t.lines or {}).items() if not is_test(p) for n in ns} for t in baseline.tests}
    own = lines.get(test, set())
    passing = set(baseline.passing) & {t.id for t in baseline.tests if t.seconds <= MOST_SECONDS}
    shares = {
        name: len(own & other) / len(own | other) for name, other in lines.items() if name in passing and own & other
    }
    return sorted(shares, key=lambda name: (-shares[name], name))[:most]


def value_experiments(
    ground: TestedSnapshot,
    baseline: Baseline,
    test: str,
    ranked: Sequence[Suspicion],
    failing: ObservedRun,
    passing: Sequence[ObservedRun],
    left: Callable[[], float],
) -> tuple[ValueExperiment, ...]:
    """What became of the failing test with each value, in the order of the statements' ranks, while time is left."""
    before = next((t.failure for t in baseline.tests if t.id == test), None)
    plans = _plans(ground, ranked, failing, passing) if before is not None else []
    if not plans or before is None or left() <= 0:
        return ()
    found = []
    quick = ground.verifier.quick(replace(baseline, failing=(test,), passing=()), jobs=1)
    try:
        for number, (forced, edit) in enumerate(plans, 1):
            if left() <= 0:
                break
            source = ground.sources[edit.path]
            change = FileChange(path=edit.path, before=source, after=edit.apply(source))
            candidate = Candidate(number=number, patch=Patch(changes=(change,)), edits=(edit,), cost=0.0)
            result = quick.check(candidate, cpu_seconds=CPU_SECONDS, stop_early=False)
            outcome = _outcome(result, test, before)
            if outcome is not None:
                found.append(ValueExperiment(forced=forced, outcome=outcome, failure=result.failures.get(test)))
    finally:
        quick.close()
    return tuple(found)


def _plans(
    ground: TestedSnapshot,
    ranked: Sequence[Suspicion],
    failing: ObservedRun,
    passing: Sequence[ObservedRun],
) -> list[tuple[ForcedValue, Edit]]:
    """The first value of every statement, then the second ones: what time cuts off is the least likely."""
    index = FactIndex()
    pages: dict[RepoPath, Page] = {}
    rounds: list[tuple[int, int, ForcedValue, Edit]] = []
    for rank, one in enumerate(islice((s for s in ranked if not is_test(s.path)), MOST_STATEMENTS)):
        tree = parse_or_none(ground.sources[one.path])
        page = pages.setdefault(one.path, Page(one.path, ground.sources, index))
        if tree is None or not page.usable:
            continue
        made = 0
        for forced in forced_values(one.path, tree, one.line, failing, passing):
            start, end = page.offset(*forced.start), page.offset(*forced.end)
            edit = page.put(one.line, start, end, forced.text, prior=0.0, operator=_OPERATOR, known=False)
            if isinstance(edit, Edit) and made < MOST_OF_A_STATEMENT:
                rounds.append((made, rank, forced, edit))
                made += 1
    return [(forced, edit) for _, _, forced, edit in sorted(rounds, key=lambda r: r[:2])]


def _outcome(result: QuickResult, test: str, before: Failure) -> ValueOutcome | None:
    """None where the run says nothing: it was lost, ran out of time, or the test did not come to its end."""
    outcome = result.outcomes.get(test)
    if outcome is Outcome.PASSED:
        return ValueOutcome.PASSES
    after = result.failures.get(test)
    if after is None or outcome not in (Outcome.FAILED, Outcome.ERROR):
        return None
    return ValueOutcome.STAYS if _same(before, after) else ValueOutcome.MOVES


def _same(before: Failure, after: Failure) -> bool:
    places = [[(f.path, f.line) for f in failure.frames if f.path is not None][-1:] for failure in (before, after)]
    return (before.exception, before.steady) == (after.exception, after.steady) and places[0] == places[1]
