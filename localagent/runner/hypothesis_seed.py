"""The project's own Hypothesis properties draw the same examples in each run: by a seed, and from no database.

As pytest's option `--hypothesis-seed` does, which a project without Hypothesis would not know; where it was given, it
stays. Not promised: anything of properties whose module imports Hypothesis only when they run.
"""

from __future__ import annotations

import sys

_CORE, _SEED = "hypothesis.core", "global_force_seed"


def settle(seed: int) -> None:
    """Once the tests are collected. Does nothing where no test has imported Hypothesis."""
    core = sys.modules.get(_CORE)
    if core is not None and getattr(core, _SEED, seed) is None:
        setattr(core, _SEED, seed)
