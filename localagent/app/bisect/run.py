"""One `bisect` from request to answer: ends first, then the search, then the hunks of the commit it found.

Everything runs in jails, on private trees out of git's objects. The user's repository is only read.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.app.bisect.behaviour_change import behaviour_change
from localagent.app.bisect.bisect_parts import BisectParts, open_parts
from localagent.app.bisect.guilty import hunks_that_matter
from localagent.app.bisect.request import BisectRequest
from localagent.app.cancellation import Stop
from localagent.app.command_rules import refuse_denied
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.flakiness import FIRST_RUNS, MORE_RUNS, passes_needed
from localagent.bisect.guilty_prior import guilty_prior
from localagent.bisect.parallel_search import ParallelSearch
from localagent.bisect.search import Bisection, SearchState, steps_left
from localagent.bisect.symptom import Symptom, TreeRun, symptom_of
from localagent.bisect.tree_runner import RunningJails
from localagent.domain.bisection import (
    BisectEnd,
    BisectionConfidence,
    BisectResult,
    CommitJudgement,
    CommitVerdict,
    RunCounts,
)
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo, Interrupted, UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_private
from localagent.ports import Sink
from localagent.repo.commit_history import (
    is_shallow,
    merge_bases,
    read_bisect_log,
    read_parents,
    seconds_of,
    summary_of,
)
from localagent.repo.commit_tree import commit_of
from localagent.repo.git import Git
from localagent.text.strict_json import dump, load

_SESSION_BYTES = 4 << 20
_GALLOP_STEPS = 12
_WRONG = 0.05  # how likely an answer may be wrong because of runs that mislead
_SAID = {  # what a log says counts as so many runs: it can be wrong, too
    CommitVerdict.BAD: RunCounts(failed=4),
    CommitVerdict.GOOD: RunCounts(passed=4),
    CommitVerdict.SKIP: RunCounts(),
}


def session_path(settings: Settings, repo: Path) -> Path:
    """Where the request of the last bisection of a repository is kept."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(repo))).hexdigest()[:32]
    return settings.state_dir / "bisect" / "sessions" / f"{digest}.json"


def read_session(settings: Settings, repo: Path) -> object:
    """The record of the last bisection of a repository. UsageFault where there is none."""
    try:
        return load(read_bounded(session_path(settings, repo), _SESSION_BYTES))
    except FileNotFoundError:
        raise UsageFault(f"--resume: no bisection of {repo} was begun", remedy="begin one with --test") from None
    except (RecordDamaged, ValueError) as fault:
        raise UsageFault(f"--resume: the record of the last bisection cannot be read: {fault}") from None


def run_bisect(request: BisectRequest, settings: Settings, sink: Sink, stop: Stop | None = None) -> BisectResult:
    """The answer. UsageFault for a wrong policy, revision, interpreter or log; CannotEnforce without a sound jail."""
    policy = open_policy(settings, request.policy, request.repo).policy
    refuse_denied(request.checks, policy)
    git = Git(request.repo.resolve(), {})
    if git.asks("rev-parse", "--git-dir") is None:
        raise UsageFault(f"--repo: {request.repo} is in no git repository", remedy="name a folder of one with --repo")
    log = read_bisect_log(git, request.log) if request.log else ()
    named_bad = [commit for commit, verdict in log if verdict is CommitVerdict.BAD]
    bad = commit_of(git, request.bad or (named_bad[-1] if named_bad else "HEAD"), option="--bad")
    goods = [commit_of(git, good, option="--good") for good in request.good]
    goods += [commit for commit, verdict in log if verdict is CommitVerdict.GOOD]
    path = session_path(settings, request.repo)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, dump({**request.recorded(), "bad": bad}))
    stop = stop or Stop()
    with contextlib.ExitStack() as stack:
        parts = open_parts(request, settings, policy, git, bad, stack)
        work = _Bisecting(request=request, parts=parts, sink=sink, bad=bad, goods=tuple(dict.fromkeys(goods)))
        work.search = ParallelSearch(work.judge, request.jobs, work.tell)
        stack.callback(work.search.close)
        stack.enter_context(stop.calling(work.cancel))
        try:
            return work.run(log)
        except (KeyboardInterrupt, Interrupted):
            return work.answer(
                BisectEnd.INTERRUPTED,
                "interrupted; the repository is as it was",
                exit_code=130,
                remedy="localagent bisect --resume goes on from here",
            )


@dataclass(kw_only=True, slots=True)
class _Bisecting:
    """One bisection under way."""

    request: BisectRequest
    parts: BisectParts
    sink: Sink
    bad: str
    goods: tuple[str, ...]
    begin: float = field(default_factory=time.monotonic)
    symptom: Symptom = field(default_factory=lambda: Symptom(kinds={}))
    at_bad: RunCounts = field(default_factory=RunCounts)
    traced: TreeRun = field(default_factory=TreeRun)
    judged: dict[str, CommitJudgement] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    commits: int = 0
    bad_runs: int = 0
    bisection: Bisection | None = None
    search: ParallelSearch = field(init=False)
    ending: RunningJails = field(default_factory=RunningJails)

    def run(self, log: Sequence[tuple[str, CommitVerdict]]) -> BisectResult:
        """The whole of it."""
        self.warnings += self.parts.warnings
        if is_shallow(self.parts.git):
            self.warnings.append("this clone is shallow: what it does not hold is not searched (git fetch --unshallow)")
        no = self._measure_bad()
        if no is not None:
            return no
        self.goods = self._ancestors(self.goods)
        if not self.goods:
            chain = list(reversed(self._parents((), first_parent=True)))
            self._stage("looking for a commit at which the tests pass: 1, 3, 7, 15, ... commits back")
            good = self.search.gallop(chain)
            if good is None:
                if all(j.verdict is CommitVerdict.BAD for j in self.judged.values()):
                    return self._no_good(chain[-1])
            else:
                self.goods = (good,)
        graph = CommitGraph(parents=self._parents(self.goods, first_parent=self.request.first_parent))
        self.commits = len(graph)
        first_parent = self.request.first_parent
        prior = guilty_prior(
            self.parts.git, self.bad, self.goods, graph, self.traced,
            carried=self.parts.tests.files, first_parent=first_parent,
        )  # fmt: skip
        self.bisection = search = Bisection(graph, self.bad, prior, self.at_bad)
        for commit, verdict in log:
            if commit in graph and commit != self.bad:
                search.record(commit, verdict, _SAID[verdict])
        for commit, judgement in self.judged.items():
            if commit in graph and commit != self.bad:
                search.record(commit, judgement.verdict, judgement.counts)
        return self._searched(search)

    def judge(self, commit: str, running: RunningJails) -> CommitJudgement:
        """On a thread of the search: one run more than are known; galloping as many as make a good commit sure."""
        if self.bisection is None:
            passes = passes_needed(self.at_bad, _WRONG / _GALLOP_STEPS)
            return self.parts.judge.judge(commit, self.symptom, running, times=passes, until_bad=True)
        known = self.judged.get(commit)
        times = 1 if known is None else known.counts.failed + known.counts.passed + 1
        return self.parts.judge.judge(commit, self.symptom, running, times=times)

    def tell(self, commit: str, judgement: CommitJudgement) -> None:
        """Note a verdict and show it."""
        self._take(commit, judgement)
        likely = self.bisection.likely() if self.bisection is not None else 0
        self.sink.emit(
            Event(
                kind="judged",
                at_seconds=round(time.monotonic() - self.begin, 3),
                data={
                    "commit": commit,
                    "verdict": judgement.verdict.value,
                    "reason": judgement.reason,
                    "seconds": round(judgement.seconds, 2),
                    "number": len(self.judged),
                    "commits": self.commits,
                    "failed": self.judged[commit].counts.failed,
                    "passed": self.judged[commit].counts.passed,
                    **({"suspects": likely, "steps": steps_left(likely)} if likely else {}),
                },
            )
        )

    def cancel(self) -> None:
        """End every jail."""
        self.ending.cancel()
        self.search.cancel()

    # -- the ends

    def _measure_bad(self) -> BisectResult | None:
        """How it fails at the bad end, and how often; an answer where it does not."""
        self._stage("running the tests at the bad commit")
        runs = self.parts.judge.sample(self.bad, 1, self.ending)
        if runs[0].problem:
            raise AnswerIsNo(
                f"the tests cannot be run at the bad commit {self.bad[:12]}: {runs[0].problem}",
                remedy="name tests that run there, or the project's interpreter with --python",
            )
        self.traced = self.parts.judge.traced(self.bad, self.ending)
        runs = self.parts.judge.sample(self.bad, FIRST_RUNS, self.ending)
        if len({tuple(sorted(run.bad.items())) for run in runs}) > 1:
            runs = self.parts.judge.sample(self.bad, FIRST_RUNS + MORE_RUNS, self.ending)
        self.bad_runs = len(runs) + (self.traced not in runs)
        symptom = symptom_of(runs, any_failure=self.request.any_failure)
        if not symptom.kinds:
            return self.answer(
                BisectEnd.PASSES_AT_BAD,
                f"the tests pass at the bad commit {self.bad[:12]} ({len(runs)} of {len(runs)} runs)",
                remedy="name a commit at which they fail with --bad",
            )
        self.symptom = symptom
        verdicts = [symptom.verdict(run)[0] for run in runs]
        self.at_bad = RunCounts(failed=verdicts.count(CommitVerdict.BAD), passed=verdicts.count(CommitVerdict.GOOD))
        if self.at_bad.passed:
            self.warnings.append(
                f"the failure comes and goes: {self.at_bad.failed} of {len(runs)} runs fail at the bad commit; "
                "commits are run as often as the answer needs"
            )
        return None

    def _ancestors(self, goods: Sequence[str]) -> tuple[str, ...]:
        """Good commits that lead to the bad one: where one does not, the commits where the two part."""
        found: list[str] = []
        for good in goods:
            bases = merge_bases(self.parts.git, self.bad, good)
            if not bases:
                raise UsageFault(
                    f"--good: {good[:12]} and the bad commit {self.bad[:12]} have no common history",
                    remedy="name a commit that leads to the bad one",
                )
            if bases != (good,):
                named = ", ".join(base[:12] for base in bases)
                self.warnings.append(
                    f"{good[:12]} does not lead to the bad commit: searching from {named}, where they part"
                )
            found += bases
        if self.bad in found:
            raise UsageFault(
                f"--good: the bad commit {self.bad[:12]} leads to the good one", remedy="name an older commit as good"
            )
        return tuple(dict.fromkeys(found))

    def _parents(self, goods: Sequence[str], *, first_parent: bool) -> dict[str, tuple[str, ...]]:
        """The commits to search; those of `--since` alone."""
        git, since = self.parts.git, self.request.since
        if not since or (goods and not self.request.good and not self.request.log):
            return read_parents(git, self.bad, goods, first_parent=first_parent)
        named = git.asks("rev-parse", "--quiet", "--verify", "--end-of-options", f"{since}^{{commit}}")
        if named is not None:
            oldest = named.decode("ascii").strip()
            parents = read_parents(git, self.bad, goods, first_parent=first_parent)
            if oldest not in parents:
                raise UsageFault(f"--since: {since!r} does not lead to the bad commit", remedy="name one that does")
            older = CommitGraph(parents=parents).ancestors([oldest]) - {oldest}
            return {commit: own for commit, own in parents.items() if commit not in older}
        moment = seconds_of(git, since)
        if moment is None:
            raise UsageFault(
                f"--since: {since!r} is neither a commit nor a date in the past", remedy="write it as 2024-01-31"
            )
        return read_parents(git, self.bad, goods, first_parent=first_parent, since=moment) or {self.bad: ()}

    def _no_good(self, oldest: str) -> BisectResult:
        bound = f" (--since {self.request.since})" if self.request.since else ""
        return self.answer(
            BisectEnd.NO_GOOD,
            f"the tests fail in the same way as far back as {oldest[:12]}{bound}: no good commit is known",
            remedy="name one with --good, or an older --since",
        )

    # -- between them

    def _searched(self, search: Bisection) -> BisectResult:
        """The answer that the verdicts give, once the commit that is found was confirmed."""
        steps = steps_left(search.likely())
        self._stage(f"searching {self.commits:,} commits, about {steps} step{'s' * (steps != 1)}")
        state = self.search.bisect(search)
        for commit, judgement in self.judged.items():
            if judgement.counts.failed and judgement.counts.passed:
                told = f"{judgement.counts.failed} of {judgement.counts.failed + judgement.counts.passed} runs"
                self.warnings.append(f"{commit[:12]} fails only sometimes ({told})")
            if commit in search.graph:
                self.judged[commit] = replace(judgement, verdict=search.verdict(commit))
        if not state.found:
            return self._undecided(state)
        if not any(j.verdict is CommitVerdict.GOOD for j in self.judged.values()) and (no := self._good_fails(state)):
            return no
        return self._found(state)

    def _take(self, commit: str, judgement: CommitJudgement) -> None:
        before = self.judged.get(commit)
        runs = judgement.runs + (before.runs if before is not None else 0)
        self.judged[commit] = replace(judgement, runs=runs)

    def _good_fails(self, state: SearchState) -> BisectResult | None:
        """The answer where all tested commits are bad and so is the one that was said to be good."""
        parents = self.parts.git.run("rev-list", "-1", "--parents", state.head, "--").decode("ascii").split()[1:]
        if not parents:
            return None
        judgement = self.judge(parents[0], self.ending)
        self._take(parents[0], judgement)
        if judgement.verdict is CommitVerdict.GOOD:
            return None
        if judgement.verdict is CommitVerdict.SKIP:
            self.warnings.append(f"that {parents[0][:12]} is good was not seen: {judgement.reason}")
            return None
        if not self.goods:
            return self._no_good(parents[0])
        return self.answer(
            BisectEnd.FAILS_AT_GOOD,
            f"the tests fail in the same way at {parents[0][:12]}, which --good says is good: {judgement.reason}",
            remedy="name an older --good, or none: then one is looked for",
        )

    def _undecided(self, state: SearchState) -> BisectResult:
        reasons = [self.judged[c].reason for c in state.suspects if c in state.skipped and c in self.judged]
        common = max(set(reasons), key=reasons.count) if reasons else "skipped"
        if not state.skipped:
            return self.answer(
                BisectEnd.UNDECIDED,
                f"any of {len(state.suspects)} commits may be the first bad one: the failure comes and goes too often",
                suspects=tuple(reversed(state.suspects)),
                remedy="name tests that fail more often, or a --check that runs them several times",
            )
        untested = len(state.suspects) - len(state.skipped) - 1
        more = f", {untested} were not tried after that" if untested else ""
        return self.answer(
            BisectEnd.UNDECIDED,
            f"any of {len(state.suspects)} commits may be the first bad one: "
            f"{len(state.skipped)} of them cannot be judged ({common}){more}",
            suspects=tuple(reversed(state.suspects)),
            remedy="give tests that run there, or a --check that exits 125 only where it cannot tell",
        )

    def _found(self, state: SearchState) -> BisectResult:
        summary = summary_of(self.parts.git, state.head)
        found = self.answer(
            BisectEnd.FOUND,
            f"{state.head} is the first bad commit",
            exit_code=0,
            suspects=(state.head,),
        )
        found = replace(found, first_bad=summary)
        if not self.request.hunks or not summary.parents:
            return replace(found, first_bad=summary)
        parent = summary.parents[0]
        self._stage("reducing the commit to the hunks that matter")
        hunks, warning = hunks_that_matter(self.parts, state.head, parent, self.symptom, self.ending)
        self._stage("comparing the parent's functions with and without them")
        behaviour, why = behaviour_change(self.parts, state.head, parent, self.symptom, hunks, self.ending)
        return replace(
            found,
            hunks=hunks,
            behaviour=behaviour,
            warnings=(*found.warnings, *filter(None, (warning, why))),
            seconds=round(time.monotonic() - self.begin, 3),
        )

    def answer(
        self,
        end: BisectEnd,
        reason: str,
        *,
        remedy: str = "",
        exit_code: int = AnswerIsNo.exit_code,
        suspects: tuple[str, ...] = (),
    ) -> BisectResult:
        """The value, with all that is known by now."""
        own = sum(j.version.value == "own" for j in self.judged.values())
        notes = [f"{own} commits were judged with their own version of the tests"] if own else []
        return BisectResult(
            end=end,
            reason=reason,
            remedy=remedy,
            exit=exit_code,
            bad=self.bad,
            good=self.goods,
            suspects=suspects,
            commits=self.commits,
            judged=dict(self.judged),
            tested=1 + len([c for c in self.judged if c != self.bad]),
            runs=self.bad_runs + sum(j.runs for j in self.judged.values()),
            symptom=self.symptom.kinds,
            confidence=self._confidence(),
            seconds=round(time.monotonic() - self.begin, 3),
            warnings=tuple(dict.fromkeys((*self.warnings, *notes))),
        )

    def _confidence(self) -> BisectionConfidence | None:
        if self.bisection is None:
            return None
        return BisectionConfidence(
            failed=self.at_bad.failed,
            tried=self.at_bad.failed + self.at_bad.passed,
            probability=round(self.bisection.probability(self.bisection.state().head), 3),
        )

    def _stage(self, text: str) -> None:
        self.sink.emit(Event(kind="stage", at_seconds=round(time.monotonic() - self.begin, 3), data={"stage": text}))
