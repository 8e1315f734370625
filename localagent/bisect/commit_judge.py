"""The verdict on one commit: its tree out of git's objects, the tests over it, run as often as the question needs.

The tests are the bad commit's, carried back. Where those cannot be collected in an older tree, or test what it does
not have yet, its own version of the same tests is asked, under the name that its files had then.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from localagent.bisect.carried_tests import CarriedTests, renamed_specs
from localagent.bisect.result_cache import ResultCache
from localagent.bisect.symptom import COLLECT_PREFIX, Symptom, TreeRun
from localagent.bisect.tree_runner import RunningJails, TreeRunner
from localagent.domain.bisection import CommitJudgement, CommitVerdict, RunCounts, TestVersion
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot
from localagent.errors import AnswerIsNo
from localagent.jail.files.workspace import remove_tree
from localagent.repo.commit_history import renamed_from
from localagent.repo.commit_tree import take_commit
from localagent.repo.git import Git
from localagent.repo.snapshot import CannotCopy

_numbers = itertools.count()
_Wanting = Callable[[Sequence[CommitVerdict]], bool]


class CommitJudge:
    """Judges commits of one repository, from several threads at once."""

    def __init__(
        self, git: Git, bad: str, runner: TreeRunner, cache: ResultCache, tests: CarriedTests, scratch: Path
    ) -> None:
        self._git, self._bad = git, bad
        self._runner, self._cache, self._tests = runner, cache, tests
        self._scratch = scratch
        self._by_own: list[str] = []  # commits that only their own tests could judge

    def sample(self, commit: str, times: int, running: RunningJails) -> tuple[TreeRun, ...]:
        """So many runs of a commit with the carried tests, known ones first. AnswerIsNo where it has no tree."""
        with _Lay(self, commit) as lay:
            return self._runs(lay, TestVersion.CARRIED, lambda runs: len(runs) < times, running)[0]

    def traced(self, commit: str, running: RunningJails) -> TreeRun:
        """One run more with the carried tests that tells the files they use; a known one where there is one."""
        with _Lay(self, commit) as lay:
            key = lay.key(TestVersion.CARRIED)
            runs = self._cache.runs(key)
            found = next((run for run in runs if run.ran), None) or lay.run(TestVersion.CARRIED, running, trace=True)
            if found.ran and found not in runs and runs and found.bad == runs[0].bad:
                self._cache.keep(key, (*runs, found))
            return found

    def judge(
        self, commit: str, symptom: Symptom, running: RunningJails, *, times: int = 1, until_bad: bool = False
    ) -> CommitJudgement:
        """The verdict of so many runs, known ones first; `until_bad`: of no more after one that fails.

        Interrupted where it was cancelled; what a commit does is never an exception.
        """
        begin = time.monotonic()

        def wanting(verdicts: Sequence[CommitVerdict]) -> bool:
            if CommitVerdict.SKIP in verdicts or (until_bad and CommitVerdict.BAD in verdicts):
                return False
            return len(verdicts) < times

        with _Lay(self, commit) as lay:
            try:
                found = self._judged(lay, symptom, wanting, running)
            except CannotCopy:
                raise
            except AnswerIsNo as no:
                found = CommitJudgement(verdict=CommitVerdict.SKIP, reason=str(no))
        return replace(found, seconds=time.monotonic() - begin)

    def run_tree(self, tree: Snapshot, running: RunningJails) -> TreeRun:
        """One run of any tree with the carried tests over it, known or new."""
        key = ("tree", tree.digest, self._tests.digest)
        known = self._cache.runs(key)
        if not known:
            store = self._fresh()
            try:
                known = (self._runner.run(self._tests.laid_over(tree, store), running),)
            finally:
                remove_tree(store)
            self._cache.keep(key, known)
        return known[0]

    def tree(self, commit: str) -> Snapshot:
        """A commit's tree in a store that whoever asks removes."""
        return take_commit(self._git, commit, self._fresh())

    def _judged(self, lay: "_Lay", symptom: Symptom, wanting: _Wanting, running: RunningJails) -> CommitJudgement:
        """By the carried tests, or the commit's own where those say nothing.

        Those come first where a newer commit needed them: what it does not have yet an older one seldom has.
        """
        own_first = any(self._leads_to(lay.commit, newer) for newer in self._by_own[-3:]) and lay.own_tests()
        order = (TestVersion.OWN, TestVersion.CARRIED) if own_first else (TestVersion.CARRIED, TestVersion.OWN)
        first = self._in_version(lay, order[0], symptom, wanting, running)
        if first.verdict is not CommitVerdict.SKIP or not lay.own_tests():
            return first
        if not own_first and self._is_broken(lay):
            return first
        other = self._in_version(lay, order[1], symptom, wanting, running)
        told = replace(other if other.verdict is not CommitVerdict.SKIP else first, runs=first.runs + other.runs)
        if told.version is TestVersion.OWN and told.verdict is not CommitVerdict.SKIP:
            self._by_own.append(lay.commit)
        return told

    def _is_broken(self, lay: "_Lay") -> bool:
        """Whether tests are not collected for a file apart from them: the commit's own would find it so, too."""
        runs = self._cache.runs(lay.key(TestVersion.CARRIED))
        beside = {PurePosixPath(path).parent for path in self._tests.files}
        places = runs[-1].uncollected if runs else ()
        return any(place is not None and PurePosixPath(place).parent not in beside for place in places)

    def _leads_to(self, commit: str, newer: str) -> bool:
        return self._git.asks("merge-base", "--is-ancestor", commit, newer) is not None

    def _in_version(
        self, lay: "_Lay", version: TestVersion, symptom: Symptom, wanting: _Wanting, running: RunningJails
    ) -> CommitJudgement:
        runs, fresh = self._runs(lay, version, lambda runs: wanting([symptom.verdict(run)[0] for run in runs]), running)
        told = [symptom.verdict(run) for run in runs]
        verdicts = [verdict for verdict, _ in told]
        if CommitVerdict.SKIP in verdicts:
            verdict, reason = told[verdicts.index(CommitVerdict.SKIP)]
            return CommitJudgement(verdict=verdict, reason=reason, version=version, runs=fresh)
        counts = RunCounts(failed=verdicts.count(CommitVerdict.BAD), passed=verdicts.count(CommitVerdict.GOOD))
        deciding = CommitVerdict.BAD if counts.failed else CommitVerdict.GOOD
        verdict, reason = told[verdicts.index(deciding)]
        return CommitJudgement(verdict=verdict, reason=reason, version=version, runs=fresh, counts=counts)

    def _runs(
        self, lay: "_Lay", version: TestVersion, wanting: Callable[[Sequence[TreeRun]], bool], running: RunningJails
    ) -> tuple[tuple[TreeRun, ...], int]:
        """The runs of a commit, more of them while they are wanting, and how many are new."""
        key = lay.key(version)
        known = list(self._cache.runs(key))
        fresh = 0
        while not known or wanting(known):
            known.append(lay.run(version, running))
            fresh += 1
            self._cache.keep(key, known)
        return tuple(known), fresh

    def _fresh(self) -> Path:
        return self._scratch / f"tree-{next(_numbers)}"


class _Lay:
    """One commit's tree, laid out when it is first needed and removed at the end."""

    def __init__(self, judge: CommitJudge, commit: str) -> None:
        self._judge, self.commit = judge, commit
        self._stores: list[Path] = []
        self._tree: Snapshot | None = None
        self._carried: Snapshot | None = None
        self._names: dict[RepoPath, RepoPath] | None = None

    def __enter__(self) -> "_Lay":
        return self

    def __exit__(self, *_: object) -> None:
        for store in self._stores:
            remove_tree(store)

    def key(self, version: TestVersion) -> tuple[str, ...]:
        judge = self._judge
        if version is TestVersion.OWN:
            return ("commit", self._tree_id(), "own", *(f"{a}={b}" for a, b in self._own_names().items()))
        return ("commit", self._tree_id(), judge._tests.digest)

    def own_tests(self) -> bool:
        """Whether the commit has a version of its own of every file that is carried."""
        names = self._own_names()
        carried = self._judge._tests
        return bool(carried.files) and len(names) == len(carried.files) and not carried.same_in(self._taken())

    def run(self, version: TestVersion, running: RunningJails, *, trace: bool = False) -> TreeRun:
        runner = self._judge._runner
        if version is TestVersion.CARRIED:
            return runner.run(self._laid_over(), running, trace=trace)
        names = self._own_names()
        task = replace(runner.task, tests=renamed_specs(runner.task.tests, names))
        run = replace(runner, task=task).run(self._taken(), running)
        return replace(run, seen={_renamed(name, names): seen for name, seen in run.seen.items()})

    def _tree_id(self) -> str:
        git = self._judge._git
        prefix = git.run("rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").rstrip("\n").rstrip("/")
        out = git.asks("rev-parse", "--quiet", "--verify", f"{self.commit}:{prefix}")
        if out is None:
            raise AnswerIsNo(f"the commit {self.commit[:12]} does not hold {prefix!r}")
        return out.decode("ascii").strip()

    def _taken(self) -> Snapshot:
        if self._tree is None:
            store = self._new_store()
            self._tree = take_commit(self._judge._git, self.commit, store)
        return self._tree

    def _laid_over(self) -> Snapshot:
        if self._carried is None:
            tests, tree = self._judge._tests, self._taken()
            self._carried = tree if tests.same_in(tree) else tests.laid_over(tree, self._new_store())
        return self._carried

    def _new_store(self) -> Path:
        self._stores.append(self._judge._fresh())
        return self._stores[-1]

    def _own_names(self) -> dict[RepoPath, RepoPath]:
        """The carried files by the names that they have here; those that are not here are left out."""
        if self._names is None:
            judge, tree = self._judge, self._taken()
            self._names = {}
            for path in judge._tests.files:
                entry = tree.entries.get(path)
                older = path if entry is not None else renamed_from(judge._git, self.commit, judge._bad, path)
                if older is not None and older in tree.entries and tree.entries[older].kind is FileKind.REGULAR:
                    self._names[path] = older
        return self._names


def _renamed(name: str, names: dict[RepoPath, RepoPath]) -> str:
    """A test's id as it is called where its file has the newer name."""
    prefix = COLLECT_PREFIX if name.startswith(COLLECT_PREFIX) else ""
    path, separator, rest = name.removeprefix(prefix).partition("::")
    newer = next((new for new, old in names.items() if old == path), path)
    return f"{prefix}{newer}{separator}{rest}"
