"""Delta debugging: the fewest items with which something still fails. Pure; what "fails" means is the caller's.

After Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002), testing complements only: the
subsets of ddmin cost runs and are needed for nothing (Hodován and Kiss, 2016). Later items are left out first, for
those depend on earlier ones. Not promised: the global minimum where failing is not monotone.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def unlimited() -> bool:
    """The budget of who can wait."""
    return True


def minimise(
    items: Sequence[Item], fails: Callable[[tuple[Item, ...]], bool], budget: Callable[[], bool] = unlimited
) -> tuple[Item, ...]:
    """A part of `items`, in their order, that fails and of which no single item can be left out (1-minimal).

    All of `items` are taken to fail and are not asked about; no part is asked about twice, and the order of the
    questions depends on the answers alone. `budget` is asked before every question: once it says no, what is smallest
    so far is returned, which fails but may not be 1-minimal. Where failing is monotone, at most
    2·n + (k + 1)·log2(n) + 2·k + 1 questions find the k items that are needed.
    """
    search = _Search(items, fails, budget)
    size = len(items)
    while size > 1 and search.open:
        search.sweep(size)
        size = min((size + 1) // 2, max(1, len(search.kept)))
    search.finish()
    return tuple(items[index] for index in search.kept)


class _Search:
    """The indices kept so far, and what was asked."""

    def __init__(
        self, items: Sequence[Item], fails: Callable[[tuple[Item, ...]], bool], budget: Callable[[], bool]
    ) -> None:
        self._items, self._fails, self._budget = items, fails, budget
        self.kept = tuple(range(len(items)))
        self._asked: dict[tuple[int, ...], bool] = {self.kept: True}
        self.open = True

    def sweep(self, size: int) -> None:
        """Leave out each run of `size` items once, last ones first."""
        end = len(self.kept)
        while end > 0 and self.open:
            begin = max(0, end - size)
            self._leave_out(begin, end)
            end = begin

    def finish(self) -> None:
        """Leave out single items, round and round, until none of those that are left can go."""
        needed, at = 0, len(self.kept) - 1
        while needed < len(self.kept) and self.open:
            needed = 0 if self._leave_out(at, at + 1) else needed + 1
            at = at - 1 if at > 0 else len(self.kept) - 1

    def _leave_out(self, begin: int, end: int) -> bool:
        part = self.kept[:begin] + self.kept[end:]
        if part not in self._asked:
            if not self._budget():
                self.open = False
                return False
            self._asked[part] = self._fails(tuple(self._items[index] for index in part))
        if self._asked[part]:
            self.kept = part
        return self._asked[part]
