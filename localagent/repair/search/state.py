"""What the loop is given and what it has seen."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from localagent.domain.behaviour import Behaviours, Crash
from localagent.domain.edit import Candidate, Edit
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Ambiguity, NearMiss
from localagent.ports import (
    EditMender,
    EditScorer,
    EditSpace,
    EditWriter,
    GateChain,
    Localizer,
    OnwardReader,
    Sink,
    Sources,
    TextReader,
    Verifier,
)
from localagent.repair.acceptance.confidence_model import ConfidenceModel
from localagent.repair.acceptance.ranking import RankedCandidate
from localagent.repair.acceptance.signals import Choice, Signals
from localagent.repair.ordering.ranker import Ranker
from localagent.repair.ordering.scored_edit import Open
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.search_node import SearchStep


@dataclass(slots=True)
class Parts:
    """The rooms the loop is given.

    `given` are edits that somebody has reason for. Those that make one of the `reverted` files, with only that taken
    back which broke the tests, are tried before any other; the rest while nothing passes. `beside`: where the first
    plausible candidate is to be taken, how many more are tried first all the same, to see what else would do.
    """

    verifier: Verifier
    localizer: Localizer
    space: EditSpace
    gates: GateChain
    scorer: EditScorer | None
    sink: Sink
    sources: Sources
    weights: Weights
    confidence: ConfidenceModel
    context: Callable[[RepoPath, Baseline], str]
    reader: TextReader | None = None
    writer: EditWriter | None = None
    ranker: Ranker | None = None
    onward: OnwardReader | None = None
    mender: EditMender | None = None
    given: Sequence[Edit] = ()
    reverted: Collection[tuple[RepoPath, bytes]] = frozenset()
    beside: int = 0


@dataclass(slots=True)
class State:
    """What the search has seen; the report is made from it."""

    enumerated: int = 0
    written: int = 0
    verified: int = 0
    rounds: int = 1
    numbers: int = 0
    rank_of_first: int | None = None
    denied: Counter[str] = field(default_factory=Counter)
    limits: Counter[str] = field(default_factory=Counter)
    seen: set[object] = field(default_factory=set)
    plausible: list[Candidate] = field(default_factory=list)
    rejected: dict[int, FullResult] = field(default_factory=dict)
    misses: list[tuple[float, NearMiss]] = field(default_factory=list)
    slow: list[tuple[SearchStep, Candidate]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    keys: dict[tuple[str, str], bytes | None] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    patient: set[int] = field(default_factory=set)
    undecided: tuple[Candidate, ...] = ()
    proposals: tuple[Candidate, ...] = ()
    proposed: tuple[FullResult, ...] = ()
    ambiguity: Ambiguity | None = None
    others: int = 0
    crash: Crash | None = None
    protected: dict[RepoPath, str] = field(default_factory=dict)  # why places there may not be edited
    progress: tuple[Candidate, FullResult] | None = None  # turns some of what was asked for, and breaks nothing
    doubts: tuple[str, ...] = ()  # why a person has to look at the proposals although they pass every check
    opened: dict[int, Open] = field(default_factory=dict)  # what the model was asked about, by id of the edit
    mends: bool = False  # it was, or is to be, asked how likely that mends, too
    by_hand: bool = False  # it was dropped: what it said counts no more
    awaits_order: bool = False  # the model was asked about the order, and has said nothing: who writes waits
    reading_on: bool = False  # the model is at the likeliest edits: who writes waits
    guard_seconds: float = 0.0  # spent on guard checks, beside the budget
    hardened: set[int] = field(default_factory=set)
    behaviours: Behaviours = field(default_factory=Behaviours)  # of the plausible candidates, once they were compared
    order: tuple[RankedCandidate, ...] = ()  # of them, best first
    signals: Mapping[int, Signals] = field(default_factory=dict)
    choice: Choice | None = None
    ended_early: bool = False  # the search, so that what turned some tests could be checked within the time
    parts: list[tuple[Candidate, tuple[str, ...]]] = field(default_factory=list)
