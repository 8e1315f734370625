"""Functions that are the same before and after, whatever they are called now."""

import ast

import pytest

from localagent.code.function_pairing import pairs

OWNS = "def owns(user, page):\n    return page.owner == user.name and user.active\n"


def paired(before: str, after: str) -> list[tuple[str, str]]:
    """(name before, name after)."""
    return [(old.name, name) for name, old, _ in pairs(ast.parse(before), ast.parse(after))]


def test_a_function_with_another_name_is_found_by_what_it_says() -> None:
    assert paired(OWNS, OWNS.replace("owns", "has")) == [("owns", "has")]


@pytest.mark.parametrize("answer", ["True", "1", "None"])
def test_a_predicate_with_another_name_that_answers_a_constant_now_is_found(answer: str) -> None:
    assert paired(OWNS, f'def has(a, b):\n    """Says so."""\n    return {answer}\n') == [("owns", "has")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OWNS, "def has(a):\n    return True\n"),
        (OWNS, "def has(a, b):\n    return a\n"),
        (OWNS, "class A:\n    def has(a, b):\n        return True\n"),
        ("def owns(user, page):\n    return page.name\n", "def has(a, b):\n    return True\n"),
    ],
)
def test_what_answers_a_constant_is_no_predicate_by_its_shape_alone(before: str, after: str) -> None:
    assert paired(before, after) == []
