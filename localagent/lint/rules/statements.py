"""Rules on statements and their order, and on what a module says it has."""

import ast
from collections.abc import Iterator

from localagent.code.scopes import ScopeKind
from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@rule(
    "self-assignment",
    ast.Assign,
    why="Assigning a name to itself does nothing, or another name was meant.",
    bad=[bad("def f(self, x):\n    self.x = self.x\n"), bad("def f(x):\n    x = x\n")],
    good=["x = x\n", "class A:\n    x = x\n", "def f(self, x):\n    self.x = x\n", "def f(x):\n    x = y = x\n"],
)
def self_assignment(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A name or attribute assigned to itself inside a function. Allowed in modules and classes (to export it)."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and view.scope(node).kind is ScopeKind.FUNCTION:
        target, value = node.targets[0], node.value
        same = isinstance(target, ast.Name | ast.Attribute) and type(target) is type(value)
        if same and view.text(target) == view.text(value):
            yield Hit(node, "assigned to itself")


def _silent(node: ast.stmt) -> bool:
    """Whether a statement that never runs may go without making a generator, a local name or a comment disappear."""
    if not isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Pass):
        return False
    return not any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr) for n in ast.walk(node))


@rule(
    "unreachable",
    *_JUMPS,
    grade=_SAFE,
    words=(b"return", b"raise", b"break", b"continue"),
    why="What follows in the same block never runs.",
    bad=[
        bad("def f():\n    return 1\n    return 2\n", "def f():\n    return 1\n", _SAFE),
        bad("while x:\n    break\n    pass\n", "while x:\n    break\n", _SAFE),
        bad("def f():\n    raise A\n    g()\n", None, _SUGGESTION),
    ],
    good=["def f():\n    return\n    yield\n", "def f():\n    if x:\n        return 1\n    return 2\n"],
)
def unreachable(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A statement after `return`, `raise`, `break` or `continue`.

    Other jumps are taken away; the rest is only shown, as it may hold what somebody wants back. A `yield` there
    makes a generator and is let pass.
    """
    block = view.block(node)
    at = next((n for n, s in enumerate(block) if s is node), len(block))
    if any(isinstance(s, _JUMPS) for s in block[:at]) or at + 1 >= len(block):
        return
    after = block[at + 1]
    if any(isinstance(n, ast.Yield | ast.YieldFrom) for s in block[at + 1 :] for n in ast.walk(s)):
        return
    plain = _silent(after) and view.lone(after) and view.between(view.end(node), view.start(after)).strip() == ""
    plain = plain and view.line_end(view.end(after)) == view.end(after)
    yield Hit(
        after,
        "never runs",
        (view.without(block, at + 1),) if plain else None,
        _SAFE if plain else _SUGGESTION,
        anchor=view.parent(after),
    )


@rule(
    "redundant-pass",
    ast.Pass,
    grade=_SAFE,
    words=(b"pass",),
    why="A block with a statement in it needs no `pass`.",
    bad=[
        bad("class A:\n    '''Doc.'''\n    pass\n", "class A:\n    '''Doc.'''\n", _SAFE),
        bad("if x:\n    f()\n    pass\n", "if x:\n    f()\n", _SAFE),
    ],
    good=[
        "class A:\n    pass\n",
        "class A: pass\n",
        "if x:\n    f()\n    pass  # nothing else\n",
        "if x:\n    # why\n    pass\n    f()\n",
        "if x:\n    pass\n    # why\n    f()\n",
        "def f():\n    pass\n    'no docstring'\n",
    ],
)
def redundant_pass(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`pass` beside other statements, where no comment hangs on it."""
    block = view.block(node)
    above = view.parent(node)
    if len(block) < 2 or isinstance(above, ast.Module) or not isinstance(node, ast.stmt):
        return
    at = next(n for n, s in enumerate(block) if s is node)
    if any(isinstance(s, _JUMPS) for s in block[:at]) or (at and all(isinstance(s, ast.Pass) for s in block[:at])):
        return  # said of the jump, or of the first
    if not at and _is_docstring(above, next((s for s in block if not isinstance(s, ast.Pass)), node)):
        return  # without the pass the text would be the docstring
    lone = view.lone(node) and view.line_end(view.end(node)) == view.end(node)
    start, end = (view.end(block[at - 1]) if at else view.start(node)), view.start(node)
    quiet = "#" not in view.between(start, end) and (at or not _comment_above(view, node))
    quiet = quiet and (at or "#" not in view.between(view.end(node), view.start(block[1])))
    yield from (
        [Hit(node, "pass is not needed", (view.without(block, at),), _SAFE, anchor=above)] if lone and quiet else []
    )


def _is_docstring(above: ast.AST, first: ast.stmt) -> bool:
    """Whether this statement documents the function or class `above` where it comes first there."""
    documented = isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return documented and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


def _comment_above(view: FileView, node: ast.stmt) -> bool:
    line = view.line_of(node)
    starts = view.source.line_starts
    return line > 1 and view.between(starts[line - 2], starts[line - 1]).strip().startswith("#")


def _listed(node: ast.AST) -> list[ast.Constant] | None:
    """The names that an `__all__` writes out."""
    if isinstance(node, ast.List | ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts):
        return [e for e in node.elts if isinstance(e, ast.Constant)]
    return None


@rule(
    "all-names",
    ast.Assign,
    words=(b"__all__",),
    why="`from module import *` fails on a name in `__all__` that the module does not define.",
    bad=[bad("__all__ = ['f', 'g']\ndef f():\n    pass\n")],
    good=[
        "__all__ = ['f']\ndef f():\n    pass\n",
        "from x import *\n__all__ = ['f']\n",
        "__all__ = ['f']\ndef __getattr__(name):\n    pass\n",
        "__all__ = ['f']\nglobals().update(f=1)\n",
    ],
)
def all_names(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A name in `__all__` that nothing in the module binds.

    Packages, whose submodules count, and modules that bind names in other ways are let pass.
    """
    if not isinstance(node, ast.Assign) or view.scope(node) is not view.walk.root or view.walk.star:
        return
    if view.name.startswith("__init__."):
        return  # a package's submodules are names of it
    if not any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
        return
    names = view.walk.root.names
    dynamic = "__getattr__" in names or "__path__" in names
    text = view.source.utf8
    if dynamic or any(word in text for word in (b"globals()", b"vars()", b"exec(", b"setattr(", b"sys.modules")):
        return
    for item in _listed(node.value) or ():
        if isinstance(item.value, str) and item.value not in names and not item.value.startswith("__"):
            yield Hit(item, f"{item.value!r} is not in this module", anchor=node)


RULES = (self_assignment, unreachable, redundant_pass, all_names)
