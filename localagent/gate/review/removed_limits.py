"""Sign: what held something back is gone from a function: a cap, a pause, a way out, a release, a step that moves on.

By function, before and after. A cap that is asked for otherwise (`min` as an `if`) is asked about too: only a person
can tell. Not seen: limits that other files enforce.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import last_name
from localagent.code.function_pairing import Function, functions
from localagent.code.regions import walk
from localagent.domain.gate import Severity
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.review.source_change import Signs, SourceChange

_CAPPED = "def f(x, n):\n    return min(g(x), n)\n"
_CUT = "def f(x):\n    return g(x)[:100]\n"
_WALK = (
    "def f(node, seen):\n    if node in seen:\n        return 0\n    seen.add(node)\n"
    "    return sum(f(n, seen) for n in node.next)\n"
)
_STEPS = "def f(x):\n    n = 0\n    while n < 9:\n        g(x)\n        n += 1\n"
_TRIES = (
    "def f(x):\n    for _ in range(3):\n        try:\n            return g(x)\n"
    "        except OSError:\n            sleep(1)\n    raise Failed(x)\n"
)

LIMIT = Rule(
    id="limit-gone",
    severity=Severity.MEDIUM,
    why="what bounded a loop, a size, a depth or a wait is not there any more",
    remedy="keep the bound, or have a person confirm that another one holds",
    match=(
        RuleExample(before=_CAPPED, after=_CAPPED.replace("min(g(x), n)", "g(x)")),
        RuleExample(before=_CAPPED, after=_CAPPED.replace("min(", "max(")),
        RuleExample(before=_CUT, after=_CUT.replace("[:100]", "")),
        RuleExample(before=_CUT, after=_CUT.replace("[:100]", "[1:]")),
        RuleExample(before="def f(x):\n    return x.read(99)\n", after="def f(x):\n    return x.read()\n"),
        RuleExample(before="def f(x):\n    return x.wait(9)\n", after="def f(x):\n    return x.wait()\n"),
        RuleExample(before=_WALK, after=_WALK.replace("    if node in seen:\n        return 0\n", "")),
        RuleExample(before=_WALK, after=_WALK.replace("    seen.add(node)\n", "")),
        RuleExample(before=_STEPS, after=_STEPS.replace("        n += 1\n", "")),
        RuleExample(before=_TRIES, after=_TRIES.replace("for _ in range(3):", "while True:")),
        RuleExample(before=_TRIES, after=_TRIES.replace("sleep(1)", "continue")),
        RuleExample(
            before="def f(x):\n    for y in x:\n        if y > 9:\n            break\n        g(y)\n",
            after="def f(x):\n    for y in x:\n        g(y)\n",
        ),
        RuleExample(
            before="def f(x):\n    y = g(x)\n    y.close()\n    return x\n",
            after="def f(x):\n    y = g(x)\n    return x\n",
        ),
        RuleExample(before="def f(x):\n    x.rights = list(BASE[x])\n", after="def f(x):\n    x.rights = BASE[x]\n"),
        RuleExample(before="def f(x):\n    x.off(g)\n    h()\n", after="def f(x):\n    h()\n"),
        RuleExample(
            before="def f(x, n):\n    return pow(x, n, 99)\n", after="def f(x, n):\n    return pow(x, n) % 99\n"
        ),
        RuleExample(before="def f(x):\n    with x.lock:\n        g(x)\n", after="def f(x):\n    g(x)\n"),
    ),
    not_match=(
        RuleExample(before=_CAPPED, after=_CAPPED.replace("g(x)", "h(x)")),
        RuleExample(before=_CUT, after=_CUT.replace("g(x)", "g(-x)")),
        RuleExample(before=_STEPS, after=_STEPS.replace("g(x)", "h(x)")),
        RuleExample(before=_STEPS, after="def f(x):\n    for _ in range(9):\n        g(x)\n"),
        RuleExample(
            before="def f(x):\n    y = g(x)\n    y.close()\n    return x\n",
            after="def f(x):\n    with g(x) as y:\n        return x\n",
        ),
        RuleExample(before=_WALK, after=_WALK.replace("sum(", "max(")),
    ),
    asks_person=True,
)
_HOLDS = re.compile(
    r"(?i)^(?:min|islice|clip|clamp|limit|truncate|takewhile|sleep|throttle|backoff|wait_for|close|aclose|release|cancel"
    r"|shutdown|terminate|kill|unlink|cleanup|evict|expire|popleft|popitem|discard|task_done|closing|alarm"
    r"|off|unsubscribe|disconnect|remove_\w*(?:listener|callback|handler)|removeListener|Semaphore|BoundedSemaphore|CapacityLimiter|Limiter|Lock|RLock|rollback|flush|fsync|paginate|chunked|batched)$"
)
_BOUNDED = frozenset(
    {"read", "readline", "readlines", "recv", "wait", "join", "get", "acquire", "result", "poll", "select"}
)
_TAKES = frozenset({"get", "get_nowait", "pop", "popleft", "popitem", "heappop"})
_PUTS = frozenset({"put", "put_nowait", "append", "appendleft", "extend", "insert", "add"})
_EXCUSED = frozenset({"get", "join", "result"})
_GUARDS = re.compile(r"(?i)lock|semaphore|limit|mutex|guard|timeout|transaction|atomic|closing|pool|connection")


def loosened_limits(change: SourceChange) -> Signs:
    """(what, where) for each function that lost what held it back."""
    for name, old, new in change.pairs:
        gone = Counter(_holds(old)) - Counter(_holds(new))
        if gone and not _is_elsewhere(gone, change):
            yield f"{name}: {', '.join(sorted(gone))[:80]} is gone", new
        elif what := _unended(old, new):
            yield f"{name}: {what}", new


def _is_elsewhere(gone: Counter[str], change: SourceChange) -> bool:
    """Whether a source has as many of each as before: the part moved to another function."""
    whole = Counter(h for _, f in functions(change.before.tree) for h in _holds(f)) - Counter(
        h for _, f in functions(change.after.tree) for h in _holds(f)
    )
    return not gone & whole


def _holds(function: Function) -> Iterator[str]:
    """What holds a function back, by name."""
    for node in walk(function):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name == "pow" and len(node.args) == 3:
                yield "the modulus of pow"
            elif (
                name in ("list", "dict", "set", "copy", "deepcopy") and len(node.args) == 1 and _is_shared(node.args[0])
            ):
                yield "a copy of what is shared"
            elif _HOLDS.match(name):
                yield "a close" if name in ("close", "aclose", "closing") else name
            elif name in _BOUNDED and isinstance(node.func, ast.Attribute) and _is_bounded(node, name):
                yield f"the bound of {name}"
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            if node.slice.upper is not None and not isinstance(node.slice.upper, ast.UnaryOp):
                yield "a cut"
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if _GUARDS.search(ast.unparse(item.context_expr)[:80]):
                    yield "a close" if item.optional_vars is not None else "a lock"
                elif item.optional_vars is not None:
                    yield "a close"


def _is_shared(node: ast.expr) -> bool:
    """A constant of the module, or an entry of one."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id.isupper()


def _is_bounded(node: ast.Call, name: str) -> bool:
    timed = any(k.arg in ("timeout", "n", "size", "block") for k in node.keywords)
    return timed or (bool(node.args) and name not in _EXCUSED)


def _unended(old: Function, new: Function) -> str:
    """What ended the loops and the recursion of a function, and does so no more."""
    was, now = _loops(old), _loops(new)
    if was["range"] > now["range"] and now["while"] > was["while"]:
        return "a counted loop became one without a count"
    if was["loops"] and now["loops"] >= was["loops"]:
        if was["break"] > now["break"]:
            return "a way out of a loop is gone"
        if was["step"] > now["step"] and now["while"] >= was["while"]:
            return "a step of a loop is gone"
    if (
        (was["loops"] or _calls_itself(old))
        and was["gain"] > now["gain"]
        and now["loops"] >= was["loops"]
        and now["while"] >= was["while"]
    ):
        return "a step is gone"
    if _refilled(old) < _refilled(new):
        return "a loop fills again what it empties"
    if _calls_itself(new) and _calls_itself(old):
        if was["test"] > now["test"] or was["mark"] > now["mark"]:
            return "a call of itself is bounded by less"
    elif now["loops"] and was["loops"] and was["mark"] > now["mark"]:
        return "what was seen already is not remembered"
    return ""


def _loops(function: Function) -> Counter[str]:
    """Loops, their ways out and their steps; conditions that answer; marks of what was seen."""
    found: Counter[str] = Counter()
    nodes = walk(function)
    for node in nodes:
        if isinstance(node, ast.For | ast.AsyncFor):
            found["range"] += isinstance(node.iter, ast.Call) and last_name(node.iter.func) in ("range", "enumerate")
            found["loops"] += 1
        elif isinstance(node, ast.While):
            found["while"] += 1
            found["loops"] += 1
            found["step"] += sum(1 for s in node.body for n in walk(s) if isinstance(n, ast.AugAssign))
        elif isinstance(node, ast.AugAssign):
            found["gain"] += 1
        elif isinstance(node, ast.Break):
            found["break"] += 1
        elif isinstance(node, ast.If) and any(isinstance(s, ast.Return | ast.Raise | ast.Continue) for s in node.body):
            found["test"] += 1
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found["mark"] += node.func.attr in ("add", "discard", "remove", "pop", "popleft", "heappop", "task_done")
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            found["mark"] += isinstance(node.comparators[0], ast.Name | ast.Attribute)
    return found


def _refilled(function: Function) -> int:
    """How often a loop puts something into what it takes from."""
    count = 0
    for loop in walk(function):
        if isinstance(loop, ast.While):
            calls = [n.func for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
            emptied = {ast.dump(func.value) for func in calls if func.attr in _TAKES}
            fills = [ast.dump(func.value) for func in calls if func.attr in _PUTS]
            own = ast.dump(ast.Name(id="self", ctx=ast.Load()))
            count += sum(1 for fill in fills if fill in emptied or (emptied and fill == own))
    return count


def _calls_itself(function: Function) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == function.name for n in walk(function))
