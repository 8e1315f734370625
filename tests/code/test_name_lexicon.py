"""What the words of an invented name mean."""

import ast

import pytest

from localagent.code import name_lexicon
from localagent.code.name_lexicon import meant_by


def said(name: str, count: int, *, alone: bool = False) -> list[str]:
    found = sorted(meant_by(name, count, alone=alone), key=lambda told: told[1])
    return [t.format(a0="p", a1="q", x="p", y="q") for t, _ in found]


@pytest.mark.parametrize(
    ("name", "count", "first"),
    [
        ("calculateRemainder", 2, "p % q"),
        ("get_values", 1, "p.values()"),
        ("lowerWords", 1, "p.lower()"),
        ("my_sort_method", 1, "sorted(p)"),
        ("findMax", 2, "max(p, q)"),
        ("getMidpoint", 2, "(p + q) // 2"),
        ("stringLength", 1, "len(p)"),
        ("is_even", 1, "p % 2 == 0"),
        ("absoluteDifference", 2, "abs(p - q)"),
        ("HTTPJoin", 2, "p + q"),
    ],
)
def test_the_words_of_a_name_say_what_it_does(name: str, count: int, first: str) -> None:
    assert first in said(name, count)[:2]


def test_a_whole_word_says_more_than_one_inside_another() -> None:
    (whole, at), (_, inside) = *meant_by("lower", 1), *meant_by("lowered", 1)
    assert whole == "{x}.lower()"
    assert at < inside


def test_what_stands_alone_changes_its_argument_first() -> None:
    assert said("sortThem", 1, alone=True)[0] == "p.sort()"
    assert said("sortThem", 1)[0] == "sorted(p)"


def test_short_words_are_not_looked_for_inside_others() -> None:
    assert said("modern", 2) == []  # mod
    assert said("summary", 1) == []


def test_nothing_is_said_of_other_names_or_of_more_arguments() -> None:
    assert said("helper", 2) == []
    assert said("compute_max_and_min", 1) == said("maxOrMin", 2) == []
    assert said("remainder", 0) == said("remainder", 3) == []


def test_every_template_is_an_expression_of_its_arguments() -> None:
    for count, table in ((1, name_lexicon._OF_ONE), (2, name_lexicon._OF_TWO), (1, name_lexicon._IN_PLACE)):
        for templates in table.values():
            for template in templates:
                text = template.format(a0="p", a1="q", x="p", y="q")
                used = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
                assert used >= ({"p", "q"} if count == 2 else {"p"}), template
