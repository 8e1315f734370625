"""Rules on coroutines and tasks."""

import ast
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SUGGESTION = FixGrade.SUGGESTION


def _coroutine(view: FileView, func: ast.expr) -> bool:
    """Whether a function is certainly an `async def` of this file: by its name, or as a method of the class around."""
    if isinstance(func, ast.Name):
        bound = view.bindings(func)
        return len(bound) == 1 and _is_coroutine(bound[0].node)
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return False
    method = view.function(func)
    owner = view.parent(method) if method is not None else None
    if not isinstance(owner, ast.ClassDef) or not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if not method.args.args or method.args.args[0].arg != func.value.id:
        return False
    bound = view.walk.own[owner].names.get(func.attr, [])
    return len(bound) == 1 and _is_coroutine(bound[0].node)


def _is_coroutine(node: ast.AST) -> bool:
    """An `async def` without decorators that is no asynchronous generator."""
    if not isinstance(node, ast.AsyncFunctionDef) or node.decorator_list:
        return False
    return not any(isinstance(n, ast.Yield) for n in ast.walk(node))


@rule(
    "missing-await",
    ast.Expr,
    words=(b"async def",),
    why="Calling a coroutine function runs nothing until the result is awaited.",
    bad=[
        bad(
            "async def f():\n    pass\nasync def g():\n    f()\n",
            "async def f():\n    pass\nasync def g():\n    await f()\n",
            _SUGGESTION,
        ),
        bad("async def f():\n    pass\ndef g():\n    f()\n"),
        bad(
            "class A:\n    async def f(self):\n        pass\n    async def g(self):\n        self.f()\n",
            "class A:\n    async def f(self):\n        pass\n    async def g(self):\n        await self.f()\n",
            _SUGGESTION,
        ),
    ],
    good=[
        "async def f():\n    pass\nasync def g():\n    await f()\n",
        "@deco\nasync def f():\n    pass\nasync def g():\n    f()\n",
        "async def f():\n    pass\nasync def g():\n    x = f()\n",
    ],
)
def missing_await(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A statement that only calls a coroutine function of this file. A suggestion: it has never run so far."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and _coroutine(view, call.func):
        inside = isinstance(view.function(node), ast.AsyncFunctionDef)
        at = view.start(node)
        yield Hit(
            node, "never runs: it is not awaited", ((at, at, "await "),) if inside else None, _SUGGESTION, anchor=node
        )


@rule(
    "dropped-task",
    ast.Expr,
    words=(b"asyncio",),
    why="The event loop keeps only a weak reference: a task without another reference may be collected while it runs.",
    bad=[bad("import asyncio\nasync def f():\n    asyncio.create_task(g())\n")],
    good=[
        "import asyncio\nasync def f():\n    t = asyncio.create_task(g())\n",
        "async def f():\n    group.create_task(g())\n",
    ],
)
def dropped_task(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A task of asyncio whose reference is dropped."""
    if isinstance(node, ast.Expr) and view.call_of(node.value, "asyncio.create_task", "asyncio.ensure_future"):
        yield Hit(node, "store the task, or await it")


RULES = (missing_await, dropped_task)
