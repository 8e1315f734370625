"""Whether the order of a set may show in what code does."""

import ast

import pytest

from localagent.code.set_order import set_order_may_show


@pytest.mark.parametrize(
    ("body", "shows"),
    [
        ("seen = set()\nfor x in xs:\n    if x not in seen:\n        seen.add(x)", False),
        ("n = len(set(xs))", False),
        ("ok = x in {1, 2} and set(a) == set(b)", False),
        ("return sorted(set(xs))", False),
        ("seen = {first}\nwhile seen:\n    seen.discard(1)\n    seen.update(xs)", False),
        ("for x in {'a', 'b'}:\n    print(x)", True),
        ("seen = set()\nreturn list(seen)", True),
        ("return sorted(set(xs), key=len)", True),
        ("{1, 2} in boxes", True),
        ("counts.update({first, 'a'})", True),
        ("self.seen = set()", True),
        ("found = {}\nfor k in found:\n    pass", False),
        ("seen = set()\nwhile seen:\n    x = seen.pop()", True),
        ("return set(a) | set(b)", True),
    ],
)
def test_uses_of_sets(body: str, shows: bool) -> None:
    lines = "\n    ".join(body.split("\n"))
    assert set_order_may_show(ast.parse(f"def f(self, xs, a, b, x):\n    {lines}\n")) == shows
