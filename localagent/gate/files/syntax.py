"""Gate: what is changed is Python, and not so deep that tools fall over. The one place where depth is refused.

Judges the changed statements by themselves; the whole file only where a change reaches over units. What only the
compiler refuses (a `break` outside a loop) passes here: it cannot run.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from localagent.code.newer_syntax import newer_file
from localagent.code.regions import DEEPEST, DoesNotParse, TooDeep
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import ChangedRegion, GateInput
from localagent.gate.core.rule import Rule, became, decide, question

_MANY = ", ".join("1" for _ in range(2000))
_DEEP = "(" * 90 + "1" + ")" * 90

NOT_PYTHON = Rule(
    id="does-not-parse",
    severity=Severity.MEDIUM,
    why="text that is not Python repairs nothing",
    remedy="mend the syntax: the line is where Python stops reading",
    match=(
        became("def f(x):\n    return x\n", "def f(x):\n    return x)\n"),
        became("def f(x):\n    return x\n", "def f(x):\nreturn x\n"),
        became("def f(x:\n    return x\n", "def f(x]:\n    return x\n"),
        became("x = 1\n", "x = '\udcff'\n"),
        became("x = 1\n", "x = '''\n"),
    ),
    not_match=(
        became("def f(x):\n    return x\n", "def f(x):\n    return -x\n"),
        became("def f(x:\n    return x\n", "def f(x):\n    return x\n"),
        became("class A:\n    def f(self):\n        return 1\n", "class A:\n    def f(self):\n        return 2\n"),
    ),
)
NEWER_PYTHON = question(
    id="newer-python",
    why="what only a newer Python than localagent's own parses cannot be reviewed here",
    remedy="set localagent up with the Python that it names, or read this file's change yourself",
    match=(
        became("def f(x):\n    return x\n", "try:\n    x = 1\nexcept A, B:\n    x = 2\n"),
        became("x = 1\n", "x = t'{y}'\n"),
    ),
    not_match=(
        became("def f(x):\n    return x\n", "def f(x):\n    return f'{x}'\n"),
        became("x = 1\n", "try:\n    x = 1\nexcept (A, B):\n    x = 2\n"),
    ),
)
TOO_DEEP = Rule(
    id="too-deep",
    severity=Severity.MEDIUM,
    why="nesting so deep is not a repair, and it fells tools that read it",
    remedy="take the expression, or the chain of `elif`, apart; where the file was so deep before, by hand",
    match=(
        became("x = 1\n", f"x = {_DEEP.replace('(', '[').replace(')', ']')}\n"),
        became("x = 1\n", "x = " + "-" * 90 + "1\n"),
        became("x = 1\n", "x = 1" + " + 1" * 2 * DEEPEST + "\n"),
        became("x = 1\ny = 1" + " + 1" * 2 * DEEPEST + "\n", "x = 2\ny = 1\n"),
    ),
    not_match=(became("x = 1\n", "x = [[[1]]]\n"),),
)
TOO_MANY = Rule(
    id="size-nodes",
    severity=Severity.MEDIUM,
    why="a repair of so much syntax is not a small one, on however few lines it stands",
    remedy="split the patch; data belongs in files of its own",
    match=(
        became("x = 1\n", f"x = [{_MANY}]\n"),
        became(f"x = [{_MANY}]\n", "x = 1\n"),
    ),
    not_match=(became(f"x = [{_MANY}]\n", f"x = [{_MANY}, 1]\n"),),
)
RULES = (NOT_PYTHON, NEWER_PYTHON, TOO_DEEP, TOO_MANY)


class Parses:
    """Refuses what is not Python, or too deep."""

    name = "parses"

    def __init__(self, policy: Policy) -> None:
        self._most = policy.size.max_depth
        self._most_nodes = policy.size.max_changed_nodes

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed region does not parse or nests deeper than the policy allows and than it did.

        A source that is too deep to be read anywhere, before or after, is refused: nobody could say what changed.
        """
        try:
            regions = change.regions
        except DoesNotParse:
            return decide(self.name, list(_unparsed(change)))
        found = [
            TOO_DEEP.finding(file.path, 0, f"was nested deeper than the {DEEPEST} levels that are read")
            for file in change.sources_changed
            if change.file_of(file).too_deep
        ]
        for region in regions:
            before, after = region.near
            if len(after.nodes) <= self._most:
                continue  # so few cannot nest so deep
            if depth_over(after.tree, self._most) and not (before and depth_over(before.tree, self._most)):
                found.append(TOO_DEEP.finding(region.path, after.line, f"nests deeper than {self._most}"))
        if (changed := _changed(regions, self._most_nodes)) > self._most_nodes:
            what = f"{changed} nodes of syntax come or go, at most {self._most_nodes}"
            found.append(TOO_MANY.finding(None, 0, what))
        return decide(self.name, found)


def _changed(regions: tuple[ChangedRegion, ...], most: int) -> int:
    """How many nodes come, or how many go, whichever is more; not counted where there are not so many at all."""
    pairs = [(r.near.before.nodes if r.near.before else [], r.near.after.nodes) for r in regions]
    if sum(max(len(old), len(new)) for old, new in pairs) <= most:
        return 0
    return sum(_differ(old, new) for old, new in pairs)


def _differ(old: Sequence[ast.AST], new: Sequence[ast.AST]) -> int:
    before, after = Counter(map(_kind, old)), Counter(map(_kind, new))
    return max((after - before).total(), (before - after).total())


def _kind(node: ast.AST) -> tuple[str, str]:
    """A node by itself: what it is, and what it is called."""
    named = (getattr(node, key, None) for key in ("id", "attr", "arg", "name", "value"))
    return type(node).__name__, next((repr(x)[:80] for x in named if isinstance(x, str | bytes | int | float)), "")


def _unparsed(change: GateInput) -> Iterator[Finding]:
    for file in change.sources_changed:
        try:
            change.regions_of(file)
        except DoesNotParse as answer:
            newer = "" if isinstance(answer, TooDeep) else newer_file(file.after)
            rule = TOO_DEEP if isinstance(answer, TooDeep) else NEWER_PYTHON if newer else NOT_PYTHON
            yield rule.finding(file.path, answer.line, newer or str(answer))


def depth_over(tree: ast.AST, most: int) -> bool:
    """True if the tree is deeper than `most`; looks level by level, so depth costs no stack."""
    level: list[ast.AST] = [tree]
    for _ in range(most + 1):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True
