"""Says at which stage a repair of a real fix ended, from the report alone and from the true fix.

Rules, first match wins (README.md repeats them):
  solved        exit 0, a patch, and the fix's tests pass with it in the judge's jail
  wrong         exit 0 and a patch, but the judge sees the fix's tests fail or a test of the selection break
  environment   no report, exit 2, 3 or 4, or no test could be run at all
  baseline      tests ran, but not every test the fix turns was found failing, or the tests were called untrusted
  localization  no line of the true fix among the statements that the report lists (the ten most suspicious)
  space         the true fix is not one edit of the edit space at the lines it touches
  budget        the run ended by its seconds before its candidates were used up
  order         the true fix is one edit of the space and was not reached, or was reached and refused

Not promised: that `space`, `budget` and `order` name the only obstacle. Another patch than people's may solve a case,
and a fix that is two edits counts as `space` even where the beam could find it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench.real.layout import TrueFix


class Stage(StrEnum):
    """Where a run ended."""

    SOLVED = "solved"
    WRONG = "wrong"
    ENVIRONMENT = "environment"
    BASELINE = "baseline"
    LOCALIZATION = "localization"
    SPACE = "space"
    BUDGET = "budget"
    ORDER = "order"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What one run left: exit status, report (None if there is none), whether the judge was content."""

    status: int
    report: Mapping[str, Any] | None
    patched: bool
    judged_good: bool
    in_space: bool | None
    wall_seconds: float


def junit_name(nodeid: str) -> str:
    """`tests/test_a.py::C::test_b[x]` as junit says it: `tests.test_a.C::test_b[x]`."""
    path, bracket, parameters = nodeid.partition("[")
    names = path.split("::")
    names[0] = names[0].removesuffix(".py").replace("/", ".")
    return f"{'.'.join(names[:-1])}::{names[-1]}{bracket}{parameters}"


def missing_failures(report: Mapping[str, Any], fail_to_pass: tuple[str, ...]) -> tuple[str, ...]:
    """Tests the fix turns which the baseline did not find failing."""
    seen = {junit_name(str(f["id"])) for f in report.get("failing", [])}
    return tuple(t for t in fail_to_pass if t not in seen)


def localized_rank(report: Mapping[str, Any], fix: TrueFix) -> int | None:
    """Rank, from 1, of the first listed statement that holds a line of the true fix."""
    for rank, place in enumerate(report.get("localization", []), 1):
        lines = fix.lines.get(place["path"], frozenset())
        if any(place["line"] <= line <= place["end_line"] for line in lines):
            return rank
    return None


def stage_of(run: Run, fix: TrueFix, fail_to_pass: tuple[str, ...]) -> Stage:
    """The rules of this module's docstring."""
    if run.status == 0 and run.patched:
        return Stage.SOLVED if run.judged_good else Stage.WRONG
    report = run.report
    if report is None or run.status not in (0, 1) or not report.get("pytest"):
        return Stage.ENVIRONMENT
    if missing_failures(report, fail_to_pass) or report.get("outcome") == "untrusted-tests":
        return Stage.BASELINE
    if localized_rank(report, fix) is None:
        return Stage.LOCALIZATION
    if run.in_space is False:
        return Stage.SPACE
    budget = report["budget"]
    if report["candidates_verified"] < budget["max_candidates"] and run.wall_seconds >= 0.9 * budget["max_seconds"]:
        return Stage.BUDGET
    return Stage.ORDER
