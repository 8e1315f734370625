"""Sources so deep that what walks them falls over: every gate answers, and one rule says that they are too deep."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.code.regions import DEEPEST, DoesNotParse, TooDeep, parse
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

Shape = Callable[[int], str]

POLICY = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")


@pytest.fixture(scope="module")
def gates() -> PatchGates:
    return PatchGates(POLICY)


def rules(gates: PatchGates, before: str, after: str, path: str = "pkg/mod.py") -> set[str]:
    entry = TreeChange(
        path=RepoPath(path), source=RepoPath(path), kind=ChangeKind.MODIFIED, before=before.encode(),
        after=after.encode(), before_mode=FileMode.REGULAR, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    decisions = gates.review((entry,), everything=True)
    assert not [d for d in decisions if d.answer is Allow.ERROR]
    return {f.rule for d in decisions for f in d.findings}


def _blocks(head: str) -> Shape:
    return lambda n: "".join(f"{' ' * i}{head}\n" for i in range(n)) + " " * n + "pass\n"


# Each nests a level or more with every step, in another kind of node.
SHAPES: dict[str, Shape] = {
    "signs": lambda n: "x = " + "-" * n + "y\n",
    "denials": lambda n: "x = " + "not " * n + "y\n",
    "sums": lambda n: "x = y" + " + y" * n + "\n",
    "texts": lambda n: "x = 'a'" + " + 'a'" * n + "\n",
    "powers": lambda n: "x = " + "y ** " * n + "y\n",
    "attributes": lambda n: "x = y" + ".a" * n + "\n",
    "calls": lambda n: "x = y" + "()" * n + "\n",
    "methods": lambda n: "x = y" + ".get('a')" * n + "\n",
    "entries": lambda n: "x = y" + "['a']" * n + "\n",
    "choices": lambda n: "x = " + "y if z else " * n + "y\n",
    "functions": lambda n: "x = " + "lambda: " * n + "y\n",
    "guards": lambda n: "def f(y):\n    if y:\n        raise E\n" + "    elif y:\n        return 1\n" * n,
    "lists": lambda n: "x = " + "[" * n + "]" * n + "\n",
    "tables": lambda n: "x = " + "{1: " * n + "2" + "}" * n + "\n",
    "arguments": lambda n: "x = " + "f(a=" * n + "2" + ")" * n + "\n",
    "conditions": _blocks("if x:"),
    "classes": _blocks("class A:"),
    "definitions": _blocks("def f(x):"),
    "attempts": _blocks("with x:"),
    "waiting": lambda n: "async def f(x):\n    return " + "await (" * n + "x" + ")" * n + "\n",
    "names": lambda n: "x = " + "(y := " * n + "1" + ")" * n + "\n",
    "lookups": lambda n: "g = getattr\nx = " + "g(" * n + "y" + ", 'a')" * n + "\n",
    "patterns": lambda n: "match x:\n    case " + "A(" * n + "1" + ")" * n + ":\n        pass\n",
}  # fmt: skip


def _deepest(shape: Shape) -> int:
    """The most steps of a shape that are read."""
    low, high = 1, 4 * DEEPEST
    while low < high:
        middle = (low + high + 1) // 2
        try:
            parse(shape(middle))
            low = middle
        except DoesNotParse:
            high = middle - 1
    return low


@pytest.mark.long
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("path", ["pkg/mod.py", "tests/test_mod.py", "setup.py"])
def test_what_is_just_not_too_deep_is_read_by_every_gate(gates: PatchGates, kind: str, path: str) -> None:
    deep = SHAPES[kind](_deepest(SHAPES[kind]))
    rules(gates, "z = f(1)\n", deep + "z = f(1)\n", path)
    rules(gates, deep + "z = f(1)\n", deep.replace("x", "v") + "z = f(1)\n", path)


@pytest.mark.long
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("times", [1, 3])
def test_what_is_deeper_is_refused_by_one_rule(gates: PatchGates, kind: str, times: int) -> None:
    deep = SHAPES[kind](_deepest(SHAPES[kind]) + DEEPEST * times)
    for before, after in (("z = 1\n", deep), (deep + "z = 1\n", deep + "z = 2\n"), (deep + "z = 1\n", "z = 2\n")):
        found = rules(gates, before, after)
        assert "too-deep" in found
        assert "does-not-parse" not in found


def test_a_thread_with_little_stack_left_reads_what_is_just_not_too_deep(gates: PatchGates) -> None:
    deep = SHAPES["choices"](_deepest(SHAPES["choices"]))
    said: list[set[str]] = []

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            said.append(rules(gates, "z = 1\n", deep))

    thread = threading.Thread(target=down, args=(sys.getrecursionlimit() // 4,))
    thread.start()
    thread.join()
    assert said


@pytest.mark.long
def test_depth_is_what_the_tree_has_and_not_what_the_text_is_long(gates: PatchGates) -> None:
    flat = "x = [" + ", ".join(["1"] * 5_000) + "]\n"
    assert "too-deep" not in rules(gates, "x = []\n", flat)
    with pytest.raises(TooDeep) as answer:
        parse("y = 1\n" * 40 + SHAPES["sums"](2 * DEEPEST))
    assert answer.value.line == 41
