"""Which rules of ours repair what another tool's rule finds: data, by the tool's name and its rule's id.

A pair stands here only where every place that our rule finds is one that the other may have meant. Not promised: that
each finding of the other has a repair; our rule must fire at the place by itself.
"""

from collections.abc import Iterable, Mapping

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
    "comparison-overlap": ("literal-is", "none-comparison", "true-comparison", "type-comparison"),
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


_PYLINT = (
    ("C0113", "unneeded-not", ("not-in", "not-is", "double-not")),
    ("C0117", "unnecessary-negation", ("not-in", "not-is", "double-not")),
    ("C0121", "singleton-comparison", ("none-comparison", "true-comparison")),
    ("C0123", "unidiomatic-typecheck", ("type-comparison",)),
    ("C0201", "consider-iterating-dictionary", ("keys-membership",)),
    ("C1801", "len-as-condition", ("len-zero",)),
    ("C1802", "use-implicit-booleaness-not-len", ("len-zero",)),
    ("E0603", "undefined-all-variable", ("all-names",)),
    ("E0701", "bad-except-order", ("except-order",)),
    ("E0702", "raising-bad-type", ("raise-not-implemented",)),
    ("E0711", "notimplemented-raised", ("raise-not-implemented",)),
    ("E1305", "too-many-format-args", ("percent-count", "format-count")),
    ("E1306", "too-few-format-args", ("percent-count", "format-count")),
    ("R0123", "literal-comparison", ("literal-is",)),
    ("R0124", "comparison-with-itself", ("self-comparison",)),
    ("R0205", "useless-object-inheritance", ("object-base",)),
    ("R1701", "consider-merging-isinstance", ("isinstance-merge",)),
    ("R1717", "consider-using-dict-comprehension", ("dict-of-pairs",)),
    ("R1718", "consider-using-set-comprehension", ("list-of-comprehension",)),
    ("R1719", "simplifiable-if-expression", ("bool-ternary",)),
    ("R1721", "unnecessary-comprehension", ("copy-comprehension",)),
    ("R1725", "super-with-arguments", ("super-arguments",)),
    ("R1728", "consider-using-generator", ("needless-list",)),
    ("R1729", "use-a-generator", ("needless-list",)),
    ("R1732", "consider-using-with", ("open-without-with",)),
    ("W0101", "unreachable", ("unreachable",)),
    ("W0102", "dangerous-default-value", ("mutable-default",)),
    ("W0107", "unnecessary-pass", ("redundant-pass",)),
    ("W0109", "duplicate-key", ("duplicate-key",)),
    ("W0127", "self-assigning-variable", ("self-assignment",)),
    ("W0130", "duplicate-value", ("duplicate-member",)),
    ("W0134", "return-in-finally", ("jump-in-finally",)),
    ("W0150", "lost-exception", ("jump-in-finally",)),
    ("W0177", "nan-comparison", ("nan-comparison",)),
    ("W0199", "assert-on-tuple", ("assert-tuple",)),
    ("W0640", "cell-var-from-loop", ("late-binding",)),
    ("W0702", "bare-except", ("bare-except",)),
    ("W0705", "duplicate-except", ("duplicate-except", "except-order")),
    ("W0714", "overlapping-except", ("duplicate-except", "os-error-alias")),
    ("W1203", "logging-fstring-interpolation", ("logging-fstring",)),
    ("W1303", "missing-format-argument-key", ("format-count",)),
    ("W1309", "f-string-without-interpolation", ("fstring-without-fields",)),
    ("W1401", "anomalous-backslash-in-string", ("invalid-escape",)),
    ("W1505", "deprecated-method", ("logging-warn", "unittest-alias", "naive-utc")),
    ("W1510", "subprocess-run-check", ("subprocess-check",)),
    ("W1514", "unspecified-encoding", ("open-encoding",)),
    ("W3101", "missing-timeout", ("request-timeout",)),
    ("W4902", "deprecated-method", ("logging-warn", "unittest-alias", "naive-utc")),
    ("W4904", "deprecated-class", ("collections-abstract",)),
)
PYLINT: Mapping[str, tuple[str, ...]] = {key: ours for code, name, ours in _PYLINT for key in (code, name)}
"""Our rules for messages of pylint, by number and by name: for its suppressions, not for its logs."""


def rules_with_prefix(codes: Iterable[str]) -> frozenset[str]:
    """Our rules for codes of ruff and flake8, each of which may be a prefix (`E7`, `ALL`)."""
    starts = tuple("" if code == "ALL" else code for code in codes if code)
    return frozenset(rule for code, ours in _RUFF.items() if code.startswith(starts) for rule in ours)
