"""Whether the order of a set may show in what a file's code does: hashes of texts, and so that order, differ by run.

A set that is only asked for members, counted, compared or changed shows no order. Limitations: read from the syntax
tree; a set under any other use, and one that a function gets from elsewhere, is taken to show or not to be one.
"""

import ast
from collections.abc import Iterator

_MAKERS = frozenset({"set", "frozenset"})
_TELL_NO_ORDER = frozenset({"len", "sorted", "min", "max", "any", "all", "bool", "isinstance", *_MAKERS})
_RELATIONS = frozenset({"isdisjoint", "issubset", "issuperset"})
_METHODS = frozenset({"add", "discard", "remove", "clear", "update"}) | _RELATIONS


def set_order_may_show(tree: ast.AST) -> bool:
    """Whether a set that the code makes is used in any way that may show its order."""
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names: set[str] = set()
    for made in filter(_makes_set, ast.walk(tree)):
        parent = above[made]
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            local = not isinstance(parent, ast.NamedExpr) and not isinstance(above[parent], ast.ClassDef)
            if local and all(isinstance(t, ast.Name) for t in targets):
                names |= {t.id for t in targets if isinstance(t, ast.Name)}
                continue
            return True
        if not _tells_no_order(made, above):
            return True
    return any(not _tells_no_order(use, above) for use in _uses(tree, names))


def _makes_set(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS
    return called or isinstance(node, ast.Set | ast.SetComp)


def _uses(tree: ast.AST, names: set[str]) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield node


def _tells_no_order(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    parent = above[node]
    match parent:
        case ast.Compare():
            return node in parent.comparators or not any(isinstance(op, ast.In | ast.NotIn) for op in parent.ops)
        case ast.Call(func=ast.Name(id=name)):
            return name in _TELL_NO_ORDER and len(parent.args) == 1 and not parent.keywords
        case ast.Attribute(attr=name):
            called = above[parent]
            return name in _METHODS and isinstance(called, ast.Call) and called.func is parent
        case ast.If() | ast.While() | ast.Assert():
            return parent.test is node
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _RELATIONS and node in parent.args
        case _:
            return False
