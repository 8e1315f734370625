"""Whether a learned order beats the hand's and the one in use: on fixes it never saw, asked the same, in pairs.

Ranks are places of the first mending edit among all open ones, no line more suspicious than another. Not promised:
that tasks gain as much; there, tests point at lines, and the hand's order has the same help.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from localagent.repair.ordering.ranker import RankerModel
from localagent.repair.ordering.ranker_features import Matrix
from localagent.training.ranker_learning import Listed, RankerSettings, learn

FOLDS = 4
LEAST = 20  # held-back fixes below which nothing is believed
SURE = 0.05
_NOWHERE = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Paired:
    """Ranks of the same fixes in both orders; `better` and `worse` count those that moved.

    `standing` has ranks in the order in use and in the learned one, of the fixes that those are compared by; None where
    the hand's is in use.
    """

    hand: tuple[int, ...]
    learned: tuple[int, ...]
    standing: "Paired | None" = None

    @property
    def better(self) -> int:
        """Fixes that the learned order meets earlier."""
        return sum(b < a for a, b in zip(self.hand, self.learned, strict=True))

    @property
    def worse(self) -> int:
        """Fixes that it meets later."""
        return sum(b > a for a, b in zip(self.hand, self.learned, strict=True))

    @property
    def chance(self) -> float:
        """How likely so many would be better if both orders were equally good (sign test, one side)."""
        moved = self.better + self.worse
        return float(sum(math.comb(moved, k) for k in range(self.better, moved + 1)) / 2**moved)

    @property
    def is_better(self) -> bool:
        """Whether the learned order may take the hand's place: enough fixes, surely better, the first ten no fewer.

        Where another order is in use it must be as much better than that one.
        """
        if self.standing is not None and not self.standing.is_better:
            return False
        first = _share(self.learned, 10) >= _share(self.hand, 10)
        return len(self.hand) >= LEAST and self.chance < SURE and first and _median(self.learned) <= _median(self.hand)

    def figures(self) -> dict[str, object]:
        """The figures, for a card."""
        return {
            "fixes": len(self.hand),
            "hand": figures(self.hand),
            "learned": figures(self.learned),
            "better": self.better,
            "worse": self.worse,
            "chance": round(self.chance, 5),
            "kept": self.is_better,
            **({} if self.standing is None else {"in-use": self.standing.figures()}),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderInUse:
    """An order in use: what it says of a sample's edits, and the projects that it was learned from."""

    scores: Callable[[Listed], Matrix]
    learned_from: frozenset[str] = frozenset()


def figures(ranks: Sequence[int]) -> dict[str, float]:
    """Median rank, and the share of fixes among the first so many; a fix that is not open counts as never met."""
    told = {f"first-{k}": round(_share(ranks, k), 4) for k in (10, 50, 100, 500)}
    return {"median": _median(ranks), **told}


def _share(ranks: Sequence[int], most: int) -> float:
    return sum(r <= most for r in ranks) / max(1, len(ranks))


def _median(ranks: Sequence[int]) -> float:
    return float(np.median(ranks)) if ranks else float(_NOWHERE)


def rank(sample: Listed, scores: Matrix) -> int:
    """The place of the first edit that mends; edits of equal score come in the hand's order."""
    if not sample.truth:
        return _NOWHERE
    order = np.lexsort((np.arange(len(scores)), -scores))
    places = np.empty(len(scores), dtype=np.int64)
    places[order] = np.arange(1, len(scores) + 1)
    return int(places[list(sample.truth)].min())


def judged(
    samples: Sequence[Listed],
    settings: RankerSettings,
    *,
    with_model: bool,
    say: Callable[[str], None] = lambda _text: None,
    standing: OrderInUse | None = None,
) -> Paired:
    """Both orders over all real fixes, each fix by a model that saw nothing of its project.

    With fewer projects than folds, nothing of its origin: then fixes of one project stand on both sides.
    The order in use, if any, is compared by fixes of projects that it was not learned from where these are enough, else
    by all: then it has the advantage of having seen them.
    """
    real = [s for s in samples if s.kind == "real"]
    by_group = len({s.group for s in real}) >= FOLDS
    folds = {id(s): fold_of(s.group if by_group else s.origin) for s in samples}
    hand: list[int] = []
    learned: list[int] = []
    told: list[tuple[bool, int, int]] = []  # whether the order in use never saw the fix, its rank, the learned one's
    for fold in range(FOLDS):
        back = [s for s in real if folds[id(s)] == fold]
        seen = [s for s in samples if s.truth and (folds[id(s)] != fold)]
        if not back or not seen:
            continue
        model = learn(seen, settings, with_model=with_model)
        say(f"fold {fold + 1} of {FOLDS}: learned from {len(seen)}, held back {len(back)}")
        for s in back:
            hand.append(rank(s, s.hand))
            learned.append(rank(s, s.hand + scored(model, s)))
            if standing is not None:
                told.append((s.group not in standing.learned_from, rank(s, standing.scores(s)), learned[-1]))
    return Paired(hand=tuple(hand), learned=tuple(learned), standing=None if standing is None else _beside(told))


def _beside(told: Sequence[tuple[bool, int, int]]) -> Paired:
    """Ranks in the order in use, as the hand's, and in the learned one."""
    unseen = [row for row in told if row[0]]
    rows = unseen if len(unseen) >= LEAST else told
    return Paired(hand=tuple(was for _, was, _ in rows), learned=tuple(now for _, _, now in rows))


def scored(model: RankerModel, sample: Listed) -> Matrix:
    """What a model says of a sample's edits."""
    return model.scored(sample.told.astype(np.float64), sample.operators)


def fold_of(name: str) -> int:
    """Which fold a project, or an origin, is held back in."""
    return hashlib.sha256(name.encode()).digest()[0] % FOLDS
