"""The order that tasks go by now: what a new one has to be better than, and what it was learned from.

A registered order that was learned from a repository which is not named any more does not stay: what a repository gave
goes with it, whether or not what is learned without it is kept. Not promised: that a file which somebody else wrote
says truly what it was learned from.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent.app.fix.learned_order import REGISTERED
from localagent.app.settings import Settings as House
from localagent.errors import UsageFault
from localagent.repair.ordering.ranker import Ranker, RankerModel, load_ranker
from localagent.repair.ordering.weights import Weights
from localagent.training.ranker_judging import OrderInUse, scored


@dataclass(frozen=True, kw_only=True, slots=True)
class InForce:
    """An order in use, how much it counts, and the names of the repositories that it was learned from."""

    ranker: Ranker
    counts: float = 1.0
    repositories: frozenset[str] = frozenset()

    def model(self, *, with_model: bool) -> RankerModel:
        """The part for tasks with the language model, or without, at the weight at which it counts."""
        part = self.ranker.with_model if with_model else self.ranker.without_model
        return replace(
            part,
            linear=self.counts * part.linear,
            out=self.counts * part.out,
            operators={name: self.counts * offset for name, offset in part.operators.items()},
        )

    def standing(self, *, with_model: bool) -> OrderInUse:
        """What ranks fixes as tasks are ordered now."""
        part = self.model(with_model=with_model)
        return OrderInUse(scores=lambda sample: sample.hand + scored(part, sample), learned_from=self.repositories)


def in_force(house: House, weights: Weights) -> InForce | None:
    """The registered order, else the bundled one where it is switched on, else None: the hand's."""
    target = house.data_dir / REGISTERED
    own = load_ranker(target)
    if own is not None:
        return InForce(ranker=own, repositories=_learned_from(target))
    bundled = load_ranker(house.models_dir / "ranker.json") if weights.learned else None
    return None if bundled is None else InForce(ranker=bundled, counts=weights.learned)


def outgrown(house: House, names: Collection[str], say: Callable[[str], None]) -> None:
    """Take a registered order away that was learned from a repository which is not among these, or is none."""
    target = house.data_dir / REGISTERED
    if not target.is_file():
        return
    try:
        load_ranker(target)
        more = sorted(_learned_from(target) - set(names))
    except UsageFault as fault:
        target.unlink()
        say(f"the learned order in use cannot be read, and is taken away ({fault})")
        return
    if more:
        target.unlink()
        say(
            f"the learned order in use was learned from {', '.join(more)} too, and is taken away: "
            "tasks go by the order that localagent came with until one is kept"
        )


def _learned_from(target: Path) -> frozenset[str]:
    """What its card says; an order whose card does not say is of a repository that nobody can name."""
    about: Any = json.loads(target.read_text("utf-8")).get("about")
    found = about.get("found") if isinstance(about, dict) else None
    carried = about.get("carried", []) if isinstance(about, dict) else []
    if not isinstance(found, dict) or not isinstance(carried, list):
        return frozenset({"a repository that its card does not name"})
    return frozenset({*map(str, found), *map(str, carried)})
