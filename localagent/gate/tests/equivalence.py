"""Whether two texts of a test judge alike, though they are written otherwise: nothing for a person to decide.

Annotations, names of local variables, the old names that unittest gave its assertions, `super(A, self)`, and `with`
inside `with` carry nothing of what a test demands. Everything else does, and a test that can look at its own names is
never alike.
"""

import ast
from collections.abc import Collection

from localagent.code.function_pairing import copied
from localagent.code.names import last_name
from localagent.code.regions import walk
from localagent.code.spans import Function

_OLD_NAMES = {
    "assertEquals": "assertEqual", "assertNotEquals": "assertNotEqual", "assert_": "assertTrue",
    "assertAlmostEquals": "assertAlmostEqual", "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assertRegexpMatches": "assertRegex", "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex", "assertItemsEqual": "assertCountEqual", "failUnlessEqual": "assertEqual",
    "failIfEqual": "assertNotEqual", "failUnless": "assertTrue", "failIf": "assertFalse",
    "failUnlessRaises": "assertRaises",
}  # fmt: skip
_LOOKS_AT_ITSELF = frozenset({"locals", "vars", "eval", "exec", "globals", "dir", "inspect", "sys", "_getframe"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global, ast.Nonlocal)


def judges_alike(before: Function, after: Function, class_name: str, own: Collection[str]) -> bool:
    """Whether a test of a class demands the same as before. `own`: the file's functions, which mean what it says."""
    return _plain(before, class_name, own) == _plain(after, class_name, own)


def _plain(function: Function, class_name: str, own: Collection[str]) -> str:
    made = copied(function)
    made.returns = None
    for node in walk(made):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.Attribute) and _OLD_NAMES.get(node.attr, node.attr) not in own:
            node.attr = _OLD_NAMES.get(node.attr, node.attr)
        elif isinstance(node, ast.Call) and _is_super(node, class_name):
            node.args = []
    _called_by_order(made)
    return ast.dump(_Joined().visit(made))


def _is_super(node: ast.Call, class_name: str) -> bool:
    """`super(A, self)` in a method of A, which is `super()`."""
    named = isinstance(node.func, ast.Name) and node.func.id == "super" and len(node.args) == 2
    return named and [getattr(a, "id", "") for a in node.args] == [class_name, "self"]


def _called_by_order(function: Function) -> None:
    """Local variables by the order in which they come, where nothing looks at what they are called."""
    nodes = walk(function)[1:]
    if any(isinstance(n, _INNER) for n in nodes) or any(last_name(n) in _LOOKS_AT_ITSELF for n in nodes):
        return
    given = {n.arg for n in nodes if isinstance(n, ast.arg)}
    local: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id not in given:
            local.setdefault(node.id, f"<{len(local)}>")
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = local.get(node.id, node.id)


class _Joined(ast.NodeTransformer):
    """`with a:` around nothing but `with b:` as `with a, b:`, and an annotated assignment as a plain one."""

    def visit_With(self, node: ast.With) -> ast.AST:
        """The inner items beside the outer ones."""
        self.generic_visit(node)
        if len(node.body) == 1 and isinstance(node.body[0], ast.With):
            return ast.With(items=[*node.items, *node.body[0].items], body=node.body[0].body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Without what it says of types."""
        self.generic_visit(node)
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        return ast.Assign(targets=[node.target], value=node.value)
