"""The words of rules that redacted documents may keep: those of the code and of the built-in policies."""

from localagent.app.settings import Settings
from localagent.gate.repair_gates import COULD_NOT_ANSWER
from localagent.gate.rule_catalogue import RULES
from localagent.policy.load import parse_policy


def rules_of_ours(settings: Settings) -> frozenset[str]:
    """Ids of rules. A policy of the user's own may name its rules after what it guards: its words are not here."""
    found = {rule.id for rule in RULES} | {COULD_NOT_ANSWER}
    for path in sorted(settings.policies_dir.glob("*.toml")):
        found |= {danger.id for danger in parse_policy(path.read_bytes(), str(path)).dangers}
    return frozenset(found)
