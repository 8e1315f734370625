"""Findings and decisions of the gates."""

from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.paths import RepoPath


class Severity(StrEnum):
    """How bad a finding is."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Allow(StrEnum):
    """One gate's decision. ERROR (the gate could not answer) counts as deny."""

    ALLOW = "allow"
    DENY = "deny"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A named reason at a place. `subject`: what was found, as its rule calls it, for what decides by that."""

    rule: str
    severity: Severity
    path: RepoPath | None
    line: int
    message: str
    subject: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What one gate said of one candidate. A deny or error names at least one finding."""

    gate: str
    answer: Allow
    findings: tuple[Finding, ...] = ()
