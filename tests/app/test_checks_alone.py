"""Whether a check that is all there is proves a repair: a pure decision over what was measured."""

from dataclasses import replace

import pytest

from localagent.app.fix.measure_strength import shows_little
from localagent.domain.edit import Candidate, Patch
from localagent.domain.outcome import FullResult
from localagent.domain.strength import Share, graded
from localagent.domain.task import TaskResult, Verdict
from localagent.domain.verification import Assessment, Mutants

FULL = FullResult(
    accepted=True, reasons=(), fail_to_pass=("check:c",), pass_to_pass=(), pass_to_fail=(), still_failing=()
)


def result(*, killed: int, tried: int, lines: int = 1, compared: int = 0, plausible: int = 1) -> TaskResult:
    strength = graded(
        lines=Share(part=lines, whole=1),
        mutants=Share(part=killed, whole=tried),
        functions=Share(part=compared, whole=1),
        unknown={},
    )
    return TaskResult(
        verdict=Verdict.ACCEPTED,
        reason="",
        exit=0,
        chosen=Candidate(number=1, patch=Patch(changes=()), edits=(), cost=0.0),
        full=FULL,
        plausible=plausible,
        assessment=Assessment(
            strength=strength,
            mutants=Mutants(tried=tried, killed=killed, space=tried),
            differential=None,
            seconds=1.0,
            allowed_seconds=2.0,
            cut=(),
        ),
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (result(killed=12, tried=12), ""),
        (result(killed=9, tried=10), ""),
        (result(killed=10, tried=12), "2 of 12 mutants"),
        (result(killed=2, tried=2), "only 2 mutants"),
        (result(killed=9, tried=9, lines=0), "nothing shows that it runs"),
        (result(killed=9, tried=9, plausible=3), ""),
        (result(killed=9, tried=9, plausible=4), "4 patches pass it"),
        (result(killed=9, tried=9, plausible=4, compared=1), ""),
        (replace(result(killed=9, tried=9), assessment=None), "could not be measured"),
        (replace(result(killed=0, tried=9), full=replace(FULL, fail_to_pass=("check:c", "t.py::t"))), ""),
        (replace(result(killed=0, tried=9), chosen=None), ""),
    ],
)
def test_a_check_alone_has_to_notice_nearly_all(found: TaskResult, why: str) -> None:
    told = shows_little(found)
    assert bool(told) == bool(why)
    assert why in told
