"""Search for the first bad commit over a commit graph where a run of the tests may mislead.

What is searched is a probability for each commit to be the first bad one. It starts with `prior` and is updated by
Bayes' rule after every run, as in noisy binary search (Burnashev and Zigangirov 1974; Karp and Kleinberg 2007); the
next run is the one that is expected to tell most of it. Where every run agrees with all others this is the binary
search of `git bisect` with a last look at its answer; where one does not, the doubtful commits are run again. Beside
commits that cannot be judged others seldom can: the nearer one is to them, the less it is worth.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.flakiness import chance_on_bad, chance_on_good
from localagent.domain.bisection import CommitVerdict, RunCounts

MOST_SKIPPED = 32  # suspects that cannot be judged: then the search is given up, with the range that is left
MOST_RUNS = 400
SETTLED = 0.975  # of a commit that was run: that is enough where it alone bounds the answer,
_RIGHT = 0.95  # and of the answer itself: a merge has many ends, each of which may have misled
_CANDIDATES = 300  # commits weighed for the next run, spread by probability
_LEAST_OF_CLASS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchState:
    """What the runs leave. `suspects`: commits that may be the first bad one, parents first; `head` is the newest.

    `skipped` are those of them that cannot be judged, `open`: whether another run would tell something, `found`:
    whether only the head is left, which was seen to be bad.
    """

    head: str
    suspects: tuple[str, ...]
    skipped: frozenset[str]
    open: bool
    found: bool


@dataclass(frozen=True, slots=True)
class _Alike:
    """Commits (bits by their number) that the runs do not tell apart.

    `each`: probability of each, not normalized. `if_bad`, `if_good`: how likely a run fails at a commit that
    is bad, and at one that is good, where one of these is the first bad one.
    """

    commits: int
    each: float
    if_bad: float
    if_good: float


class Bisection:
    """One search. `graph` holds the ancestors of `bad` that are no ancestors of a good commit, and `bad` itself.

    `prior`: how likely each commit is the first bad one against the others (1 for what is not named). `bad_runs`: what
    was seen at the bad end.
    """

    def __init__(
        self,
        graph: CommitGraph,
        bad: str,
        prior: Mapping[str, float] | None = None,
        bad_runs: RunCounts | None = None,
    ) -> None:
        self.graph, self.bad = graph, bad
        self._order = tuple(graph.parents)
        self._number = {commit: n for n, commit in enumerate(self._order)}
        self._prior: dict[float, int] = {}
        for n, commit in enumerate(self._order):
            weight = (prior or {}).get(commit, 1.0)
            self._prior[weight] = self._prior.get(weight, 0) | 1 << n
        self._runs: dict[str, RunCounts] = {bad: bad_runs or RunCounts(failed=1)}
        self._older: dict[str, int] = {bad: (1 << len(self._order)) - 1}
        self._skipped: set[str] = set()
        self._alike: list[_Alike] | None = None

    def record(self, commit: str, verdict: CommitVerdict, counts: RunCounts | None = None) -> None:
        """Take all runs of a commit; later ones replace what was taken before."""
        self._alike = None
        self._skipped.discard(commit)
        self._runs.pop(commit, None)
        if verdict is CommitVerdict.SKIP:
            self._skipped.add(commit)
            return
        if commit not in self._older:
            self._older.update(self.graph.ancestor_sets([commit]))
        self._runs[commit] = counts or RunCounts(
            failed=int(verdict is CommitVerdict.BAD), passed=int(verdict is CommitVerdict.GOOD)
        )

    def bad_probability(self, commit: str) -> float:
        """Of a commit that was run: that the first bad one is among it and its ancestors."""
        return self._share(self._older[commit])

    def probability(self, commit: str) -> float:
        """That a commit is the first bad one, by all runs so far."""
        return self._share(1 << self._number[commit])

    def likely(self) -> int:
        """The fewest commits among which the first bad one is with probability 0.95, those skipped left out."""
        skipped = sum(1 << self._number[commit] for commit in self._skipped)
        left, count = _RIGHT * self._total(), 0
        for alike in sorted(self._classes(), key=lambda alike: -alike.each):
            members = alike.commits.bit_count()
            if left <= alike.each * members:
                return max(1, count + math.ceil(left / alike.each) - (alike.commits & skipped).bit_count())
            left -= alike.each * members
            count += (alike.commits & ~skipped).bit_count()
        return max(1, count)

    def verdict(self, commit: str) -> CommitVerdict:
        """What all runs together say of a commit that was recorded."""
        if commit in self._skipped:
            return CommitVerdict.SKIP
        return CommitVerdict.BAD if self.bad_probability(commit) >= 0.5 else CommitVerdict.GOOD

    def state(self) -> SearchState:
        """What the runs leave."""
        left, head = self._left()
        suspects = tuple(self._order[n] for n in _numbers(left))
        skipped = frozenset(self._skipped.intersection(suspects))
        found = len(suspects) == 1 and suspects[0] in self._runs
        enough = len(skipped) >= MOST_SKIPPED or sum(c.failed + c.passed for c in self._runs.values()) >= MOST_RUNS
        more = not (found and self._is_right(head)) and not enough and bool(self._candidates(left))
        return SearchState(head=head, suspects=suspects, skipped=skipped, open=more, found=found)

    def next_commits(self, count: int, beside: Collection[str] = ()) -> list[str]:
        """Up to so many commits that are best run next at the same time; `beside` are being run already."""
        left, _ = self._left()
        candidates = [commit for commit in self._candidates(left) if commit not in beside]
        skipped = sorted(self._number[c] for c in self._skipped if left >> self._number[c] & 1)
        values = self._values(candidates)
        chosen: list[str] = []
        for part in range(1, count + 1):
            open_ = [commit for commit in candidates if commit not in chosen]
            if not open_:
                break
            target = part / (count + 1)

            def worth(commit: str, target: float = target) -> float:
                told, share = values[commit]
                spread = 1.0 if count == 1 else min(share / target, (1 - share) / (1 - target))
                near = 1.0 if commit in self._runs else _beside(self._number[commit], skipped)
                return max(told, 1e-12) * max(spread, 1e-6) * near

            chosen.append(max(open_, key=worth))
        return chosen

    def _left(self) -> tuple[int, str]:
        """The suspects, and the newest of them: what is older than all that surely fail, and than none that pass."""
        left, head = self._older[self.bad], self.bad
        for commit in self._runs:
            sure = self.bad_probability(commit)
            if sure >= SETTLED:
                left &= self._older[commit]
            elif sure <= 1 - SETTLED:
                left &= ~self._older[commit]
        left = left or self._likeliest()
        head = self._order[left.bit_length() - 1]
        return left, head

    def _is_right(self, head: str) -> bool:
        return self.probability(head) >= _RIGHT

    def _likeliest(self) -> int:
        best = max(self._classes(), key=lambda alike: alike.each)
        return 1 << (best.commits.bit_length() - 1)

    def _candidates(self, left: int) -> list[str]:
        """Commits whose runs may tell something: suspects not run yet, and doubtful ones that were."""
        found = {c for c in self._runs if 1 - SETTLED < self.bad_probability(c) < SETTLED}
        if not left & (left - 1) and self._order[left.bit_length() - 1] not in self._runs:
            found.add(self._order[left.bit_length() - 1])
        total = sum(alike.each * (alike.commits & left).bit_count() for alike in self._classes())
        for alike in self._classes():
            members = list(_numbers(alike.commits & left))
            share = alike.each * len(members) / total if total else 0.0
            most = max(_LEAST_OF_CLASS, round(_CANDIDATES * share))
            step = max(1, len(members) // most)
            found |= {self._order[n] for n in (*members[::step], *members[-1:])}
        newest = self._order[left.bit_length() - 1]
        if not left & (left - 1) and newest in self._runs and not self._is_right(newest):
            return sorted(set(self._runs) - self._skipped, key=self._number.__getitem__)
        known = {c for c in found if c in self._runs and not 1 - SETTLED < self.bad_probability(c) < SETTLED}
        found -= known | self._skipped
        if newest != self.bad and newest not in self._runs and newest not in self._skipped:
            found.add(newest)
        return sorted(found, key=self._number.__getitem__)

    def _values(self, commits: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Of each commit: bits that its next run is expected to tell of the first bad one, and how likely it is bad."""
        classes, total = self._classes(), self._total()
        sets = {c: self._older[c] for c in commits if c in self._older}
        sets.update(self.graph.ancestor_sets([c for c in commits if c not in sets]))
        found = {}
        for commit, older in sets.items():
            fails = noise = bad = 0.0
            for alike in classes:
                inside = (alike.commits & older).bit_count() * alike.each / total
                outside = alike.commits.bit_count() * alike.each / total - inside
                bad += inside
                fails += inside * alike.if_bad + outside * alike.if_good
                noise += inside * _entropy(alike.if_bad) + outside * _entropy(alike.if_good)
            found[commit] = (_entropy(fails) - noise, min(1.0, bad))
        return found

    def _share(self, commits: int) -> float:
        return sum(alike.each * (alike.commits & commits).bit_count() for alike in self._classes()) / self._total()

    def _total(self) -> float:
        return sum(alike.each * alike.commits.bit_count() for alike in self._classes())

    def _classes(self) -> list[_Alike]:
        if self._alike is None:
            parts = [(commits, weight, RunCounts(), RunCounts()) for weight, commits in self._prior.items()]
            for commit, counts in self._runs.items():
                older, split = self._older[commit], []
                for commits, weight, on_bad, on_good in parts:
                    if inside := commits & older:
                        split.append((inside, weight, on_bad + counts, on_good))
                    if outside := commits & ~older:
                        split.append((outside, weight, on_bad, on_good + counts))
                parts = split
            self._alike = [
                _Alike(
                    commits,
                    weight * chance_on_bad(on_bad) * chance_on_good(on_good),
                    chance_on_bad(on_bad + RunCounts(failed=1)) / chance_on_bad(on_bad),
                    chance_on_good(on_good + RunCounts(failed=1)) / chance_on_good(on_good),
                )
                for commits, weight, on_bad, on_good in parts
            ]
        return self._alike


def steps_left(commits: int) -> int:
    """Roughly how many tests are left, one at a time, until one of so many commits is found."""
    return max(0, (commits - 1).bit_length())


def _numbers(commits: int) -> list[int]:
    """The numbers of the bits that are set, from the lowest."""
    text = bin(commits)[:1:-1]
    found, at = [], text.find("1")
    while at >= 0:
        found.append(at)
        at = text.find("1", at + 1)
    return found


def _entropy(p: float) -> float:
    return 0.0 if p <= 0.0 or p >= 1.0 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def _beside(number: int, skipped: Sequence[int]) -> float:
    """What a commit is worth beside those that cannot be judged: 1 far from all, least between two."""
    before = [number - other for other in skipped if other <= number]
    after = [other - number for other in skipped if other > number]
    worth = 1.0
    for distances in (before, after):
        if distances:
            nearest = max(1, min(distances))
            worth *= (nearest / (nearest + len(skipped))) ** 2
    return worth / len(skipped) if before and after else worth
