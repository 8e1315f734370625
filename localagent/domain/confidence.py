"""How likely it is that a patch is right, and what speaks for and against it.

A probability is *calibrated* where it was fitted on labelled patches that were found by the same way of searching: of
many patches with 0.9 some nine in ten were right there. Limitations: right means agreeing with the repair that people
made; a project unlike those that it was fitted on may be served worse.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Confidence:
    """Of one patch. `probability` in (0, 1); `signals` are the numbers that it was made of, by name.

    `supporting` and `opposing` are sentences for a developer, the weightiest first. `model` names the weights.
    """

    probability: float
    calibrated: bool
    model: str
    supporting: tuple[str, ...] = ()
    opposing: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
