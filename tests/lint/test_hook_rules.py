"""Every rule does what its page says: the examples are the tests."""

import ast
from pathlib import Path

import pytest

from localagent.lint.engine import OWN, choose, find
from localagent.lint.file_view import view_of
from localagent.lint.fixer import after_repairs, repair
from localagent.lint.lint_rule import Bad, FixGrade, LintRule
from localagent.lint.lint_rules_page import page
from localagent.lint.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
BAD = [pytest.param(rule, bad, id=f"{rule.id}-{n}") for rule in RULES for n, bad in enumerate(rule.bad)]
GOOD = [pytest.param(rule, code, id=f"{rule.id}-{n}") for rule in RULES for n, code in enumerate(rule.good)]


@pytest.mark.parametrize(("rule", "example"), BAD)
def test_found_and_repaired(rule: LintRule, example: Bad) -> None:
    view = view_of(example.code.encode())
    found = find(view, [rule])
    assert found, "not found"
    first = found[0]
    after = after_repairs(view, [first]) if first.cuts else None
    assert (after.source.raw.decode() if after else None) == example.fixed
    assert example.grade is None or first.grade is example.grade


@pytest.mark.parametrize(("rule", "example"), [p for p in BAD if p.values[1].grade is FixGrade.SAFE])  # type: ignore[union-attr]
def test_safe_repairs_are_confirmed_and_made(rule: LintRule, example: Bad) -> None:
    done = repair(view_of(example.code.encode()), [rule])
    assert done.after.decode() == example.fixed
    assert not done.withheld
    assert not find(view_of(done.after), [rule])


@pytest.mark.parametrize(("rule", "code"), GOOD)
def test_let_pass(rule: LintRule, code: str) -> None:
    ast.parse(code)
    assert find(view_of(code.encode()), [rule]) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_is_whole(rule: LintRule) -> None:
    assert rule.bad
    assert rule.good
    assert rule.text.endswith(".")
    assert rule.why.endswith(".")
    assert all((b.fixed is None) or b.grade is not None for b in rule.bad), "a repair without a grade"
    best = {b.grade for b in rule.bad if b.fixed}
    assert (rule.grade is FixGrade.SAFE) is (FixGrade.SAFE in best)


def test_ids_are_unique_and_enough_are_safe() -> None:
    ids = [r.id for r in RULES]
    assert len(ids) == len(set(ids))
    assert not set(ids) & set(OWN)
    assert len(ids) >= 25
    assert sum(r.grade is FixGrade.SAFE for r in RULES) >= 20


def test_the_page_is_made_of_the_rules() -> None:
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == page(), "run python scripts/rules_page.py"
    assert f"[{len(RULES)} known mistakes](rules.md)" in (ROOT / "docs" / "hook.md").read_text(encoding="utf-8")


def test_selection() -> None:
    assert {r.id for r in choose()} == {r.id for r in RULES if r.standard}
    assert len(choose(["all"])) == len(RULES)
    assert [r.id for r in choose(["zip-strict", "not-in"], ["not-in"])] == ["zip-strict"]


def test_words_never_hide_a_finding() -> None:
    """The filter on bytes lets every example through: asserted here because a miss would be silent."""
    for rule in RULES:
        for example in rule.bad:
            assert not rule.words or any(word in example.code.encode() for word in rule.words), rule.id
