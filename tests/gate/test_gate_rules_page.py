"""`policy explain`: every rule can be explained, and the page of all rules is whole."""

import re

import pytest
from test_rules import DEFAULT

from localagent.app import rule_examples
from localagent.gate.gate_rules_page import explained, explained_ids, page
from localagent.gate.rule_catalogue import RETIRED, own_ids


def test_the_page_lists_and_explains_every_rule_once() -> None:
    made = page(DEFAULT)
    assert made.isascii()
    assert made.count("```") % 2 == 0
    rules = list(explained_ids(DEFAULT))
    assert re.findall(r"^\| \[([^]]+)\]\(#\1\) \|", made, re.M) == rules
    assert [line[3:] for line in made.split("\n") if line.startswith("## ") and line[3:] in rules] == rules


@pytest.mark.parametrize("rule", explained_ids(DEFAULT))
def test_every_rule_is_explained_with_examples_of_both_kinds(rule: str) -> None:
    (one,) = explained(rule, DEFAULT)
    assert one.why
    assert one.remedy
    assert one.severity
    assert one.match
    assert one.not_match
    assert one.text.count("```") % 2 == 0
    assert f"## {rule}\n" in one.text


@pytest.mark.parametrize("rule", RETIRED)
def test_a_rule_that_is_no_more_is_explained_and_its_id_stays_taken(rule: str) -> None:
    (one,) = explained(rule, DEFAULT)
    assert RETIRED[rule] in one.text
    assert rule in own_ids()
    assert rule not in explained_ids(DEFAULT)


def test_every_explained_rule_is_tried_by_its_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rules are tried; what they answer is asked rule by rule elsewhere, and takes long."""
    for how in ("while_reading", "in_repair", "in_patch"):
        monkeypatch.setattr(rule_examples, how, lambda *_: set())
    assert {one.rule for one in rule_examples.try_all(DEFAULT, DEFAULT)} == set(explained_ids(DEFAULT))
