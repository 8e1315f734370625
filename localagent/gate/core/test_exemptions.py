"""A gate whose findings in tests are let be where the policy says so: tests may write files and mention pytest.

So are addresses in the configuration of documentation, which are links for its readers.

Judges nothing itself. What is a test is said by the policy's patterns, never by the file.
"""

import re

import pathspec

from localagent.domain.gate import Allow, Decision, Finding
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Gate

_DOCUMENTATION = re.compile(r"^docs?/(?:\w+/){0,3}conf\.py$")
_LINKS = frozenset({"new-address"})
_BANDIT = re.compile(r"\bB\d{3}\b")


class InTests:
    """Another gate, milder in tests."""

    def __init__(self, gate: Gate, policy: Policy) -> None:
        self._gate = gate
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])
        self._allowed = frozenset(policy.patches.allowed_in_tests)

    @property
    def name(self) -> str:
        """The other gate's."""
        return self._gate.name

    def review(self, change: GateInput) -> Decision:
        """The other gate's decision, less what is allowed in tests. An error stays one."""
        decision = self._gate.review(change)
        if decision.answer is not Allow.DENY:
            return decision
        kept = tuple(f for f in decision.findings if not self._is_let_be(f))
        return Decision(gate=self.name, answer=Allow.DENY if kept else Allow.ALLOW, findings=kept)

    def _is_let_be(self, finding: Finding) -> bool:
        if finding.rule in _LINKS and finding.path is not None and _DOCUMENTATION.search(finding.path):
            return True  # links for readers; what would go there is judged by what it uses
        return self._is_allowed(finding) and self._is_test(finding.path)

    def _is_test(self, path: RepoPath | None) -> bool:
        return path is not None and bool(self._tests.match_file(path.replace("\n", " ").lower()))

    def _is_allowed(self, finding: Finding) -> bool:
        if finding.rule in self._allowed:
            return True
        test = _BANDIT.search(finding.message) if finding.rule == "bandit" else None
        return test is not None and test[0] in self._allowed
