"""Sign: what steers a function is another: what ends its loops, how often it calls itself, what it refuses, and when.

A guard that refuses plainly more is let be, and so is a loop that is only counted otherwise. Not seen: steering by what
other functions answer.
"""

import ast
import re

from localagent.code.condition_implication import condition_of, implies, shape
from localagent.code.function_pairing import settled
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, SourceChange, differing
from localagent.text.visible_text import shortened

_STEPS = "def f(x, size):\n    at = 0\n    while at < len(x):\n        g(x[at])\n        at += size\n"
_TREE = (
    "class A:\n    def put(self, v):\n        if self.leaf:\n            self.v = v\n"
    "        else:\n            self.left.put(v)\n"
)
_SIZE = "def f(x):\n    if x.size > 9:\n        raise ValueError(x)\n    return x.read()\n"
_WRITE = "def f(x, t):\n    y = x.read()\n    if bad(y):\n        raise ValueError(y)\n    t.write(y)\n"
_KEEPS = (
    "def f(w):\n    while True:\n        if not w.is_alive():\n            w = T(target=g)\n            w.start()\n"
)
_QUERY = "def f(q, x):\n    if x:\n        q = q.filter(a=x)\n    return q\n"
_HASH = "class A:\n    def __hash__(self):\n        return hash(self.a)\n"
_JOB = "def f(job):\n    return job.result()\n"

STEERING = question(
    id="steering-changed",
    why="what ends, bounds or refuses something hangs on something else than it did",
    remedy="have a person confirm that it still ends, and still refuses what it should",
    match=(
        became(_STEPS, _STEPS.replace("at += size", "at += size if size > 1 else 0")),
        became(_STEPS, _STEPS.replace("while at < len(x)", "while not x.stopped")),
        became(_TREE, _TREE + "            self.left.put(v + 1)\n"),
        became(_SIZE, _SIZE.replace("x.size", "x.packed")),
        became(_WRITE, _WRITE.replace("    if", "    y = y or b'0'\n    if")),
        became("def f(x):\n    return g(x)\n", "def f(x):\n    return g(x, f(x.a))\n"),
        became(_WRITE, _WRITE.replace("    if", "    t.write(y)\n    if").replace("(y)\n    t.write(y)", "(y)")),
        became(_JOB, _JOB.replace("job.result()", "None if job.failed() else job.result()")),
        became(
            "def f(x):\n    for y in x.rows:\n        g(y)\n",
            "def f(x):\n    for y in x.rows * len(x.rows):\n        g(y)\n",
        ),
        became("def f(a, b):\n    copy(a, b)\n", "def f(a, b):\n    copy(source=b, target=a)\n"),
        became("def f(a, b):\n    copy(a, b)\n", "def f(a, b):\n    copy(b, a)\n"),
        became(_QUERY, _QUERY.replace("q = q.filter", "q = A.objects.filter")),
        became(
            "def f(x):\n    for y in NAMES:\n        g(y)\n", "def f(x):\n    for y in {**NAMES, **x}:\n        g(y)\n"
        ),
        became(_HASH, _HASH.replace("hash(self.a)", "1")),
        became("def f(x):\n    block = 1024\n    g(x, block)\n", "def f(x):\n    block = len(x)\n    g(x, block)\n"),
        became(_KEEPS, _KEEPS.replace("not w.is_alive()", "w.pid")),
    ),
    not_match=(
        became("def f(a, b):\n    copy(a, b)\n", "def f(a, b):\n    copy(a, c(b))\n"),
        became(_KEEPS, _KEEPS.replace("w = T(target=g)", "w = T(target=g, name='w')")),
        became(_STEPS, _STEPS.replace("g(x[at])", "h(x[at])")),
        became(_SIZE, _SIZE.replace("x.size > 9", "x.size > 9 or x.odd")),
        became(_SIZE, _SIZE.replace("x.read()", "x.read(1)")),
        became(_SIZE, _SIZE.replace("> 9", ">= 8")),
        became(_JOB, _JOB.replace("job.result()", "job.answer()")),
        became(_TREE, _TREE.replace("self.left.put(v)", "self.right.put(v)")),
    ),
)
_WIDENS = (ast.Mult, ast.Pow, ast.LShift)
_TURNS = re.compile(r"(?i)reject|forbid|abort|deny|refuse|unauthorized|off$|stop|close|disconnect|halt|lock")
_STARTS = frozenset({"start", "spawn", "fork", "Popen", "submit", "create_task", "apply_async", "restart", "launch"})
_SIZE_NAME = re.compile(r"(?i)size|limit|block|chunk|batch|max|page|depth|window|workers|timeout|retries|budget")
_MOST = 20


def steered(change: SourceChange) -> Signs:
    """(what, where) for each function that is steered by something else."""
    for name, old, new in change.pairs:
        if _ends(old) and _ends(new) and _ends(old) != _ends(new):
            yield f"{name}: what ends a loop is another", new
        was, now = _started_when(old), _started_when(new)
        if was != now and len(was) == len(now):
            yield f"{name}: something is started under another condition", new
        if _given(old) != _given(new) and sorted(map(sorted, _given(old))) == sorted(map(sorted, _given(new))):
            yield f"{name}: arguments changed places", new
        if name.endswith("__hash__"):
            yield f"{name} puts values elsewhere", new
        if bound := _unbounded(old, new):
            yield f"{name}: {bound} is no number any more", new
        if begun := _begun_anew(old, new):
            yield f"{name}: {begun} begins anew instead of being narrowed", new
        if _own_calls(old) < _own_calls(new):
            yield f"{name} calls itself more often", new
        if what := _weaker(old, new):
            yield f"{name}: what is refused is another: {shortened(what, 60)}", new
        elif _fed(old, new) != _fed(new, old):
            yield f"{name}: what a guard asks about is set otherwise", new
        effects = _effects(old), _effects(new)
        if effects[0] != effects[1] and sorted(effects[0]) == sorted(effects[1]):
            yield f"{name} does the same in another order", new
        whole = {ast.dump(n) for n in walk(old) if isinstance(n, ast.Call | ast.Attribute | ast.Subscript)}
        conditional = {ast.dump(n) for n in walk(old) if isinstance(n, ast.IfExp)}
        for node in walk(new):
            if isinstance(node, ast.IfExp) and ast.dump(node) not in conditional and (spared := _spared(node, whole)):
                yield f"{name}: {spared}", node
            elif isinstance(node, ast.For) and _is_widened(node.iter, old):
                yield f"{name} goes through more than it did", node


def _ends(function: Function) -> list[str]:
    """The conditions of loops, and the statements that set what they ask for."""
    found: list[str] = []
    for node in walk(function):
        if isinstance(node, ast.While):
            found.append(ast.unparse(node.test))
            asked = {n.id for n in walk(node.test) if isinstance(n, ast.Name)}
            for inner in walk(node):
                if isinstance(inner, ast.Assign | ast.AugAssign):
                    targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                    if asked & {t.id for t in targets if isinstance(t, ast.Name)}:
                        found.append(ast.unparse(inner))
    return sorted(found)


def _started_when(function: Function) -> list[str]:
    """The conditions under which something is started in a loop."""
    return sorted(
        ast.dump(node.test)
        for loop in walk(function)
        if isinstance(loop, ast.While | ast.For | ast.AsyncFor)
        for node in walk(loop)
        if isinstance(node, ast.If)
        and any(isinstance(n, ast.Call) and callee_name(n.func) in _STARTS for s in node.body for n in walk(s))
    )


def _given(function: Function) -> list[list[str]]:
    """What each call is given, in order; names of keywords are left out."""
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and len(n.args) + len(n.keywords) > 1]
    return [[callee_name(n.func), *(ast.unparse(v) for v in (*n.args, *(k.value for k in n.keywords)))] for n in calls]


def _unbounded(old: Function, new: Function) -> str:
    """A size that was a number and is worked out from an input now; "" if none."""
    was, now = _sizes(old), _sizes(new)
    for name, value in was.items():
        if isinstance(value, ast.Constant) and name in now and not isinstance(now[name], ast.Constant):
            return name
    return ""


def _sizes(function: Function) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and _SIZE_NAME.search(target.id)
    }


def _begun_anew(old: Function, new: Function) -> str:
    """A name that was made of itself, as `query = query.filter(x)`, and is made of something else now; "" if none."""
    was, now = _narrowings(old), _narrowings(new)
    return next((name for name, own in was.items() if name in now and now[name] < own), "")


def _narrowings(function: Function) -> dict[str, int]:
    """Names that the answer of a narrowing method is put to: how often that method was one of their own."""
    found: dict[str, int] = {}
    for node in walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
            name, func = node.targets[0].id, node.value.func
            if isinstance(func, ast.Attribute) and callee_name(func) in (
                "filter",
                "exclude",
                "where",
                "limit",
                "restrict",
            ):
                own = any(isinstance(n, ast.Name) and n.id == name for n in walk(func))
                found[name] = found.get(name, 0) + own
    return found


def _own_calls(function: Function) -> int:
    """How often a function calls something of its own name, or gives over to itself."""
    calls = sum(1 for n in walk(function) if isinstance(n, ast.Call) and callee_name(n.func) == function.name)
    gives = [n.value for n in walk(function) if isinstance(n, ast.YieldFrom)] if function.name == "__iter__" else []
    return calls + len(gives)


def _weaker(old: Function, new: Function) -> str:
    """A refusing condition in whose place one stands that does not plainly refuse as much."""
    names = settled(old), settled(new)
    gone, come = differing(_refusing(old), _refusing(new))
    if len(gone) != len(come) or len(gone) > _MOST:
        return ""
    for was, one in zip(gone, come, strict=True):
        same = shape(was) == shape(one)
        if not same and implies(condition_of(was, names[0]), condition_of(one, names[1])) is not True:
            return ast.unparse(one)
    return ""


def _refusing(function: Function) -> list[ast.expr]:
    return [n.test for n in walk(function) if isinstance(n, ast.If) and _refuses(n.body)]


def _refuses(body: list[ast.stmt]) -> bool:
    """Whether a block ends in a raise, or does nothing but turn away."""
    last = body[-1]
    value = last.value if isinstance(last, ast.Return | ast.Expr) else None
    if isinstance(last, ast.Return) and len(body) > 1 and isinstance(body[-2], ast.Expr):
        value = body[-2].value
    return isinstance(last, ast.Raise) or (
        isinstance(value, ast.Call) and _TURNS.match(callee_name(value.func)) is not None
    )


def _fed(function: Function, other: Function) -> list[str]:
    """What sets the names that guards of both functions ask about."""
    both = {ast.dump(t) for t in _refusing(function)} & {ast.dump(t) for t in _refusing(other)}
    asked = {n.id for t in _refusing(function) if ast.dump(t) in both for n in walk(t) if isinstance(n, ast.Name)}
    return sorted(
        ast.unparse(node)
        for node in walk(function)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in asked for t in node.targets)
    )


def _effects(function: Function) -> list[str]:
    """Guards and calls that are made for what they do, in their order."""
    found = [
        (n.lineno, f"if {ast.unparse(n.test)}" if isinstance(n, ast.If) else ast.unparse(n))
        for n in walk(function)
        if (isinstance(n, ast.If) and isinstance(n.body[-1], ast.Raise))
        or (isinstance(n, ast.Expr) and isinstance(n.value, ast.Call | ast.Await))
    ]
    return [text for _, text in sorted(found)]


def _spared(node: ast.IfExp, whole: set[str]) -> str:
    """What stands for one side that stood there alone, where that is nothing, in words; "" where it is not so."""
    for side, other in ((node.body, node.orelse), (node.orelse, node.body)):
        if ast.dump(side) in whole and isinstance(other, ast.Constant) and not other.value:
            return f"{other.value!r} for some inputs instead of {shortened(ast.unparse(side), 60)}"
    return ""


def _is_widened(iterated: ast.expr, old: Function) -> bool:
    """Whether a loop goes through a product or a joined list, where it did not."""
    had = {ast.dump(n.iter) for n in walk(old) if isinstance(n, ast.For)}
    if ast.dump(iterated) in had:
        return False
    if isinstance(iterated, ast.Dict):
        return any(key is None for key in iterated.keys)
    if isinstance(iterated, ast.List | ast.Tuple | ast.Set):
        return any(isinstance(e, ast.Starred) for e in iterated.elts)
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, _WIDENS) for n in walk(iterated))


CHECKS = ((STEERING, steered),)
