"""Gates asked one after the other. The one place where "could not answer" becomes a refusal.

Stops at the first gate that does not allow. Loads no gate by itself. Not safe for use from several threads at once.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from localagent.domain.edit import Candidate
from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.gate.core.gate_input import Files, GateInput
from localagent.gate.core.rule import Gate, Protecting

if TYPE_CHECKING:
    from localagent.ports import Sources

COULD_NOT_ANSWER = "gate-error"


class Chain:
    """Runs gates one after the other over one task's candidates, keeping what it learned of their files."""

    def __init__(self, gates: Collection[Gate]) -> None:
        self._gates = tuple(gates)
        self._protecting = tuple(gate for gate in self._gates if isinstance(gate, Protecting))
        self._files = Files()

    def review(self, candidate: Candidate, baseline: Baseline, sources: "Sources") -> list[Decision]:
        """Decisions up to the first that is not allow. Every gate allowed if and only if the last one did."""
        change = GateInput(candidate, baseline, sources, self._files)
        decisions: list[Decision] = []
        for gate in self._gates:
            decisions.append(ask(gate, change))
            if decisions[-1].answer is not Allow.ALLOW:
                break
        return decisions

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: "Sources") -> Finding | None:
        """Why no repair may touch a line of a file, by the first gate that says so; None where all let it.

        A gate that cannot answer does not let it.
        """
        for gate in self._protecting:
            try:
                finding = gate.protection(path, line, baseline, sources)
            except Exception as error:  # noqa: BLE001 - any failure to answer must deny, whatever it is
                return _no_answer(gate, error)
            if finding is not None:
                return finding
        return None


def ask(gate: Gate, change: GateInput) -> Decision:
    """A gate's decision; whatever goes wrong inside it is a refusal with the reason."""
    try:
        return gate.review(change)
    except Exception as error:  # noqa: BLE001 - any failure to answer must deny, whatever it is
        return Decision(gate=gate.name, answer=Allow.ERROR, findings=(_no_answer(gate, error),))


def _no_answer(gate: Gate, error: Exception) -> Finding:
    return Finding(
        rule=COULD_NOT_ANSWER,
        severity=Severity.HIGH,
        path=None,
        line=0,
        message=f"gate {gate.name} could not answer: {type(error).__name__}: {error}",
    )
