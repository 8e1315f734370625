"""Whether all that an edit does is to take away the `raise` or `assert` that the failing tests end in.

Compares statements in order, compound ones by their heads. Not seen: a check that is made to ask something else.
"""

import ast
from collections.abc import Iterator

from localagent.code.regions import UnitSource
from localagent.code.spans import blocks
from localagent.domain.gate import Finding
from localagent.gate.core.gate_input import ChangedRegion
from localagent.gate.security.swallow_rules import SILENCES

_INSIDE = ("body", "orelse", "finalbody", "handlers")


def silenced(region: ChangedRegion, fails_with: set[str]) -> Iterator[Finding]:
    """The finding, where the raise that is gone is what the tests fail with."""
    before, after = region.whole
    if before is None or not fails_with:
        return
    old, new = _steps(before), _steps(after)
    head = 0
    while head < min(len(old), len(new)) and old[head][0] == new[head][0]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail][0] == new[-1 - tail][0]:
        tail += 1
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    raised = [node for _, node in gone if isinstance(node, ast.Raise | ast.Assert)]
    only_raises = all(isinstance(node, ast.Raise | ast.Assert | ast.If | ast.Pass) for _, node in gone)
    if raised and only_raises and all(_does_nothing(node) for _, node in come):
        for node in raised:
            if _raises(node) & fails_with or not _raises(node):
                yield SILENCES.finding(
                    region.path, region.near.after.line, f"{SILENCES.why} ({', '.join(sorted(fails_with))})"
                )
                return


def _steps(snippet: UnitSource) -> list[tuple[str, ast.stmt]]:
    """Statements in order, compound ones by their heads, each with its text. Kept with the snippet."""
    if "steps" not in snippet.memo:
        steps: list[tuple[str, ast.stmt]] = []
        _walk(snippet.tree.body, steps)
        snippet.memo["steps"] = steps
    kept: list[tuple[str, ast.stmt]] = snippet.memo["steps"]
    return kept


def _walk(body: list[ast.stmt], steps: list[tuple[str, ast.stmt]]) -> None:
    for node in body:
        own = list(blocks(node))
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
        if not own:
            steps.append((ast.dump(node), node))
            continue
        head = [_dump(v) for k, v in ast.iter_fields(node) if k not in _INSIDE]
        head += [_dump(handler.type) for handler in handlers]
        steps.append((f"{type(node).__name__} {head}", node))
        for block in (*own, *(handler.body for handler in handlers)):
            _walk(block, steps)


def _dump(value: object) -> str:
    if isinstance(value, ast.AST):
        return ast.dump(value)
    return str([_dump(item) for item in value]) if isinstance(value, list) else repr(value)


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue | ast.Break | ast.If)


def _raises(node: ast.stmt) -> set[str]:
    """The bare name of what a statement raises, empty if it cannot be told."""
    if isinstance(node, ast.Assert):
        return {"AssertionError"}
    raised = node.exc if isinstance(node, ast.Raise) else None
    if isinstance(raised, ast.Call):
        raised = raised.func
    if isinstance(raised, ast.Attribute):
        return {raised.attr}
    return {raised.id} if isinstance(raised, ast.Name) and raised.id[:1].isupper() else set()
