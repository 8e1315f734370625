"""Ways of a block to leave that drop what was raised in it: `finally` that jumps, `__exit__` that answers true.

Not seen: exits that are made elsewhere, and what a called function answers.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from localagent.code.names import last_name
from localagent.code.regions import UnitSource
from localagent.code.spans import Definition, blocks, clauses
from localagent.domain.gate import Finding
from localagent.gate.core.gate_input import ChangedRegion
from localagent.gate.security.swallow_rules import EXIT, FINALLY
from localagent.text.visible_text import shortened

_PUSHES = ("push", "push_async_exit")
_EXITS = ("__exit__", "__aexit__")


def jumps(region: ChangedRegion) -> Iterator[Finding]:
    """New ways out of a `finally` that drop an exception."""
    before, after = region.whole
    spare = len(list(_leaving(before))) if before else 0
    for node in _leaving(after):
        spare -= 1
        if spare < 0:
            yield FINALLY.finding(region.path, after.line_of(node), f"newly: {FINALLY.why}")


def exits(region: ChangedRegion) -> Iterator[Finding]:
    """New ways of a context manager to answer that nothing was raised."""
    before, after = region.whole
    spare = Counter(what for what, _ in _dropping(before)) if before else Counter[str]()
    for what, node in _dropping(after):
        spare[what] -= 1
        if spare[what] < 0:
            yield EXIT.finding(region.path, after.line_of(node), f"{what}: {EXIT.why}")


def _dropping(snippet: UnitSource) -> Iterator[tuple[str, ast.AST]]:
    for node in snippet.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in _EXITS:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None and _may_be_true(inner.value):
                    yield f"{node.name} answers {shortened(ast.unparse(inner.value), 40)}", inner
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and _may_be_true(node.value.body):
            if any(last_name(t) in _EXITS for t in node.targets):
                yield f"an exit answers {shortened(ast.unparse(node.value.body), 40)}", node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUSHES:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Lambda) and _may_be_true(first.body):
                yield "an exit is pushed", node


def _may_be_true(node: ast.expr) -> bool:
    """False for constants that are false, and for what another context manager answers."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Await):
        node = node.value
    return not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (*_EXITS, "close")
    )


def _leaving(snippet: UnitSource) -> Iterator[ast.stmt]:
    for node in snippet.nodes:
        if isinstance(node, ast.Try | ast.TryStar):
            yield from _ways_out(node.finalbody, loops=True)


def _ways_out(body: list[ast.stmt], *, loops: bool) -> Iterator[ast.stmt]:
    """Statements that leave a block: `break` and `continue` only of a loop around it."""
    for node in body:
        if isinstance(node, ast.Return) or (loops and isinstance(node, ast.Break | ast.Continue)):
            yield node
        elif not isinstance(node, Definition):
            inner = loops and not isinstance(node, ast.For | ast.AsyncFor | ast.While)
            for block in (*blocks(node), *(clause.body for clause in clauses(node))):
                yield from _ways_out(block, loops=inner)
