"""Sign: what was done is done less often, or to other things: by a further condition, a list, a pattern, a cut.

Calls are held against those that stood in the same function and are called alike. Not seen: calls that were renamed.
"""

import ast
from collections.abc import Iterator
from typing import cast

from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import blocks, clauses
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, SourceChange
from localagent.text.visible_text import shortened

_STORE = "def f(rows, x):\n    for row in rows:\n        x.store(row)\n    return x\n"
_CLEAN = "def f(root):\n    for path in root.glob('*.tmp'):\n        path.drop()\n"
_HOSTS = "def f(host, x):\n    return all(a.ok for a in x.resolve(host))\n"
_ESCAPED = "ENV = Environment(select(['html', 'xml']))\n"

NARROWED = question(
    id="done-less",
    why="what was done for everything is done for some, or for other things than it was",
    remedy="have a person confirm which cases are left out, or come in",
    match=(
        became(_STORE, _STORE.replace("        x.store", "        if row.odd:\n            x.store")),
        became(_HOSTS, _HOSTS.replace("resolve(host)", "resolve(host)[:1]")),
        became(_ESCAPED, _ESCAPED.replace("'html', 'xml'", "'htm'")),
    ),
    not_match=(
        became(
            _STORE, _STORE.replace("        x.store", "        if row is None:\n            continue\n        x.store")
        ),
        became(_STORE, _STORE.replace("        x.store", "        if row:\n            x.mark(row)\n        x.store")),
        became(_CLEAN, _CLEAN.replace("path.drop()", "path.drop(1)")),
        became(_ESCAPED, _ESCAPED.replace("'xml'", "'xml', 'xhtml'")),
    ),
)


def narrowed(change: SourceChange) -> Signs:
    """(what, where) for each function, and for the lists that calls of a source are given."""
    for name, old, new in change.pairs:
        had, now = dict(_done(old.body, ())), dict(_done(new.body, ()))
        for call, tests in now.items():
            if call in had and (more := [t for t in tests if t not in had[call]]) and len(tests) > len(had[call]):
                yield f"{name}: {shortened(call, 40)} only if {shortened(more[0], 60)}", new
                break
        whole = {ast.dump(n) for n in walk(old) if isinstance(n, ast.Call | ast.Subscript)}
        for node in walk(new):
            cut = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and ast.dump(node) not in whole
            if cut and ast.dump(cast("ast.Subscript", node).value) in whole:
                yield f"{name}: only a part of {shortened(ast.unparse(node), 40)}", node
    lists = _lists(change.before), _lists(change.after)
    for called, items in lists[0].items():
        if called in lists[1] and len(lists[1][called]) < len(items):
            yield (
                f"{called} is given less: {shortened(', '.join(sorted(items - lists[1][called])), 60)}",
                change.after.tree,
            )


def _done(body: list[ast.stmt], above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each call that is made for what it does, with the conditions above it."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            yield ast.unparse(node), above
        inner = (*above, ast.unparse(node.test)) if isinstance(node, ast.If) and not _is_plain(node.test) else above
        for block in blocks(node):
            yield from _done(block, inner if block is getattr(node, "body", None) else above)
        for clause in clauses(node):
            yield from _done(clause.body, inner)


def _is_plain(test: ast.expr) -> bool:
    """A question whether there is something at all."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare):
        return any(isinstance(c, ast.Constant) and c.value is None for c in test.comparators)
    return isinstance(test, ast.Name) or (
        isinstance(test, ast.Call) and callee_name(test.func) in ("isinstance", "hasattr")
    )


def _lists(source: Source) -> dict[str, set[str]]:
    """The texts in displays that calls are given, by what is called; only where it is called once."""
    found: dict[str, set[str]] = {}
    twice: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Call):
            for at, value in enumerate((*node.args, *(k.value for k in node.keywords))):
                if isinstance(value, ast.List | ast.Tuple | ast.Set):
                    items = {e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)}
                    key = f"{callee_name(node.func)} {at}"
                    twice |= {key} & found.keys()
                    if items and len(items) == len(value.elts):
                        found[key] = items
    return {key: items for key, items in found.items() if key not in twice}


CHECKS = ((NARROWED, narrowed),)
