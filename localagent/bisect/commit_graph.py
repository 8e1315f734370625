"""A commit graph as bisection needs it: parents, ancestors, and how many suspects each commit stands for.

Pure. Weights are counted with one bit set per commit, freed when its children are done: a history of 100,000 commits
takes seconds, as long as few of its branches are open side by side.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from localagent.errors import AnswerIsNo

MOST_SET_BYTES = 1 << 29


@dataclass(frozen=True, kw_only=True)
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

    def ancestor_sets(self, commits: Collection[str]) -> dict[str, int]:
        """Of some commits the ancestors in the graph and themselves, as bits by their number in `parents`.

        AnswerIsNo where too many branches are open side by side.
        """
        if self._linear:
            number = {commit: n for n, commit in enumerate(self.parents)} if len(commits) > 1 else {}
            return {c: (2 << (number[c] if number else list(self.parents).index(c))) - 1 for c in commits}
        wanted = set(commits)
        return {commit: older for commit, older in self._sets(wanted) if commit in wanted}

    @cached_property
    def _linear(self) -> bool:
        return all(before in self.parents[after] for before, after in itertools.pairwise(self.parents))

    def _sets(self, wanted: Collection[str]) -> Iterator[tuple[str, int]]:
        """All up to the last wanted one; each set is held until the last child of its commit has its own."""
        children = dict.fromkeys(self.parents, 0)
        for parents in self.parents.values():
            for parent in parents:
                if parent in children:
                    children[parent] += 1
        sets: dict[str, int] = {}
        left = len(wanted)
        for number, (commit, parents) in enumerate(self.parents.items()):
            own = 1 << number
            for parent in parents:
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
            yield commit, own
            left -= commit in wanted
            if not left:
                return
