"""Sign: what went wrong is not said any more: an error that was logged, awaited, answered by a code, or asked for.

By function, before and after; and handlers that newly say nothing. Not seen: reports that callers make instead.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import PLAIN, became, question
from localagent.gate.review.source_change import Signs, Source, SourceChange, newly

_LOGS = "def f(x):\n    if x.bad:\n        log.error('bad %s', x)\n    return x\n"
_CODE = "def main():\n    if broken():\n        return 1\n    return 0\n"
_WAITS = "async def f(x):\n    await g(x)\n    return x\n"
_SUBMITS = "def f(x, pool):\n    y = pool.submit(g, x)\n    return y.result()\n"

UNREPORTED = question(
    id="fault-unreported",
    why="a fault that was said is passed over, so that nobody learns of it",
    remedy="say it where it was said, or let it through",
    match=(
        became(_LOGS, _LOGS.replace("log.error('bad %s', x)", "pass")),
        became(_LOGS, _LOGS.replace("log.error", "log.debug")),
        became(_LOGS, _LOGS.replace("if x.bad", "if x.bad and x.odd")),
        became(_CODE, _CODE.replace("return 1", "return 0")),
        became(_WAITS, _WAITS.replace("await g(x)", "create_task(g(x))")),
        became(_SUBMITS, _SUBMITS.replace("y.result()", "len(x)")),
        became("def f(x):\n    return x.ok and 200 or 500\n", "def f(x):\n    return 200\n"),
        *(
            became(PLAIN, f"def f(x):\n    {code}\n    return x\n")
            for code in (
                "y = gather(x, return_exceptions=True)",
                "rmtree(x, ignore_errors=True)",
                "y = x.decode(errors='ignore')",
                "y = read_csv(x, on_bad_lines='skip')",
                "run(x, check=False)",
                "send(x, fail_silently=True)",
                "_ = x.exception()",
                "if x.exception() is None:\n        g(x.result())",
                "if x.ok:\n        g(x)",
                "if x.returncode:\n        return None",
                "y = x.returncode and 0",
                "y = x.read() or 20.0",
                "try:\n        y = g(x)\n    except KeyError:\n        pass",
                "try:\n        y = g(x)\n    except OSError:\n        0",
                "try:\n        y = g(x)\n    except KeyError:\n        y = 5",
                "try:\n        y = g(x)\n    except KeyError:\n        log.debug('no')",
            )
        ),
    ),
    not_match=(
        became(PLAIN, "def f(x):\n    if not x.ok:\n        raise ValueError(x)\n    return x\n"),
        became(PLAIN, "def f(x):\n    if x.ok:\n        g(x)\n    else:\n        h(x)\n    return x\n"),
        became(_LOGS, _LOGS.replace("'bad %s'", "'very bad: %s'")),
        became(_LOGS, _LOGS.replace("log.error('bad %s', x)", "raise ValueError(x)")),
        became(_CODE, _CODE.replace("broken()", "broken(1)")),
        became("def f(x):\n    return x + 2\n", "def f(x):\n    return x + g()\n"),
        became("def f(x):\n    return g(x, -1)\n", "def f(x):\n    return g(x, h())\n"),
        became(_WAITS, _WAITS.replace("await g(x)", "await h(x)")),
        became(PLAIN, "def f(x):\n    try:\n        x = g(x)\n    except KeyError as e:\n        h(e)\n    return x\n"),
    ),
)
_SAYS = frozenset(
    {"error", "exception", "critical", "fatal", "warning", "warn", "fail", "abort", "print_exc", "set_exception",
     "capture_exception", "add_error", "report", "alert", "perror"}
)  # fmt: skip
_MURMURS = frozenset({"debug", "info", "print", "log", "trace"})
_SILENT: dict[str, tuple[object, ...]] = {
    "return_exceptions": (True,), "ignore_errors": (True,), "suppress_errors": (True,), "fail_silently": (True,),
    "ignore_missing": (True,), "continue_on_error": (True,), "check": (False,), "onerror": (None,),
    "raise_on_error": (False,), "raise_errors": (False,), "raise_exception": (False,), "stop_on_error": (False,),
    "throw": (False,), "errors": ("ignore", "coerce", "skip"), "on_bad_lines": ("skip",), "error_bad_lines": (False,),
}  # fmt: skip
_ASKS_OUTCOME = frozenset(
    {"result", "exception", "raise_for_status", "check_returncode", "returncode", "get", "join", "successful"}
)
_TELLS_OF_FAULT = frozenset({
    "exception", "returncode", "ok", "failed", "successful", "succeeded", "exitcode", "exit_code", "is_error",
    "errors",
})  # fmt: skip
_FAILED = range(400, 600)


def unreported(change: SourceChange) -> Signs:
    """(what, where) for each function that said faults, and says fewer."""
    for name, old, new in change.pairs:
        was, now = _reports(old), _reports(new)
        if was["said"] > now["said"] and was["raised"] >= now["raised"]:
            yield f"{name}: a fault that was said is not", new
        elif was["code"] > now["code"] and was["raised"] >= now["raised"]:
            yield f"{name}: an answer that told of a fault does not", new
        elif _report_conditions(old) != _report_conditions(new) and len(_report_conditions(old)) == len(
            _report_conditions(new)
        ):
            yield f"{name}: a fault is said under another condition", new
        elif was["asked"] > now["asked"] and was["begun"] and now["begun"]:
            yield f"{name}: nobody asks what came of it", new
        elif was["await"] > now["await"] and now["begun"] > was["begun"]:
            yield f"{name}: nobody waits for what is begun", new


def quieted(source: Source) -> Signs:
    """Arguments that ask for silence, faults that are passed over, handlers that only put a value in place."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if isinstance(keyword.value, ast.Constant) and keyword.value.value in _SILENT.get(
                    keyword.arg or "", ()
                ):
                    yield f"{keyword.arg}={ast.unparse(keyword.value)}", node
        elif isinstance(node, ast.ExceptHandler) and _only_sets_constants(node):
            yield "a handler that only puts a value in place", node
        elif isinstance(node, ast.BoolOp) and _is_settled(node):
            yield "an answer that does not hang on what is asked", node
        elif isinstance(node, ast.If) and not node.orelse and _passes_over(node):
            yield "a fault that is asked for and passed over", node
        elif isinstance(node, ast.Assign | ast.Expr) and _drops(node):
            yield "a fault that is fetched and dropped", node


def _is_settled(node: ast.BoolOp) -> bool:
    """`x and 0`, `x or True`: the constant decides; `read() or 20.0`: it is taken for an answer."""
    last = node.values[-1].value if isinstance(node.values[-1], ast.Constant) else None
    if isinstance(node.op, ast.And):
        return last is not None and last in (0, False)
    made_up = isinstance(last, int | float) and last not in (0, 1) and isinstance(node.values[0], ast.Call)
    return last is True or made_up


def _passes_over(node: ast.If) -> bool:
    """`if future.exception() is None: use(future)`, `if result.failed: continue`: who asks, and says nothing."""
    asked = {callee_name(n) for n in walk(node.test) if isinstance(n, ast.Call | ast.Attribute)}
    if not asked & _TELLS_OF_FAULT:
        return False
    said = [n for s in node.body for n in walk(s)]
    return not any(
        isinstance(n, ast.Raise | ast.Assert) or (isinstance(n, ast.Call) and callee_name(n.func) in _SAYS | _MURMURS)
        for n in said
    )


def _drops(node: ast.Assign | ast.Expr) -> bool:
    """`_ = task.exception()`: fetched, so that nobody is told of it."""
    if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) and t.id.startswith("_") for t in node.targets):
        return False
    if isinstance(node.value, ast.Call) and "log" in ast.unparse(node.value.func):
        return False
    calls = [n for n in walk(node.value) if isinstance(n, ast.Call) and not n.args]
    return any(callee_name(n.func) == "exception" for n in calls)


def _only_sets_constants(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only sets constants and murmurs, or does nothing."""
    for statement in handler.body:
        if isinstance(statement, ast.Assign):
            if not (_is_fixed(statement.value) or _is_the_fault(statement.value, handler)):
                return False
        elif isinstance(statement, ast.AugAssign):
            continue
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Constant):
            if isinstance(statement.value, ast.Call) and callee_name(statement.value.func) not in _MURMURS:
                return False
        elif isinstance(statement, ast.Return):
            if statement.value is not None and not _is_fixed(statement.value):
                return False
        elif not isinstance(statement, ast.Pass | ast.Continue | ast.Break):
            return False
    return True


def _is_the_fault(node: ast.expr, handler: ast.ExceptHandler) -> bool:
    """`str(error)`, or the exception itself: put away, and nothing else."""
    return handler.name is not None and any(isinstance(n, ast.Name) and n.id == handler.name for n in walk(node))


def _is_fixed(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(_is_fixed(e) for e in node.elts)
    if isinstance(node, ast.Dict):
        return all(_is_fixed(v) for v in node.values)
    if isinstance(node, ast.Call):
        return all(_is_fixed(a) for a in node.args) and not node.keywords and bool(callee_name(node.func)[:1].isupper())
    return isinstance(node, ast.Constant) or values_of(node) is not None


def _report_conditions(function: Function) -> list[str]:
    """The conditions under which a function logs or counts a fault."""
    return sorted(
        ast.dump(node.test)
        for node in walk(function)
        if isinstance(node, ast.If)
        and any(isinstance(n, ast.Call) and callee_name(n.func) in _SAYS for s in node.body for n in walk(s))
    )


def _reports(function: Function) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in walk(function):
        if isinstance(node, ast.Call):
            found["said"] += callee_name(node.func) in _SAYS
            found["asked"] += callee_name(node.func) in _ASKS_OUTCOME
            found["begun"] += callee_name(node.func) in ("create_task", "ensure_future", "submit", "run_in_executor")
        elif isinstance(node, ast.Raise | ast.Assert):
            found["raised"] += 1
        elif isinstance(node, ast.Await):
            found["await"] += 1
        elif isinstance(node, ast.Return) and node.value is not None:
            found["code"] += any(_is_code(v) for v in _answered(node.value))
    return found


def _answered(node: ast.expr) -> Iterator[object]:
    """The constants that may be the whole answer; one that is worked with, or handed on, is none."""
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        if isinstance(node.operand.value, int):
            yield -node.operand.value
    elif isinstance(node, ast.IfExp):
        yield from (*_answered(node.body), *_answered(node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from (value for part in node.values for value in _answered(part))
    elif isinstance(node, ast.Tuple):
        yield from (value for part in node.elts for value in _answered(part))


def _is_code(value: object) -> bool:
    return value is False or (type(value) is int and (value in (1, 2, -1) or value in _FAILED))


CHECKS = ((UNREPORTED, newly(quieted)), (UNREPORTED, unreported))
