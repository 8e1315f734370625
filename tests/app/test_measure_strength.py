"""How long a repair may be measured: within what is left of the task's time."""

from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app.fix.measure_strength import (
    CHECKS_SECONDS,
    DEMANDED_SECONDS,
    MOST_SECONDS,
    SHORTEST_SECONDS,
    allowed_seconds,
)
from localagent.domain.policy import LeastStrength
from localagent.policy.load import load_policy
from localagent.repair.search.search_loop import MEASURE_SECONDS, seconds_for_evidence

DEFAULT = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")


@pytest.mark.parametrize(
    ("left", "by_checks", "seconds"),
    [
        (298.0, False, MOST_SECONDS),
        (50.0, True, CHECKS_SECONDS),
        (6.0, True, 6.0),
        (4.0, False, 4.0),
        (-4.0, True, SHORTEST_SECONDS),
    ],
)
def test_a_measurement_ends_with_the_time_of_its_task(left: float, by_checks: bool, seconds: float) -> None:
    assert allowed_seconds(DEFAULT, left=left, by_checks=by_checks) == seconds


def test_a_search_leaves_the_time_that_its_evidence_takes_on_this_machine() -> None:
    assert seconds_for_evidence(300.0, 4.0) == 75.0
    assert seconds_for_evidence(40.0, 1.0) == 10.0
    assert seconds_for_evidence(40.0, 6.0) == MEASURE_SECONDS + 6.0
    assert seconds_for_evidence(40.0, 60.0) == 20.0


def test_what_a_policy_demands_is_measured_whatever_is_left() -> None:
    demanding = replace(DEFAULT, min_strength=next(x for x in LeastStrength if x is not LeastStrength.NONE))
    assert allowed_seconds(demanding, left=-10.0) == DEMANDED_SECONDS
