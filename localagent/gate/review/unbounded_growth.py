"""Sign: work, memory or processes that grow without a bound that anybody could see.

Loops that nothing leaves, calls of oneself that get no further, caches that forget nothing, patterns that take
exponential or polynomial time, combinations of everything, numbers that double. Not seen: how large inputs are.
"""

import ast
from collections.abc import Iterator
from typing import cast

from localagent.code.bindings import FUNCTIONS
from localagent.code.function_pairing import functions
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import PLAIN, became, inserted, question
from localagent.gate.review.recursion import calls_itself_again
from localagent.gate.review.regex_backtracking import slow_time
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.gate.review.unbounded_caches import FILLS, base_of, forgetless

_C = "class A:\n    def f(self, x):\n        return x\n"

GROWTH = question(
    id="grows-unbounded",
    why="time, memory or processes grow with nothing that would end or bound them",
    remedy="bound it by a limit that stands beside it, or have a person confirm that the input is small",
    match=(
        inserted("while True:\n        g(x)"),
        inserted("for n in itertools.count():\n        g(n)"),
        inserted("y = [0] * 10**10"),
        inserted("for y in x:\n        x.append(y)"),
        inserted("return f(x)"),
        inserted("return f(x - 1) + f(x - 2)"),
        inserted("try:\n        g(x)\n    except OSError:\n        return f(x, 1)"),
        inserted("for y in x:\n        y += y"),
        inserted("while z := x.read():\n        y.extend(z * len(y))"),
        inserted("while any('$' in y for y in x):\n        x = g(x)"),
        inserted("for y in x:\n        z = z + z"),
        inserted("while x:\n        x = x ** 2"),
        inserted("y = re.compile(r'(?:a+)+b')"),
        inserted("y = re.compile(r'.*,?.*,?.*')"),
        inserted("y = list(itertools.permutations(x))"),
        inserted("y = list(product(x, repeat=x.n))"),
        inserted("y = 1 << x"),
        inserted("y = 9**9**9"),
        inserted("y = 2 ** (x ** 5)"),
        inserted("y = x.ljust(x.most * 40)"),
        inserted("for y in range(x * x):\n        g(y)"),
        inserted("y = x << 26"),
        inserted("y = list(count())"),
        inserted("y = sum(itertools.cycle(x))"),
        inserted("for y in iter(x.read, ''):\n        pass"),
        inserted("time.sleep(86400)"),
        inserted("x.truncate(1 << 40)"),
        inserted("x.tasks.append(x.Thread(target=f))"),
        became(
            PLAIN.replace("return", "Thread(target=g)\n    return"),
            PLAIN.replace("return", "Thread(target=f)\n    return"),
        ),
        inserted("x.loop.call_soon(f)"),
        inserted("x.on('a', f)"),
        inserted("for y in x:\n        z += g(y) + z"),
        inserted("y = np.ones((len(x),) * 3)"),
        inserted("[a for a in x for b in x for c in x]"),
        became(_C, _C.replace("    def", "    @lru_cache(maxsize=None)\n    def")),
        became(_C, _C.replace("    def", "    @cache\n    def")),
    ),
    not_match=(
        inserted("while True:\n        if g(x):\n            break"),
        inserted("while x.a > 0:\n        x.a -= 1"),
        inserted("while x:\n        x = x.parent"),
        inserted("while len(y) < 5:\n        y.append(x)"),
        inserted("for y in x.parts:\n        g(y)"),
        inserted("y = [f(z) for z in x.children]"),
        inserted("return f(x.parent)"),
        inserted("y = re.compile(r'(?:\\\\w+\\\\.)+b')"),
        inserted("y = 1 << 3"),
        inserted("y = x ** 2"),
        inserted("y = 2**4096 - 1"),
        inserted("y = 2 ** min(x, 10)"),
        inserted("y = '%08d %s' % (x, 20261231)"),
        inserted("y = f'{x:>12} 99999999'"),
        inserted("y = combinations(x, 2)"),
        inserted("x.seen.append(x)"),
        inserted("[(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) for y in x]"),
        inserted("time.sleep(0.1)"),
        inserted("y = max(x.count('a'), 3)"),
        became(_C, _C.replace("return x", "return f(x)")),
        became(PLAIN, "@lru_cache(maxsize=128)\n" + PLAIN),
        became(PLAIN, "@cache\n" + PLAIN),
        became(PLAIN, "SEEN = []\n" + PLAIN),
    ),
)
_STARTS = frozenset(
    {"Thread", "Process", "Timer", "fork", "forkpty", "ThreadPoolExecutor", "ProcessPoolExecutor", "Pool", "ThreadPool",
     "start_new_thread", "run_in_executor", "start_soon", "create_subprocess_exec"}
)  # fmt: skip
_LATER = frozenset({
    "on", "subscribe", "connect", "add_listener", "addListener", "register", "call_soon", "call_later", "call_at",
    "call_soon_threadsafe", "add_done_callback", "enterabs", "enter", "after",
})  # fmt: skip
_COMBINES = frozenset({"permutations", "combinations", "combinations_with_replacement", "product", "powerset"})
_TAKES_ALL = frozenset(
    {"list", "tuple", "sorted", "set", "sum", "max", "min", "len", "dict", "deque", "join", "frozenset"}
)
_SIZED = frozenset({"range", "bytearray", "ljust", "rjust", "zfill", "center", "repeat", "zeros", "ones", "full"})
_NEVER_ENDS = frozenset({"count", "cycle"})
_PATTERNS = frozenset(
    {"compile", "match", "search", "fullmatch", "sub", "subn", "findall", "finditer", "split", "RegexValidator"}
)
_LONG = 3_600
_LARGE = 10_000_000
_SHIFTED = 20
_LARGEST_POWER = 100_000
_WAYS_OUT = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


def grows(source: Source) -> Signs:
    """Every sign of unbounded growth of a source."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            yield from ((what, node) for what in _called(source, node))
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            if _swells(node):
                yield "a number that grows by powers or shifts", node
            elif isinstance(node.op, ast.Mult) and isinstance(node, ast.BinOp) and _number(node.right) >= _LARGE:
                yield "a size without measure", node
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            yield from _looped(node)
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            over = [ast.dump(g.iter) for g in node.generators if not isinstance(g.iter, ast.Tuple | ast.List)]
            if len(over) > 2 and len(set(over)) < len(over):
                yield "everything with everything with everything", node
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from forgetless(node)
    for name, function in functions(source.tree):
        yield from _begins_itself(name.rpartition(".")[2], function)
        yield from calls_itself_again(name.rpartition(".")[2], function)


def _begins_itself(name: str, function: Function) -> Signs:
    """What a function starts beside itself is itself, or its whole answer: twice as many each time."""
    for node in walk(function):
        if isinstance(node, ast.Call) and callee_name(node.func) in _STARTS | _LATER:
            given = [*node.args, *(k.value for k in node.keywords if k.arg in ("target", "function", "callback"))]
            if any(isinstance(n, ast.Name | ast.Attribute) and callee_name(n) == name for g in given for n in walk(g)):
                yield f"{name} starts itself beside", node


def _called(source: Source, node: ast.Call) -> Iterator[str]:
    name = callee_name(node.func)
    if name in _STARTS:
        yield f"{name} starts something beside"
    elif name in _PATTERNS and node.args:
        first = source.stands_for(node.args[0])
        texts = values_of(first) or ()
        written = (text.decode("latin-1") if isinstance(text, bytes) else text for text in texts)
        slow = {slow_time(text) for text in written if isinstance(text, str)} - {""}
        if slow:
            yield f"a pattern that takes {min(slow)} time: its repeats can share one text in many ways"
    elif name in _COMBINES and not _is_measured(node):
        yield f"{name} of everything"
    elif name == "sleep" and node.args and _number(node.args[0]) >= _LONG:
        yield "a very long sleep"
    elif name == "iter" and len(node.args) == 2:
        yield "a repeat until an answer that may never come"
    elif name in _TAKES_ALL and any(_never_ends(a) for a in node.args):
        yield "all of what never ends"
    if name in _SIZED and any(_is_squared(a) for a in node.args):
        yield f"{name} of a product"
    given = [*node.args, *(k.value for k in node.keywords if k.arg not in ("seed", "default"))]
    if any(_number(value) >= _LARGE for value in given):
        yield f"{name} is given a very large number"


def _never_ends(node: ast.expr) -> bool:
    """`count()`, `itertools.cycle(x)`; no method of that name, as `text.count("a")`."""
    if not isinstance(node, ast.Call) or callee_name(node.func) not in _NEVER_ENDS:
        return False
    func = node.func
    return isinstance(func, ast.Name) or base_of(func) in ("itertools", "it")


def _is_squared(node: ast.expr) -> bool:
    """A product of two things that are not constants."""
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Tuple) and len(node.left.elts) == 1:
        return isinstance(node.op, ast.Mult) and _number(node.left.elts[0]) < 0
    return any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and _number(n.left) < 0 and _number(n.right) < 0
        for n in walk(node)
    ) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and max(map(_number, (node.left, node.right))) > 9
    )


def _is_measured(node: ast.Call) -> bool:
    """Whether few things are combined: `combinations(x, 2)`, `product(a, b)`."""
    if callee_name(node.func) == "product":
        return not any(k.arg == "repeat" and _number(k.value) not in (1, 2, 3) for k in node.keywords)
    sizes = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "r")]
    return bool(sizes) and _number(sizes[0]) in (1, 2, 3)


def _number(node: ast.expr) -> float:
    """What an expression of constants comes to, -1 if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(min(node.value, 1e300))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Pow | ast.LShift):
        left, right = _number(node.left), _number(node.right)
        if left < 0 or right < 0:
            return -1.0
        if isinstance(node.op, ast.Mult):
            return left * right
        try:
            return float(left**right if isinstance(node.op, ast.Pow) else left * 2.0**right)
        except OverflowError:
            return 1e300
    return -1.0


def _bound(node: ast.expr) -> ast.expr:
    """The constant that `min(x, 8)` cannot be beyond; any other expression as it is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "min":
        return next((a for a in node.args if _number(a) >= 0), node)
    return node


def _swells(node: ast.BinOp | ast.AugAssign) -> bool:
    """`1 << n`, `x << 26`, `a ** (b ** c)`, `2 ** n`: a shift or a power that no constant keeps small."""
    right = _bound(node.right if isinstance(node, ast.BinOp) else node.value)
    left = node.left if isinstance(node, ast.BinOp) else node.target
    if isinstance(node.op, ast.LShift):
        return _number(right) < 0 if _number(left) >= 0 else _number(right) >= _SHIFTED
    if isinstance(node.op, ast.Pow):
        unknown = _number(right) < 0 and not isinstance(right, ast.UnaryOp)
        return (unknown or _number(right) > _LARGEST_POWER) and _number(left) != 1
    return False


def _looped(node: ast.For | ast.AsyncFor | ast.While) -> Signs:
    inside = [n for s in node.body for n in walk(s)]
    calls = [n for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if isinstance(node, ast.While) and callee_name(node.test) in ("any", "all"):
        yield "a loop until nothing is left to do", node
    forever = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    counted = isinstance(node, ast.For) and callee_name(node.iter) in ("count", "cycle", "repeat")
    if (forever or counted) and not any(isinstance(n, _WAYS_OUT) for n in inside):
        yield "a loop that nothing leaves", node
    if not isinstance(node, ast.While):
        over = ast.dump(node.iter)
        for call in calls:
            if callee_name(call.func) in FILLS and over == ast.dump(cast("ast.Attribute", call.func).value):
                yield "a loop over what it fills itself", call
    for call in calls:
        if callee_name(call.func) in FILLS and any(_is_of_itself(a, call.func) for a in call.args):
            yield "what grows by its own size", call
    for inner in inside:
        doubles = isinstance(inner, ast.Assign | ast.AugAssign) and _doubles(inner)
        if doubles or (isinstance(inner, ast.Call) and _extends_itself(inner)):
            yield "what doubles each time", inner


def _is_of_itself(given: ast.expr, func: ast.expr) -> bool:
    """Whether what is put in is multiplied by something of what it is put into."""
    name = base_of(func)
    times = [n for n in walk(given) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult | ast.Pow)]
    return bool(name) and any(isinstance(n, ast.Name) and n.id == name for part in times for n in walk(part))


def _extends_itself(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "extend"
        and bool(node.args)
        and ast.dump(node.args[0]) == ast.dump(node.func.value)
    )


def _doubles(node: ast.Assign | ast.AugAssign) -> bool:
    """`x += x`, `x = x + x`, `x **= 2`, `x = x * x`."""
    if isinstance(node, ast.AugAssign):
        same = ast.dump(node.value).replace("Load()", "") == ast.dump(node.target).replace("Store()", "")
        sums = [node.value.left, node.value.right] if isinstance(node.value, ast.BinOp) else []
        again = any(ast.dump(n).replace("Load()", "") == ast.dump(node.target).replace("Store()", "") for n in sums)
        added = isinstance(node.op, ast.Add | ast.Mult)
        return ((same or again) and added) or isinstance(node.op, ast.Pow)
    if len(node.targets) != 1 or not isinstance(node.value, ast.BinOp):
        return False
    target = ast.dump(node.targets[0]).replace("Store()", "")
    sides = [ast.dump(side).replace("Load()", "") for side in (node.value.left, node.value.right)]
    if isinstance(node.value.op, ast.Pow):
        return sides[0] == target
    return sides == [target, target] and isinstance(node.value.op, ast.Add | ast.Mult)


CHECKS = ((GROWTH, newly(grows)),)
