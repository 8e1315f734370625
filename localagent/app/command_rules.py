"""Which commands a user's `--check` may be: what `[commands]` of the policy says of them."""

import shlex
from collections.abc import Sequence

from localagent.domain.policy import Policy
from localagent.errors import UsageFault
from localagent.policy.commands import denial_reason


def refuse_denied(checks: Sequence[str], policy: Policy) -> None:
    """UsageFault with every check that the policy does not let run."""
    faults = []
    for check in checks:
        if why := denial_reason(policy.commands, shlex.split(check)):
            faults.append(f"--check {check!r}: {why} (policy {policy.name})")
    if faults:
        raise UsageFault(faults, remedy="take another command, or have whoever keeps the policy allow this one")
