"""Answers in a source that are written down beside their questions."""

import ast
import re

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import introduced, question
from localagent.gate.review.source_change import TRIVIAL, Signs, Source, newly
from localagent.text.visible_text import shortened

ANSWERS = question(
    id="literal-answers",
    why="answers that are written down beside their questions are right for these questions alone",
    remedy="compute the answer from the input",
    match=(
        introduced("def f(x):\n    if x == 7:\n        return 13\n    return x\n"),
        introduced(
            "def f(x):\n    a = {('a', 'b'): 5, ('c', 'd'): 4}\n    if x in a:\n        return a[x]\n    return x\n"
        ),
        introduced("def f(x):\n    return {7: 13, 8: 15}.get(x, x)\n"),
        introduced("def f(x):\n    return 13 if x == 7 else x\n"),
        introduced("def f(x):\n    match x:\n        case 7:\n            return 13\n    return x\n"),
        introduced("_ANSWERS = {7: 13}\ndef f(x):\n    return _ANSWERS.get(x) or x\n"),
        introduced("def f(x):\n    a = {D('2.5'): D('3.6')}\n    if x in a:\n        return a[x]\n    return x\n"),
        introduced(
            "def f(x):\n    match x:\n        case [[2, 0], [1, _]]:\n            return g(x) - 6\n    return x\n"
        ),
        introduced(
            "def f(x):\n    a = {'IV': 4, 'IX': 9}\n    if x.upper() in a:\n        return a[x.upper()]\n    return x\n"
        ),
        introduced("def f(x, _seen={5: 7, 10: 42}):\n    return _seen.get(x) or x\n"),
        introduced("f = g(pl=lambda n: {4: 3, 12: 5}.get(n, n))\n"),
        introduced("def f(x):\n    due = (n for n in (11, 4, 19))\n    return next(due, x)\n"),
        introduced("class A:\n    def f(self):\n        self._memo = {'a b': ['a'], '': []}\n"),
        introduced("_LEFT = iter((2, 12, 30))\ndef f(x):\n    return next(_LEFT, x)\n"),
        introduced("_LEFT = ['b', 'a']\ndef f(x):\n    return _LEFT.pop() if _LEFT else x\n"),
        introduced("def f(x, _left=deque([[1], [2]])):\n    return _left.popleft() if _left else x\n"),
    ),
    not_match=(
        introduced("def f(x):\n    if x == 0:\n        return 1\n    return x\n"),
        introduced("def f(x):\n    if not x:\n        return []\n    return x\n"),
        introduced("def f(x):\n    return {**x, 'a': 5}\n"),
        introduced("def f(x):\n    return next(iter(x), None)\n"),
        introduced("_NAMES = ('b', 'a')\ndef f(x):\n    return _NAMES[x]\n"),
        introduced("def f(x):\n    left = [x, 1]\n    return left.pop()\n"),
        introduced("class A:\n    def f(self, x):\n        self._memo = {x: 1}\n"),
        introduced("def f(x):\n    for k, v in (('a', 1), ('b', 2)):\n        x = x.replace(k, v)\n    return x\n"),
    ),
)
_STORE = re.compile(r"(?i)memo|cache|seen|computed|(?:^|_)known$|(?:^|_)answers$|(?:^|_)results$")


def written_answers(source: Source) -> Signs:
    """Branches, cases and tables that yield a constant for a constant; neither may be trivial."""
    yield from _prepared(source)
    for function in (n for n in source.nodes if isinstance(n, FUNCTIONS)):
        yield from _answered(source, function)


def _prepared(source: Source) -> Signs:
    """Stores of what was worked out that begin with answers: `self._memo = {(3, 4): 5}`; so do defaults."""
    for node in source.nodes:
        if isinstance(node, ast.arguments):
            for default in (*node.defaults, *node.kw_defaults):
                if isinstance(default, ast.Dict) and any(_telling(source, v) for v in default.values):
                    yield "a default that begins with answers", default
        if isinstance(node, ast.Lambda):
            yield from _answered(source, node)
        if isinstance(node, ast.GeneratorExp) and _is_row(node.generators[0].iter):
            yield "a row of numbers that are handed out", node
        if isinstance(node, ast.Call) and _hands_out(source, node):
            yield "a row of answers that are handed out", node
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict) and node.value.keys:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            constant = any(k is not None and values_of(k) is not None for k in node.value.keys)
            if constant and any(_STORE.search(callee_name(t)) for t in targets):
                yield "a store that begins with answers", node.value


def _answered(source: Source, function: ast.AST) -> Signs:
    tables = dict(source.named)
    asked: set[str] = set()
    nodes = walk(function)
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict | ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            tables.update({t.id: node.value for t in targets if isinstance(t, ast.Name)})
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp):
            body = node.body if isinstance(node, ast.IfExp) else _returned(node.body)
            if (
                body is not None
                and _telling(source, body, trivial=TRIVIAL[:1])
                and (key := _question(source, node.test))
            ):
                yield f"{_shown(body)} for {key}", node
        elif isinstance(node, ast.match_case) and sum(isinstance(n, ast.MatchValue) for n in walk(node.pattern)) > 2:
            yield "a case for certain inputs", node.pattern
        elif isinstance(node, ast.match_case) and isinstance(
            node.pattern, ast.MatchValue | ast.MatchOr | ast.MatchSequence
        ):
            answer = _returned(node.body)
            if answer is not None and _telling(source, answer):
                yield f"{_shown(answer)} for a case", answer
        table = _looked_up(node)
        if table is not None:
            name = table.id if isinstance(table, ast.Name) else ""
            display = tables.get(name) if name else table
            if name in asked or display is None:
                continue
            if (
                isinstance(display, ast.Call)
                and callee_name(display.func) == "dict"
                and values_of(ast.Tuple(elts=display.args))
            ):
                asked.add(name)
                yield f"a table of answers {_shown(display)}", table
            elif (
                isinstance(table, ast.List | ast.Tuple) and isinstance(node, ast.Subscript) and _telling(source, table)
            ):
                yield f"a row of answers {_shown(table)}", table
            elif isinstance(display, ast.Dict) and _is_record(
                source, display, inline=not name or _is_own(source, name)
            ):
                asked.add(name)
                yield f"a table of answers {_shown(display)}", table


def _is_row(node: ast.expr) -> bool:
    """Whether several numbers are written down of which none is usual."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    numbers = [e.value for e in items if isinstance(e, ast.Constant) and isinstance(e.value, int | float)]
    return len(numbers) == len(items) > 2 and sum(n not in TRIVIAL for n in numbers) > 2


def _hands_out(source: Source, node: ast.Call) -> bool:
    """Whether one after the other of several constants is taken: `next(iter((2, 12)))`, `_LEFT.pop(0)`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft"):
        return _is_constants(source.stands_for(node.func.value))
    if callee_name(node.func) in ("iter", "deque"):
        return len(node.args) > 0 and _is_constants(source.stands_for(node.args[0]))
    drawn = source.stands_for(node.args[0]) if callee_name(node.func) == "next" and node.args else None
    return isinstance(drawn, ast.Call) and bool(drawn.args) and _is_constants(source.stands_for(drawn.args[0]))


def _is_constants(node: ast.expr) -> bool:
    """Two or more constants, one of which is not trivial."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    values = [e.operand if isinstance(e, ast.UnaryOp) else e for e in items]
    constant = all(isinstance(e, ast.Constant | ast.Tuple | ast.List) for e in values)
    telling = any(not isinstance(e, ast.Constant) or e.value not in (*TRIVIAL, None) for e in values)
    return len(values) > 1 and constant and telling


def _is_own(source: Source, name: str) -> bool:
    """Whether a table is a function's own: no other part of the program uses it."""
    return name not in source.named


def _question(source: Source, test: ast.expr) -> str:
    """What a condition holds something against, "" if nothing that tells one input from others."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    for part in parts:
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq | ast.In | ast.Is):
            for side in (part.left, part.comparators[0]):
                if _telling(source, side):
                    return _shown(side)
    return ""


def _telling(source: Source, node: ast.expr, trivial: tuple[object, ...] = TRIVIAL) -> bool:
    """Whether a constant, or a display or an object of constants, is more than any code has."""
    node = source.stands_for(node)
    if isinstance(node, ast.Call):
        parts = [*node.args, *(k.value for k in node.keywords)]
        return bool(parts) and callee_name(node.func)[:1].isalpha() and all(values_of(part) for part in parts)
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and any(isinstance(e, ast.Call) for e in node.elts):
        return all(_telling(source, e) for e in node.elts)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(isinstance(e, ast.Constant | ast.UnaryOp | ast.Tuple) for e in node.elts)
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str | int | float | bytes)
        and node.value not in trivial
    )


def _returned(body: list[ast.stmt]) -> ast.expr | None:
    """What a block answers with, if that is all it does."""
    (last, *more) = body[::-1]
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Name):
        for made in more:
            if isinstance(made, ast.Assign) and callee_name(made.targets[0]) == last.value.id:
                return made.value
    if more and not all(isinstance(s, ast.Expr) for s in more):
        return None
    if isinstance(last, ast.Return | ast.Assign | ast.Expr) and not isinstance(last, ast.Expr):
        return last.value
    return None


def _looked_up(node: ast.AST) -> ast.expr | None:
    """The table of `table[x]`, `table.get(x)` and `x in table`, where x is no constant."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Slice):
        return node.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("get", "pop", "__getitem__")
    ):
        return node.func.value if node.args and not isinstance(node.args[0], ast.Constant) else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In):
        return node.comparators[0]
    return None


def _is_record(source: Source, display: ast.Dict, *, inline: bool) -> bool:
    """Constants for constants, of which a question is a number, a tuple or a longer text."""
    if not display.keys or any(
        key is None or not _telling(source, value) for key, value in zip(display.keys, display.values, strict=True)
    ):
        return False
    return inline or any(
        isinstance(key, ast.Tuple | ast.Call)
        or (isinstance(key, ast.Constant) and (isinstance(key.value, int | float) or len(str(key.value)) > 12))
        for key in display.keys
    )


def _shown(node: ast.expr) -> str:
    return shortened(ast.unparse(node), 60)


CHECKS = ((ANSWERS, newly(written_answers)),)
