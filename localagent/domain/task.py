"""What was asked, what it may cost, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from localagent.domain.behaviour import NamedFunction
from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, Patch
from localagent.domain.guard import Guard
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Assessment


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a task may spend."""

    max_candidates: int = 500
    max_seconds: float = 300.0
    jobs: int = 1


class Choosing(StrEnum):
    """What is done with several plausible candidates, or with one that the tests cannot prove.

    `ASK`: the best is taken where something tells it apart and the tests bear it, else a person is asked. `ASSUME`: the
    best is taken all the same, and the report says what it rests on. `FIRST`: the first that passes every check is
    taken, and none is looked for beside it.
    """

    ASK = "ask"
    ASSUME = "assume"
    FIRST = "first"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One request. `repo` is the absolute real path; `tests` are pytest arguments; `checks` are shell-less commands.

    They name the goal; `guard` says what must stay beside it. `min_confidence` is asked for beside the policy's, 0 for
    nothing. `instruction`: what a daemon was instructed to do, "" for a repair.
    """

    id: str
    repo: str
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""
    python: str = ""
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    choosing: Choosing = Choosing.ASK
    guard: Guard = field(default_factory=Guard)
    min_confidence: float = 0.0
    instruction: str = ""


class FileKind(StrEnum):
    """What a tree entry is."""

    REGULAR = "regular"
    SYMLINK = "symlink"


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """One entry of a snapshot. `digest` is sha256 of a regular file's bytes; `target` a symlink's text."""

    path: RepoPath
    kind: FileKind
    mode: int
    size: int
    digest: str = ""
    target: str = ""
    ignored: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The working tree as it stood. `root` is where it is; `store` is our private copy that no test ever touches.

    `left_out` maps paths that were not copied to the reason. `digest` covers paths, kinds, modes and contents.
    """

    root: str
    store: str
    entries: Mapping[RepoPath, TreeEntry]
    digest: str
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """One ranked statement: lines [line, end_line] of `path` with its suspiciousness (higher is worse, in [0, 1])."""

    path: RepoPath
    line: int
    end_line: int
    score: float
    why: str = ""


class Stage(StrEnum):
    """The stages of a task, as shown and as timed."""

    SNAPSHOT = "snapshot"
    BASELINE = "baseline"
    LOCALIZE = "localize"
    SEARCH = "search"
    FULL = "full-check"
    GUARD = "guard"
    CHOOSE = "choose"
    STRENGTH = "strength"
    RECORD = "record"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One step of a trajectory. `data` holds JSON values only. `at_seconds` counts from the task's start."""

    kind: str
    at_seconds: float
    data: Mapping[str, Any] = field(default_factory=dict)


class Verdict(StrEnum):
    """How a task ended."""

    ACCEPTED = "accepted"
    NOTHING_TO_FIX = "nothing-to-fix"
    PROGRESS = "progress"  # a patch turns some of what was asked for and breaks nothing; the rest still fails
    GAVE_UP = "gave-up"
    NO_TESTS = "no-tests"
    UNTRUSTED_TESTS = "untrusted-tests"
    ALL_DENIED = "all-denied"
    AMBIGUOUS = "ambiguous"
    LOW_CONFIDENCE = "low-confidence"
    NEEDS_PERSON = "needs-person"
    INTERRUPTED = "interrupted"
    CANNOT_ENFORCE = "cannot-enforce"
    FAULT = "fault"


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What we believe was wrong. `kind` is syntax, runtime or logic."""

    kind: str
    symptom: str
    cause: str
    lines: tuple[str, ...]
    fix: str
    may_affect: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NearMiss:
    """A candidate that turned some tests but not all; for the give-up explanation."""

    number: int
    edits: tuple[str, ...]
    turned: tuple[str, ...]
    broken: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ambiguity:
    """An input on which proposals differ: the call, and what each answers, by its number (from 1) where it is known.

    `function` and `exact` as in `Shown`.
    """

    call: str
    answers: Mapping[int, str]
    function: NamedFunction | None = None
    exact: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class TextFinding:
    """A text of the repository that a rule of the gates names, its first words, and where it stands.

    `line` is None in what the failing test `test` said; `path` is then that test's file, None where it has none.
    """

    rule: str
    path: RepoPath | None
    line: int | None
    text: str
    test: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """Everything the loop learned; `record` turns it into the report.

    `confidence` is the accepted patch's; `confidences` are the proposals', in their order, where they are known.
    `proposed`: the proposals' full checks. `others`: how many other behaviours than the accepted patch's, of plausible
    candidates that were compared with it, pass the tests. `remedy`: what the asker can do about the answer.
    `plausible_candidates`: all that pass the tests which the quick check ran, in the order in which they were found.
    """

    verdict: Verdict
    reason: str
    exit: int
    remedy: str = ""
    patch: Patch | None = None
    chosen: Candidate | None = None
    proposals: tuple[Candidate, ...] = ()
    proposed: tuple[FullResult, ...] = ()
    confidence: Confidence | None = None
    confidences: tuple[Confidence | None, ...] = ()
    ambiguity: Ambiguity | None = None
    baseline: Baseline | None = None
    full: FullResult | None = None
    localization: tuple[Suspicion, ...] = ()
    diagnosis: Diagnosis | None = None
    enumerated: int = 0
    written: int = 0
    denied: Mapping[str, int] = field(default_factory=dict)
    verified: int = 0
    rank_of_first_plausible: int | None = None
    plausible: int = 0
    plausible_candidates: tuple[Candidate, ...] = ()
    others: int = 0
    rounds: int = 0
    near_misses: tuple[NearMiss, ...] = ()
    model_name: str | None = None
    model_digest: str | None = None
    model_weights: str | None = None
    model_tokens: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    jail_backend: str = ""
    jail_level: str = ""
    limits_hit: Mapping[str, int] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[TextFinding, ...] = ()
    warnings: tuple[str, ...] = ()
    threads: int = 0
    snapshot_digest: str = ""
    attestation: Mapping[str, str] | None = None
    assessment: Assessment | None = None
