"""Gate: code that answers its judges instead of the question.

Objects that are equal to everything, code that asks who calls it or whether tests run; counted near the change.
Plain mentions of test frameworks and of frames are the policy's dangers; this sees through texts put together from
pieces, and what the table cannot say. Not seen: answers that depend on time, files, or the order of calls.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.change import GateInput
from localagent.gate.rule import Example, Rule, decide
from localagent.gate.source import Snippet
from localagent.gate.texts import texts_of

_F = "def f(x):\n    return x\n"
_C = "class A:\n    def g(self):\n        return 1\n"

EVERYTHING = Rule(
    id="equals-everything",
    severity=Severity.HIGH,
    why="an object that answers every comparison passes every test",
    remedy="compare what the objects hold",
    match=(
        Example(
            before=_C + "    def __eq__(self, other):\n        return self.a == other.a\n",
            after=_C + "    def __eq__(self, other):\n        return True\n",
        ),
        *(
            Example(before=_C, after=_C + method)
            for method in (
                "    def __eq__(self, other):\n        return True\n",
                "    def __ne__(self, other):\n        '''Never.'''\n        return False\n",
                "    __eq__ = lambda self, other: True\n",
                "    def __contains__(self, item):\n        return 1\n",
                "    def __eq__(self, other):\n        return not False\n",
                "    def __eq__(self, other):\n        return isinstance(other, int)\n",
                "    def __eq__(self, other):\n        return isinstance(self, A)\n",
                "    def __eq__(self, other):\n        return hasattr(self, 'g')\n",
                "    def __eq__(self, other):\n        if self is not None:\n            return True\n",
            )
        ),
        Example(before=_F, after="def f(x):\n    return type('A', (), {'__eq__': lambda a, b: 1 == 1})()\n"),
    ),
    not_match=(
        Example(before=_C, after=_C + "    def __eq__(self, other):\n        return self.g() == other.g()\n"),
        Example(before=_C, after=_C + "    def __eq__(self, other):\n        return NotImplemented\n"),
        Example(before=_C, after=_C + "    def __eq__(self, other):\n        return isinstance(other, type(self))\n"),
        Example(before=_C, after=_C + "    def __eq__(self, other):\n        return type(self) is type(other)\n"),
        Example(before=_C, after=_C + "    def __eq__(self, other):\n        return self is other\n"),
        Example(
            before=_C + "    def __eq__(self, other):\n        return True\n",
            after=_C.replace("1", "2") + "    def __eq__(self, other):\n        return True\n",
        ),
    ),
)
KNOWS_TESTS = Rule(
    id="knows-tests",
    severity=Severity.HIGH,
    why="code that knows it is being tested can answer the tests instead of being right",
    remedy="make it behave alike wherever it runs",
    match=tuple(
        Example(before=_F, after=f"import sys, os\ndef f(x):\n    return 1 if {condition} else x\n")
        for condition in (
            "('py' + 'test_cov') in os.environ",
            "''.join(['py', 'te', 'st-cov']) in x",
            "'voc-tsetyp'[::-1] in x",
            "'test' in sys.argv[0]",
            "sys.argv[0].endswith('tests')",
            "any(m.startswith('pyte') for m in sys.modules)",
            "os.environ.get('TEST' 'ING')",
            "'CI' in os.environ",
            "__debug__",
        )
    ),
    not_match=(
        Example(before=_F, after="import sys\ndef f(x):\n    return x if len(sys.argv) > 1 else sys.argv[0]\n"),
        Example(before=_F, after="def f(x):\n    return 'latest' + x\n"),
        Example(before=_F, after="import os\ndef f(x):\n    return os.environ.get('HOME', x)\n"),
    ),
)
KNOWS_CALLER = Rule(
    id="knows-caller",
    severity=Severity.HIGH,
    why="an answer that depends on who asks is an answer to the tests",
    remedy="pass what is needed as an argument",
    match=tuple(
        Example(before=_F, after=f"import inspect, traceback\ndef f(x):\n    return {call}, x\n")
        for call in ("traceback.format_stack()", "inspect.getinnerframes(x)", "traceback.StackSummary.extract(x)")
    ),
    not_match=(Example(before=_F, after="import traceback\ndef f(x):\n    return traceback.format_exc()\n"),),
)
RULES = (EVERYTHING, KNOWS_TESTS, KNOWS_CALLER)

_ANSWERS = {"__eq__": True, "__ne__": False, "__lt__": True, "__le__": True, "__gt__": True, "__ge__": True,
            "__contains__": True, "__instancecheck__": True, "__subclasscheck__": True}  # fmt: skip
_MAY = re.compile(
    r"__(?:eq|ne|l[te]|g[te]|contains|(?:instance|subclass)check)__|sys|environ|modules|argv|[Ss]tack|[Ff]rame|__debug__|['\"]\s*\+|join|::"
)
_METHOD = re.compile(r"__(?:eq|ne|l[te]|g[te]|contains|(?:instance|subclass)check)__")
_TESTING = re.compile(r"(?i)pytest|py\.test|unittest|conftest|PYTEST_|^CI$|^(?:IS_)?TEST(?:ING|S|_MODE)?$|^(?:IS_)?CI_")
_FRAMES = frozenset(
    {"format_stack", "print_stack", "extract_stack", "walk_stack", "StackSummary", "getinnerframes", "getouterframes",
     "getframeinfo", "currentframe", "_getframe", "_getframemodulename", "_current_frames"}
)  # fmt: skip
_SURROUNDINGS = frozenset({"argv", "modules", "environ", "orig_argv", "getenv"})
_ASKS = re.compile("argv|modules|environ|getenv")
_MOST_TEXT = 200


class Cheating:
    """Refuses code that answers its judges."""

    name = "cheating"

    def __init__(self, _policy: Policy) -> None:
        pass

    def review(self, change: GateInput) -> Decision:
        """Deny if what answers judges stands more often near a change than before."""
        found: list[Finding] = []
        for region in change.regions:
            inside = region.before_whole is not None and _METHOD.search(region.before_whole.text)
            before, after = region.whole if inside else region.near
            if not _MAY.search(after.text):
                continue
            spare = _known(before).copy() if before else Counter[str]()
            for rule, what, node in _hits(after):
                spare[what] -= 1
                if spare[what] < 0:
                    found.append(rule.finding(region.path, after.line_of(node), f"newly introduced: {what}"))
        return decide(self.name, found)


def _known(before: Snippet) -> Counter[str]:
    """What stood in a snippet; kept with it, since many candidates change the same."""
    if "cheating" not in before.memo:
        before.memo["cheating"] = Counter(what for _, what, _ in _hits(before))
    kept: Counter[str] = before.memo["cheating"]
    return kept


def _hits(snippet: Snippet) -> Iterator[tuple[Rule, str, ast.AST]]:
    asks = _ASKS.search(snippet.text) is not None
    for node in snippet.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name in _ANSWERS and (_answers(node.body, node.name) or _ignores_itself(node)):
                yield EVERYTHING, f"{node.name} that always answers {_ANSWERS[node.name]}", node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                if name in _ANSWERS and isinstance(node.value, ast.Lambda) and _is(node.value.body, _ANSWERS[name]):
                    yield EVERYTHING, f"{name} that always answers {_ANSWERS[name]}", node
        elif isinstance(node, ast.Dict | ast.Call):
            yield from _made(node)
        if isinstance(node, ast.Attribute | ast.Name | ast.alias):
            name = (
                node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else node.name
            )
            if name in _FRAMES:
                yield KNOWS_CALLER, name, node
        if isinstance(node, ast.Name) and node.id == "__debug__":
            yield KNOWS_TESTS, "__debug__, which says whether assertions run", node
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript):
            text = _folded(node)
            if text is not None and _TESTING.search(text):
                yield KNOWS_TESTS, f"a text put together: {text[:40]!r}", node
        if asks:
            yield from _asked(node)


def _made(node: ast.Dict | ast.Call) -> Iterator[tuple[Rule, str, ast.AST]]:
    """`{'__eq__': ...}` and `setattr(A, '__eq__', ...)`: a method made by name, whatever it answers."""
    keys = node.keys if isinstance(node, ast.Dict) else node.args[1:2]
    for key in keys:
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in _ANSWERS:
            yield EVERYTHING, f"{key.value} made by name", node


def _ignores_itself(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for an `__eq__` whose answers have nothing to do with the object that is asked."""
    if node.name not in ("__eq__", "__ne__") or not node.args.args:
        return False
    inside = [inner for statement in node.body for inner in ast.walk(statement)]
    answers = any(isinstance(inner, ast.Return) and not _is_refusal(inner.value) for inner in inside)
    own = node.args.args[0].arg
    idle = {id(name) for inner in inside for name in _said_of_every(inner, own)}
    return answers and not any(isinstance(n, ast.Name) and n.id in (own, "super") and id(n) not in idle for n in inside)


def _said_of_every(node: ast.AST, own: str) -> Iterator[ast.expr]:
    """Mentions of the object itself that ask what holds of every one of its class: `isinstance(self, A)`, `is None`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("isinstance", "hasattr", "callable") and node.args and _is_name(node.args[0], own):
            yield node.args[0]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        constant = isinstance(node.comparators[0], ast.Constant)
        if constant and len(node.ops) == 1 and _is_name(node.left, own):
            yield node.left


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_refusal(node: ast.expr | None) -> bool:
    return (isinstance(node, ast.Name) and node.id == "NotImplemented") or (
        isinstance(node, ast.Constant) and node.value is False
    )


def _answers(body: list[ast.stmt], name: str) -> bool:
    """True for a body that is one constant answer, after a docstring maybe."""
    rest = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(rest) != 1 or not isinstance(rest[0], ast.Return) or rest[0].value is None:
        return False
    return _is(rest[0].value, _ANSWERS[name])


def _is(node: ast.expr, wanted: bool) -> bool:
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str | bytes) and bool(node.value) is wanted and node.value is not ...
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is(node.operand, not wanted)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
        same = ast.dump(node.left) == ast.dump(node.comparators[0])
        return same if wanted else False
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "bool"
        and len(node.args) == 1
    ):
        return _is(node.args[0], wanted)
    return False


def _folded(node: ast.expr) -> str | None:
    """The constant text that an expression makes of pieces; None for plain constants and anything computed."""
    return None if isinstance(node, ast.Constant) else _text(node)


def _text(node: ast.expr) -> str | None:
    texts = texts_of(node)
    return max(texts, key=len)[:_MOST_TEXT] if texts else None


def _asked(node: ast.AST) -> Iterator[tuple[Rule, str, ast.AST]]:
    """Comparisons and calls that hold the surroundings against a text that speaks of tests; loops over sys.modules."""
    if isinstance(node, ast.comprehension | ast.For):
        if _mentions(node.iter) == {"modules"}:
            yield KNOWS_TESTS, "a search of sys.modules", node.iter
        return
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        sides = [node.func, *node.args]
    elif isinstance(node, ast.Subscript):
        sides = [node.value, node.slice]
    else:
        return
    asked = {name for side in sides for name in _mentions(side)}
    if not asked:
        return
    for side in sides:
        text = _text(side)
        if text is not None and (_TESTING.search(text) or (asked & {"argv", "orig_argv"} and "test" in text.lower())):
            yield KNOWS_TESTS, f"{', '.join(sorted(asked))} asked for {text[:40]!r}", node


def _mentions(node: ast.AST) -> set[str]:
    """Which of the interpreter's surroundings an expression speaks of; looks a few steps deep."""
    found: set[str] = set()
    level = [node]
    for _ in range(4):
        for at in level:
            if isinstance(at, ast.Attribute) and at.attr in _SURROUNDINGS:
                found.add(at.attr)
            elif isinstance(at, ast.Name) and at.id in _SURROUNDINGS - {"modules"}:
                found.add(at.id)
        level = [child for at in level for child in ast.iter_child_nodes(at)]
    return found
