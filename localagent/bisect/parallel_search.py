"""Tests commits side by side until the first bad one is found: first backwards for a good one, then between the two.

Every verdict is told as it comes. What the verdicts make needless is cancelled. One thread decides; others only judge.
"""

import concurrent.futures as cf
from collections.abc import Callable, Sequence
from typing import Protocol

from localagent.bisect.search import Bisection, SearchState
from localagent.bisect.tree_runner import RunningJails
from localagent.domain.bisection import CommitJudgement, CommitVerdict
from localagent.errors import Interrupted

Tell = Callable[[str, CommitJudgement], None]


class Judge(Protocol):
    """Judges one commit."""

    def __call__(self, commit: str, running: RunningJails) -> CommitJudgement:
        """Interrupted where `running` was cancelled."""
        ...


class ParallelSearch:
    """Runs judges on `jobs` threads. `cancel` may come from any thread."""

    def __init__(self, judge: Judge, jobs: int, tell: Tell) -> None:
        self._judge, self._jobs, self._tell = judge, jobs, tell
        self._running: dict[cf.Future[CommitJudgement], tuple[str, RunningJails]] = {}
        self._pool = cf.ThreadPoolExecutor(jobs, thread_name_prefix="bisect")
        self._cancelled = False

    def bisect(self, search: Bisection) -> SearchState:
        """The state in which no further test would tell anything."""
        while (state := search.state()).open:
            for commit in search.next_commits(self._jobs):
                self._start(commit)
            while self._running:
                commit, judgement = self._next()
                search.record(commit, judgement.verdict, judgement.counts)
                self._tell(commit, judgement)
                self._drop_needless(search.state())
        return state

    def gallop(self, chain: Sequence[str]) -> str | None:
        """The first good commit met backwards along `chain` (newest first, its first one is bad), by doubled steps."""
        step, at = 1, 0
        while at < len(chain) - 1:
            numbers = []
            for _ in range(self._jobs):
                if at < len(chain) - 1:
                    at = min(at + step, len(chain) - 1)
                    step *= 2
                    numbers.append(at)
            verdicts = self.all_of([chain[number] for number in numbers])
            for number in numbers:
                if verdicts[chain[number]].verdict is CommitVerdict.GOOD:
                    return chain[number]
        return None

    def all_of(self, commits: Sequence[str]) -> dict[str, CommitJudgement]:
        """The judgements on some commits."""
        for commit in commits:
            self._start(commit)
        found = {}
        while self._running:
            commit, judgement = self._next()
            self._tell(commit, judgement)
            found[commit] = judgement
        return found

    def cancel(self) -> None:
        """End everything that runs; whoever waits gets Interrupted."""
        self._cancelled = True
        for _, running in list(self._running.values()):
            running.cancel()

    def close(self) -> None:
        """End everything, and the threads."""
        self.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, commit: str) -> None:
        running = RunningJails()
        self._running[self._pool.submit(self._judge, commit, running)] = (commit, running)

    def _next(self) -> tuple[str, CommitJudgement]:
        """The next judgement that comes."""
        done, _ = cf.wait(self._running, return_when=cf.FIRST_COMPLETED)
        future = next(iter(done))
        commit, _running = self._running.pop(future)
        if self._cancelled:
            raise Interrupted("the bisection was cancelled")
        return commit, future.result()

    def _drop_needless(self, state: SearchState) -> None:
        """Cancel what is no suspect any more."""
        suspects = set(state.suspects)
        needless = [f for f, (commit, _) in self._running.items() if commit not in suspects or commit == state.head]
        for future in needless:
            _, running = self._running.pop(future)
            running.cancel()
            cf.wait([future])
