"""The operators, by family. Each module registers its own; `load` imports them all, in a fixed order."""

import importlib

FAMILIES = (
    *("comparisons", "arithmetic", "logic", "constants", "variables", "subscripts", "attributes", "calls"),
    *("ingredients", "wraps", "statements", "guards", "flow", "blocks", "definitions", "missing", "handlers"),
    *(
        "siblings",
        "idioms",
        "presence",
        "patterns",
        "fallbacks",
        "formats",
        "loops",
        "twins",
        "comments",
        "closures",
        *("slips", "everywhere"),
    ),
    *("reported_names", "reported_attributes", "reported_imports", "reported_crashes", "reported_nothing"),
    *("reported_text", "reported_loop"),
    *("arity", "structure", "moved_imports", "decorators", "stubs"),
)


def load() -> None:
    """Import every family once."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
