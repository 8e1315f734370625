"""The least level of a jail: what the policy asks for, or a sandbox profile, whichever is more."""

from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.policy import Policy
from localagent.jail.limits import profile


def least_level(settings: Settings, policy: Policy | None = None) -> str:
    """By `policy` (else the default one) and every profile of the sandbox folder; UsageFault when one is wrong."""
    policy = policy or open_policy(settings).policy
    profiles = (profile.load(path).minimum_level for path in sorted(settings.sandbox_dir.glob("*.toml")))
    return max((policy.least_jail_level.value, *profiles))  # L1 to L4 sort as they rank
