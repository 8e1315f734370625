"""The section `limits` of a policy: read, and met. Every key may be missing; none may exceed what is built in.

Not promised: that a program fits into a small limit. One that does not is ended, and the key that did it is named.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from localagent.domain.policy import LimitRules
from localagent.policy.table import Table

BUILT_IN: Mapping[str, int] = MappingProxyType(  # the greatest of the profiles of tests, checks and tools in sandbox/
    {
        "memory_mib": 1536,
        "processes": 128,
        "cpu_seconds": 900,
        "wall_seconds": 600,
        "file_mib": 256,
        "disk_mib": 512,
    }
)


def parse_limits(table: Table) -> LimitRules:
    """The limits that a policy gives."""
    rules = LimitRules(**{key: table.take_limit(key, built_in=most) for key, most in BUILT_IN.items()})
    table.close()
    return rules


def meet_limits(one: LimitRules, other: LimitRules) -> LimitRules:
    """Of each limit the smaller one; one that is not given is the built-in one, which is never smaller."""
    return LimitRules(**{f.name: _smaller(getattr(one, f.name), getattr(other, f.name)) for f in fields(LimitRules)})


def _smaller(one: int | None, other: int | None) -> int | None:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None
