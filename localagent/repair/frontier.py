"""The open steps of the search, best first."""

import heapq
from collections.abc import Iterable, Sequence

from localagent.domain.edit import Scope
from localagent.domain.paths import RepoPath
from localagent.repair.lineage import Step


class Frontier:
    """A priority queue of steps by cost; ties in the order they were pushed, so a run is repeatable."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Step]] = []
        self._pushed = 0

    def push(self, steps: Iterable[Step]) -> None:
        """Add steps."""
        for step in steps:
            self._pushed += 1
            heapq.heappush(self._heap, (step.cost, self._pushed, step))

    def pop(self) -> Step | None:
        """The cheapest step, or None."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def peek_cost(self) -> float:
        """The cheapest step's cost; infinity when empty."""
        return self._heap[0][0] if self._heap else float("inf")

    def scope_at(self, path: RepoPath, line: int) -> Scope | None:
        """The function around a line, as the open edits know it."""
        for _, _, step in self._heap:
            scope = step.edit.scope
            if scope is not None and step.edit.path == path and scope.first_line <= line <= scope.last_line:
                return scope
        return None

    def reorder(self, steps: Sequence[Step]) -> None:
        """Replace steps by newly costed ones (same parent and edit); steps already popped are not brought back."""
        fresh = {(id(s.parent), id(s.edit)): s for s in steps}
        self._heap = [
            (new.cost, n, new) if (new := fresh.get((id(s.parent), id(s.edit)))) is not None else (c, n, s)
            for c, n, s in self._heap
        ]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)
