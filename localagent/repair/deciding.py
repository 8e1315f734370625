"""The end of a search: which plausible candidate is believed, what part of the tests may be enough, why not."""

from collections.abc import Mapping
from dataclasses import replace

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.task import Stage, Verdict
from localagent.repair.choice import ranked, undecided, unproven
from localagent.repair.order import reaches
from localagent.repair.run import Run

FULL_CHECKS = 8
MORE_AFTER_FIRST = 60
PART_CHECKS = 5

Accepted = tuple[Candidate, FullResult]


def more_after_first(run: Run) -> int:
    """How many more candidates to try once one is plausible, so that there is a choice."""
    return max(MORE_AFTER_FIRST, min(2 * MORE_AFTER_FIRST, run.state.verified // 2))


def choose(run: Run) -> Accepted | None:
    """The best plausible candidate that passes the full check; None if none does or nothing tells the best apart."""
    s = run.state
    open_ones = [c for c in s.plausible if c.number not in s.rejected]
    rows: Mapping[int, tuple[str, ...]] = {}
    if len(open_ones) > 1:
        with run.timed(Stage.CHOOSE):
            rows = run.parts.verifier.behaviours(open_ones, run.baseline, seed=run.task.seed)
    order = ranked(open_ones, rows)
    run.emit(
        "ranked",
        order=[[x.candidate.number, round(x.cost, 2)] for x in order],
        behaviours={str(k): list(v) for k, v in rows.items()},
    )
    tests = len(run.baseline.tests) + len(run.baseline.checks)
    rivals = undecided(order, tests, run.state.verified)
    if rivals or (order and unproven(order[0].candidate, tests, len(run.baseline.failing))):
        run.emit("undecided", numbers=[order[0].candidate.number, *(r.candidate.number for r in rivals)])
        s.undecided = tuple(x.candidate for x in (order[0], *rivals))
        return None
    for standing in order[:FULL_CHECKS]:
        full = _full(run, standing.candidate, run.baseline)
        if full.accepted:
            return standing.candidate, full
        s.rejected[standing.candidate.number] = full
    return None


def part(run: Run) -> Accepted | None:
    """A candidate that turned every failing test that reaches what it changes, if there is one.

    Failing tests that never run the patched lines have nothing to do with it: they stay as they are. A test whose lines
    are not known (it hung, or its file does not import) might reach them, so it must be turned. Tests and checks that
    the user named are all wanted.
    """
    if run.task.tests or run.task.checks:
        return None
    lines = {t.id: t.lines for t in run.baseline.tests}
    for candidate, turned in run.state.parts[:PART_CHECKS]:
        rest = [i for i in run.baseline.failing if i not in turned]
        if any(not lines.get(i) or reaches(lines[i] or {}, candidate) for i in rest):
            continue
        full = _full(run, candidate, replace(run.baseline, failing=turned))
        if full.accepted:
            run.state.warnings.append(
                f"{len(rest)} failing tests never run the patched lines and are left alone: {', '.join(rest[:5])}"
            )
            return candidate, full
    return None


def _full(run: Run, candidate: Candidate, baseline: Baseline) -> FullResult:
    with run.timed(Stage.FULL):
        full = run.parts.verifier.full(candidate, baseline, seed=run.task.seed)
    run.emit("full-check", number=candidate.number, accepted=full.accepted, reasons=list(full.reasons))
    return full


def why_not(run: Run) -> tuple[Verdict, str]:
    """Verdict and reason of a search that ends without an accepted patch."""
    s = run.state
    if s.undecided:
        shown = " | ".join("; ".join(f"{e.path}:{e.line} {e.note}" for e in c.edits) for c in s.undecided[:4])
        if len(s.undecided) == 1:
            return (
                Verdict.NEEDS_PERSON,
                f"a patch passes the few tests but makes {len(s.undecided[0].edits)} changes they cannot prove: "
                f"{shown}; add tests, or judge it yourself",
            )
        return (
            Verdict.NEEDS_PERSON,
            f"{len(s.undecided)} patches pass the few tests, are not known to behave alike, and nothing tells which is "
            f"right: {shown}; add a test that tells them apart, or choose",
        )
    if not s.verified and s.denied:
        return Verdict.ALL_DENIED, "every candidate was refused by a gate"
    why = (
        "the budget of candidates"
        if s.verified >= run.task.budget.max_candidates
        else ("the time" if run.left() <= 0 else "the edit space")
    )
    tail = f"; {len(s.rejected)} plausible ones failed the full check" if s.rejected else ""
    return Verdict.GAVE_UP, f"gave up: {why} is used up after {s.verified} candidates{tail}"
