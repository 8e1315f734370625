"""What a bisection says: verdicts on commits, the first bad one, the hunks of it that matter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.paths import RepoPath


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
class CommitJudgement:
    """The verdict on a commit and why. `runs`: how often its tests ran here; 0 where all was known from before."""

    verdict: CommitVerdict
    reason: str
    version: TestVersion = TestVersion.CARRIED
    runs: int = 0
    seconds: float = 0.0


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
    """How sure the verdicts are. `failed` of `tried` runs failed at the bad commit.

    `good_runs`: passes that a commit needs to count as good; `probability`: that no bad commit passed so often by
    chance, over the whole search.
    """

    failed: int
    tried: int
    good_runs: int
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

    `reverts` takes back those of them that are parts of text files.
    """

    hunks: tuple[HunkSummary, ...]
    reverts: tuple[RevertedHunk, ...]
    total: int
    runs: int
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectResult:
    """The answer. `suspects` are newest first; `tested` counts the commits that were asked about, `runs` their runs."""

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
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
