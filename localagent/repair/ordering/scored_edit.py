"""What the model was asked about an edit and has told, and what the edit costs by that."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from localagent.domain.edit import Candidate, Reading
from localagent.repair.ordering.weights import Weights, mended_value
from localagent.repair.search.search_node import SearchStep

_IN_CHOICE = 0.5  # of what the model says, in the choice; set by hand on development cases


@dataclass(kw_only=True, slots=True)
class Open:
    """An open edit without the model (`step`, the learned order's `bare_gain` taken off), and what was told of it.

    `crowd` and `suspicion` are those of its line; `gain` is what the learned order takes off by now. An heir is the
    same edit of a program that is almost the same: what is told of its elder is told of it (`inherited`).
    """

    step: SearchStep
    crowd: int
    suspicion: float
    gain: float
    bare_gain: float
    reading: Reading | None = None
    nats: float | None = None
    read_on: float = 0.0  # what was added when it was read on with others (`onward`)
    heir: bool = False
    heirs: list["Open"] = field(default_factory=list)

    def inherit(self, elder: "Open") -> None:
        """Be an heir from now on, of what was told and of what will be."""
        self.heir = True
        self.reading, self.nats = elder.reading, elder.nats
        self.gain = self.gain if elder.reading is None else elder.gain
        self.read_on = elder.read_on
        elder.heirs.append(self)

    def record(self, answer: Reading | float | None) -> None:
        """What was told of it, and so of its heirs."""
        if isinstance(answer, Reading):
            self.reading = answer
        elif answer is not None:
            self.nats = answer
        for heir in self.heirs:
            heir.record(answer)

    def gained(self, gain: float) -> None:
        """What the learned order takes off by now, also of its heirs."""
        self.gain = gain
        for heir in self.heirs:
            heir.gained(gain)

    def moved(self, read_on: float) -> None:
        """What reading on adds by now, also to its heirs."""
        self.read_on = read_on
        for heir in self.heirs:
            heir.moved(read_on)

    def line(self) -> Iterator["Open"]:
        """It, and its heirs."""
        yield self
        for heir in self.heirs:
            yield from heir.line()

    @property
    def score(self) -> float | None:
        """What the first pass said; None while it said nothing."""
        return None if self.reading is None else self.reading.score

    def cost(self, weights: Weights, *, score: float, mended: float) -> float:
        """By a score and what mending adds."""
        return self.step.cost + self.bare_gain - self.gain - weights.model * score - mended + self.read_on

    def priced(self, weights: Weights, *, mends: bool) -> SearchStep:
        """The step as it costs by what was told; `mends` says whether the model mends in this task."""
        score, mended = self.score, mended_value(self.nats, weights) if mends else 0.0
        cost = self.cost(weights, score=weights.unscored if score is None else score, mended=mended)
        return SearchStep(parent=self.step.parent, edit=self.step.edit, cost=cost, model_score=score)


def repriced(
    candidates: Sequence[Candidate], opened: Mapping[int, Open], weights: Weights, *, mends: bool, by_hand: bool
) -> list[Candidate]:
    """Candidates with costs that can be compared, whether they ran before or after the model had spoken of them.

    `opened` are the edits that it was asked about, by id. Of what it has not spoken of by now, a candidate has the mean
    of those among `candidates` of which it has. Its answers, to one token of each, count half of what they do in the
    order, where they only say what is tried first. `by_hand`: they count no more.
    """
    found = [_of(c, opened) for c in candidates]
    known = [each for each in found if each is not None]
    score = _mean((each.score for each in known), weights.unscored)
    nats = _mean((each.nats for each in known), weights.unmended)
    out = []
    for c, each in zip(candidates, found, strict=True):
        if each is None:
            out.append(c)
        elif by_hand:
            out.append(replace(c, cost=each.step.cost))
        else:
            said = mended_value(nats if each.nats is None else each.nats, weights) if mends else 0.0
            whole = each.cost(weights, score=score if each.score is None else each.score, mended=said)
            out.append(replace(c, cost=(1 - _IN_CHOICE) * each.step.cost + _IN_CHOICE * whole))
    return out


def _of(candidate: Candidate, opened: Mapping[int, Open]) -> Open | None:
    """What was told of its last edit, where that stands on the program that was asked about: a joined one does not."""
    each = opened.get(id(candidate.edits[-1]))
    return each if each is not None and each.step.parent.edits == candidate.edits[:-1] else None


def _mean(told: Iterable[float | None], otherwise: float) -> float:
    known = [value for value in told if value is not None]
    return fmean(known) if known else otherwise
