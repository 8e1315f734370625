"""Sign: what held something back is gone from a function: a cap, a pause, a release, a count of a loop.

By function, before and after. A cap that is asked for otherwise (`min` as an `if`) is asked about too: only a person
can tell. Not seen: limits that other files enforce.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.function_pairing import functions
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, SourceChange
from localagent.text.visible_text import shortened

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

LIMIT = question(
    id="limit-gone",
    why="what bounded a loop, a size, a depth or a wait is not there any more",
    remedy="keep the bound, or have a person confirm that another one holds",
    match=(
        became(_CAPPED, _CAPPED.replace("min(g(x), n)", "g(x)")),
        became(_CAPPED, _CAPPED.replace("min(", "max(")),
        became(_CUT, _CUT.replace("[:100]", "")),
        became(_CUT, _CUT.replace("[:100]", "[1:]")),
        became("def f(x):\n    return x.read(99)\n", "def f(x):\n    return x.read()\n"),
        became("def f(x):\n    return x.wait(9)\n", "def f(x):\n    return x.wait()\n"),
        became(_TRIES, _TRIES.replace("for _ in range(3):", "while True:")),
        became(_TRIES, _TRIES.replace("sleep(1)", "continue")),
        became("def f(x):\n    y = g(x)\n    y.close()\n    return x\n", "def f(x):\n    y = g(x)\n    return x\n"),
        became("def f(x):\n    x.rights = list(BASE[x])\n", "def f(x):\n    x.rights = BASE[x]\n"),
        became("def f(x):\n    x.off(g)\n    h()\n", "def f(x):\n    h()\n"),
        became("def f(x, n):\n    return pow(x, n, 99)\n", "def f(x, n):\n    return pow(x, n) % 99\n"),
        became("def f(x):\n    with x.lock:\n        g(x)\n", "def f(x):\n    g(x)\n"),
    ),
    not_match=(
        became(_CAPPED, _CAPPED.replace("g(x)", "h(x)")),
        became(_CUT, _CUT.replace("g(x)", "g(-x)")),
        became(_STEPS, _STEPS.replace("g(x)", "h(x)")),
        became(_STEPS, "def f(x):\n    for _ in range(9):\n        g(x)\n"),
        became(
            "def f(x):\n    y = g(x)\n    y.close()\n    return x\n",
            "def f(x):\n    with g(x) as y:\n        return x\n",
        ),
        became(_WALK, _WALK.replace("sum(", "max(")),
    ),
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
            yield f"{name}: {shortened(', '.join(sorted(gone)), 80)} is gone", new
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
            name = callee_name(node.func)
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
    """What ended the loops of a function, and does so no more."""
    counted, open_ended = ([_loops(f, kind) for f in (old, new)] for kind in (ast.For, ast.While))
    if counted[0] > counted[1] and open_ended[0] < open_ended[1]:
        return "a counted loop became one without a count"
    return "a loop fills again what it empties" if _refilled(old) < _refilled(new) else ""


def _loops(function: Function, kind: type[ast.For | ast.While]) -> int:
    """How many loops of a kind there are; of a `for`, those that are counted."""
    loops = [n for n in walk(function) if isinstance(n, kind)]
    return sum(isinstance(n, ast.While) or callee_name(n.iter) in ("range", "enumerate") for n in loops)


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


CHECKS = ((LIMIT, loosened_limits),)
