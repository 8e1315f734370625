"""What one quick check of a candidate may cost, as the baseline has it."""

from localagent.domain.outcome import Baseline, Outcome

PATIENT = 10  # times the small limit, for candidates that were only slow
UNKNOWN_CPU_SECONDS = 0.3  # the small limit where no failing test ever ran to its end
_CUT_OFF = 6  # times what the longest failing test took, cut off or not
_MOST_SECONDS = 20.0
FULL_SWEEP_TESTS = 60
FULL_SWEEP_SECONDS = 0.25


def cpu_seconds(baseline: Baseline) -> float:
    """The small limit of one test in a quick check: a multiple of the slowest failing one, more if all hung.

    Programs that loop for ever are common among candidates; those that were only slow get a second chance.
    """
    wanted = set(baseline.failing)
    taken = [t.seconds for t in baseline.tests if t.id in wanted and t.outcome is not Outcome.TIMED_OUT]
    return max(0.2, min(_MOST_SECONDS, 8 * max(taken))) if taken else UNKNOWN_CPU_SECONDS


def patient_seconds(baseline: Baseline) -> float:
    """The large limit: for a candidate that turned tests, broke none and ran out of the small one.

    A failing test that was cut off in the baseline may need several times what it got there: the small limit knows
    nothing of it, and a right candidate that is refused for it leaves the field to a wrong one that is quick.
    """
    longest = max((t.seconds for t in baseline.tests if t.id in set(baseline.failing)), default=0.0)
    return max(PATIENT * cpu_seconds(baseline), min(_MOST_SECONDS, _CUT_OFF * longest))


def stop_early(baseline: Baseline) -> bool:
    """Whether a candidate's first failing test ends its check: only when running all of them costs much.

    Which tests a candidate turned is what the beam lives on.
    """
    wanted = set(baseline.failing)
    seconds = sum(t.seconds for t in baseline.tests if t.id in wanted)
    return len(wanted) > FULL_SWEEP_TESTS or (len(wanted) > 8 and seconds > FULL_SWEEP_SECONDS)
