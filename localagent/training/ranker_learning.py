"""Learning the order: a listwise model over the features, on top of the hand's order, in numpy alone.

Each sample is a list of edits of which some mend; what is lowered is -log of the share of belief that those get, the
belief being the softmax of the hand's score plus the correction. Corrections are pulled towards 0, so that few samples
change little. Deterministic for equal samples, seed and numpy.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localagent.repair.ordering.ranker import RankerModel, hand_scores
from localagent.repair.ordering.ranker_features import FEATURES, OF_MODEL, File, Matrix, features
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.expansion import crowds_of
from localagent.training.ranker_samples import Sample

_HEAD = 300  # of each sample's edits in the hand's order that are always learned from,
_DRAWN = 300  # and of the others
_INJECTED = 0.4  # what a sample with an injected bug counts, a real fix counting 1
_RARE = 3  # operators that mend in fewer samples get no offset of their own
_RATE = 0.02
_CLIP = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RankerSettings:
    """How much may be learned: steps, tanh units, and the pull towards 0."""

    steps: int = 120
    units: int = 2
    pull: float = 1e-2
    pull_operators: float = 2e-2
    pull_hidden: float = 1.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A sample as numbers: features, hand scores, operators, which of the rows mend."""

    origin: str
    group: str
    kind: str
    told: NDArray[np.float32]
    hand: Matrix
    operators: tuple[str, ...]
    truth: tuple[int, ...]


def listed(sample: Sample, weights: Weights) -> tuple[Listed, Listed]:
    """A sample's numbers as a task with, and one without, the language model has them."""
    crowds = crowds_of(sample.edits)
    read = Listed(
        origin=sample.origin,
        group=group_of(sample),
        kind=sample.kind,
        told=features(File(sample.source), sample.edits, crowds, sample.readings).astype(np.float32),
        hand=hand_scores(sample.edits, crowds, sample.readings, weights),
        operators=tuple(e.operator for e in sample.edits),
        truth=sample.truth,
    )
    return read, replace(read, hand=hand_scores(sample.edits, crowds, None, weights))


def group_of(sample: Sample) -> str:
    """The project that a sample is from: samples are held back by project."""
    return sample.origin.partition("@")[0].partition(":")[0]


def learn(samples: Sequence[Listed], settings: RankerSettings, *, with_model: bool) -> RankerModel:
    """A model of samples that hold an edit that mends."""
    rows, starts, weight = _chosen(samples, settings.seed)
    names = tuple(n for n in FEATURES if with_model or n not in OF_MODEL)
    columns = [FEATURES.index(n) for n in names]
    told = np.vstack([s.told[at][:, columns] for s, at, _ in rows])
    hand = np.concatenate([s.hand[at] + extra for s, at, extra in rows])
    mending = np.concatenate([np.isin(at, s.truth) for s, at, _ in rows])
    kinds = _kinds(samples)
    places = np.concatenate([[kinds.get(s.operators[k], len(kinds)) for k in at] for s, at, _ in rows])
    mean, scale = told.mean(axis=0), np.maximum(told.std(axis=0), 1e-3)
    z = np.clip((told - mean) / scale, -_CLIP, _CLIP).astype(np.float32)
    found = _Descent(z, hand, mending, places, len(kinds), starts, weight, settings).run()
    return RankerModel(
        features=names,
        mean=mean.astype(np.float64),
        scale=scale.astype(np.float64),
        linear=found["linear"],
        hidden=found["hidden"],
        bias=found["bias"],
        out=found["out"],
        operators={name: float(found["operators"][k]) for name, k in kinds.items()},
    )


def _kinds(samples: Sequence[Listed]) -> dict[str, int]:
    """Operators that mend often enough."""
    seen = Counter(name for s in samples for name in {s.operators[k] for k in s.truth})
    return {name: k for k, name in enumerate(sorted(n for n, count in seen.items() if count >= _RARE))}


def _chosen(
    samples: Sequence[Listed], seed: int
) -> tuple[list[tuple[Listed, NDArray[np.int64], Matrix]], NDArray[np.int64], Matrix]:
    """Of each sample the likeliest rows and a draw of the others, which then stand for all the others."""
    draw = np.random.default_rng(seed)
    rows, starts, weight, at = [], [], [], 0
    for s in samples:
        order = np.argsort(-s.hand, kind="stable")
        head, tail = order[:_HEAD], order[_HEAD:]
        taken = draw.permutation(tail)[:_DRAWN]
        mends = np.array(s.truth, dtype=np.int64)
        more = np.setdiff1d(mends, np.concatenate([head, taken]))
        chosen = np.concatenate([head, taken, more])
        extra = np.zeros(len(chosen))
        extra[len(head) : len(head) + len(taken)] = np.log(max(1.0, len(tail) / max(1, len(taken))))
        extra[np.isin(chosen, mends)] = 0.0
        rows.append((s, chosen, extra))
        starts.append(at)
        weight.append(1.0 if s.kind == "real" else _INJECTED)
        at += len(chosen)
    return rows, np.array(starts), np.array(weight) / np.sum(weight)


class _Descent:
    """Adam over all samples at once."""

    def __init__(
        self,
        z: NDArray[np.float32],
        hand: Matrix,
        mending: NDArray[np.bool_],
        places: NDArray[np.int64],
        kinds: int,
        starts: NDArray[np.int64],
        weight: Matrix,
        settings: RankerSettings,
    ) -> None:
        self._z, self._hand, self._mending, self._places = z, hand, mending, places
        self._starts, self._weight, self._settings = starts, weight, settings
        self._counts = np.diff(np.append(starts, len(hand)))
        draw = np.random.default_rng(settings.seed + 1)
        width, units = z.shape[1], settings.units
        self._state: dict[str, Matrix] = {
            "linear": np.zeros(width),
            "operators": np.zeros(kinds + 1),
            "hidden": draw.normal(0.0, 0.3 / np.sqrt(width), (width, units)),
            "bias": draw.normal(0.0, 0.1, units),
            "out": np.zeros(units),
        }

    def run(self) -> dict[str, Matrix]:
        """The parameters after all steps."""
        first = {k: np.zeros_like(v) for k, v in self._state.items()}
        second = {k: np.zeros_like(v) for k, v in self._state.items()}
        for step in range(1, self._settings.steps + 1):
            rate = _RATE * min(1.0, 2.0 * (1.0 - step / (self._settings.steps + 1)))
            for key, slope in self._slopes().items():
                first[key] = 0.9 * first[key] + 0.1 * slope
                second[key] = 0.999 * second[key] + 0.001 * slope**2
                move = (first[key] / (1 - 0.9**step)) / (np.sqrt(second[key] / (1 - 0.999**step)) + 1e-8)
                self._state[key] = self._state[key] - rate * move
            self._state["operators"][-1] = 0.0
        return self._state

    def _slopes(self) -> dict[str, Matrix]:
        p, s = self._state, self._settings
        units = np.tanh(self._z @ p["hidden"].astype(np.float32) + p["bias"].astype(np.float32))
        learned = self._z @ p["linear"].astype(np.float32) + units @ p["out"].astype(np.float32)
        scores = self._hand + learned + p["operators"][self._places]
        belief = self._softmax(scores)
        among = self._softmax(np.where(self._mending, scores, -1e9))
        slope = ((belief - among) * np.repeat(self._weight, self._counts)).astype(np.float32)
        back = (slope[:, None] * p["out"].astype(np.float32)) * (1 - units**2)
        return {
            "linear": self._z.T @ slope + s.pull * p["linear"],
            "operators": np.bincount(self._places, slope, len(p["operators"])) + s.pull_operators * p["operators"],
            "hidden": self._z.T @ back + s.pull_hidden * p["hidden"],
            "bias": back.sum(axis=0) + s.pull_hidden * p["bias"],
            "out": units.T @ slope + s.pull_hidden * p["out"],
        }

    def _softmax(self, scores: Matrix) -> Matrix:
        best = np.repeat(np.maximum.reduceat(scores, self._starts), self._counts)
        raised = np.exp(scores - best)
        shares: Matrix = raised / np.repeat(np.add.reduceat(raised, self._starts), self._counts)
        return shares
