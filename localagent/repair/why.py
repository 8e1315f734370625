"""Why a search ended without an accepted patch, for a person."""

from localagent.domain.behaviour import Crash
from localagent.domain.task import Verdict
from localagent.repair.run import Run


def crash_text(crash: Crash) -> str:
    """A crash in words."""
    return f"{crash.failure.exception} in {crash.call}"


def why_not(run: Run) -> tuple[Verdict, str]:
    """Verdict and reason of a search that ends without an accepted patch."""
    s = run.state
    if s.undecided:
        shown = " | ".join("; ".join(f"{e.path}:{e.line} {e.note}" for e in c.edits) for c in s.undecided[:4])
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
