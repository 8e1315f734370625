"""Stage 2 of the hook: suggestions for what is staged, verified in the jail by the tests that have to do with it.

Two kinds: an edit that turns related tests that fail, found by a daemon where there is one, else here by the repair
loop without a model; and repairs of findings that are never made without asking, and of what ruff and bandit find and
do not repair themselves, where a test that passes runs their lines. Nothing is applied. Not promised: that either is
found in the time; suggestions for what none of our rules finds as well.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

from localagent.app.cancellation import Stop
from localagent.app.fix.suggest import search
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.review.patch_tests import (
    ProofRequest,
    Prover,
    TestedSnapshot,
    Tree,
    open_test_runner,
    open_tree,
)
from localagent.app.settings import Settings
from localagent.code.related_tests import related_tests
from localagent.domain.edit import FileChange
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.suggestion import Finder, Suggestion, SuggestionOrigin, SuggestRequest
from localagent.domain.task import Event
from localagent.errors import CannotEnforce, LocalagentError
from localagent.lint.engine import choose, find
from localagent.lint.equivalents import PERSON, rules_for
from localagent.lint.file_view import CannotReadError, view_of
from localagent.lint.lint_rule import FixGrade
from localagent.ports import Jail, Sink
from localagent.precommit.daemon_suggest import SHARE, AtDaemon, NoRepair
from localagent.precommit.fix_files import Gates
from localagent.precommit.sarif_fixes import FindingState, RemediationWork
from localagent.precommit.tool_config import ToolConfig, tool_config
from localagent.report import repair_reasons
from localagent.report.sarif_input import Reported
from localagent.verify.checks.static_tools import Silence

MOST_TESTS = 8
LEAST_LINT_SECONDS = 0.5  # below that a tool does not even start


class LocalSuggester:
    """Suggestions made in this process, with a daemon beside it where `daemon` names one. `stop` ends its jails.

    Each is yielded as soon as it is verified; whoever asks may stop at any time.
    """

    def __init__(
        self, settings: Settings, policy: Path | None, sink: Sink, stop: Stop, daemon: Path | None = None
    ) -> None:
        self._settings = settings
        self._named = policy
        self._sink = sink
        self._stop = stop
        self._daemon = daemon

    def suggest(self, request: SuggestRequest, left: Callable[[], float]) -> Iterator[Suggestion]:
        """CannotEnforce without a sound jail, AnswerIsNo where tests cannot be run; nothing where none is related."""
        if not request.changed:
            return
        policy = open_policy(self._settings, self._named, request.repo).policy
        asked = ProofRequest(
            repo=request.repo, python=request.python, max_seconds=max(0.1, left()), overlay=request.overlay
        )
        jail = self._jail(asked, policy)

        def related(sources: Mapping[RepoPath, bytes]) -> tuple[str, ...]:
            return related_tests(request.changed.keys(), sources, most=MOST_TESTS)

        with open_tree(asked, self._settings, related) as tree:
            if not tree.task.tests:
                self._remark("no test is related to it")
                return
            far = AtDaemon(self._daemon, tree, SHARE * max(0.0, left())) if self._daemon is not None else None
            try:
                yield from self._found(request, tree, far, jail, policy, left)
            except (LocalagentError, KeyboardInterrupt):
                if far is not None:
                    far.drop()
                raise

    def _found(
        self,
        request: SuggestRequest,
        tree: Tree,
        far: AtDaemon | None,
        jail: Jail | CannotEnforce,
        policy: Policy,
        left: Callable[[], float],
    ) -> Iterator[Suggestion]:
        """What comes of a tree with related tests. The daemon works while the baseline is made here."""
        if isinstance(jail, CannotEnforce):
            found = self._afar(far, tree, Baseline(tests=()), policy)
            if found is None:
                raise jail
            yield found
            self._remark(f"only the daemon was asked: {jail}")
            return
        with open_test_runner(tree, jail, self._settings, policy, self._sink, self._stop) as ground:
            baseline = ground.verifier.baseline()
            if not baseline.failing and baseline.causes:
                self._remark(repair_reasons.not_searched(baseline.causes))
            if not baseline.failing and far is not None:
                far.drop()
            elif baseline.failing and (found := self._afar(far, tree, baseline, policy)) is not None:
                yield found
            elif baseline.failing:
                yield from self._turned(ground, baseline, policy, left)
            yield from self._repairs(request, ground, baseline, policy, left)

    def _jail(self, asked: ProofRequest, policy: Policy) -> Jail | CannotEnforce:
        """Without one only a daemon can help, which has its own."""
        try:
            return open_policy_jail(self._settings, policy, asked.backend)
        except CannotEnforce as none:
            if self._daemon is None:
                raise
            return none

    def _afar(self, far: AtDaemon | None, tree: Tree, baseline: Baseline, policy: Policy) -> Suggestion | None:
        """The daemon's repair of what fails; without one it is said why, and it is looked for here."""
        if far is None:
            return None
        try:
            patch = far.repair(baseline, policy)
        except NoRepair as no:
            self._remark(str(no))
            return None
        titles = tuple(f"{change.path}:{_first_line(change)}" for change in patch.changes)
        return Suggestion(
            origin=SuggestionOrigin.FAILING_TESTS,
            titles=titles,
            patch=patch,
            tests=tree.task.tests,
            finder=Finder.DAEMON,
            confidence=far.confidence,
        )

    def _turned(
        self, ground: TestedSnapshot, baseline: Baseline, policy: Policy, left: Callable[[], float]
    ) -> Iterator[Suggestion]:
        """A repair of what fails, found here."""
        found = search(ground, baseline, self._settings, policy, self._sink, left)
        if found is not None:
            yield found

    def _remark(self, text: str) -> None:
        self._sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": text}))

    def _repairs(
        self,
        request: SuggestRequest,
        ground: TestedSnapshot,
        baseline: Baseline,
        policy: Policy,
        left: Callable[[], float],
    ) -> Iterator[Suggestion]:
        """Repairs of findings that tests vouch for, as one patch."""
        if not baseline.passing:
            return
        config = tool_config(request.repo)
        reported = [*_reported(request.changed, config), *self._linted(request, ground, config, left)]
        if not reported:
            return
        prover = Prover(ground, baseline)
        gates = Gates(lambda: policy, whole=True)
        work = RemediationWork(
            request.changed.__getitem__,
            gates,
            lambda: nullcontext(prover),
            suggestions=False,
            longest_line=config.longest_line,
        )
        done = work.remediate(reported)
        if done.patch.changes:
            fixed = [f for f in done.findings if f.state is FindingState.FIXED]
            titles = dict.fromkeys(f"{f.reported.path}:{f.reported.line} {f.why}" for f in fixed)
            yield Suggestion(
                origin=SuggestionOrigin.FINDINGS, titles=tuple(titles), patch=done.patch, tests=ground.task.tests
            )

    def _linted(
        self, request: SuggestRequest, ground: TestedSnapshot, config: ToolConfig, left: Callable[[], float]
    ) -> Iterator[Reported]:
        """What ruff and bandit find and do not repair, as far as a rule of ours may; while there is time."""
        for tool in ("ruff", "bandit"):
            if left() < LEAST_LINT_SECONDS:
                return
            found = ground.verifier.lint(tool, sorted(request.changed), {}, seconds=left())
            if isinstance(found, Silence):
                self._remark(found.why)
                continue
            for n, one in enumerate(found):
                ours = rules_for(tool, one.rule) or ()
                kept = [name for name in ours if name not in config.at(one.path)]
                if kept and not one.fixable and not set(ours) & set(PERSON):
                    yield Reported(
                        run=0,
                        number=n,
                        tool=tool,
                        rule=one.rule,
                        message=one.message,
                        path=one.path,
                        line=one.line,
                        end_line=one.end_line,
                        column=one.column,
                    )


def _first_line(change: FileChange) -> int:
    """The first line that a change touches."""
    before, after = change.before.splitlines(), change.after.splitlines()
    same = (n for n, (one, other) in enumerate(zip(before, after, strict=False), 1) if one != other)
    return next(same, min(len(before), len(after)) + 1)


def _reported(changed: Mapping[RepoPath, bytes], config: ToolConfig) -> list[Reported]:
    """Findings whose repair is never made without asking, and is no claim that only a person can make."""
    found: list[Reported] = []
    for path, data in sorted(changed.items()):
        try:
            view = view_of(data, path.name)
        except CannotReadError:
            continue  # the check itself says so
        for finding in find(view, choose(ignore=sorted(config.at(path)))):
            if finding.cuts and finding.grade is FixGrade.SUGGESTION and finding.rule not in PERSON:
                found.append(
                    Reported(
                        run=0,
                        number=len(found),
                        tool="localagent",
                        rule=finding.rule,
                        message=finding.message,
                        path=path,
                        line=finding.line,
                        end_line=finding.line,
                        column=finding.column + 1,
                    )
                )
    return found
