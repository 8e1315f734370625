"""Comments of other tools hold for our rules that find the same mistake, and for nothing else."""

import pytest

from localagent.lint.engine import choose, find, find_despite_other_tools
from localagent.lint.equivalents import PYLINT
from localagent.lint.file_view import view_of
from localagent.lint.rules import BY_ID

RULES = choose()


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("a = x == None  # noqa: E711\n", []),
        ("a = x == None  # noqa\n", []),
        ("a = x == None  # NOQA:E711,E501 the query builder\n", []),
        ("a = x == None  # noqa: E7\n", []),
        ("a = x == None  # noqa: E712\n", ["none-comparison"]),
        ("a = not x in y  # noqa: E711\n", ["not-in"]),
        ("# ruff: noqa\na = x == None\n", []),
        ("# ruff: noqa: E711\na = x == None\nb = not x in y\n", ["not-in"]),
        ("# flake8: noqa: E711\n\n\na = x == None\n", []),
        ("a = x == None  # pylint: disable=singleton-comparison\n", []),
        ("a = x == None  # pylint: disable=C0121, line-too-long\n", []),
        ("a = x == None  # pylint: disable=bare-except\n", ["none-comparison"]),
        ("# pylint: disable-next=singleton-comparison\na = x == None\nb = x == None\n", ["none-comparison"]),
        ("def f(x):\n    # pylint: disable=C0121\n    return x == None\na = x == None\n", ["none-comparison"]),
        ("# pylint: disable=C0121\na = x == None\n# pylint: enable=C0121\nb = x == None\n", ["none-comparison"]),
        ("def f(x):  # pylint: disable=C0121\n    return x == None\na = x == None\n", ["none-comparison"]),
        ("# pylint: skip-file\na = x == None\n", []),
        ("a = x == None  # type: ignore\n", []),
        ("a = x == None  # type: ignore[comparison-overlap]\n", []),
        ("a = x == None  # type: ignore[arg-type]\n", ["none-comparison"]),
        ("import hashlib\na = hashlib.md5(b)  # nosec\n", []),
        ("import hashlib\na = hashlib.md5(b)  # nosec B324\n", []),
        ("import hashlib\na = hashlib.md5(b)  # nosec B101\n", ["weak-hash"]),
        ("a = f(\n    x == None,\n    y,\n)  # noqa: E711\n", []),
        ("a = '# noqa'\nb = x == None\n", ["none-comparison"]),
    ],
)
def test_held(code: str, rules: list[str]) -> None:
    view = view_of(code.encode())
    assert [f.rule for f in find(view, RULES)] == rules
    assert find_despite_other_tools(view, RULES)


def test_every_rule_is_held() -> None:
    for rule in BY_ID.values():
        view = view_of(f"# ruff: noqa\n{rule.bad[0].code}".encode())
        assert find_despite_other_tools(view, [rule])
        assert find(view, [rule]) == []


def test_the_rules_for_pylint_exist() -> None:
    assert {rule for ours in PYLINT.values() for rule in ours} <= set(BY_ID)
