"""Protocols between the rooms. `app` builds the concrete parts; `repair` sees only these."""

import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from localagent.domain.behaviour import Behaviours
from localagent.domain.chat import ChatFailure, ChatReply, ChatRequest
from localagent.domain.edit import Candidate, Edit, Reading, Written
from localagent.domain.gate import Decision, Finding
from localagent.domain.guard import GuardResult
from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.outcome import Baseline, Failure, FullResult, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.review import PatchApproval
from localagent.domain.task import Event, Suspicion

Sources = Mapping[RepoPath, bytes]


class Sink(Protocol):
    """Takes events: the journal, the progress line, the `--json` stream."""

    def emit(self, event: Event) -> None: ...


class Approvals(Protocol):
    """The words of persons on patches, kept by somebody who knows who asked for each."""

    def standing(self, patch: str, change: str, repo: str) -> tuple[PatchApproval, ...]:
        """Those that count for exactly this patch and change; none of whoever asked. CannotEnforce if unknown."""
        ...


class JailProcess(Protocol):
    """A running jail with a byte channel that is not stdin, stdout or stderr."""

    @property
    def channel(self) -> socket.socket:
        """Our end of a stream socket pair; the other end is open inside the jail."""
        ...

    @property
    def alive(self) -> bool: ...

    def wait(self) -> JailResult:
        """Blocks until the process ended by itself or by a limit; output is bounded."""
        ...

    def kill(self) -> JailResult:
        """Ends the whole process tree now."""
        ...


class Jail(Protocol):
    """Runs confined processes. Never raises for what the process did; CannotEnforce if no jail could be made.

    In `start`, an argv element that equals `{channel}` becomes the number of the channel's descriptor inside.
    """

    @property
    def backend(self) -> str: ...

    @property
    def level(self) -> str: ...

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult: ...

    def start(self, spec: JailSpec) -> JailProcess: ...


class Localizer(Protocol):
    """Ranks statements over all files, most suspicious first."""

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Priced:
    """Lines worth editing, with what counts besides the prior where the cheapest edits are to come first; nats.

    `dearer` is by line what an edit of it costs more than one of the best line. One of many by the same operator at the
    same line costs `crowd` times log(1 + how many of them are likelier). `late` is asked now and then while edits are
    looked for: once it says so, those found by then are all.
    """

    dearer: Mapping[int, float]
    crowd: float
    late: Callable[[], bool] = lambda: False

    def __contains__(self, line: object) -> bool:
        return line in self.dearer


Lines = frozenset[int] | Priced


class EditSpace(Protocol):
    """All edits admissible for a place, each yielding syntax that parses: best prior first within a place.

    `lines` are the base lines worth editing (None: the whole file); priced, the cheapest edits come first. `failures`
    steer operators that read messages. A file that does not parse gets the token-level space. `sources` offers the
    other files as ingredients.
    """

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]: ...


class EditScorer(Protocol):
    """Reads edits by one forward pass of the model; never raises: an edit it cannot read maps to None."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str:
        """Of the registered file."""
        ...

    @property
    def weights(self) -> str:
        """Digest of the file that was loaded: the registered one, or one made of it for this machine."""
        ...

    @property
    def tokens_used(self) -> int: ...

    @property
    def warning(self) -> str:
        """Why the model was dropped, or "" while it works."""
        ...

    def prepare(self, context: str, *, timeout_seconds: float) -> None:
        """Told before the edits are there what stands in front of their sources; what it answers never changes."""
        ...

    def read(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[Reading | None]: ...

    def close(self) -> None: ...


class EditMender(Protocol):
    """Says of edits how likely they mend what they change; never raises."""

    @property
    def mends(self) -> bool:
        """Whether it can; False costs nothing to ask."""
        ...

    def mend(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[float | None]:
        """For each edit the log-probability that somebody who mends this code departs there as it does; nats."""
        ...


class TextReader(Protocol):
    """Reads texts that begin alike; never raises."""

    def likelihoods(self, texts: Sequence[bytes], *, timeout_seconds: float) -> Sequence[float] | None:
        """For each text log P(what follows the beginning that all share), nats; None when not known."""
        ...


class ChatModel(Protocol):
    """A model that writes and calls tools, in process or behind a Unix socket; never raises for what it answers.

    One request at a time; a conversation that begins like the one before is read from where they part.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str:
        """Of the weights, or of what a server says about itself."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How long a conversation may be; None while that is not known."""
        ...

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure: ...

    def count_tokens(self, text: str) -> int | None:
        """Tokens of a text; None where the model cannot say."""
        ...

    def close(self) -> None: ...


class OnwardReader(Protocol):
    """Reads edits on: their own text and what follows it; never raises."""

    def seconds(self, source: bytes, edits: Sequence[Edit]) -> float:
        """What they may take, as fast as the model has been; infinite while nothing is known of that."""
        ...

    def read_on(self, source: bytes, edits: Sequence[Edit], *, timeout_seconds: float) -> Sequence[float | None]:
        """For each edit log P(edited) - log P(as it stood), nats; None where it was not read. The first ones first."""
        ...


class EditWriter(Protocol):
    """Edits that the model writes where the edit space has none; never raises. One thread at a time.

    Where the model is absent or dropped it has nothing to go on with, and says so by an infinite `next_cost`.
    """

    @property
    def next_cost(self) -> float:
        """What the cheapest edit still to be written may cost, comparable with the search's costs; nats."""
        ...

    @property
    def tokens_used(self) -> int: ...

    def begin(self, sources: Sources, places: Sequence[Suspicion], baseline: Baseline) -> None:
        """Plan: the places most worth a span come first. Once, before `more`."""
        ...

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        """How the tests judged an edit, written here or not. May be called while `more` is at work."""
        ...

    def more(self, *, timeout_seconds: float) -> Sequence[Written]:
        """Go on for a while, about a second; nothing may have come of it."""
        ...


class GateChain(Protocol):
    """Static decisions, cheapest first, stopping at the first that is not allow."""

    def review(self, candidate: Candidate, baseline: Baseline, sources: Sources) -> Iterable[Decision]: ...

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: Sources) -> Finding | None:
        """Why no repair may touch a line of a file, as far as the place tells; None where one may."""
        ...


class QuickCheck(Protocol):
    """Warm verification; safe to call from several threads at once (each call takes a worker)."""

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult: ...

    def close(self) -> None: ...


class Verifier(Protocol):
    """Everything that runs the repository's code."""

    def baseline(self) -> Baseline: ...

    def quick(self, baseline: Baseline, *, jobs: int) -> QuickCheck: ...

    def full(
        self, candidate: Candidate, baseline: Baseline, *, seed: int, may_fail: Collection[str] = ()
    ) -> FullResult:
        """`may_fail`: of what failed before, what may go on failing."""
        ...

    def guard(
        self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Callable[[int, int], None]
    ) -> GuardResult:
        """What the task's guard says of a candidate that the full check accepted; never raises for what tests do.

        `tell` hears now and then how many of how many tests have run.
        """
        ...

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str] | None:
        """Which of these failing tests and checks pass with some changes; None where that could not be told."""
        ...

    def behaviours(self, candidates: Sequence[Candidate], baseline: Baseline, *, seed: int) -> Behaviours:
        """What candidates (and, as number 0, the unpatched program) do on inputs near the tests'; may be empty."""
        ...

    def cancel(self) -> None: ...
