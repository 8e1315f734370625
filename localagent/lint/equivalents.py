"""Which rules of ours repair what another tool's rule finds: data, by the tool's name and its rule's id.

A pair stands here only where every place that our rule finds is one that the other may have meant. Not promised: that
each finding of the other has a repair; our rule must fire at the place by itself.
"""

from collections.abc import Mapping

from localagent.lint.rules import BY_ID

PERSON: Mapping[str, str] = {
    "weak-hash": "only a person can say that nothing relies on this digest being secure",
}
"""Rules of ours whose repair is a claim that no machine can check."""

_RUFF = {
    "E711": ("none-comparison",),
    "E712": ("true-comparison",),
    "E713": ("not-in",),
    "E714": ("not-is",),
    "E721": ("type-comparison",),
    "E722": ("bare-except",),
    "F541": ("fstring-without-fields",),
    "F507": ("percent-count",),
    "F524": ("format-count",),
    "F601": ("duplicate-key",),
    "F602": ("duplicate-key",),
    "F631": ("assert-tuple",),
    "F632": ("literal-is",),
    "F822": ("all-names",),
    "F901": ("raise-not-implemented",),
    "W605": ("invalid-escape",),
    "B006": ("mutable-default",),
    "B012": ("jump-in-finally",),
    "B014": ("duplicate-except", "os-error-alias"),
    "B023": ("late-binding",),
    "B033": ("duplicate-member",),
    "B905": ("zip-strict",),
    "C401": ("list-of-comprehension",),
    "C402": ("dict-of-pairs",),
    "C403": ("list-of-comprehension",),
    "C404": ("dict-of-pairs",),
    "C411": ("list-of-comprehension",),
    "C413": ("redundant-conversion", "needless-list"),
    "C414": ("redundant-conversion", "needless-list"),
    "C416": ("copy-comprehension",),
    "C419": ("needless-list",),
    "DTZ003": ("naive-utc",),
    "DTZ004": ("naive-utc",),
    "G004": ("logging-fstring",),
    "G010": ("logging-warn",),
    "PIE790": ("redundant-pass",),
    "PLC1802": ("len-zero",),
    "PLR0124": ("self-comparison",),
    "PLW0127": ("self-assignment",),
    "PLW0177": ("nan-comparison",),
    "PLW1510": ("subprocess-check",),
    "PLW1514": ("open-encoding",),
    "RUF006": ("dropped-task",),
    "S113": ("request-timeout",),
    "S306": ("mktemp",),
    "S324": ("weak-hash",),
    "S501": ("verify-off",),
    "S506": ("yaml-load",),
    "S602": ("shell-constant",),
    "SIM101": ("isinstance-merge",),
    "SIM115": ("open-without-with",),
    "SIM118": ("keys-membership",),
    "SIM208": ("double-not",),
    "SIM210": ("bool-ternary",),
    "SIM211": ("bool-ternary",),
    "UP004": ("object-base",),
    "UP005": ("unittest-alias",),
    "UP008": ("super-arguments",),
    "UP024": ("os-error-alias",),
    "UP035": ("collections-abstract",),
}
_BANDIT = {
    "B113": ("request-timeout",),
    "B303": ("weak-hash",),
    "B306": ("mktemp",),
    "B324": ("weak-hash",),
    "B501": ("verify-off",),
    "B506": ("yaml-load",),
    "B602": ("shell-constant",),
}
_MYPY = {
    "comparison-overlap": ("literal-is", "type-comparison"),
    "str-format": ("percent-count", "format-count"),
    "unreachable": ("unreachable",),
    "unused-awaitable": ("dropped-task",),
    "unused-coroutine": ("missing-await",),
}
EQUIVALENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ruff": _RUFF,
    "bandit": _BANDIT,
    "mypy": _MYPY,
    "localagent": {name: (name,) for name in BY_ID},
}


def rules_for(tool: str, rule: str) -> tuple[str, ...] | None:
    """Our rules for another tool's; empty where there is none, None where the tool is not known."""
    known = EQUIVALENTS.get(tool.lower().removesuffix(" hook"))
    return None if known is None else known.get(rule, ())
