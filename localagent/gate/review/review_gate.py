"""Gate: what a change means where nothing in it is dangerous by name: doors, lost checks, written answers.

These are signs and no proofs, so each asks a person, and tests are let be. A sign that stood in the same function, or
stood anywhere in the same words, is not new: code may move within its file, but one sign makes up for no other. Not
seen: meaning that needs values, other files, or what is called.
"""

from collections.abc import Iterator

import pathspec

from localagent.code.regions import DoesNotParse
from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, decide
from localagent.gate.review import (
    access_and_money,
    built_queries,
    changed_arguments,
    changed_control_flow,
    changed_thresholds,
    data_exposure,
    dropped_arguments,
    hard_coded_answers,
    hidden_triggers,
    implicit_calls,
    llm_prompt_changes,
    magic_values,
    new_imports,
    new_side_effects,
    obfuscation,
    opaque_texts,
    reduced_behaviour,
    removals,
    removed_checks,
    removed_error_reporting,
    removed_limits,
    replaced_methods,
    secret_leaks,
    unbounded_growth,
    weak_secrets,
    weakened_conditions,
    weaker_comparisons,
)
from localagent.gate.review.source_change import NEW, Check, SourceChange
from localagent.text.visible_text import shortened

CHECKS: tuple[tuple[Rule, Check], ...] = tuple(
    pair
    for module in (
        removed_checks, weakened_conditions, weaker_comparisons, dropped_arguments, changed_thresholds,
        changed_arguments, magic_values, hard_coded_answers, replaced_methods, implicit_calls, new_imports,
        unbounded_growth, removed_limits, opaque_texts, obfuscation, secret_leaks, weak_secrets, access_and_money,
        hidden_triggers, new_side_effects, data_exposure, built_queries, removed_error_reporting,
        llm_prompt_changes, removals, reduced_behaviour, changed_control_flow,
    )
    for pair in module.CHECKS
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(dict.fromkeys(rule for rule, _ in CHECKS))


class Logic:
    """Asks a person where a change takes a check away, or brings what only its author would know."""

    name = "logic"

    def __init__(self, policy: Policy) -> None:
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])

    def review(self, change: GateInput) -> Decision:
        """Deny if a sign stands more often than before, or a check less often."""
        found: list[Finding] = []
        own = {part.removesuffix(".py") for file in change.changes for part in file.path.split("/")}
        own |= change.own_packages
        for file in change.sources_changed:
            if not self._tests.match_file(file.path.replace("\n", " ").lower()):
                found += reviewed(file, frozenset(own))
        return decide(self.name, found)


def reviewed(file: FileChange, own: frozenset[str]) -> Iterator[Finding]:
    """The signs that one source brings; `own` are the packages that it may import without a question."""
    try:
        change = SourceChange(file, own)
    except DoesNotParse:
        return  # refused by another gate
    for rule, check in CHECKS:
        for what, node in check(change):
            line = int(getattr(node, "lineno", 0))
            yield rule.finding(file.path, line, shortened(what, 140), what.removeprefix(NEW))
