"""What the dependency guard is asked about and what it answers. Values only; `localagent.deps` decides."""

from dataclasses import dataclass
from enum import StrEnum


class DependencyVerdict(StrEnum):
    """May a distribution come in? Only ALLOWED is a yes; UNKNOWN needs a person."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Family(StrEnum):
    """How a name resembles another one."""

    HOMOGLYPH = "homoglyphs"
    SEPARATOR = "separators"
    LOOKALIKE = "look-alike characters"
    AFFIX = "an affix"
    WORD_ORDER = "swapped words"
    DISTANCE = "edit distance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    """The known name that a name resembles, and how."""

    known: str
    family: Family
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """One requirement that could be read.

    `name` is normalised (PEP 503), `shown` is as it was written, `specifier` and `marker` are PEP 440 and PEP 508
    ("" if none), `hashes` are SHA-256 in hex, `source` says where it stands.
    """

    name: str
    shown: str
    source: str
    specifier: str = ""
    marker: str = ""
    extras: tuple[str, ...] = ()
    hashes: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableRequirement:
    """A requirement that is refused before its name is judged: not PEP 508, an address, a path, an option."""

    shown: str
    source: str
    why: str
    likeness: Likeness | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """One distribution of a lock file: exact version, SHA-256 of its wheels and archives in hex.

    No `hashes`: the lock takes it from elsewhere than an index, and it lets nothing in; `folder`: where that is one.
    """

    name: str
    version: str
    hashes: frozenset[str]
    lock: str
    folder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyApproval:
    """A person let a name in. `version` "" means any; `distinct_from` is the known name it was told apart from.

    `sha256` is that of the one wheel (hex) that was approved with the version, "" where none was named.
    """

    name: str
    version: str
    reason: str
    who: str
    at: str
    policy: str
    distinct_from: str = ""
    sha256: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """The answer for one requirement: why, and the command by which a person approves ("" where none can)."""

    name: str
    shown: str
    source: str
    answer: DependencyVerdict
    why: str
    likeness: Likeness | None = None
    approve: str = ""
