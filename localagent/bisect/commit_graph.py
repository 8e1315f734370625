"""A commit graph as bisection needs it: parents, ancestors, and how many suspects each commit stands for.

Pure. Weights are counted with one bit set per commit, freed when its children are done: a history of 100,000 commits
takes seconds, as long as few of its branches are open side by side.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.errors import AnswerIsNo

MOST_SET_BYTES = 1 << 29


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitGraph:
    """Commits with their parents. In `parents`, which may name commits outside, every commit follows its parents."""

    parents: Mapping[str, tuple[str, ...]]

    def __contains__(self, commit: object) -> bool:
        return commit in self.parents

    def __len__(self) -> int:
        return len(self.parents)

    def ancestors(self, commits: Iterable[str]) -> set[str]:
        """The commits and all their ancestors in the graph."""
        found: set[str] = set()
        todo = [commit for commit in commits if commit in self.parents]
        while todo:
            commit = todo.pop()
            if commit not in found:
                found.add(commit)
                todo += [parent for parent in self.parents[commit] if parent in self.parents]
        return found

    def in_order(self, commits: Collection[str]) -> list[str]:
        """Some commits, parents first."""
        return [commit for commit in self.parents if commit in commits]

    def weights(self, suspects: Collection[str]) -> dict[str, int]:
        """How many suspects each suspect has among itself and its ancestors: what is left where it is bad."""
        order = self.in_order(suspects)
        if self._linear(order):
            return {commit: n for n, commit in enumerate(order, 1)}
        return dict(self._counted(order))

    def _linear(self, order: Sequence[str]) -> bool:
        return all(before in self.parents[after] for before, after in itertools.pairwise(order))

    def _counted(self, order: Sequence[str]) -> Iterator[tuple[str, int]]:
        held = {commit: list(self.parents[commit]) for commit in order}
        children = dict.fromkeys(order, 0)
        for parents in held.values():
            for parent in parents:
                if parent in children:
                    children[parent] += 1
        sets: dict[str, int] = {}
        for number, commit in enumerate(order):
            own = 1 << number
            for parent in held[commit]:
                own |= sets.get(parent, 0)
                if parent in children:
                    children[parent] -= 1
                    if not children[parent]:
                        sets.pop(parent, None)
            sets[commit] = own
            if len(sets) * number > 8 * MOST_SET_BYTES:
                raise AnswerIsNo(
                    f"the history has {len(sets):,} branches open side by side: too many to weigh",
                    remedy="follow first parents alone with --first-parent, or name a newer --good",
                )
            yield commit, own.bit_count()
