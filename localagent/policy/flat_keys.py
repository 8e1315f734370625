"""A policy as plain facts: the value of each key, by the key's dotted name in the file. For showing and comparing."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from localagent.domain.policy import Policy

_NAMES = {
    "deny_at": "danger.deny_at", "bandit_deny_at": "checks.bandit_deny_at",
    "ruff": "checks.ruff", "mypy": "checks.mypy", "unanswered": "checks.unanswered",
    "swallowed_exceptions": "repair.swallowed_exceptions", "special_cased_tests": "repair.special_cased_tests",
    "third_party_binaries": "jail.third_party_binaries", "least_jail_level": "jail.least_level",
    "min_strength": "verification.min_strength", "accept_at": "verification.accept_at",
}  # fmt: skip
_DERIVED = frozenset({"patches.lenient"})


def facts(policy: Policy) -> dict[str, object]:
    """Every key of a policy with its value, by its dotted name in the file; rules by their ids."""
    return dict(_facts(policy, ""))


def _facts(value: Any, path: str) -> Iterator[tuple[str, object]]:
    for field in fields(value):
        at = f"{path}.{field.name}" if path else _NAMES.get(field.name, field.name)
        inner = getattr(value, field.name)
        if at == "dangers":
            yield from _rules("danger.rule", inner)
        elif at == "commands":
            yield "commands.otherwise", tuple(rules.otherwise for rules in inner)
            yield from _rules("commands.rule", [rule for rules in inner for rule in rules.rules])
        elif field.name == "narrowed":
            continue
        elif field.name == "editable":
            yield at, (inner, *value.narrowed)
        elif is_dataclass(inner):
            yield from _facts(inner, at)
        elif at not in _DERIVED:
            yield at, inner


def _rules(path: str, rules: Sequence[Any]) -> Iterator[tuple[str, object]]:
    by_id: dict[str, tuple[object, ...]] = {}
    for rule in rules:
        by_id[rule.id] = (*by_id.get(rule.id, ()), rule)
    yield from ((f"{path}.{name}", value) for name, value in by_id.items())
