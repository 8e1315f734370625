"""Several writers as one: the cheapest goes on, ties in their order. One thread at a time, as each of them."""

import math
from collections.abc import Sequence

from localagent.domain.edit import Edit, Written
from localagent.domain.outcome import Baseline, Failure
from localagent.domain.task import Suspicion
from localagent.ports import EditWriter, Sources


class Several:
    """An `EditWriter` of others. Those with equal costs take turns by what each has spent."""

    def __init__(self, writers: Sequence[EditWriter]) -> None:
        self._writers = tuple(writers)

    @property
    def tokens_used(self) -> int:
        """Of all."""
        return sum(writer.tokens_used for writer in self._writers)

    @property
    def next_cost(self) -> float:
        """The cheapest one's."""
        return min((writer.next_cost for writer in self._writers), default=math.inf)

    def begin(self, sources: Sources, places: Sequence[Suspicion], baseline: Baseline) -> None:
        """All of them plan."""
        for writer in self._writers:
            writer.begin(sources, places, baseline)

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        """Told to all."""
        for writer in self._writers:
            writer.heard(edit, failures)

    def more(self, *, timeout_seconds: float) -> Sequence[Written]:
        """The cheapest one goes on."""
        if math.isinf(self.next_cost):
            return []
        cheapest = min(self._writers, key=lambda writer: (writer.next_cost, writer.tokens_used))
        return cheapest.more(timeout_seconds=timeout_seconds)
