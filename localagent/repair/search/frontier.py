"""What the search may do next: steps, and kept candidates waiting to be built upon.

Three orders share the turns, so that none can starve the others: by cost; by the cost before the model spoke (a
portfolio: a step's turn comes at worst `len(_TURNS)` times later than without the model); and by cost among the
snapshot's own edits (a kept candidate that was wrong does not eat the whole budget; where several kept ones made the
snapshot parse, one of them is hardly wrong, and such turns are fewer).
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

from localagent.domain.edit import Scope
from localagent.domain.paths import RepoPath
from localagent.repair.search.search_node import Lineage, SearchStep


class _Turn(Enum):
    COST = "cost"
    SNAPSHOT = "snapshot"
    PRIOR = "prior"


_URGENT_SHARE = 8
_WRITTEN_SHARE = 5  # at most one turn in so many goes to what the model wrote, while enumerated steps are open
_WRITTEN_ANYHOW = 10  # one in so many does, cheap or not,
_WRITTEN_FROM = 60  # after so many turns
_TURNS = (_Turn.COST, _Turn.SNAPSHOT, _Turn.COST, _Turn.PRIOR)
_PARSED_SHARE = 4  # one in so many of the snapshot's turns is left to it once it is settled how it parses


class Frontier:
    """A priority queue in three orders; ties in the order they were pushed, so a run is repeatable."""

    def __init__(self) -> None:
        self._items: dict[int, SearchStep | Lineage] = {}
        self._heaps: dict[_Turn, list[tuple[float, int]]] = {turn: [] for turn in _Turn}
        self._first: deque[SearchStep] = deque()
        self._urgent: list[tuple[float, int, SearchStep]] = []
        self._written: list[tuple[float, int, SearchStep]] = []
        self._later: dict[int, float] = {}  # what an open item was put off by,
        self._prior: dict[int, float] = {}  # and what it cost when it was first pushed
        self._taken: tuple[SearchStep | Lineage, float] | None = (
            None  # the last one that had its turn, and what it had cost
        )
        self.parsed = False  # whether kept candidates have mended what is the matter with the snapshot's own text
        self._pushed = self._popped = self._hurried = self._wrote = 0

    def push(self, steps: Iterable[SearchStep]) -> None:
        """Add steps."""
        for step in steps:
            self._add(step.cost, step)

    def push_expansion(self, kept: Lineage, cost: float) -> None:
        """Add a kept candidate whose own edits are enumerated when its turn comes."""
        self._add(cost, kept)

    def put_off(self, step: SearchStep, nats: float) -> None:
        """Put back the step that just had its turn, as one that costs so much more, also when it is reordered."""
        taken, prior = self._taken or (step, step.cost)
        self._add(step.cost, step, prior=prior if taken is step else step.cost, later=nats)

    def push_first(self, step: SearchStep) -> None:
        """Add a step that comes before all others, whatever it costs; of several the one that was added first."""
        self._first.append(step)

    def push_urgent(self, step: SearchStep, cost: float) -> None:
        """Add a step that comes before all others, the lowest `cost` first; they get one turn in eight."""
        self._pushed += 1
        heapq.heappush(self._urgent, (cost, self._pushed, step))

    def push_written(self, step: SearchStep) -> None:
        """Add a step that the model wrote."""
        self._pushed += 1
        heapq.heappush(self._written, (step.cost, self._pushed, step))

    @property
    def written(self) -> int:
        """How many written steps are open."""
        return len(self._written)

    @property
    def enumerated(self) -> int:
        """How many others are."""
        return len(self._items) + len(self._urgent)

    @property
    def next_cost(self) -> float:
        """What the cheapest enumerated step costs; infinite when none is open."""
        heap = self._heaps[_Turn.COST]
        while heap and heap[0][1] not in self._items:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    @property
    def seasoned(self) -> bool:
        """Whether the likeliest enumerated steps have had their turns."""
        return self._popped >= _WRITTEN_FROM

    def _writes_now(self) -> bool:
        """Whether it is a written step's turn."""
        if not self._written or not self._items:
            return bool(self._written) and not self.enumerated
        turns = self._popped + self._wrote + 1
        if self._written[0][0] <= self.next_cost:
            return (self._wrote + 1) * _WRITTEN_SHARE <= turns
        return self.seasoned and (self._wrote + 1) * _WRITTEN_ANYHOW <= turns

    def _add(self, cost: float, item: SearchStep | Lineage, *, prior: float | None = None, later: float = 0.0) -> None:
        self._pushed += 1
        self._items[self._pushed], self._later[self._pushed] = item, later
        self._prior[self._pushed] = cost if prior is None else prior
        for turn, heap in self._heaps.items():
            if turn is not _Turn.SNAPSHOT or _of_snapshot(item):
                own = self._prior[self._pushed] if turn is _Turn.PRIOR else cost
                heapq.heappush(heap, (own + later, self._pushed))

    def pop_written(self) -> SearchStep | None:
        """The next one of those that the model wrote, whoever's turn it is; None if none is open."""
        if not self._written:
            return None
        self._wrote += 1
        return heapq.heappop(self._written)[2]

    def pop(self, *, written: bool = True) -> SearchStep | Lineage | None:
        """The next one in the order whose turn it is, or None. `written` says whether what the model wrote may come."""
        if self._first:
            return self._first.popleft()
        if written and self._writes_now():
            self._wrote += 1
            return heapq.heappop(self._written)[2]
        if self._urgent and (not self._items or self._hurried < 2 + self._popped // _URGENT_SHARE):
            self._hurried += 1
            return heapq.heappop(self._urgent)[2]
        if not self._items:
            return None
        turn = self._turn()
        self._popped += 1
        found = self._take(turn)
        return found if found is not None else self._take(_Turn.COST)

    def _turn(self) -> _Turn:
        cycle, at = divmod(self._popped, len(_TURNS))
        rests = self.parsed and _TURNS[at] is _Turn.SNAPSHOT and cycle % _PARSED_SHARE != 0
        return _Turn.COST if rests else _TURNS[at]

    def _take(self, turn: _Turn) -> SearchStep | Lineage | None:
        heap = self._heaps[turn]
        while heap:
            number = heapq.heappop(heap)[1]
            item = self._items.pop(number, None)
            if item is not None:
                del self._later[number]
                self._taken = (item, self._prior.pop(number))
                return item
        return None

    def scope_at(self, path: RepoPath, line: int) -> Scope | None:
        """The function around a line, as the open edits know it."""
        for item in self._items.values():
            if isinstance(item, SearchStep) and item.edit.path == path and item.edit.scope is not None:
                scope = item.edit.scope
                if scope.first_line <= line <= scope.last_line:
                    return scope
        return None

    def scored(self, kept: Lineage | None = None) -> list[SearchStep]:
        """The open edits of the snapshot, or of a kept candidate, that the model has scored, the cheapest first."""
        found = (
            (item.cost, number, item)
            for number, item in self._items.items()
            if isinstance(item, SearchStep) and item.model_score is not None
            if (item.parent is kept if kept is not None else not item.parent.edits)
        )
        return [step for _, _, step in sorted(found)]

    def reorder(self, steps: Sequence[SearchStep]) -> None:
        """Replace steps by newly costed ones (same parent and edit); steps already popped are not brought back.

        The order by prior keeps the costs that the steps were pushed with.
        """
        fresh = {(id(s.parent), id(s.edit)): s for s in steps}
        costs: dict[int, float] = {}
        for number, item in self._items.items():
            new = fresh.get((id(item.parent), id(item.edit))) if isinstance(item, SearchStep) else None
            if new is not None:
                self._items[number] = new
                costs[number] = new.cost + self._later[number]
        for turn in (_Turn.COST, _Turn.SNAPSHOT):
            heap = [(costs.get(n, cost), n) for cost, n in self._heaps[turn] if n in self._items]
            heapq.heapify(heap)
            self._heaps[turn] = heap

    def __len__(self) -> int:
        return len(self._first) + len(self._items) + len(self._urgent)


def _of_snapshot(item: SearchStep | Lineage) -> bool:
    return isinstance(item, SearchStep) and not item.parent.edits
