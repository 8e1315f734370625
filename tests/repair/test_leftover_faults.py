"""Faults that show without running: each form, and what looks like it and is none."""

import pytest
from test_meaningless_expressions import candidate

from localagent.repair.acceptance.ambiguity import unproven
from localagent.repair.acceptance.leftover_faults import left_faults
from localagent.repair.acceptance.ranking import RankedCandidate

HEAD = "def f(xs, g=print):\n    i, j, ys, n = 0, 0, [], len(xs)\n    "
LEFT = [
    ("while i < len(xs):\n        ys.append(xs[i])\n        j += 1", 1),
    ("while i < len(xs):\n        ys.append(xs[i])\n        i += 1", 0),
    ("while i < len(xs):\n        ys.append(xs[i])\n        break", 0),
    ("while ys:\n        ys.pop()", 0),
    ("while ys:\n        ys.remove(j)", 0),
    ("while ys:\n        g(j)", 0),
    ("while xs.open:\n        j += 1", 0),
    ("while xs[0]:\n        j += 1", 0),
    ("while (k := next(xs)):\n        j += 1", 0),
    ("while n > 0:\n        j += n", 1),
    ("while True:\n        j += 1", 1),
    ("while i < n:\n        j += xs[i]\n        i = 1", 1),
    ("while i < len(xs) and j < n:\n        if xs[j]:\n            i = 1\n        else:\n            j += 1", 1),
    ("while i < n:\n        j += xs[i]\n        i += 1", 0),
    ("while i < n:\n        if j:\n            i = 1\n        i += j", 0),
    ("while i < n:\n        i = 1\n        n -= 1", 0),
    ("while i < 1:\n        i = 1", 0),
    ("while i != n:\n        i = 1\n        n -= 1", 0),
    ("while i < n:\n        i = i + 1", 0),
    ("while i < n:\n        for i in xs:\n            pass", 0),
    ("while True:\n        yield j", 0),
    ("for i in range(len(xs) + 1):\n        j += xs[i]", 1),
    ("for i in range(1, len(xs) + 1):\n        j += xs[i]", 1),
    ("for i in range(1, len(xs) + 1):\n        j += xs[i - 1]", 0),
    ("for i in range(len(xs) + 1):\n        if i < n:\n            j += xs[i]", 0),
    ("for i in range(len(xs) + 1):\n        if xs[i] > 2:\n            return i", 1),
    (
        "for i in range(len(xs) + 1):\n        try:\n            j = xs[i]\n        except OSError:\n            pass",
        0,
    ),
    ("for i in range(len(xs) - 1):\n        j += xs[i]", 0),
    ("for i in range(len(xs) + 1):\n        j += n", 0),
    ("zs = []\n    zs.push(1)", 1),
    ("zs = []\n    zs.append(1)", 0),
    ("zs = []\n    zs = xs\n    zs.push(1)", 0),
    ("for zs in xs:\n        zs.push(1)", 0),
    ("zs = []\n    return zs(1)", 1),
    ("zs = deque()\n    zs.push(1)", 1),
    ("zs = 'a'\n    zs += 'b'\n    return zs.upper() + zs.top()", 1),
]


@pytest.mark.parametrize(("body", "count"), LEFT)
def test_a_fault_that_is_left_is_counted_and_not_believed_under_few_tests(body: str, count: int) -> None:
    made = candidate(f"{HEAD}pass\n", f"{HEAD}{body}\n")
    assert left_faults(made) == count
    alone = [RankedCandidate(candidate=made, cost=0.0, row=())]
    assert unproven(alone, 1, 1) is bool(count)
    assert not unproven(alone, 9, 1)


def test_only_what_a_repair_changes_is_asked_and_methods_each_by_itself() -> None:
    endless = "def g(n):\n    while n:\n        pass\n"
    assert left_faults(candidate(f"{HEAD}pass\n{endless}", f"{HEAD}return 1\n{endless}")) == 0
    two = "class A:\n    def a(self):\n        d = '1'\n        return d\n    def b(self):\n        return d.today()\n"
    assert left_faults(candidate("", two)) == 0
    assert left_faults(candidate("", "def f(:\n")) == 0
