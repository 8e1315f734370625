"""The gates on the script of a data analysis, as the agent's choke point asks them before each run."""

from localagent.agent.agent_ports import Answer, Review
from localagent.agent.tools.data_tools import SCRIPT
from localagent.app.agent.change_review import GateReview
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.domain.policy import Policy
from localagent.gate.analysis_gates import analysing, reaches_outside


class AnalysisReview(GateReview):
    """`ChangeReview` of a session that makes a script and no patch."""

    program_name = SCRIPT

    def __init__(self, policy: Policy, instruction: str, tree: SnapshotTree) -> None:
        super().__init__(analysing(policy), instruction, tree, frozenset())

    def of_code(self, code: str) -> Review:
        """Of a script that is to run in the jail, and may be run without one later."""
        for what, line in reaches_outside(code):
            told = f"line {line} of the script names {what!r}, outside of its folder"
            return Review(
                answer=Answer.DENY, reason=f"{told}: data and results lie in the working folder, by their plain names"
            )
        return super().of_code(code)
