"""Every rule by its id: why it refuses, what to do, and whether a person may overrule it."""

from localagent.domain.gate import Severity
from localagent.domain.policy import Policy
from localagent.domain.review import RuleText
from localagent.gate import (
    cheating,
    critical,
    entries,
    excuses,
    parses,
    patch_paths,
    patch_rules,
    paths,
    secrets,
    size,
    special,
    swallow,
    tamper_rules,
    trojan,
    weakness,
)
from localagent.gate.chain import COULD_NOT_ANSWER
from localagent.gate.rule import Rule

RULES: tuple[Rule, ...] = (
    *patch_rules.RULES,
    *entries.RULES,
    *paths.RULES,
    *patch_paths.RULES,
    *size.RULES,
    *critical.RULES,
    *secrets.RULES,
    *trojan.RULES,
    *excuses.RULES,
    *parses.RULES,
    *swallow.RULES,
    *cheating.RULES,
    *special.RULES,
    *tamper_rules.RULES,
    *weakness.RULES,
)
_DANGER = "do without it; where it is meant, have a person change the policy's table of dangers"
_ERROR = RuleText(
    id=COULD_NOT_ANSWER,
    severity=Severity.HIGH,
    why="a gate that cannot answer does not allow",
    remedy="the message says what went wrong; if it is not the patch's fault, report it",
    asks_person=False,
)


def rule_texts(policy: Policy) -> dict[str, RuleText]:
    """Every rule that may stand in a decision under a policy, by id."""
    texts = [
        RuleText(id=r.id, severity=r.severity, why=r.why, remedy=r.remedy, asks_person=r.asks_person) for r in RULES
    ]
    texts += [
        RuleText(id=d.id, severity=d.severity, why=d.why, remedy=_DANGER, asks_person=False) for d in policy.dangers
    ]
    return {text.id: text for text in (*texts, _ERROR)}
