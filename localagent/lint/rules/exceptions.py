"""Rules on raising, catching and asserting."""

import ast
import builtins
from collections.abc import Iterator

from localagent.code.names import dotted_name
from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
_ALIASES = ("builtins.IOError", "builtins.EnvironmentError", "socket.error", "select.error", "os.error")


def _caught(handler: ast.ExceptHandler) -> list[ast.expr]:
    if isinstance(handler.type, ast.Tuple):
        return handler.type.elts
    return [handler.type] if handler.type is not None else []


@rule(
    "bare-except",
    ast.ExceptHandler,
    words=(b"except:", b"except :"),
    why="It also catches Ctrl-C and `sys.exit()`.",
    bad=[bad("try:\n    f()\nexcept:\n    g()\n", "try:\n    f()\nexcept Exception:\n    g()\n", _SUGGESTION)],
    good=["try:\n    f()\nexcept ValueError:\n    g()\n", "try:\n    f()\nexcept:\n    g()\n    raise\n"],
)
def bare_except(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`except:` that does not raise again. Only a person knows which exceptions are meant; `Exception` is offered."""
    if not isinstance(node, ast.ExceptHandler) or node.type is not None:
        return
    if not any(isinstance(n, ast.Raise) for s in node.body for n in ast.walk(s)):
        at = view.start(node) + len("except")
        cuts = ((at, at, " Exception"),) if view.free("Exception", node) else None
        yield Hit(node, "name the exceptions to catch, or at least Exception", cuts, _SUGGESTION)


def _class(view: FileView, node: ast.expr) -> type[BaseException] | None:
    if view.named(node, *_ALIASES):
        return OSError
    found = view.qualified(node) if isinstance(node, ast.Name) else None
    made = getattr(builtins, found.removeprefix("builtins."), None) if found and found.startswith("builtins.") else None
    return made if isinstance(made, type) and issubclass(made, BaseException) else None


@rule(
    "except-order",
    ast.Try,
    words=(b"except",),
    why="The first matching clause runs: a later one for a subclass never does.",
    bad=[
        bad("try:\n    f()\nexcept Exception:\n    g()\nexcept ValueError:\n    h()\n"),
        bad("import socket\ntry:\n    f()\nexcept OSError:\n    g()\nexcept socket.error:\n    h()\n"),
    ],
    good=[
        "try:\n    f()\nexcept ValueError:\n    g()\nexcept Exception:\n    h()\n",
        "try:\n    f()\nexcept (OSError, KeyError):\n    g()\nexcept IndexError:\n    h()\n",
    ],
)
def except_order(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An `except` clause all of whose classes an earlier one has caught."""
    earlier: list[type[BaseException]] = []
    for handler in node.handlers if isinstance(node, ast.Try) else ():
        classes = [_class(view, c) for c in _caught(handler)]
        if classes and all(c is not None and any(issubclass(c, e) for e in earlier) for c in classes):
            yield Hit(handler, "never runs: an earlier clause catches it", anchor=node)
        earlier += [c for c in classes if c is not None]


@rule(
    "duplicate-except",
    ast.ExceptHandler,
    grade=_SAFE,
    words=(b"except",),
    why="Listing a class twice catches nothing more; often another one was meant.",
    bad=[
        bad("try:\n    f()\nexcept (A, B, A):\n    g()\n", "try:\n    f()\nexcept (A, B):\n    g()\n", _SAFE),
        bad("try:\n    f()\nexcept (A.X, A.X) as e:\n    g()\n", "try:\n    f()\nexcept A.X as e:\n    g()\n", _SAFE),
    ],
    good=["try:\n    f()\nexcept (A, B):\n    g()\n", "try:\n    f()\nexcept (f(), f()):\n    g()\n"],
)
def duplicate_except(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A class that occurs twice in one `except` clause."""
    if not isinstance(node, ast.ExceptHandler) or not isinstance(node.type, ast.Tuple):
        return
    texts = [ast.dump(c) if dotted_name(c) else str(n) for n, c in enumerate(node.type.elts)]
    kept = [view.text(c) for n, c in enumerate(node.type.elts) if texts[n] not in texts[:n]]
    if len(kept) < len(texts):
        new = kept[0] if len(kept) == 1 else f"({', '.join(kept)})"
        plain = view.text(node.type).startswith("(") and "#" not in view.text(node.type)
        yield Hit(node.type, "a class is listed twice", (view.put(node.type, new),) if plain else None, _SAFE)


@rule(
    "os-error-alias",
    ast.ExceptHandler,
    ast.Raise,
    grade=_SAFE,
    words=(b"IOError", b"EnvironmentError", b"socket.error", b"select.error", b"os.error"),
    why="Since Python 3.3 these are other names of `OSError`.",
    bad=[
        bad("try:\n    f()\nexcept IOError as e:\n    g()\n", "try:\n    f()\nexcept OSError as e:\n    g()\n", _SAFE),
        bad(
            "import socket\ntry:\n    f()\nexcept (A, socket.error):\n    g()\n",
            "import socket\ntry:\n    f()\nexcept (A, OSError):\n    g()\n",
            _SAFE,
        ),
        bad("raise EnvironmentError('x')\n", "raise OSError('x')\n", _SAFE),
    ],
    good=[
        "try:\n    f()\nexcept OSError:\n    g()\n",
        "class IOError(Exception):\n    pass\ntry:\n    f()\nexcept IOError:\n    g()\n",
    ],
)
def os_error_alias(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An old name of `OSError`, caught or raised."""
    if isinstance(node, ast.ExceptHandler):
        places: list[ast.expr] = _caught(node)
    else:
        raised = node.exc if isinstance(node, ast.Raise) else None
        places = [raised.func if isinstance(raised, ast.Call) else raised] if raised is not None else []
    for place in places:
        if view.named(place, *_ALIASES) and view.free("OSError", node):
            yield Hit(place, "an old name of OSError", (view.put(place, "OSError"),), _SAFE)


@rule(
    "raise-not-implemented",
    ast.Raise,
    grade=_SAFE,
    words=(b"NotImplemented",),
    why="`NotImplemented` is a value for operators; raising it is a TypeError.",
    bad=[
        bad("raise NotImplemented\n", "raise NotImplementedError\n", _SAFE),
        bad("raise NotImplemented('x')\n", "raise NotImplementedError('x')\n", _SAFE),
    ],
    good=["raise NotImplementedError\n", "def f():\n    return NotImplemented\n"],
)
def raise_not_implemented(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Raising `NotImplemented`. Both fail; only the name of the failure becomes what was meant."""
    raised = node.exc if isinstance(node, ast.Raise) else None
    place = raised.func if isinstance(raised, ast.Call) else raised
    if place is not None and view.builtin(place, "NotImplemented") and view.free("NotImplementedError", node):
        yield Hit(node, "raise NotImplementedError", (view.put(place, "NotImplementedError"),), _SAFE)


@rule(
    "jump-in-finally",
    ast.Return,
    ast.Break,
    ast.Continue,
    words=(b"finally",),
    why="Leaving a `finally` block discards the exception that is being raised.",
    bad=[
        bad("def f():\n    try:\n        g()\n    finally:\n        return 1\n"),
        bad("for x in y:\n    try:\n        g()\n    finally:\n        break\n"),
    ],
    good=[
        "def f():\n    try:\n        return g()\n    finally:\n        h()\n",
        "try:\n    g()\nfinally:\n    for x in y:\n        break\n",
        "try:\n    g()\nfinally:\n    def f():\n        return 1\n",
    ],
)
def jump_in_finally(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`return`, `break` or `continue` that leaves a `finally` block."""
    below = node
    for above in view.parents(node):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        if (
            isinstance(above, ast.For | ast.AsyncFor | ast.While)
            and not isinstance(node, ast.Return)
            and below not in above.orelse
        ):
            return
        if isinstance(above, ast.Try) and below in above.finalbody:
            yield Hit(node, "leaving finally discards the exception being raised")
            return
        below = above


@rule(
    "assert-tuple",
    ast.Assert,
    words=(b"assert",),
    why="A tuple that is not empty is true: the assertion never fails.",
    bad=[bad("assert (x, 'must be set')\n", "assert x, 'must be set'\n", _SUGGESTION), bad("assert (a, b, c)\n")],
    good=["assert x, 'must be set'\n", "assert (x)\n", "assert ()\n"],
)
def assert_tuple(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An assertion on a tuple. A suggestion, because the assertion may begin to fail."""
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
        text = view.text(node.test)
        two = len(node.test.elts) == 2 and node.msg is None and text.startswith("(") and "\n" not in text
        message = node.test.elts[-1]
        says = isinstance(message, ast.Constant | ast.JoinedStr) and view.text(message)[-1:] in "'\""
        cuts = (view.put(node.test, text[1:-1].rstrip(", ")),) if two and says else None
        yield Hit(node, "always true: a tuple is asserted", cuts, _SUGGESTION)


RULES = (
    bare_except, except_order, duplicate_except, os_error_alias, raise_not_implemented, jump_in_finally, assert_tuple,
)  # fmt: skip
