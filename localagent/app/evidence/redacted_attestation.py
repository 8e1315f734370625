"""The words of rules that redacted documents may keep: those of the code and of the built-in policies."""

from localagent.app.settings import Settings
from localagent.gate.rule_catalogue import own_ids
from localagent.policy.load import parse_policy


def rules_of_ours(settings: Settings) -> frozenset[str]:
    """Ids of rules. A policy of the user's own may name its rules after what it guards: its words are not here."""
    found = set(own_ids())
    for path in sorted(settings.policies_dir.glob("*.toml")):
        found |= {danger.id for danger in parse_policy(path.read_bytes(), str(path)).dangers}
    return frozenset(found)
