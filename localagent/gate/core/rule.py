"""Rules of the gates that are written in code, each with the examples that prove it."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.gate.core.gate_input import GateInput

if TYPE_CHECKING:
    from localagent.ports import Sources


@runtime_checkable
class Protecting(Protocol):
    """A gate that can say of a place, before there is a candidate, that no repair may touch it."""

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: "Sources") -> Finding | None:
        """Why a repair may not touch a line of a file; None where this gate lets it."""
        ...


class Gate(Protocol):
    """One gate: a name, and a decision on a candidate."""

    @property
    def name(self) -> str:
        """What the gate is called in decisions."""
        ...

    def review(self, change: GateInput) -> Decision:
        """Allow or deny; raising means "could not answer"."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleExample:
    """A change of one file. `test` is a failing test's source, `exception` the type it fails with.

    `files`: so many files are changed alike. `patch` is a diff against a tree of this one file, for rules of reading.
    For patches that anybody wrote: `modes` before and after, nothing where nothing stands; `source` is another path
    before, `alias` an entry that is alike; `binary` says that it is no text. `gone`: the source `pkg/gone.py`, which is
    deleted by the same patch. `check` is a command that must exit 0, `beside` the source `pkg/rates.py`.
    """

    before: str
    after: str
    path: str = "pkg/mod.py"
    test: str = ""
    exception: str = ""
    modes: str = "100644:100644"
    source: str = ""
    binary: str = ""
    alias: str = ""
    files: str = "1"
    patch: str = ""
    gone: str = ""
    check: str = ""
    beside: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A named reason to refuse. Every rule fires on its `match` examples and on none of its `not_match` ones.

    `asks_person`: what it finds may well be right, and only a person can know.
    """

    id: str
    severity: Severity
    why: str
    remedy: str
    match: tuple[RuleExample, ...]
    not_match: tuple[RuleExample, ...]
    asks_person: bool = False

    def finding(self, path: RepoPath | None, line: int, message: str, subject: str = "") -> Finding:
        """This rule's hit at a place."""
        return Finding(rule=self.id, severity=self.severity, path=path, line=line, message=message, subject=subject)


PLAIN = "def f(x):\n    return x\n"
question = partial(Rule, severity=Severity.MEDIUM, asks_person=True)
"""A rule that asks a person."""


def became(before: str, after: str) -> RuleExample:
    """A source of the package that became another."""
    return RuleExample(before=before, after=after)


def introduced(after: str, before: str = PLAIN) -> RuleExample:
    """A source that came in the place of a plain function."""
    return RuleExample(before=before, after=after)


def inserted(code: str, head: str = "") -> RuleExample:
    """Code that came into a plain function, and what came above it."""
    return RuleExample(before=PLAIN, after=f"{head}def f(x):\n    {code}\n    return x\n")


def decide(gate: str, findings: list[Finding]) -> Decision:
    """Deny if there is a finding, else allow."""
    return Decision(gate=gate, answer=Allow.DENY if findings else Allow.ALLOW, findings=tuple(findings))
