"""The gates as the agent's choke point asks them: about a file's change, or a program, before it is applied or run."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from localagent.agent.agent_ports import Answer, Review
from localagent.app.agent.idle_statements import idle_statements
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.review.code_gates import findings_on
from localagent.domain.diff import ChangeKind, FileMode
from localagent.domain.gate import Allow, Decision, Finding
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.content.prompt_injection import spoken_in
from localagent.gate.instruction_gates import for_instruction, instructed
from localagent.gate.patch_gates import PatchGates
from localagent.gate.rule_catalogue import rule_texts
from localagent.repo.diff.write_diff import unified_diff
from localagent.text.visible_text import one_line

_SHOWN = 3


class GateReview:
    """`ChangeReview` by the gates of patches, as the policy's `[instruction]` has them."""

    program_name = "run.py"  # of a program, in what is said of it

    def __init__(
        self,
        policy: Policy,
        instruction: str,
        tree: SnapshotTree,
        own_packages: frozenset[str],
        assumed: frozenset[str] = frozenset(),
        planned: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._policy = policy
        self._instruction = instruction
        self._tree = tree
        self._own = own_packages
        self._assumed = assumed
        self._planned = planned
        self._rules = rule_texts(instructed(policy))

    @cached_property
    def _gates(self) -> PatchGates:
        """Made when something is to be judged, and not before the model was asked for the first time."""
        return PatchGates(instructed(self._policy))

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        """Of files as they were in the tree at the start, and as they are to be; None: no such file."""
        del before  # the tree knows
        entries = self._tree.changes(after)
        if any(e.kind is ChangeKind.DELETED and e.before_mode is FileMode.EXECUTABLE for e in entries):
            return Review(answer=Answer.DENY, reason="a program that can be started is deleted by a person only")
        own = self._own | frozenset(self._planned())  # what is to come; whether it did is asked in the end
        asked = self._gates.review(entries, everything=True, own_packages=own)
        decisions = for_instruction(asked, entries, self._instruction, self._policy, self._assumed)
        said = self._said(decisions)
        idle = [what for e in entries if e.path.is_python for what in idle_statements(e.path, e.before, e.after)]
        if said.answer is not Answer.DENY and idle:
            return Review(answer=Answer.DENY, reason=f"a statement without effect: {idle[0]}; leave it out")
        return said

    def paths_asked(self, after: Mapping[RepoPath, str | None], rules: Collection[str]) -> frozenset[RepoPath]:
        """The files of which some rules ask something that is not answered."""
        entries = self._tree.changes(after)
        asked = self._gates.review(entries, everything=True, own_packages=self._own)
        decisions = for_instruction(asked, entries, self._instruction, self._policy, self._assumed)
        found = (f for d in decisions if d.answer is not Allow.ALLOW for f in d.findings if f.rule in rules)
        return frozenset(f.path for f in found if f.path is not None)

    def shown(self, after: Mapping[RepoPath, str | None]) -> str:
        """A change as a person reads it: a unified diff against the tree at the start."""
        return unified_diff(self._tree.patch(after)).decode("utf-8", "replace")

    def of_code(self, code: str) -> Review:
        """Of a program that is to run in the jail."""
        found = findings_on(((self.program_name, code.encode("utf-8", "replace")),), self._policy)
        if not found:
            return Review(answer=Answer.ALLOW)
        return Review(answer=Answer.DENY, reason=self._told(found))

    def speaks_to_machine(self, text: str) -> str:
        """The words of a text that speak to a machine; "" where none do."""
        said = spoken_in(text.encode("utf-8", "replace"))
        return said[0] if said else ""

    def _said(self, decisions: list[Decision]) -> Review:
        open_ = [d for d in decisions if d.answer is not Allow.ALLOW]
        if not open_:
            return Review(answer=Answer.ALLOW)
        found = [f for d in open_ for f in d.findings]
        whole = all(d.findings for d in open_) and all(f.path is not None for f in found)
        paths = frozenset(f.path for f in found if f.path is not None and whole)
        firm = [f for f in found if f.rule not in self._rules or not self._rules[f.rule].asks_person]
        if firm or any(d.answer is Allow.ERROR for d in open_) or not found:
            broken = tuple(sorted({f.rule for f in firm}))
            return Review(answer=Answer.DENY, reason=self._told(tuple(firm or found)), broken=broken, paths=paths)
        return Review(answer=Answer.ASK, reason=self._told(tuple(found)), paths=paths)

    def _told(self, found: tuple[Finding, ...]) -> str:
        """What was found, where, and what to do about the first."""
        shown = "; ".join(
            f"{f.path or ''}{f':{f.line}' if f.line else ''} {one_line(f.message, 200)} [{f.rule}]".strip()
            for f in found[:_SHOWN]
        )
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        rule = self._rules.get(found[0].rule) if found else None
        return f"{shown}{more}" + (f"; what to do: {rule.remedy}" if rule is not None else "")
