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
from localagent.gate.review.access_and_money import STAKES, stakes
from localagent.gate.review.changed_arguments import GIVEN, given
from localagent.gate.review.changed_control_flow import STEERING, steered
from localagent.gate.review.changed_thresholds import BOUND, moved
from localagent.gate.review.data_exposure import EXPOSED, exposed
from localagent.gate.review.dropped_arguments import DROPPED, dropped
from localagent.gate.review.hard_coded_answers import written_answers
from localagent.gate.review.hidden_triggers import TRIGGER, triggers
from localagent.gate.review.llm_prompt_changes import PROMPT, prompts
from localagent.gate.review.logic_rules import (
    ANSWERS,
    CHECK,
    GUARD,
    IMPORTS,
    MAGIC,
    OPAQUE,
    REPLACED,
    UNASKED,
    WIDENED,
)
from localagent.gate.review.new_imports import imports
from localagent.gate.review.new_side_effects import ACTS, acts
from localagent.gate.review.obfuscation import COMPUTED, computed, escaped
from localagent.gate.review.reduced_behaviour import NARROWED, narrowed
from localagent.gate.review.removals import TAKEN, taken
from localagent.gate.review.removed_checks import (
    checks,
    guards,
    undecorated,
    unreached,
    widened_answers,
    widened_guards,
)
from localagent.gate.review.removed_error_reporting import UNREPORTED, quieted, unreported
from localagent.gate.review.removed_limits import LIMIT, loosened_limits
from localagent.gate.review.secret_leaks import TOLD, told
from localagent.gate.review.source_change import Check, SourceChange, newly
from localagent.gate.review.suspicious_constructs import (
    magic,
    opaque,
    replaced,
    shadowed,
    unasked,
)
from localagent.gate.review.unbounded_growth import GROWTH, grows
from localagent.gate.review.weak_secrets import KEPT, kept
from localagent.gate.review.weakened_conditions import LESS, less
from localagent.gate.review.weaker_comparisons import LOOSER, looser, partial_equality

CHECKS: tuple[tuple[Rule, Check], ...] = (
    *(
        (rule, newly(signs))
        for rule, signs in (
            (MAGIC, magic), (ANSWERS, written_answers), (REPLACED, replaced), (REPLACED, shadowed), (UNASKED, unasked),
            (OPAQUE, opaque), (COMPUTED, computed), (TOLD, told), (KEPT, kept), (GROWTH, grows), (TRIGGER, triggers),
            (ACTS, acts), (EXPOSED, exposed), (UNREPORTED, quieted), (PROMPT, prompts),
        )
    ),
    (WIDENED, widened_answers), (GUARD, widened_guards), (GUARD, unreached(guards)), (CHECK, unreached(checks)),
    (LESS, less), (DROPPED, dropped), (BOUND, moved), (GIVEN, given), (LIMIT, loosened_limits), (LOOSER, looser),
    (TAKEN, taken), (STEERING, steered), (NARROWED, narrowed), (UNREPORTED, unreported), (CHECK, undecorated),
    (LESS, partial_equality), (STAKES, stakes), (COMPUTED, escaped), (IMPORTS, imports),
)  # fmt: skip


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
            yield rule.finding(file.path, int(getattr(node, "lineno", 0)), what[:140])
