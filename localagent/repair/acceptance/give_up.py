"""Why a search ended without an accepted patch, for a person."""

from localagent.domain.behaviour import Crash
from localagent.domain.edit import Candidate
from localagent.domain.outcome import FullResult
from localagent.domain.task import Verdict
from localagent.repair.ordering.cost import reaches
from localagent.repair.search.run_context import RunContext

_SHOWN = 5


def crash_text(crash: Crash) -> str:
    """A crash in words."""
    return f"{crash.failure.exception} in {crash.call}"


def _progress(run: RunContext, candidate: Candidate, full: FullResult) -> str:
    """What a patch turns, and what still fails with it."""
    turned, still = full.fail_to_pass, full.still_failing
    asked = "tests and checks that were asked for" if run.task.tests or run.task.checks else "failing tests"
    lines = {t.id: t.lines for t in run.baseline.tests}
    apart = [name for name in still if lines.get(name) and not reaches(lines[name] or {}, candidate)]
    others = len(still) - len(apart)
    parts = [f"turns {len(turned)} of {len(turned) + len(still)} {asked}"]
    if apart:
        one = len(apart) == 1
        parts.append(f"{len(apart)} {'does' if one else 'do'} not run what it changes and still fail{'s' * one}")
    if others:
        parts.append(f"{others}{' more' * bool(apart)} still fail{'s' * (others == 1)}")
    shown = ", ".join(still[:_SHOWN]) + (f" and {len(still) - _SHOWN} more" if len(still) > _SHOWN else "")
    return f"{'; '.join(parts)}: {shown}"


def why_not(run: RunContext) -> tuple[Verdict, str]:
    """Verdict and reason of a search that ends without an accepted patch."""
    s = run.state
    if s.progress is not None:
        return Verdict.PROGRESS, _progress(run, *s.progress)
    if s.undecided:
        shown = " | ".join("; ".join(f"{e.path}:{e.line} {e.note}" for e in c.edits) for c in s.undecided[:4])
        if s.doubts:
            return Verdict.NEEDS_PERSON, f"a patch passes every check, but {'; '.join(s.doubts)}: {shown}"
        if s.crash is not None:
            return (
                Verdict.NEEDS_PERSON,
                f"a patch passes the few tests but crashes on inputs near theirs ({crash_text(s.crash)}): {shown}; "
                "add a test for such inputs, or judge it yourself",
            )
        if len(s.undecided) == 1:
            return (
                Verdict.NEEDS_PERSON,
                f"a patch passes the few tests but rests on a guess that they cannot prove: {shown}; "
                "add tests, or judge it yourself",
            )
        if s.ambiguity is not None:
            answers = "; ".join(f"{number} answers {answer}" for number, answer in s.ambiguity.answers.items())
            return (
                Verdict.AMBIGUOUS,
                f"ambiguous: {len(s.undecided)} patches pass the few tests, and nothing tells which is right: {shown}; "
                f"of those to choose from, on {s.ambiguity.call}: {answers}",
            )
        remedy = "choose" if s.proposals else "judge them yourself"
        return (
            Verdict.NEEDS_PERSON,
            f"{len(s.undecided)} patches pass the few tests, are not known to behave alike, and nothing tells which is "
            f"right: {shown}; add a test that tells them apart, or {remedy}",
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
