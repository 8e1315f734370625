"""What a repaired file still reads and nothing binds: seen where the file alone tells, and nowhere else."""

import pytest
from test_meaningless_expressions import candidate

from localagent.repair.acceptance.ambiguity import unproven
from localagent.repair.acceptance.ranking import RankedCandidate
from localagent.repair.acceptance.undefined_names import half_mended, left_undefined

F = "def f(xs):\n    return 1\n"


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("def f(xs):\n    if len(ys) > 2: return ys\n", "def f(xs):\n    if len(xs) > 2: return ys\n", 1),
        ("def f(xs):\n    if len(ys) > 2: return ys\n", "def f(xs):\n    if len(xs) > 2: return xs\n", 0),
        ("def f(xs):\n    return len(ys)\ndef g(ys): pass\n", "def f(xs):\n    return len(xs)\ndef g(ys): pass\n", 0),
        ("from m import *\nfrom typing import *\nprint(ys, ys)\n", "from m import *\nprint(1, ys)\n", 0),
        ("from typing import *\nprint(List, ys, ys)\n", "from typing import *\nprint(1, List, ys)\n", 1),
        ("from m import *\nprint(ys, ys)\n", "from m import *\nprint(1, ys)\n", 0),
        ("import os.path\nprint(os, len, os)\n", "import os.path\nprint(os, len, 1)\n", 0),
        ("print(ys, ys)\n", "print(zs, ys)\n", 1),
        ("print(ys, ys)\n", "ys = 1\nprint(2, ys)\n", 0),
        ("match a:\n    case {**b}: print(b, b)\n", "match a:\n    case {**b}: print(b, 1)\n", 0),
        ("print(ys, ys)\n", "print((\n", 0),
        ("globals().update(m)\nprint(ys, ys)\n", "globals().update(m)\nprint(1, ys)\n", 0),
    ],
)
def test_a_name_mended_in_one_place_and_missing_in_another_is_seen(before: str, after: str, count: int) -> None:
    made = candidate(before, after)
    assert half_mended(made) == count
    alone = [RankedCandidate(candidate=made, cost=0.0, row=())]
    assert unproven(alone, 1, 1) is bool(count)


LEFT = [
    (F, "def f(xs):\n    if not xs:\n        return ys\n    return 2\n", 1),
    (F + "def g():\n    return ys\n", "def f(xs):\n    return 2\ndef g():\n    return ys\n", 0),  # g is as it was
    ("from math import *\n" + F, "from math import *\ndef f(xs):\n    return sqrt(ys)\n", 1),
    ("from m import *\n" + F, "from m import *\ndef f(xs):\n    return sqrt(ys)\n", 0),
    (F, "def f(xs):\n    try:\n        return ys\n    except NameError:\n        return 2\n", 0),
    (F, "class A:\n    def f(self):\n        return self.b\n", 1),
    (F, "class A(object):\n    def f(self):\n        return self.g() + self.h()\n    def g(self): pass\n", 1),
    (F, "class A(B):\n    def f(self):\n        return self.b\n", 0),
    (F, "@given\nclass A:\n    def f(self):\n        return self.b\n", 0),
    (F, "class A:\n    def f(self):\n        return self.b\n    def __getattr__(self, x): pass\n", 0),
    (F, "class A:\n    b: int\n    def f(self):\n        return self.b + self.__class__.c\n", 0),
    (F, "class A:\n    def g(self):\n        return 1\n    def f(self):\n        return g()\n", 1),
    (
        F,
        "class A:\n    n = 1\n    m = n\n    @p\n    def g(self): pass\n    @g.setter\n    def h(self): pass\n",
        0,
    ),
    (F, "class A:\n    n = 1\n    def f(self):\n        return n\n", 1),
    (F, "class A:\n    def f(self):\n        return self.b\nclass C(A): pass\n", 0),
    (F, "class BaseA:\n    def f(self):\n        return self.b\n", 0),
    (F, "class A:\n    def f(self):\n        class I(B):\n            def h(self): self.n\n        return I\n", 0),
    (F, "class A:\n    b, c = 1, 2\n    def f(self, **k):\n        self.__dict__.update(k)\n        self.d\n", 0),
    (F, "class A:\n    def f(self):\n        if hasattr(self, 'b'):\n            return self.b\n", 0),
]


@pytest.mark.parametrize(("before", "after", "count"), LEFT)
def test_what_nobody_binds_in_what_a_repair_touched_is_counted(before: str, after: str, count: int) -> None:
    known = "given = B = p = m = object\n"
    made = candidate(known + before, known + after)
    assert left_undefined(made) == count
    assert unproven([RankedCandidate(candidate=made, cost=0.0, row=())], 1, 1) is bool(count)
    assert not unproven([RankedCandidate(candidate=made, cost=0.0, row=())], 9, 1)
