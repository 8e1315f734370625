"""Every rule by its id: why it refuses, what to do, and whether a person may overrule it."""

from localagent.domain.gate import Severity
from localagent.domain.policy import Permission, Policy
from localagent.domain.review import RuleText
from localagent.gate.content import secrets, suppressions, trojan_source
from localagent.gate.core.rule import Rule
from localagent.gate.files import (
    critical_paths,
    editable_paths,
    file_modes,
    patch_paths,
    patch_rules,
    protected_paths,
    size,
    syntax,
)
from localagent.gate.overfitting import special_casing_rules, test_detection
from localagent.gate.repair_gates import COULD_NOT_ANSWER
from localagent.gate.review import review_gate
from localagent.gate.security import bandit, swallow_rules
from localagent.gate.tests import tamper_rules

# Where each rule is met: by the reader of patches, by the gates of repairs, by those of patches that anybody wrote.
WHILE_READING: tuple[Rule, ...] = patch_rules.RULES
IN_REPAIRS: tuple[Rule, ...] = (
    *(rule for rule in editable_paths.RULES if rule is not editable_paths.NOT_EDITABLE),
    *protected_paths.RULES,
    *size.RULES,
    *syntax.RULES,
    *swallow_rules.RULES,
    *special_casing_rules.RULES,
    *bandit.RULES,
    *test_detection.RULES,
    *secrets.RULES,
    *(rule for rule in trojan_source.RULES if rule is not trojan_source.NOT_UTF8),
    *suppressions.RULES,
)
IN_PATCHES: tuple[Rule, ...] = (
    *file_modes.RULES,
    editable_paths.NOT_EDITABLE,
    *patch_paths.RULES,
    *critical_paths.RULES,
    *review_gate.RULES,
    *special_casing_rules.RULES,
    *secrets.RULES,
    *trojan_source.RULES,
    *suppressions.RULES,
    *test_detection.RULES,
    *tamper_rules.RULES,
)
RULES: tuple[Rule, ...] = (
    *patch_rules.RULES,
    *file_modes.RULES,
    *editable_paths.RULES,
    *protected_paths.RULES,
    *patch_paths.RULES,
    *size.RULES,
    *critical_paths.RULES,
    *secrets.RULES,
    *trojan_source.RULES,
    *suppressions.RULES,
    *syntax.RULES,
    *swallow_rules.RULES,
    *test_detection.RULES,
    *special_casing_rules.RULES,
    *review_gate.RULES,
    *tamper_rules.RULES,
    *bandit.RULES,
)
# What these ask is what a change means, and evidence helps to answer it: no harm is done by running it in a jail first.
# (An excuse is a comment, and does nothing when it runs.)
# Whatever else asks a person (tests, configuration, dependencies, what starts programs or hides) is not run before.
OF_MEANING = frozenset(
    {
        "guard-gone", "check-gone", "condition-widened", "asks-less", "bound-moved", "call-given", "compares-looser",
        "stakes-changed", "fault-unreported", "only-taken-away", "done-less", "steering-changed", "critical-code",
        "protection-dropped", "literal-answers", "broad-except-at-times", "limit-gone", "excuse-added",
    }
)  # fmt: skip
# Ids of retired rules, with what took their place: policies, approvals and records of earlier versions name them.
RETIRED = {
    "silent-handler": "joined with `fault-unreported`",
    "waits-for-a-time": "joined with `trigger-added`",
    "endless": "joined with `grows-unbounded`",
}
DANGER_REMEDY = "do without it; where it is meant, have a person change the policy's table of dangers"
_ERROR = RuleText(
    id=COULD_NOT_ANSWER,
    severity=Severity.HIGH,
    why="a gate that cannot answer does not allow",
    remedy="the message says what went wrong; if it is not the patch's fault, report it",
    asks_person=False,
)


def own_ids() -> frozenset[str]:
    """The ids of the gates' own rules, past ones too. No danger of a policy may have one: an id must mean one thing."""
    return frozenset(rule.id for rule in RULES) | RETIRED.keys() | {COULD_NOT_ANSWER}


def for_a_person(policy: Policy) -> frozenset[str]:
    """The ids of the rules whose findings a person may let be. Of all rules with one id each must say so."""
    asks = {rule.id for rule in RULES if rule.asks_person}
    if policy.patches.weaker_tests is Permission.ALLOW:
        asks |= {rule.id for rule in tamper_rules.WEAKER}
    firm = {rule.id for rule in RULES} - asks | {COULD_NOT_ANSWER}
    firm |= {danger.id for danger in policy.dangers if not danger.asks_person}
    asks |= {danger.id for danger in policy.dangers if danger.asks_person}
    return frozenset(asks - firm)


def rule_texts(policy: Policy) -> dict[str, RuleText]:
    """Every rule that may stand in a decision under a policy, by id. A rule of the code is never told otherwise."""
    person = for_a_person(policy)
    texts = [
        RuleText(id=d.id, severity=d.severity, why=d.why, remedy=DANGER_REMEDY, asks_person=d.id in person)
        for d in reversed(policy.dangers)
    ]
    texts += [
        RuleText(
            id=r.id,
            severity=r.severity,
            why=r.why,
            remedy=r.remedy,
            asks_person=r.id in person,
            may_run=r.id in person & OF_MEANING,
        )
        for r in RULES
    ]
    return {text.id: text for text in (*texts, _ERROR)}
