"""The guard in report, evidence and text: how much ran outside the goal, and what it showed."""

from collections.abc import Mapping
from typing import Any

from localagent.domain.guard import GuardResult
from localagent.text.visible_text import one_line

_SHOWN = 3
_WHY_CHARACTERS = 1000


def guard_json(found: GuardResult | None) -> dict[str, Any] | None:
    """For the report; null where no guard was come to."""
    if found is None:
        return None
    return {
        "found": found.found,
        "ran": found.ran,
        "passed": found.passed,
        "broken": list(found.broken),
        "flaky": list(found.flaky),
        "undecided": list(found.undecided),
        "not_run": found.not_run,
        "seconds": round(found.seconds, 3),
        "why": one_line(found.why, _WHY_CHARACTERS),
    }


def guard_line(told: Mapping[str, Any]) -> str:
    """For a person, from the report's JSON, on one line."""
    why = f" ({told['why']})" if told["why"] else ""
    if not told["ran"] and not told["broken"]:
        return f"guard: no test outside --test ran{why}"
    broken = f"{len(told['broken'])} broken: {_few(told['broken'])}" if told["broken"] else "none broken"
    before = told["ran"] - told["passed"] - len(told["undecided"]) - sum(_is_test(name) for name in told["broken"])
    more = [f"{max(0, before)} fail without the patch too"] if before > 0 else []
    more += [f"{len(told['flaky'])} flaky: {_few(told['flaky'])}"] if told["flaky"] else []
    return (
        f"guard: {told['ran']} of {told['found']} tests outside --test ran in {told['seconds']:.0f} s: "
        f"{'; '.join([broken, *more])}{why}"
    )


def _is_test(name: str) -> bool:
    return not name.startswith("collect:")


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(one_line(name, 200) for name in names[:_SHOWN]) + more
