"""The jail that a policy asks for; its least level is the policy's or a sandbox profile's, whichever is more."""

from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.policy import Permission, Policy
from localagent.jail.api import BackendKind, NamespaceJail, open_jail
from localagent.jail.limits import profile


def least_level(settings: Settings, policy: Policy | None = None) -> str:
    """By `policy` (else the default one) and every profile of the sandbox folder; UsageFault when one is wrong."""
    policy = policy or open_policy(settings).policy
    profiles = (profile.load(path).minimum_level for path in sorted(settings.sandbox_dir.glob("*.toml")))
    return max((policy.least_jail_level.value, *profiles))  # L1 to L4 sort as they rank


def open_policy_jail(
    settings: Settings, policy: Policy | None = None, backend: BackendKind | None = None, *, least: str = ""
) -> NamespaceJail:
    """A jail as `policy` (else the default one) wants it. CannotEnforce where none is sound enough.

    `least`: the level that will do, where it is not `least_level`.
    """
    policy = policy or open_policy(settings).policy
    return open_jail(
        backend=backend, allow_third_party=allows_third_party(policy), least=least or least_level(settings, policy)
    )


def allows_third_party(policy: Policy) -> bool:
    """Whether the program that makes a jail may be a Python package's."""
    return policy.third_party_binaries is Permission.ALLOW
