"""What the unit itself makes likely comes before its alternatives: roles, rests, measures, containers never filled."""

import ast

import pytest

from localagent.domain.paths import RepoPath
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("mod.py")


def prior_of(broken: str, fixed: str) -> float:
    want = ast.dump(ast.parse(fixed))
    source = broken.encode()
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=())
    (found,) = [e.prior for e in edits if ast.dump(ast.parse(e.apply(source))) == want]
    return found


NODES = (
    "def f(nodes, out):\n    out.reset()\n    for n in nodes:\n        if n.inner and n.{}:\n            out.inner()\n"
)
HEAP = "def f(a, k):\n    h = a[:k]\n    for x in a{}:\n        yield x, h\n"
KTH = "def f(a, k):\n    n = len(a)\n    if k >= n:\n        return f(a, k{})\n    return n\n"
STACK = "def f(a):\n    out = []\n    ops = []\n    for x in a:\n        out.append(x)\n{}    return out, ops\n"
CHAIN = "def f(a):\n    last = None\n    for x in a:\n        x.before = last\n{}    return a\n"
FILL = "def f(a):\n    ops = []\n    g(ops)\n    for x in a:\n        print(x)\n{}    return ops\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "old", "likely", "other"),
    [
        (NODES, "outer", "inner", "reset"),
        (HEAP, "", "[k:]", "[:k]"),
        (KTH, "", " - n", " - a"),
        (CHAIN, "", "        last = x\n", "        a = x\n"),
        (STACK, "", "        ops.append(x)\n", "        out.append(x)\n"),
    ],
)
def test_what_the_unit_makes_likely_comes_first(program: str, old: str, likely: str, other: str) -> None:
    broken = program.format(old)
    assert prior_of(broken, program.format(likely)) > prior_of(broken, program.format(other))


@pytest.mark.long
def test_a_container_that_a_call_may_fill_is_not_called_unfilled() -> None:
    line = "        ops.append(x)\n"
    unknown = prior_of(FILL.format(""), FILL.format(line))
    reader = FILL.replace("g(ops)", "len(ops)")
    assert prior_of(reader.format(""), reader.format(line)) > unknown


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "fixed"),
    [
        ("if g(x) and g(x): return h(x)", "if g(x) and g(y): return h(x)"),
        ("if x - x: return h(x)", "if x - y: return h(x)"),
        ("if x == x: return h(x)", "if x == y: return h(x)"),
        ("if max(x, x): return h(x)", "if max(x, y): return h(x)"),
    ],
)
def test_what_says_nothing_is_looked_at_first(broken: str, fixed: str) -> None:
    head = "def f(x, y):\n    "
    elsewhere = broken.replace("h(x)", "h(y)")
    assert prior_of(head + broken, head + fixed) > prior_of(head + broken, head + elsewhere) + 0.5
