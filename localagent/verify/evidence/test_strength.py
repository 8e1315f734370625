"""How strong the evidence for a repair is, within a box of time: one jail, a session for each tree.

What is graded is the claim that the repair fixes what the tests ask for, and changes nothing else. Coverage of the
changed lines first, then old against new (inputs of tests and near these, none made up), then mutants until the time is
up; what was cut is said. The full check has accepted the repair by then. Not promised: the same grade
on a slower machine, where more is cut; nor that tests which write into the tree can be asked (the worker is warm and
sees it read-only).
"""

import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.claim import Claim, FunctionEffect
from localagent.domain.claim_limits import claim_limits
from localagent.domain.edit import Candidate, Patch
from localagent.domain.outcome import Baseline, FullResult, JailOutcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Grade, Limit, graded, limited
from localagent.domain.verification import Assessment, Differential, Mutants, compared_share, mutants_share
from localagent.ports import EditSpace, QuickCheck, Sources
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX
from localagent.verify.evidence.candidate_behaviour import PROGRAM_CPU_SECONDS, parsed_behaviours
from localagent.verify.evidence.candidate_behaviour import TESTS_LIMIT as BEHAVIOUR_TESTS
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.check_evidence import CheckEvidence
from localagent.verify.evidence.differential import Differ
from localagent.verify.evidence.mutants import (
    CPU_SECONDS,
    MOST,
    Key,
    MutantFate,
    alike,
    booked,
    fate_of_run,
    living,
    mutants_of,
    same_answer,
)
from localagent.verify.evidence.patch_coverage import Covered, changed_lines, covered, not_measured, nothing_covered
from localagent.verify.worker import function_regions, function_swaps
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.warm_worker import Warm
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Item, RunEnd

TESTS_LIMIT = 200
MOST_BY_CHECKS = 12  # each costs a jail of its own
_COVERAGE_SHARE, _DIFFER_SHARE = 0.4, 0.5  # of what is left when each begins
_TESTS_OF_A_MUTANT, _SECONDS_OF_A_MUTANT = 50, 1.0
_TIMES, _WALL_SECONDS, _LEAST_SECONDS = 4, 4.0, 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class AssessRequest:
    """What is measured, with what, and for how long. `request` collects as the baseline did.

    `others`: how many other behaviours are known to pass the same tests. `quick` opens a quick check of the tree before
    the patch, for mutants that cannot be put into a live program: those of functions that ran while importing.
    """

    jails: JailPool
    request: OpenRequest
    candidate: Candidate
    baseline: Baseline
    full: FullResult
    sources: Sources
    space: EditSpace
    key: Key
    seed: int
    seconds: float
    warm: Warm | None = None
    others: int = 0
    quick: Callable[[], QuickCheck] | None = None


def assess(ask: AssessRequest) -> Assessment:
    """The evidence. Interrupted where the task is; whatever else goes wrong is told in `cut`."""
    return _Assessor(ask).result()


class _Assessor:
    def __init__(self, ask: AssessRequest) -> None:
        self._ask = ask
        self._begin = time.monotonic()
        self._until = self._begin + ask.seconds
        changes = ask.candidate.patch.changes
        files = (ChangedFile(path=c.path, source=c.path, before=c.before, after=c.after) for c in changes)
        self._files = tuple(f for f in files if f.path.is_python and not f.alike())
        self._changes = {c.path: c.after for c in changes}
        self._cut: list[str] = []
        self._results: dict[str, TestResult] = {}
        self._same_answer = 0
        self._quick: QuickCheck | None = None
        self._passes_anew = False
        self._anew_seconds = 0.0  # the longest that a mutant took in a program of its own
        turned = [name for name in ask.full.fail_to_pass if name.startswith(CHECK_PREFIX)]
        self._checks = CheckEvidence(
            jails=ask.jails,
            commands=tuple(name.removeprefix(CHECK_PREFIX) for name in turned),
            pythonpath=ask.request.pythonpath,
            changes=self._changes,
        )

    def result(self) -> Assessment:
        if not self._files:
            return self._made(None, None, None)
        wanted = self._counting()
        differ = Differ(
            self._ask.jails,
            self._ask.jails,
            self._request(wanted),
            self._files,
            seed=self._ask.seed,
            home=Path(),
            share=True,
            examples=0,
        )
        try:
            with_tests = bool(self._ask.baseline.tests or self._ask.baseline.collect_failures)
            differ.open(with_tests=with_tests, warm=self._ask.warm)
            seen = self._coverage(differ, wanted)
            near = self._differential(differ, seen)
            mutants = None
            if seen.share.part:
                mutants = self._mutants(
                    seen,
                    lambda mutant: self._fate(differ, mutant),
                    lambda: bool(differ.after.lost),
                    answers=lambda alive: self._answers(differ, seen, alive),
                )
            elif self._checks.commands:
                seen, mutants = self._by_checks(seen)
        finally:
            differ.close()
            self._checks.close()
            if self._quick is not None:
                self._quick.close()
        return self._made(seen, near, mutants)

    def _made(self, seen: Covered | None, near: Differential | None, mutants: Mutants | None) -> Assessment:
        strength = None
        if seen is not None and near is not None:
            unknown = {"lines": seen.unknown} if seen.unknown else {}
            if mutants is None:
                unseen = "it is not known which tests run the changed lines"
                unknown["mutants"] = unseen if seen.unknown else "no test or check that counts runs a changed line"
            functions = compared_share(near)
            measured = graded(
                lines=seen.measured,
                mutants=mutants_share(mutants),
                functions=functions,
                unknown=unknown,
                others=self._ask.others,
            )
            by_checks = all(i.startswith(CHECK_PREFIX) for i in self._ask.full.fail_to_pass)
            # That most answers change is told by the collateral: here rivals were searched, and are weighed.
            few = tuple(c for c in near.function_changes if c.effect is not FunctionEffect.MOST_CHANGED)
            limits = claim_limits(Claim.FIXES, replace(near, function_changes=few), by_checks=by_checks)
            if self._same_answer:
                reason = f"all {self._same_answer} inputs get the same answer, as the tests do: a constant would pass"
                limits += (Limit(most=Grade.C, reason=reason),)
            strength = limited(measured, Claim.FIXES, limits)
        return Assessment(
            strength=strength,
            mutants=mutants,
            differential=near,
            same_answer=self._same_answer,
            seconds=time.monotonic() - self._begin,
            allowed_seconds=self._ask.seconds,
            cut=tuple(dict.fromkeys(self._cut)),
        )

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _counting(self) -> list[str]:
        """Tests that count and may run what changes, those that the repair turns first, then the quickest."""
        full, baseline = self._ask.full, self._ask.baseline
        turned = [i for i in full.fail_to_pass if not i.startswith((CHECK_PREFIX, COLLECT_PREFIX))]
        kept = set(full.pass_to_pass)
        found = [
            (t.seconds, t.id)
            for t in baseline.tests
            if t.id in kept
            and (t.lines is None or any(f.reached_by(t.lines.get(f.source, frozenset())) for f in self._files))
        ]
        names = [*turned, *(i for _, i in sorted(found))]
        if len(names) > TESTS_LIMIT:
            self._cut.append(f"{len(names) - TESTS_LIMIT} of {len(names)} tests that count were not asked")
        return names[:TESTS_LIMIT]

    def _request(self, wanted: Sequence[str]) -> OpenRequest:
        """Collect only files of tests that are wanted, where nobody said what to collect."""
        seconds = max(1.0, self._left())
        request = replace(self._ask.request, trace=True, cpu_seconds=seconds, wall_seconds=seconds)
        known = {t.id: t.path for t in self._ask.baseline.tests}
        paths = [known.get(name) for name in wanted]
        collected = [
            i.removeprefix(COLLECT_PREFIX) for i in self._ask.full.fail_to_pass if i.startswith(COLLECT_PREFIX)
        ]
        if request.args or not wanted or any(path is None for path in paths):
            return request
        args = tuple(dict.fromkeys((*map(str, paths), *collected)))
        return replace(request, args=args, options=(*request.options, f"--rootdir={self._ask.jails.place.repo}"))

    def _coverage(self, differ: Differ, wanted: Sequence[str]) -> Covered:
        """Run the tests that count once on the tree after, traced, each in a fork of the session."""
        after, collected = differ.after, differ.after.collected
        if after.lost or after.worker is None or collected is None:
            return not_measured(self._files, after.lost or "nothing was collected")
        if collected.unforkable:
            return not_measured(self._files, collected.unforkable)
        turned = {i.removeprefix(COLLECT_PREFIX) for i in self._ask.full.fail_to_pass if i.startswith(COLLECT_PREFIX)}
        names = dict.fromkeys((*wanted, *(i.id for i in collected.items if str(i.path) in turned)))
        items = [after.items[n] for n in names if n in after.items]
        if not items:
            return nothing_covered(self._files, "there are no tests that count")
        slowest = max((t.seconds for t in self._ask.baseline.tests if t.id in names), default=0.0)
        seconds = max(0.5, _COVERAGE_SHARE * self._left())
        try:
            differ.enter(after)
            ran = after.worker.client.run(
                RunRequest(
                    items=items,
                    session=after.session,
                    trace=True,
                    cpu_seconds=2.0 + 8 * slowest,
                    wall_seconds=seconds,
                    budget_seconds=seconds,
                )
            )
        except WorkerLost as lost:
            self._ask.jails.check()
            after.lost = str(lost)
            return not_measured(self._files, str(lost))
        self._results = {r.id: r for r in ran.results.values() if r.outcome.good}
        if len(self._results) < len(items):
            missed = len(items) - len(self._results)
            self._cut.append(f"{missed} of {len(items)} tests that count did not end well in a warm, read-only worker")
        if ran.end is RunEnd.SESSION_ENDED:
            after.lost = "a test ended the session"
        return covered(self._files, self._results.values(), collected.import_lines)

    def _differential(self, differ: Differ, seen: Covered) -> Differential:
        differ.until = time.monotonic() + max(0.0, _DIFFER_SHARE * self._left())
        baseline = self._ask.baseline
        turned = [i for i in self._ask.full.fail_to_pass if not i.startswith((CHECK_PREFIX, COLLECT_PREFIX))]
        near = differ.ask(baseline, seen.callers, turned)
        self._cut += [f"old against new: {note}" for note in near.notes]
        return near

    def _by_checks(self, seen: Covered) -> tuple[Covered, Mutants | None]:
        """The same by the commands that the repair turns, where no test that counts runs a changed line."""
        try:
            seen = self._checks.lines(self._files, seconds=max(_LEAST_SECONDS, self._left()))
        except WorkerLost as lost:
            self._lost_checks(lost)
        if not seen.share.part:
            return seen, None
        around = replace(seen, lines=self._checks.around(self._files))
        mutants = self._mutants(around, self._fate_by_checks, lambda: not self._checks.commands, MOST_BY_CHECKS)
        try:
            if self._checks.steady():
                return seen, mutants
        except WorkerLost as lost:
            self._lost_checks(lost)
        self._cut.append("mutants: the check does not pass again after they ran: nothing is known of them")
        return seen, None

    def _fate_by_checks(self, mutant: Candidate) -> MutantFate | None:
        change = mutant.patch.changes[0]
        try:
            return self._checks.fate(change.path, change.after, seconds=max(_LEAST_SECONDS, self._left()))
        except WorkerLost as lost:
            self._lost_checks(lost)
            return None

    def _lost_checks(self, lost: WorkerLost) -> None:
        self._ask.jails.check()
        self._cut.append(f"what checks notice was not measured to the end: {lost}")
        self._checks.commands = ()

    def _mutants(
        self,
        seen: Covered,
        fate_of: Callable[[Candidate], MutantFate | None],
        lost: Callable[[], bool],
        most: int = MOST,
        answers: Callable[[Sequence[Candidate]], Mapping[int, Sequence[str]]] = lambda _: {},
    ) -> Mutants:
        sources = ChainMap(dict(self._changes), dict(self._ask.sources))
        until = time.monotonic() + max(1.0, 0.3 * self._left())
        lines = changed_lines(self._files, seen)
        chosen, total = mutants_of(
            self._ask.space,
            sources,
            lines,
            self._ask.key,
            seed=self._ask.seed,
            most=most,
            until=until,
            instead=seen.lines,
        )
        if not chosen:
            return Mutants(tried=0, killed=0, space=0, note="the edit space has none for these lines")
        ran: list[tuple[Candidate, MutantFate]] = []
        unasked = 0
        for mutant in chosen:
            if self._left() <= self._anew_seconds or lost():
                break
            fate = fate_of(mutant)
            if fate is None:
                unasked += self._left() > 0
                continue
            ran.append((mutant, fate))
        note = ""
        if len(ran) < len(chosen):
            why = f", {unasked} of these could not be put into a live program" if unasked else ""
            note = f"{len(chosen) - len(ran)} of {len(chosen)} were not run in the time there was{why}"
            self._cut.append(f"mutants: {note}")
        rows = answers(living(ran))
        self._same_answer = same_answer(rows)
        return booked(ran, total, note, alike(rows))

    def _functions(self, path: RepoPath, lines: frozenset[int]) -> list[tuple[str, int, str]]:
        """The functions of the tree after that hold some lines."""
        known = function_regions.regions(self._changes[path]) if path in self._changes else None
        found = known.functions if known is not None else ()
        return [(str(path), f.line, f.name) for f in found if any(f.line <= n <= f.last_line for n in lines)]

    def _answers(self, differ: Differ, seen: Covered, alive: Sequence[Candidate]) -> Mapping[int, Sequence[str]]:
        """What the patch (0) and mutants of it answer, on inputs near those of the tests that run the mutants."""
        after = differ.after
        if after.lost or after.worker is None or after.collected is None or self._left() <= _LEAST_SECONDS:
            return {}
        planned = {m.number: function_swaps.plan(m, after.collected.import_lines) for m in alive}
        programs = {0: [], **{number: orders for number, orders in planned.items() if orders}}
        items = {
            i.id: i for path, lines in seen.lines.items() for n in lines for i in self._tests_of(path, n, after.items)
        }
        try:
            differ.enter(after)
            answer = after.worker.client.behave(
                items=list(items.values())[:BEHAVIOUR_TESTS],
                functions=[place for path, lines in seen.lines.items() for place in self._functions(path, lines)],
                programs=list(programs.values()),
                seed=self._ask.seed,
                cpu_seconds=min(PROGRAM_CPU_SECONDS, max(_LEAST_SECONDS, self._left() / len(programs))),
                session=after.session,
            )
        except WorkerLost as lost:
            self._ask.jails.check()
            after.lost = str(lost)
            return {}
        return parsed_behaviours(answer, list(programs)).rows

    def _fate(self, differ: Differ, mutant: Candidate) -> MutantFate | None:
        """What the tests make of it; None where it could not be asked, or was cut off by our time and not by its own.

        Its own limits are multiples of what the tests took without it.
        """
        after = differ.after
        assert after.worker is not None
        assert after.collected is not None
        change = mutant.patch.changes[0]
        orders = function_swaps.plan(mutant, after.collected.import_lines)
        items = self._tests_of(change.path, mutant.edits[0].line, after.items)
        if not items:
            return None
        if orders is None:
            return self._fate_anew(mutant)
        slowest = max(self._results[i.id].seconds for i in items)
        try:
            differ.enter(after)
            after.worker.workspace.write(change.path, change.after)
            ran = after.worker.client.run(
                RunRequest(
                    items=items,
                    session=after.session,
                    swap=orders,
                    stop_on_bad=True,
                    cpu_seconds=CPU_SECONDS + _TIMES * slowest,
                    wall_seconds=max(_LEAST_SECONDS, min(_WALL_SECONDS + 2 * _TIMES * slowest, self._left())),
                    budget_seconds=max(_LEAST_SECONDS, self._left()),
                )
            )
        except WorkerLost as lost:
            self._ask.jails.check()
            after.lost = str(lost)
            return None
        if ran.end is RunEnd.SESSION_ENDED:
            after.lost = "a mutant ended the session"
        outcomes = [r.outcome for r in ran.results.values()]
        return fate_of_run(outcomes, whole=len(outcomes) == len(items), in_time=self._left() > 0)

    def _fate_anew(self, mutant: Candidate) -> MutantFate | None:
        """The same in a program that begins anew, as one more candidate that has to turn what the patch turns.

        None where the patch itself does not pass there: then a mutant that fails tells nothing.
        """
        if self._ask.quick is None:
            return None
        if self._quick is None:
            self._quick = self._ask.quick()
            self._passes_anew = self._run_anew(replace(self._ask.candidate, edits=())) is MutantFate.ALIVE
        if not self._passes_anew:
            return None
        (changed,) = mutant.patch.changes
        changes = (
            replace(c, after=changed.after) if c.path == changed.path else c for c in self._ask.candidate.patch.changes
        )
        begin = time.monotonic()
        fate = self._run_anew(replace(mutant, patch=Patch(changes=tuple(changes)), edits=()))
        self._anew_seconds = max(self._anew_seconds, time.monotonic() - begin)
        return fate

    def _run_anew(self, whole: Candidate) -> MutantFate | None:
        assert self._quick is not None
        result = self._quick.check(whole, cpu_seconds=CPU_SECONDS)
        if result.ending is JailOutcome.CANCELLED:
            return None
        return fate_of_run(list(result.outcomes.values()), whole=result.complete, in_time=self._left() > 0)

    def _tests_of(self, path: RepoPath, line: int, items: dict[str, Item]) -> list[Item]:
        """Tests that run a line, quickest first, a second's worth; of a line run while importing, all of its file."""
        hits = [r for r in self._results.values() if r.lines and r.id in items]
        direct = [r for r in hits if line in (r.lines or {}).get(path, frozenset())]
        found: list[Item] = []
        left = _SECONDS_OF_A_MUTANT
        for result in sorted(direct or hits, key=lambda r: r.seconds)[:_TESTS_OF_A_MUTANT]:
            left -= result.seconds
            if found and left < 0:
                break
            found.append(items[result.id])
        return found
