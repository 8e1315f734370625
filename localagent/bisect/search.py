"""Binary search for the first bad commit over a commit graph: which commits to test next, and when it is over.

The rules are those of `git bisect`: what is not an ancestor of a bad commit is no suspect, nor are the ancestors of
good ones; the best commit to test splits the suspects into halves. With several at once they are split into equal
parts. Beside commits that cannot be judged others seldom can: the nearer one is to them, the less it is worth.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from localagent.bisect.commit_graph import CommitGraph
from localagent.domain.bisection import CommitVerdict

MOST_SKIPPED = 32  # suspects that cannot be judged: then the search is given up, with the range that is left


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchState:
    """`head` is bad, and the newest of `suspects` (parents first). `skipped` are those that cannot be judged."""

    head: str
    suspects: tuple[str, ...]
    skipped: frozenset[str]

    @property
    def found(self) -> bool:
        """Whether only the head is left: it is the first bad commit."""
        return len(self.suspects) == 1

    @property
    def open(self) -> bool:
        """Whether another test would tell something."""
        return len(self.suspects) - len(self.skipped) > 1 and len(self.skipped) < MOST_SKIPPED


class Bisection:
    """One search. `graph` holds the ancestors of `bad` that are no ancestors of a good commit, and `bad` itself."""

    def __init__(self, graph: CommitGraph, bad: str) -> None:
        self.graph = graph
        self.bad = bad
        self.verdicts: dict[str, CommitVerdict] = {bad: CommitVerdict.BAD}

    def record(self, commit: str, verdict: CommitVerdict) -> None:
        """Take a verdict; a later one on the same commit replaces it."""
        self.verdicts.pop(commit, None)
        self.verdicts[commit] = verdict

    def state(self) -> SearchState:
        """What the verdicts leave.

        Where they contradict each other (a good commit after a bad one), the newest change to bad is looked for.
        """
        good = self.graph.ancestors(c for c, verdict in self.verdicts.items() if verdict is CommitVerdict.GOOD)
        suspects = self.graph.ancestors([self.bad]) - good
        head = self.bad
        for commit, verdict in self.verdicts.items():
            if verdict is CommitVerdict.BAD and commit in suspects:
                suspects &= self.graph.ancestors([commit])
                head = commit
        skipped = frozenset(c for c, v in self.verdicts.items() if v is CommitVerdict.SKIP and c in suspects)
        return SearchState(head=head, suspects=tuple(self.graph.in_order(suspects)), skipped=skipped)

    def next_commits(self, count: int, beside: Collection[str] = ()) -> list[str]:
        """Up to so many commits that are best tested next at the same time; `beside` are being tested already."""
        state = self.state()
        weights = self.graph.weights(set(state.suspects))
        total = len(state.suspects)
        skipped = sorted(weights[commit] for commit in state.skipped)
        chosen: list[str] = []
        for part in range(1, count + 1):
            target = min(total - 1, max(1, round(part * total / (count + 1))))
            taken = {state.head, *state.skipped, *beside, *chosen}
            open_commits = [commit for commit in state.suspects if commit not in taken]
            if not open_commits:
                break
            chosen.append(max(open_commits, key=lambda c: _worth(weights[c], target, total, skipped)))
        return chosen


def steps_left(state: SearchState) -> int:
    """Roughly how many tests are left, one at a time."""
    return max(0, (len(state.suspects) - len(state.skipped) - 1).bit_length())


def _worth(weight: int, target: int, total: int, skipped: Sequence[int]) -> float:
    """1 for a commit that splits the suspects at `target`, falling to either side, and beside skipped commits."""
    split = min(weight / target, (total - weight) / max(1, total - target))
    before = [weight - other for other in skipped if other <= weight]
    after = [other - weight for other in skipped if other > weight]
    for distances in (before, after):
        if distances:
            nearest = max(1, min(distances))
            split *= (nearest / (nearest + len(skipped))) ** 2
    return split / len(skipped) if before and after else split  # between two of them it is seldom better
