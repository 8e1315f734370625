"""What a bisection says: verdicts on commits, the first bad one, the hunks of it that matter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.diff import TreeChange
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Differential


class CommitVerdict(StrEnum):
    """What is known of one commit, in git's terms."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"  # it cannot be judged


class BisectEnd(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    UNDECIDED = "undecided"  # any of `suspects` may be the first bad commit
    PASSES_AT_BAD = "passes-at-bad"
    FAILS_AT_GOOD = "fails-at-good"
    NO_GOOD = "no-good-commit"
    INTERRUPTED = "interrupted"


class TestVersion(StrEnum):
    """Whose version of the tests a commit was judged with."""

    __test__ = False

    CARRIED = "carried"  # the bad commit's, laid over the older tree
    OWN = "own"  # the commit's


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCounts:
    """Runs of the tests that failed in the way that is looked for, and that passed."""

    failed: int = 0
    passed: int = 0

    def __add__(self, other: "RunCounts") -> "RunCounts":
        return RunCounts(failed=self.failed + other.failed, passed=self.passed + other.passed)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitJudgement:
    """The verdict on a commit and why. `runs`: how often its tests ran here; 0 where all was known from before.

    `counts`: all its runs that said something, those from before as well.
    """

    verdict: CommitVerdict
    reason: str
    version: TestVersion = TestVersion.CARRIED
    runs: int = 0
    seconds: float = 0.0
    counts: RunCounts = field(default_factory=RunCounts)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitSummary:
    """A commit for people. `date` is the author's, ISO 8601; `files` are paths with git's status letter."""

    commit: str
    author: str
    date: str
    subject: str
    parents: tuple[str, ...]
    files: tuple[tuple[str, RepoPath], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectionConfidence:
    """How sure the answer is. `failed` of `tried` runs failed at the bad commit.

    `probability`: that the commit that was found is the first bad one, where the runs may mislead; of an open search
    that of the likeliest commit.
    """

    failed: int
    tried: int
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class HunkSummary:
    """One changed stretch of the guilty commit. `line` is the first line (1-based) in the commit's own version.

    `before` and `after` are its texts; both are "" where a whole file that is no text was changed.
    """

    path: RepoPath
    line: int
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RevertedHunk:
    """A hunk of the guilty commit, to be taken back: lines [start, end) (0-based) of `after` become `before`.

    `after` is the whole file as the commit left it.
    """

    path: RepoPath
    after: bytes
    start: int
    end: int
    before: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MinimalHunks:
    """Which of the guilty commit's changes make the tests fail on its parent. 1-minimal where `complete`.

    `hunks` are what is left of `kept` of its `total` hunks: of a Python file the tokens and statements that matter,
    with the rest of their lines as the commit has it. `changes` make them of the parent's tree. `reverts` are ways to
    take back what is text, the least first; each is of one file.
    """

    hunks: tuple[HunkSummary, ...]
    changes: tuple[TreeChange, ...]
    reverts: tuple[tuple[RevertedHunk, ...], ...]
    kept: int
    total: int
    runs: int
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectResult:
    """The answer. `suspects` are newest first; `tested` counts the commits that were asked about, `runs` their runs.

    `behaviour`: the first bad commit's functions against its parent's.
    """

    end: BisectEnd
    reason: str
    exit: int
    remedy: str = ""
    bad: str = ""
    good: tuple[str, ...] = ()
    first_bad: CommitSummary | None = None
    suspects: tuple[str, ...] = ()
    commits: int = 0
    judged: Mapping[str, CommitJudgement] = field(default_factory=dict)
    tested: int = 0
    runs: int = 0
    symptom: Mapping[str, str] = field(default_factory=dict)
    confidence: BisectionConfidence | None = None
    hunks: MinimalHunks | None = None
    behaviour: Differential | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
