"""How likely runs of the tests are at bad and at good commits, where nobody knows how far the tests can be trusted.

Most tests are steady. Of the others the rate is unknown: one of a few, all as likely. At a bad commit a test passes
now and then, at a good one it fails now and then in the same way, which is rarer.
"""

from localagent.domain.bisection import RunCounts

FIRST_RUNS = 2
MORE_RUNS = 8  # where the first ones do not agree
_STEADY_ON_BAD, _PASSES_ON_BAD = 0.9, (0.1, 0.3, 0.5, 0.7, 0.9)
_STEADY_ON_GOOD, _FAILS_ON_GOOD = 0.8, (0.1, 0.3, 0.4)
_MOST_PASSES = 40


def chance_on_bad(runs: RunCounts) -> float:
    """Probability of such runs, in this order, at commits that are bad."""
    shaky = sum((1 - rate) ** runs.failed * rate**runs.passed for rate in _PASSES_ON_BAD) / len(_PASSES_ON_BAD)
    return (0.0 if runs.passed else _STEADY_ON_BAD) + (1 - _STEADY_ON_BAD) * shaky


def chance_on_good(runs: RunCounts) -> float:
    """Probability of such runs, in this order, at commits that are good."""
    shaky = sum(rate**runs.failed * (1 - rate) ** runs.passed for rate in _FAILS_ON_GOOD) / len(_FAILS_ON_GOOD)
    return (0.0 if runs.failed else _STEADY_ON_GOOD) + (1 - _STEADY_ON_GOOD) * shaky


def passes_needed(at_bad: RunCounts, error: float) -> int:
    """How often a commit must pass until it is bad with at most this probability, from the runs at the bad end."""
    for passed in range(1, _MOST_PASSES):
        if chance_on_bad(at_bad + RunCounts(passed=passed)) <= error * chance_on_bad(at_bad):
            return passed
    return _MOST_PASSES
