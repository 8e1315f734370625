"""What is asked of whoever makes suggestions for a change, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from localagent.domain.confidence import Confidence
from localagent.domain.edit import Patch
from localagent.domain.paths import RepoPath


class SuggestionOrigin(StrEnum):
    """Why something is suggested."""

    FAILING_TESTS = "failing-tests"
    FINDINGS = "findings"


class Finder(StrEnum):
    """Who found a suggestion, and says that its tests bear it."""

    HERE = "here"
    DAEMON = "daemon"


@dataclass(frozen=True, kw_only=True, slots=True)
class SuggestRequest:
    """A change that is about to be committed.

    `changed` are its Python files as staged. `overlay` are all files whose working bytes differ from the index, as the
    index holds them (None: not there).
    """

    repo: Path
    changed: Mapping[RepoPath, bytes]
    overlay: Mapping[RepoPath, bytes | None] = field(default_factory=dict)
    python: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """A patch against what is staged, verified in a jail; `tests` are the files whose tests bore it.

    `confidence` is None where it is not known, as with what rules repair.
    """

    origin: SuggestionOrigin
    titles: tuple[str, ...]
    patch: Patch
    tests: tuple[str, ...]
    finder: Finder = Finder.HERE
    confidence: Confidence | None = None
