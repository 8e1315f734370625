"""The gates over a patch that anybody wrote. Asked in order, cheapest first, up to the first that refuses.

A gate that only asks for a person does not end the review: who is asked must know that nothing worse stands behind it.
A file that moves between tests and sources, or becomes Python, is judged as new where it goes. What only tests
could tell (`special-case`) is asked where the patch adds or changes some. Not safe for use from several threads.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pathspec

from localagent.domain.diff import ChangeKind, TreeChange
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.gate import Allow, Decision, Finding
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.content.secrets import Secrets
from localagent.gate.content.suppressions import Excuses
from localagent.gate.content.trojan_source import Trojan
from localagent.gate.core.gate_input import Files, GateInput
from localagent.gate.core.rule import Gate
from localagent.gate.files.critical_paths import Critical
from localagent.gate.files.file_modes import Entries
from localagent.gate.files.patch_paths import PatchPaths
from localagent.gate.files.size import Size
from localagent.gate.files.syntax import Parses
from localagent.gate.overfitting.special_casing import SpecialCaseOfPatch
from localagent.gate.overfitting.test_detection import Cheating
from localagent.gate.repair_gates import ask
from localagent.gate.review.review_gate import Logic
from localagent.gate.rule_catalogue import for_a_person
from localagent.gate.security.bandit import Weakness
from localagent.gate.security.forbidden_apis import Dangerous
from localagent.gate.security.swallowed_exceptions import Swallow
from localagent.gate.tests.tamper import Tamper

# A gate whose findings in tests are let be where the policy says so: tests may write files and mention pytest.
#
# So are addresses in the configuration of documentation, which are links for its readers.
#
# Judges nothing itself. What is a test is said by the policy's patterns, never by the file.

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


NOT_ASKED = {
    SpecialCaseOfPatch.name: "the patch changes no test, so nobody can say what would answer tests by their literals"
}

_MOST_JUDGED_BYTES = 1 << 19


class PatchGates:
    """The gates that a policy asks for. CannotEnforce on creation if a tool that one needs is not there."""

    def __init__(self, policy: Policy) -> None:
        self._is_test = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
        self._is_lenient = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])
        self._person = for_a_person(policy)
        sized = replace(policy, size=policy.patches.size)
        self._gates: tuple[Gate, ...] = (
            Entries(policy),
            PatchPaths(policy),
            Size(sized),
            Critical(policy),
            Secrets(policy),
            Trojan(policy),
            InTests(Excuses(policy, in_repairs=False), policy),
            Parses(sized),
            InTests(Dangerous(policy, asks_person=False), policy),
            InTests(Dangerous(policy, asks_person=True), policy),
            Logic(policy),
            SpecialCaseOfPatch(policy),
            InTests(Swallow(policy), policy),
            InTests(Cheating(policy), policy),
            Tamper(policy),
            InTests(Weakness(policy), policy),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The gates in their order."""
        return tuple(gate.name for gate in self._gates)

    def not_applicable(self, entries: tuple[TreeChange, ...]) -> dict[str, str]:
        """The gates that have nothing to go by, and why."""
        tests = [e for e in entries if e.path.is_python and e.after_mode is not None and self._is_lenient_path(e.path)]
        return {} if tests else dict(NOT_ASKED)

    def review(
        self, entries: tuple[TreeChange, ...], *, everything: bool, own_packages: frozenset[str] = frozenset()
    ) -> list[Decision]:
        """Decisions up to the first refusal; every gate's where `everything` is wanted.

        `own_packages`: what can be imported from the tree as it stood before.
        """
        change = self._input(entries, own_packages)
        decisions: list[Decision] = []
        not_asked = self.not_applicable(entries)
        for gate in self._gates:
            if gate.name in not_asked:
                continue
            decisions.append(ask(gate, change))
            if decisions[-1].answer is Allow.ALLOW:
                continue
            if not everything and not self._asks_only(decisions[-1]):
                break
            if isinstance(gate, Size) and _bytes(change) > _MOST_JUDGED_BYTES:
                break  # so much text is refused, and not read further
            if isinstance(gate, Parses):
                change.without(frozenset(f.path for f in decisions[-1].findings if f.path is not None))
        return decisions

    def _asks_only(self, decision: Decision) -> bool:
        return decision.answer is Allow.DENY and all(f.rule in self._person for f in decision.findings)

    def _input(self, entries: tuple[TreeChange, ...], own: frozenset[str]) -> GateInput:
        parts = tuple(part for entry in entries for part in self._parts(entry))
        texts = sorted((p for p in parts if _is_text(p)), key=lambda p: p.path)
        patch = Patch(changes=tuple(FileChange(path=p.path, before=p.before, after=p.after) for p in texts))
        candidate = Candidate(number=0, patch=patch, edits=(), cost=0.0)
        sources = {p.source: p.before for p in parts}
        return GateInput(candidate, Baseline(tests=()), sources, Files(most=len(parts) + 1), parts, own)

    def _parts(self, entry: TreeChange) -> Iterator[TreeChange]:
        """The entry, or what it comes to: a copy is new, and so is what moves to where it is judged otherwise."""
        if entry.kind is ChangeKind.COPIED:
            yield replace(entry, before=b"", before_mode=None, splices=())
        elif entry.kind is ChangeKind.RENAMED and self._role(entry.source) != self._role(entry.path):
            yield replace(
                entry, path=entry.source, kind=ChangeKind.DELETED, after=b"", after_mode=None, splices=(), alias=""
            )
            yield replace(entry, kind=ChangeKind.ADDED, before=b"", before_mode=None, splices=())
        else:
            yield entry

    def _is_lenient_path(self, path: RepoPath) -> bool:
        return bool(self._is_lenient.match_file(path.replace("\n", " ").lower()))

    def _role(self, path: RepoPath) -> tuple[bool, ...]:
        collected = path.name.startswith("test_") or path.name.endswith("_test.py")
        plain = path.replace("\n", " ").lower()
        tests = (bool(self._is_test.match_file(plain)), bool(self._is_lenient.match_file(plain)))
        return (path.is_python, *tests, collected)


def _bytes(change: GateInput) -> int:
    return sum(len(file.before) + len(file.after) for file in change.changes)


def _is_text(entry: TreeChange) -> bool:
    plain = (None, "100644", "100755")
    return not entry.binary and entry.before_mode in plain and entry.after_mode in plain
