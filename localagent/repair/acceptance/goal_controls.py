"""Whether the goal of a task depends on what a patch changes: the patched functions are broken on purpose, in two ways.

A check is only an exit status, so it has to show that it can still fail; and a patch whose lines no test runs may be
right, but nothing has shown it. Limitations: a check that runs a function and looks at nothing it does but whether it
crashes passes this; how much the goal sees, mutants tell.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from localagent.domain.edit import Candidate
from localagent.domain.outcome import FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.test_support_names import is_testing_support
from localagent.repair.acceptance.control_edits import breaking
from localagent.repair.ordering.cost import reaches
from localagent.repair.search.enclosing_function import Changed, changed_functions
from localagent.repair.search.run_context import RunContext

MOST_PLACES = 6
_MOST_TESTS = 20
_CHECK, _COLLECT = "check:", "collect:"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Noticed:
    """What failed once the function of a place was broken; `untold`: a run was lost, so what passed is not known."""

    place: str
    by: frozenset[str]
    untold: bool


def examined(run: RunContext, candidate: Candidate, full: FullResult) -> FullResult:
    """The answer of a full check that accepted: refused, or with doubts, where the goal does not see the patch."""
    checks = [name for name in full.fail_to_pass if name.startswith(_CHECK)]
    reached = _reached(run, candidate, full)
    reasons: list[str] = []
    doubts = list(full.doubts)
    if checks or not reached:
        tests = [] if reached else _goal_tests(run, full)
        noticed = [
            _broken(run, candidate, path, place, [*checks, *tests]) for path, place in _changed_functions(candidate)
        ]
        run.emit("goal-controls", number=candidate.number, noticed={n.place: sorted(n.by) for n in noticed})
        reasons, more = _judged(noticed, checks, reached=reached)
        doubts += more
    doubts += [
        f"{path} supports tests: a patch there may change what tests see, and not what they are about"
        for path in (c.path for c in candidate.patch.changes)
        if is_testing_support(path)
    ]
    return replace(full, accepted=not reasons, reasons=(*full.reasons, *reasons), doubts=tuple(doubts))


def _judged(noticed: Sequence[_Noticed], checks: Sequence[str], *, reached: bool) -> tuple[list[str], list[str]]:
    """Reasons to refuse, and doubts."""
    untold = any(n.untold for n in noticed)
    reasons, doubts = [], []
    for check in checks:
        unseen = [n.place for n in noticed if check not in n.by]
        if len(unseen) == len(noticed) and not untold:
            reasons.append(f"the check {check[len(_CHECK) :]!r} passes even when {_all(unseen)} is broken on purpose")
    blind = [n.place for n in noticed if not n.by]
    if untold:
        doubts.append(f"whether tests or checks depend on {_all(n.place for n in noticed if n.untold)} cannot be told")
    elif blind and not reasons and not reached:
        told = f"no test or check that was asked for fails when {_all(blind)} is broken on purpose"
        (reasons if checks else doubts).append(told)
    return reasons, doubts


def _reached(run: RunContext, candidate: Candidate, full: FullResult) -> bool:
    """Whether a test that the patch turns, or one that passed before, is known to run what it changes."""
    if any(name.startswith(_COLLECT) for name in full.fail_to_pass):
        return True
    counting = {*full.fail_to_pass, *full.pass_to_pass}
    importing = run.baseline.import_lines
    by_test = any(t.id in counting and reaches(t.lines or {}, candidate) for t in run.baseline.tests)
    return by_test or (bool(run.baseline.tests) and reaches(importing, candidate))


def _goal_tests(run: RunContext, full: FullResult) -> list[str]:
    """The tests that the patch turns, quickest first, as many as are run again."""
    turned = set(full.fail_to_pass)
    return [t.id for t in sorted(run.baseline.tests, key=lambda t: t.seconds) if t.id in turned][:_MOST_TESTS]


def _changed_functions(candidate: Candidate) -> list[tuple[RepoPath, Changed]]:
    """The functions that a patch changes, in its files as they are afterwards."""
    found = [(c.path, place) for c in candidate.patch.changes for place in changed_functions(c.before, c.after)]
    return found[:MOST_PLACES]


def _broken(run: RunContext, candidate: Candidate, path: RepoPath, place: Changed, names: Sequence[str]) -> _Noticed:
    """What fails once a place of the patched tree is broken: by an exception, then by an answer of no use."""
    changes = {c.path: c.after for c in candidate.patch.changes}
    by: set[str] = set()
    untold = not names
    for edit in breaking(path, changes[path], place.line):
        broken = {**changes, path: edit.apply(changes[path])}
        passing = run.parts.verifier.still_pass(broken, run.baseline, names)
        if passing is None:
            untold = True
            continue
        by |= set(names) - passing
        if len(by) == len(names):
            break
    name = f"{path}:{place.name}" if place.name else str(path)
    return _Noticed(place=name, by=frozenset(by), untold=untold and not by)


def _all(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
