"""Whether waiting for the model's order is worth the candidates that could be verified meanwhile.

Decided by measured costs: what a candidate costs, how long the model still needs, what is left of both budgets, and how
many fixes either order has met after so many candidates. Not promised: that a task at hand is like those measured.
"""

import math
from bisect import bisect_right

# (candidates, share of real fixes met by then), measured on mined fixes, place unknown: docs/adr/0026
HAND = ((0, 0.0), (10, 0.10), (50, 0.34), (100, 0.46), (500, 0.74), (3_000, 0.97))
READ = ((0, 0.0), (10, 0.18), (50, 0.51), (100, 0.60), (500, 0.82), (3_000, 0.97))
# as well, by the whole order and with a hundred edits read on in it: docs/adr/0054
ORDERED = ((0, 0.0), (10, 0.32), (50, 0.53), (100, 0.64), (500, 0.82), (3_000, 0.97))
READ_ON = ((0, 0.0), (10, 0.38), (50, 0.61), (100, 0.64), (500, 0.82), (3_000, 0.97))
_EARLY = 0.5  # what a fix met at once is worth over one met at the end
_LEAST_SECONDS = 0.005
_PART_OF_EDITS = 0.5
_PART_OF_TIME = 0.5
_PART_WAITED = 0.25


def worth_reading_on(*, edits: int, seconds: float, each_seconds: float, reading_seconds: float) -> bool:
    """True where most of `edits` will still be open when the model has read them on, and time is left to run them.

    It reads beside the candidates, of which one takes `each_seconds`; `seconds` are left.
    """
    tried = reading_seconds / max(_LEAST_SECONDS, each_seconds)
    return tried <= _PART_OF_EDITS * edits and reading_seconds <= _PART_OF_TIME * seconds


def worth_awaiting(*, candidates: int, seconds: float, each_seconds: float, reading_seconds: float) -> bool:
    """True where candidates are dearer than time: few may run, and reading on first meets more fixes by the end.

    `candidates` and `seconds` are left; one candidate takes `each_seconds`. Beside it are weighed running them in the
    order as it is, and reading on beside those that run meanwhile.
    """
    each = max(_LEAST_SECONDS, each_seconds)
    if seconds <= 0.0 or reading_seconds > _PART_WAITED * seconds:
        return False
    plain = min(candidates, seconds / each)
    after = min(candidates, (seconds - reading_seconds) / each)
    meanwhile = min(candidates, math.ceil(reading_seconds / each))
    beside = max(met(ORDERED, meanwhile), met(READ_ON, max(0.0, plain - meanwhile)))
    gain = met(READ_ON, after) - max(met(ORDERED, plain), beside)
    return gain > _EARLY * reading_seconds / seconds


def met(curve: tuple[tuple[int, float], ...], candidates: float) -> float:
    """Share of fixes met after so many candidates, between the measured points by the logarithm."""
    at = bisect_right([n for n, _ in curve], candidates)
    if at == len(curve):
        return curve[-1][1]
    (low, less), (high, more) = curve[at - 1], curve[at]
    part = math.log1p(max(0.0, candidates) - low) / math.log1p(high - low)
    return less + (more - less) * part


def worth_waiting(*, candidates: int, seconds: float, each_seconds: float, wait_seconds: float) -> bool:
    """True where the fixes met by the end, waiting first, outweigh those met sooner without.

    `candidates` and `seconds` are left; one candidate takes `each_seconds`, the model's order `wait_seconds`.
    """
    each = max(_LEAST_SECONDS, each_seconds)
    after = min(candidates, max(0.0, seconds - wait_seconds) / each)
    if after <= 0.0:
        return False
    meanwhile = min(candidates, math.ceil(wait_seconds / each))
    later = min(candidates - meanwhile, max(0.0, seconds - max(wait_seconds, meanwhile * each)) / each)
    gain = met(READ, after) - max(met(HAND, meanwhile), met(READ, later))
    spent = wait_seconds + after * each
    return gain > _EARLY * met(HAND, meanwhile) * wait_seconds / spent
