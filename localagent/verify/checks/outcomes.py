"""From raw results to what a check answers: turned, broken, plausible; collection errors as outcomes of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localagent.domain.outcome import Failure, JailOutcome, Outcome, QuickResult, QuickRoute, TestResult
from localagent.text.visible_text import shortened
from localagent.verify.checks.test_selection import COLLECT_PREFIX, Targets
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item

_ENDING_OUTCOME = {JailOutcome.CPU: Outcome.TIMED_OUT, JailOutcome.WALL: Outcome.TIMED_OUT}


@dataclass(kw_only=True, slots=True)
class CandidateOutcomes:
    """What one candidate's runs showed so far."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    timed_out: bool = False

    def add(self, result: TestResult) -> None:
        """One test."""
        self.put(result.id, result.outcome, result.failure)

    def put(self, name: str, outcome: Outcome, failure: Failure | None) -> None:
        """One id."""
        self.outcomes[name] = outcome
        if failure is not None and not outcome.good:
            self.failures[name] = failure
        self.timed_out = self.timed_out or outcome is Outcome.TIMED_OUT

    def all_good(self, names: Sequence[str]) -> bool:
        """Every one of them ran and is good."""
        return all(name in self.outcomes and self.outcomes[name].good for name in names)

    def any_good(self, names: Sequence[str]) -> bool:
        """At least one is."""
        return any(name in self.outcomes and self.outcomes[name].good for name in names)


def errors_of(answer: Collected | CollectionRefused) -> Mapping[str, Failure]:
    """Collection errors by file; a refusal without named errors stands for all files."""
    return answer.errors


def file_outcomes(files: Sequence[str], answer: Collected | CollectionRefused, seen: CandidateOutcomes) -> None:
    """`collect:<path>`: error while it does not collect, then as good as the tests that are new in it."""
    errors = errors_of(answer)
    for name in files:
        path = name[len(COLLECT_PREFIX) :]
        if isinstance(answer, CollectionRefused):
            failure = errors.get(path) or next(iter(errors.values()), answer.failure)
            seen.put(name, Outcome.ERROR, failure)
        elif path in errors:
            seen.put(name, Outcome.ERROR, errors[path])
        else:
            _by_tests(name, tests_in(path, answer.items), seen)


def tests_in(path: str, items: Sequence[Item]) -> list[Item]:
    """The items of a file; all of them for a file (conftest.py) that holds no tests itself."""
    own = [item for item in items if item.path == path or item.id.split("::", 1)[0] == path]
    return own or list(items)


def _by_tests(name: str, items: Sequence[Item], seen: CandidateOutcomes) -> None:
    ran = [seen.outcomes[item.id] for item in items if item.id in seen.outcomes]
    if items and len(ran) == len(items) and all(outcome.good for outcome in ran):
        seen.put(name, Outcome.PASSED, None)
    else:
        bad = next((seen.failures[i.id] for i in items if i.id in seen.failures), None)
        seen.put(
            name, Outcome.FAILED, bad or Failure(exception="NoTests", message="collects, but its tests do not pass")
        )


def quick_result(
    seen: CandidateOutcomes,
    targets: Targets,
    passing: Sequence[str],
    *,
    route: QuickRoute,
    ending: JailOutcome = JailOutcome.EXITED,
) -> QuickResult:
    """The quick check's answer."""
    failing = (*targets.files, *targets.tests, *targets.checks)
    broken = tuple(i for i in passing if i in seen.outcomes and not seen.outcomes[i].good)
    complete = all(i in seen.outcomes for i in (*failing, *passing))
    if ending is JailOutcome.EXITED and seen.timed_out:
        ending = JailOutcome.CPU
    return QuickResult(
        outcomes=dict(seen.outcomes),
        turned=tuple(i for i in failing if i in seen.outcomes and seen.outcomes[i].good),
        broken=broken,
        complete=complete,
        plausible=complete and bool(failing) and not broken and seen.all_good(failing),
        route=route,
        ending=ending,
        failures=dict(seen.failures),
    )


def lost_result(
    seen: CandidateOutcomes, targets: Targets, *, route: QuickRoute, ending: JailOutcome, reason: str
) -> QuickResult:
    """A candidate that ended its jail: everything not seen stays bad."""
    outcome = _ENDING_OUTCOME.get(ending, Outcome.ERROR)
    failure = Failure(exception="JailEnded", message=shortened(f"{ending.value}: {reason}", 500))
    for name in (*targets.files, *targets.tests, *targets.checks):
        if name not in seen.outcomes:
            seen.put(name, outcome, failure)
            break
    shown = JailOutcome.SIGNALLED if ending is JailOutcome.EXITED else ending
    return quick_result(seen, targets, (), route=route, ending=shown)
