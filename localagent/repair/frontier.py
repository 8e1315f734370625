"""What the search may do next, best first: steps, and kept candidates waiting to be built upon."""

import heapq
from collections.abc import Iterable, Sequence

from localagent.domain.edit import Scope
from localagent.domain.paths import RepoPath
from localagent.repair.lineage import Lineage, Step


class Frontier:
    """A priority queue by cost; ties in the order they were pushed, so a run is repeatable."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Step | Lineage]] = []
        self._pushed = 0

    def push(self, steps: Iterable[Step]) -> None:
        """Add steps."""
        for step in steps:
            self._add(step.cost, step)

    def push_expansion(self, kept: Lineage, cost: float) -> None:
        """Add a kept candidate whose own edits are enumerated when its turn comes."""
        self._add(cost, kept)

    def _add(self, cost: float, item: Step | Lineage) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (cost, self._pushed, item))

    def pop(self) -> Step | Lineage | None:
        """The cheapest, or None."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def scope_at(self, path: RepoPath, line: int) -> Scope | None:
        """The function around a line, as the open edits know it."""
        for _, _, item in self._heap:
            if isinstance(item, Step) and item.edit.path == path and item.edit.scope is not None:
                scope = item.edit.scope
                if scope.first_line <= line <= scope.last_line:
                    return scope
        return None

    def reorder(self, steps: Sequence[Step]) -> None:
        """Replace steps by newly costed ones (same parent and edit); steps already popped are not brought back."""
        fresh = {(id(s.parent), id(s.edit)): s for s in steps}

        def renewed(cost: float, number: int, item: Step | Lineage) -> tuple[float, int, Step | Lineage]:
            new = fresh.get((id(item.parent), id(item.edit))) if isinstance(item, Step) else None
            return (cost, number, item) if new is None else (new.cost, number, new)

        self._heap = [renewed(*entry) for entry in self._heap]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)
