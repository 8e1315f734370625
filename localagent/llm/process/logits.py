"""A row of logits as probabilities: what damaged weights compute is refused here, once for all who read rows."""

import math

import numpy as np
from numpy.typing import NDArray

from localagent.errors import CannotEnforce

DAMAGED = "its weights compute no numbers: the file is damaged"


def log_total(logits: NDArray[np.float32], scratch: NDArray[np.float32] | None = None) -> float:
    """The logarithm of the sum of a row's exponentials: what a logit loses to become a log-probability.

    `scratch` is as long as the row and is written over. CannotEnforce where the row has what is no number.
    """
    most = float(logits.max())
    if not math.isfinite(most):  # NaN is the largest of a row that has one
        raise CannotEnforce(DAMAGED)
    parts = np.subtract(logits, np.float32(most), out=scratch)
    return most + math.log(float(np.exp(parts, out=parts).sum(dtype=np.float64)))
