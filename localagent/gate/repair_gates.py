"""The gates in order, cheapest first, and the chains that a policy asks for."""

from collections.abc import Collection

from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.content.secrets import Secrets
from localagent.gate.content.suppressions import Excuses
from localagent.gate.content.trojan_source import Trojan
from localagent.gate.core.chain import COULD_NOT_ANSWER, Chain, ask
from localagent.gate.files.editable_paths import Paths
from localagent.gate.files.protected_paths import Protected
from localagent.gate.files.size import Size
from localagent.gate.files.syntax import Parses
from localagent.gate.overfitting.special_casing import SpecialCase
from localagent.gate.overfitting.test_detection import Cheating
from localagent.gate.security.bandit import Weakness
from localagent.gate.security.forbidden_apis import Dangerous
from localagent.gate.security.swallowed_exceptions import Swallow
from localagent.ports import GateChain

__all__ = ["COULD_NOT_ANSWER", "Chain", "ask", "open_code_gates", "open_gate_chain"]


def open_gate_chain(policy: Policy, test_files: Collection[RepoPath]) -> GateChain:
    """The chain a policy asks for. CannotEnforce if a tool that a gate needs is not there."""
    return Chain(
        (
            Paths(policy, test_files),
            Size(policy),
            Protected(policy, test_files),
            Parses(policy),
            Dangerous(policy, asks_person=False),
            Swallow(policy),
            SpecialCase(policy),
            Weakness(policy),
            Cheating(policy),
            Secrets(policy),
            Trojan(policy),
            Excuses(policy),
        )
    )


def open_code_gates(policy: Policy) -> GateChain:
    """The gates that judge code by itself, with nothing repaired. CannotEnforce if a tool of theirs is not there."""
    return Chain((Parses(policy), Dangerous(policy, asks_person=False), Weakness(policy)))
