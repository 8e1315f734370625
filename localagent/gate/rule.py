"""Rules of the gates that are written in code, each with the examples that prove it."""

from dataclasses import dataclass

from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.paths import RepoPath


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A change of one file. `test` is a failing test's source, `exception` the type it fails with."""

    before: str
    after: str
    path: str = "pkg/mod.py"
    test: str = ""
    exception: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A named reason to refuse. Every rule fires on its `match` examples and on none of its `not_match` ones."""

    id: str
    severity: Severity
    why: str
    match: tuple[Example, ...]
    not_match: tuple[Example, ...]

    def finding(self, path: RepoPath | None, line: int, message: str) -> Finding:
        """This rule's hit at a place."""
        return Finding(rule=self.id, severity=self.severity, path=path, line=line, message=message)


def decide(gate: str, findings: list[Finding]) -> Decision:
    """Deny if there is a finding, else allow."""
    return Decision(gate=gate, answer=Allow.DENY if findings else Allow.ALLOW, findings=tuple(findings))
