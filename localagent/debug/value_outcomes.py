"""What experiments with forced values showed, as a value, as sentences, and as evidence for the ranking."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from localagent.debug.forced_values import ForcedValue
from localagent.domain.outcome import Failure
from localagent.domain.task import Suspicion

PASSES_WEIGHT = 0.25


class ValueOutcome(StrEnum):
    """What became of the failing test with a value."""

    PASSES = "passes"
    MOVES = "moves"  # it fails in another way or at another place
    STAYS = "stays"  # it fails as before


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueExperiment:
    """A value that was forced, and how the test ended with it; `failure` is None where it passed."""

    forced: ForcedValue
    outcome: ValueOutcome
    failure: Failure | None

    @property
    def sentence(self) -> str:
        """Exactly what was shown."""
        forced = self.forced
        head = f"with {forced.what} at {forced.path}:{forced.line} ({forced.origin}) the test"
        if self.failure is None:
            return f"{head} passes"
        if self.outcome is ValueOutcome.STAYS:
            return f"{head} fails as before"
        first = self.failure.message.split("\n", 1)[0][:120]
        return f"{head} fails in another way: {self.failure.exception}" + (f": {first}" if first else "")


def most_telling(done: Sequence[ValueExperiment], most: int) -> list[ValueExperiment]:
    """One experiment of each statement, the one that changed most; passing tests first, by conditions before values."""
    order = list(ValueOutcome)
    best: dict[tuple[str, int], ValueExperiment] = {}
    for one in sorted(done, key=lambda one: (order.index(one.outcome), not one.forced.is_condition)):
        best.setdefault((one.forced.path, one.forced.line), one)
    return list(best.values())[:most]


def with_experiments(ranked: Sequence[Suspicion], done: Sequence[ValueExperiment]) -> tuple[Suspicion, ...]:
    """Most suspicious first: a statement whose condition, sent the other way, makes the failure go away stands higher.

    Not so for other values: the right result, forced after the fault, makes it go away as well.
    """
    passing = {
        (e.forced.path, e.forced.line): e.forced.what
        for e in done
        if e.outcome is ValueOutcome.PASSES and e.forced.is_condition
    }
    found = []
    for one in ranked:
        what = passing.get((one.path, one.line))
        score = one.score * (1 - PASSES_WEIGHT) + (PASSES_WEIGHT if what is not None else 0.0)
        why = f"{one.why}; the test passes with {what}" if what is not None else one.why
        found.append(replace(one, score=score, why=why))
    return tuple(sorted(found, key=lambda s: -s.score))
