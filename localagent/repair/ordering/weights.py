"""The order's weights: a small data file (`models/order.json`), parsed strictly."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

from localagent.errors import UsageFault

MENDED_LEAST = -6.0  # below, unlikely edits are all alike


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Log-scale weights of what a candidate's cost is made of; see `docs/architecture.md`, "The order".

    `localization` multiplies log(best suspicion / suspicion); `model` multiplies the model's score (nats, <= 0);
    `unscored` stands for a score the model did not give, or has not given yet: what edits are worth on average by
    their scores (log of the mean of their exponentials, over `model`); `round` is added per beam round; `parent` is
    the share of the parent's cost a child inherits; `turned` is taken off for the share of failing tests the parent
    turned;
    `moved` (`moved_from_syntax`) is added to edits on top of a candidate that turned no test but whose failure
    moved on (whose file now parses); `crowd` multiplies log(1 + likelier edits of the same operator on the same
    line); `elsewhere` is added to edits that do not touch the line where every failing test crashes; `written` is what
    an edit costs for being written by the model; `onward` multiplies how much worse than what stood there an edit
    reads with what follows it (nats); `mended` multiplies what a model with a mender makes of an edit (nats, from
    MENDED_LEAST to 0; `unmended` stands for it as `unscored` for a score); `learned` multiplies the learned
    order's corrections (0: the hand's order alone).
    """

    localization: float = 2.0
    model: float = 0.4
    unscored: float = -2.5
    round: float = 2.0
    parent: float = 0.5
    turned: float = 3.0
    elsewhere: float = 3.0
    crowd: float = 0.25
    moved: float = 1.3
    moved_from_syntax: float = 0.3
    written: float = 2.5
    onward: float = 1.0
    mended: float = 0.4
    unmended: float = -5.6
    learned: float = 0.3


def mended_value(nats: float | None, weights: Weights) -> float:
    """What mending adds to an edit's score."""
    told = weights.unmended if nats is None else max(MENDED_LEAST, min(0.0, nats))
    return weights.mended * told


def load_weights(path: Path) -> Weights:
    """Weights from a JSON object of numbers; a missing file means the defaults, a wrong one is a UsageFault."""
    if not path.is_file():
        return Weights()
    names = {f.name for f in fields(Weights)}
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise UsageFault(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageFault(f"{path}: expected an object of weights")
    faults = [f"{path}: unknown weight {k!r}" for k in data if k not in names]
    faults += [f"{path}: {k} is not a number" for k, v in data.items() if type(v) not in (int, float)]
    if faults:
        raise UsageFault(faults)
    return Weights(**{k: float(v) for k, v in data.items()})
