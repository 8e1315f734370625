"""The learned order: what a small model of features says of edits beside the hand's costs.

Evaluated here, learned elsewhere (`training/`).
A model corrects the hand's order, it does not replace it: where it knows nothing, the hand's order stays. Its file is
data: named features, numbers. Not promised: equal last digits on machines whose numpy differs.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localagent.domain.edit import Edit, Reading
from localagent.errors import UsageFault
from localagent.repair.ordering.ranker_features import FEATURES, OF_MODEL, File, Matrix, features
from localagent.repair.ordering.weights import Weights

MOST_BYTES = 1 << 20
_CLIP = 4.0
_KINDS = ("with-model", "without-model")


@dataclass(frozen=True, kw_only=True, slots=True)
class RankerModel:
    """Weights over standardised features: a linear part, a hidden layer of tanh units, an offset by operator."""

    features: tuple[str, ...]
    mean: Matrix
    scale: Matrix
    linear: Matrix
    hidden: Matrix  # features x units
    bias: Matrix
    out: Matrix
    operators: dict[str, float]

    def scored(self, told: Matrix, operators: Sequence[str]) -> Matrix:
        """One number a row of `told`, log-scale, its columns those of FEATURES. Only differences mean anything."""
        columns = [FEATURES.index(name) for name in self.features]
        z = np.clip((told[:, columns] - self.mean) / self.scale, -_CLIP, _CLIP)
        offsets = np.array([self.operators.get(name, 0.0) for name in operators])
        scores: Matrix = z @ self.linear + offsets + np.tanh(z @ self.hidden + self.bias) @ self.out
        return scores


def knows_nothing(*, with_model: bool) -> RankerModel:
    """A model that leaves the hand's order as it is."""
    names = tuple(n for n in FEATURES if with_model or n not in OF_MODEL)
    n = len(names)
    return RankerModel(
        features=names, mean=np.zeros(n), scale=np.ones(n), linear=np.zeros(n),
        hidden=np.zeros((n, 1)), bias=np.zeros(1), out=np.zeros(1), operators={},
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranker:
    """A model for tasks with the language model, another for tasks without; `name` says which file they are."""

    name: str
    with_model: RankerModel
    without_model: RankerModel

    def corrections(
        self,
        file: File,
        edits: Sequence[Edit],
        crowds: Sequence[int],
        readings: Sequence[Reading | None] | None,
        weights: Weights,
    ) -> list[float]:
        """What to take off the cost of each edit of a file, which remembers what it counted in them.

        It was learned from edits of one function, and says which of them mends, not which function is wrong: what a
        function's edits are worth together (the sum of their exponentials) stays what it is by the hand's order.
        `readings` None: there is no language model, or it has not spoken.
        """
        model = self.without_model if readings is None else self.with_model
        out = np.zeros(len(edits))
        for at in _by_function(edits):
            some, crowd = [edits[k] for k in at], [crowds[k] for k in at]
            read = None if readings is None else [readings[k] for k in at]
            gains = weights.learned * model.scored(features(file, some, crowd, read), [e.operator for e in some])
            hand = hand_scores(some, crowd, read, weights)
            out[at] = gains - (_worth(hand + gains) - _worth(hand))
        return [round(float(v), 4) for v in out]


def _by_function(edits: Sequence[Edit]) -> list[list[int]]:
    """The places of edits by the function they are in; those outside of functions together."""
    found: defaultdict[tuple[int, int] | None, list[int]] = defaultdict(list)
    for k, edit in enumerate(edits):
        found[None if edit.scope is None else (edit.scope.start, edit.scope.end)].append(k)
    return list(found.values())


def _worth(scores: Matrix) -> float:
    """What scores are worth together: the log of the sum of their exponentials."""
    most = float(scores.max())
    return most + math.log(float(np.exp(scores - most).sum()))


def hand_scores(
    edits: Sequence[Edit], crowds: Sequence[int], readings: Sequence[Reading | None] | None, weights: Weights
) -> Matrix:
    """The hand's costs negated, without localization."""
    scores = np.array([e.prior - weights.crowd * math.log1p(n) for e, n in zip(edits, crowds, strict=True)])
    if readings is not None:
        scores += [weights.model * (weights.unscored if r is None else r.score) for r in readings]
    return scores


def load_ranker(path: Path) -> Ranker | None:
    """The ranker of a file; None where there is none, UsageFault with every fault where it is wrong."""
    if not path.is_file():
        return None
    if path.stat().st_size > MOST_BYTES:
        raise UsageFault(f"{path}: larger than {MOST_BYTES} bytes")
    try:
        data = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != 1 or not isinstance(data.get("name"), str):
        raise UsageFault(f"{path}: expected schema 1 with a name")
    faults: list[str] = []
    models = [_model(data.get(kind), kind, faults) for kind in _KINDS]
    if models[1] is not None and OF_MODEL & set(models[1].features):
        faults.append("without-model: names features of the language model")
    if faults or models[0] is None or models[1] is None:
        raise UsageFault([f"{path}: {fault}" for fault in faults])
    return Ranker(name=data["name"], with_model=models[0], without_model=models[1])


def ranker_json(ranker: Ranker, about: dict[str, Any]) -> str:
    """The file's text."""

    def numbers(array: Matrix) -> Any:
        return np.round(array, 5).tolist()

    data: dict[str, Any] = {"schema": 1, "name": ranker.name, "about": about}
    for kind, model in zip(_KINDS, (ranker.with_model, ranker.without_model), strict=True):
        data[kind] = {
            "features": list(model.features),
            "mean": numbers(model.mean),
            "scale": numbers(model.scale),
            "linear": numbers(model.linear),
            "hidden": numbers(model.hidden),
            "bias": numbers(model.bias),
            "out": numbers(model.out),
            "operators": {k: round(v, 5) for k, v in sorted(model.operators.items())},
        }
    return json.dumps(data) + "\n"


def _model(data: object, kind: str, faults: list[str]) -> RankerModel | None:
    """One model of a file, or None with what is wrong with it added to `faults`."""
    if not isinstance(data, dict):
        faults.append(f"{kind}: missing")
        return None
    names, operators, bias = data.get("features"), data.get("operators"), data.get("bias")
    before = len(faults)
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        faults.append(f"{kind}: features are not a list of names")
        return None
    faults += [f"{kind}: unknown feature {n!r}" for n in names if n not in FEATURES]
    faults += [f"{kind}: feature {n!r} twice" for n in sorted({n for n in names if names.count(n) > 1})]
    if not isinstance(operators, dict) or not all(_finite(v) for v in operators.values()):
        faults.append(f"{kind}: operators are not numbers by name")
    units = len(bias) if isinstance(bias, list) else 0
    shapes = {
        "mean": (len(names),), "scale": (len(names),), "linear": (len(names),),
        "hidden": (len(names), units), "bias": (units,), "out": (units,),
    }  # fmt: skip
    arrays = {key: _array(data.get(key), shape, f"{kind}: {key}", faults) for key, shape in shapes.items()}
    if not faults[before:] and not bool((arrays["scale"] > 0).all()):
        faults.append(f"{kind}: a scale is not above 0")
    if faults[before:]:
        return None
    assert isinstance(operators, dict)
    return RankerModel(
        features=tuple(names), operators={str(k): float(v) for k, v in operators.items()}, **arrays
    )  # fmt: skip


def _finite(value: object) -> bool:
    return type(value) in (int, float) and abs(float(value)) < 1e6  # type: ignore[arg-type]


def _array(value: object, shape: tuple[int, ...], what: str, faults: list[str]) -> Matrix:
    rows = value if isinstance(value, list) else None
    flat = (
        [x for row in rows for x in row]
        if len(shape) == 2 and rows and all(isinstance(r, list) for r in rows)
        else rows
    )
    good = rows is not None and flat is not None and len(rows) == shape[0] and len(flat) == math.prod(shape)
    if not good or flat is None or not all(_finite(x) for x in flat):
        faults.append(f"{what} is not {' x '.join(map(str, shape))} numbers")
        return np.zeros(shape)
    return np.array(flat, dtype=np.float64).reshape(shape)
