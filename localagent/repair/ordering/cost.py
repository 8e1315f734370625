"""The order of the search: what a step costs (docs/architecture.md, "The order")."""

import math
from collections.abc import Callable, Mapping

from localagent.domain.edit import Candidate, Edit, EditEffect
from localagent.domain.paths import RepoPath
from localagent.ports import Priced
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.search_node import Lineage

_DEFINITE = frozenset({"NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "AttributeError"})


class CostOrder:
    """Costs by one set of weights; lower runs first."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def cost(
        self,
        parent: Lineage,
        edit: Edit,
        scores: Mapping[int, float],
        best: float,
        crash: int | None,
        *,
        crowd: int = 0,
    ) -> float:
        """What a step costs before a model speaks of it.

        `scores` are suspicions by line, `best` the highest, `crash` where all fail.

        `crowd` is how many likelier edits the same operator makes at the same line: they share what it is worth there.
        """
        w = self._weights
        suspicion = suspicion_at(edit, scores)
        if not suspicion and EditEffect.EXPLAINED in edit.effects:
            suspicion = best  # the failure names the place, which no failing test need have run
        cost = -edit.prior + w.crowd * math.log1p(crowd) + self._unsuspicious(suspicion, best)
        if crash is not None and edit.prior <= 0 and not edit.line <= crash <= edit.end_line:
            cost += w.elsewhere
        return cost + (self.entry_cost(parent, was_syntax=False) if parent.round else 0.0)

    def priced(self, scores: Mapping[int, float], best: float, late: Callable[[], bool]) -> Priced:
        """Lines and their suspicions as the edit space wants them, so that it begins with what costs least."""
        dearer = {line: self._unsuspicious(score, best) for line, score in scores.items()}
        return Priced(dearer=dearer, crowd=self._weights.crowd, late=late)

    def _unsuspicious(self, suspicion: float, best: float) -> float:
        """What an edit of a line so suspicious costs more than one of the most suspicious line, nats."""
        return self._weights.localization * math.log(best / max(min(suspicion, best), best / 50))

    def entry_cost(self, child: Lineage, *, was_syntax: bool) -> float:
        """When it is a kept candidate's turn to be built upon: before edits of the snapshot that cost more.

        What a failure's message made likely is built upon the sooner.
        """
        w = self._weights
        inherited = w.parent * child.cost
        if child.progress >= 1:
            return inherited + w.round - w.turned * (child.progress - 1.0)
        return inherited + (w.moved_from_syntax if was_syntax else w.moved)


def suspicion_at(edit: Edit, scores: Mapping[int, float]) -> float:
    """The highest suspicion, by line, of those that an edit touches."""
    return max((scores.get(k, 0.0) for k in range(edit.line, edit.end_line + 1)), default=0.0)


def crash_line(parent: Lineage, path: RepoPath) -> int | None:
    """The one line where every failure crashes for want of a name, if there is one and it lies in `path`."""
    places = set()
    for f in parent.failures:
        inner = next((x for x in reversed(f.frames) if x.path is not None), None)
        if f.exception not in _DEFINITE or inner is None:
            return None
        places.add((inner.path, inner.line))
    if len(places) != 1:
        return None
    where, line = places.pop()
    return line if where == path else None


def reaches(covered: Mapping[RepoPath, frozenset[int]], candidate: Candidate) -> bool:
    """Whether a test that covers these lines runs anything of the functions (or lines) the candidate changes."""
    for edit in candidate.edits:
        lines = covered.get(edit.path, frozenset())
        first, last = (edit.scope.first_line + 1, edit.scope.last_line) if edit.scope else (edit.line, edit.end_line)
        if edit.line == edit.end_line == first - 1 or any(first <= n <= last for n in lines):
            return True
    return False
