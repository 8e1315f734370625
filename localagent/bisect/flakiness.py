"""How often a test must pass before a commit counts as good, from how often it failed at the bad commit.

The rate is Laplace's estimate (failed + 1) / (tried + 2), so that a few failures of a few runs are not taken for all.
"""

import math

from localagent.bisect.commit_judge import RunPlan
from localagent.domain.bisection import BisectionConfidence

FIRST_RUNS = 3
MORE_RUNS = 9  # where the first ones do not agree
CONFIRMING_RUNS = 5
WANTED = 0.95
_MOST_PASSES = 40


def plan_of(failed: int, tried: int, steps: int) -> tuple[RunPlan, BisectionConfidence]:
    """How often commits run in a search of about so many steps, and how sure its answer is."""
    if failed == tried:
        return RunPlan(), BisectionConfidence(failed=failed, tried=tried, good_runs=1, probability=1.0)
    rate = (failed + 1) / (tried + 2)
    each = (1 - WANTED) / max(1, steps)
    passes = min(_MOST_PASSES, max(1, math.ceil(math.log(each) / math.log(1 - rate))))
    sure = max(0.0, 1 - max(1, steps) * (1 - rate) ** passes)
    return (
        RunPlan(steady=False, passes=passes),
        BisectionConfidence(failed=failed, tried=tried, good_runs=passes, probability=round(sure, 3)),
    )
