"""The answer on one attack with one backend. Values only."""

from dataclasses import dataclass
from enum import StrEnum


class AttackVerdict(StrEnum):
    """`held` only where the reason seen is the wall's own; what cannot be told counts as escaped."""

    HELD = "held"
    ESCAPED = "escaped"
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttackRow:
    """One attack tried once in one backend's jail. `why` names the wall and what was seen."""

    name: str
    category: str
    backend: str
    level: str
    result: AttackVerdict
    why: str

    def as_json(self) -> dict[str, str]:
        """Plain values, as `doctor --attack --json` prints them."""
        return {
            "name": self.name,
            "category": self.category,
            "backend": self.backend,
            "level": self.level,
            "result": str(self.result),
            "why": self.why,
        }
