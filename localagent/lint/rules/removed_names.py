"""Rules on names that the standard library gave up."""

import ast
from collections.abc import Iterator

from localagent.code.moved_names import ABSTRACT_COLLECTIONS
from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE = FixGrade.SAFE
_OLD_ASSERTIONS = {
    "assertEquals": "assertEqual",
    "assertNotEquals": "assertNotEqual",
    "assertAlmostEquals": "assertAlmostEqual",
    "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assertRegexpMatches": "assertRegex",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assert_": "assertTrue",
    "failUnless": "assertTrue",
    "failIf": "assertFalse",
    "failUnlessEqual": "assertEqual",
}


@rule(
    "unittest-alias",
    ast.Call,
    grade=_SAFE,
    words=(b"unittest",),
    why="These names were removed in Python 3.12.",
    bad=[
        bad(
            "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEquals(1, 1)\n",
            "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(1, 1)\n",
            _SAFE,
        )
    ],
    good=[
        "class T:\n    def test_x(self):\n        self.assertEquals(1, 1)\n",
        "import unittest\nclass T(unittest.TestCase):\n    def assertEquals(self, a, b):\n        pass\n"
        "    def test_x(self):\n        self.assertEquals(1, 1)\n",
        "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(1, 1)\n",
    ],
)
def unittest_alias(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An old name of an assertion, in a class whose only base is `unittest`'s."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in _OLD_ASSERTIONS or not isinstance(func.value, ast.Name):
        return
    method = view.function(node)
    owner = view.parent(method) if method is not None else None
    if (
        not isinstance(owner, ast.ClassDef)
        or len(owner.bases) != 1
        or not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    ):
        return
    first = method.args.args[0].arg if method.args.args else ""
    known = view.named(owner.bases[0], "unittest.TestCase", "unittest.IsolatedAsyncioTestCase")
    if known and func.value.id == first and func.attr not in view.walk.own[owner].names:
        end = view.end(func)
        yield Hit(
            node, f"use {_OLD_ASSERTIONS[func.attr]}", ((end - len(func.attr), end, _OLD_ASSERTIONS[func.attr]),), _SAFE
        )


@rule(
    "collections-abstract",
    ast.ImportFrom,
    grade=_SAFE,
    words=(b"collections",),
    why="Since Python 3.10 the abstract classes are in `collections.abc` only.",
    bad=[
        bad("from collections import Mapping, Sequence\n", "from collections.abc import Mapping, Sequence\n", _SAFE),
        bad("from collections import Mapping, deque\n"),
    ],
    good=[
        "from collections.abc import Mapping\n",
        "from collections import deque\n",
        "try:\n    from collections import Mapping\nexcept ImportError:\n    from collections.abc import Mapping\n",
    ],
)
def collections_abstract(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Abstract classes imported from `collections`. Allowed inside `try`, where somebody has thought of it."""
    if not isinstance(node, ast.ImportFrom) or node.module != "collections" or node.level:
        return
    old = [a.name for a in node.names if a.name in ABSTRACT_COLLECTIONS]
    if not old or any(isinstance(p, ast.Try | ast.If) for p in view.parents(node)):
        return
    at = view.text(node).find("collections")
    place = view.start(node) + len(view.text(node)[:at].encode()) + len("collections")
    whole = len(old) == len(node.names)
    yield Hit(node, "import it from collections.abc", ((place, place, ".abc"),) if whole else None, _SAFE)


RULES = (unittest_alias, collections_abstract)
