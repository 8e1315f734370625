"""Rules on calls of the standard library."""

import ast
import os
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import Cut, FixGrade, Hit, bad, rule
from localagent.lint.rules.security import added, keyword

_SUGGESTION = FixGrade.SUGGESTION


@rule(
    "subprocess-check",
    ast.Call,
    standard=False,
    words=(b"subprocess",),
    why="Without `check` a failing program goes unnoticed.",
    bad=[
        bad("import subprocess\nsubprocess.run(x)\n", "import subprocess\nsubprocess.run(x, check=True)\n", _SUGGESTION)
    ],
    good=[
        "import subprocess\nsubprocess.run(x, check=False)\n",
        "import subprocess\nsubprocess.run(x, **y)\n",
        "run(x)\n",
    ],
)
def subprocess_check(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`subprocess.run` without `check=`."""
    if isinstance(node, ast.Call) and view.named(node.func, "subprocess.run") and keyword(node, "check") is None:
        if all(k.arg is not None for k in node.keywords):
            yield Hit(node, "no check= argument", added(view, node, "check=True"), _SUGGESTION)


@rule(
    "open-without-with",
    ast.Assign,
    words=(b"open(",),
    why="If something fails in between, the file stays open.",
    bad=[
        bad(
            "def g(p):\n    f = open(p)\n    x = f.read()\n    f.close()\n    return x\n",
            "def g(p):\n    with open(p) as f:\n        x = f.read()\n    return x\n",
            _SUGGESTION,
        ),
    ],
    good=[
        "def g(p):\n    with open(p) as f:\n        x = f.read()\n",
        "def g(p):\n    f = open(p)\n    return f\n",
        "def g(p):\n    f = open(p)\n    f = h(f)\n    f.close()\n",
        "from os import open\ndef g(p):\n    f = open(p, 0)\n    x = f.read()\n    f.close()\n",
    ],
)
def open_without_with(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A file that is opened, used by simple statements and closed in one block, in a function.

    A suggestion: what tests put in the place of `open` may be no context manager.
    """
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return
    if not isinstance(node.value, ast.Call) or not view.builtin(node.value.func, "open") or view.function(node) is None:
        return
    name, block = node.targets[0].id, view.block(node)
    at = next((n for n, s in enumerate(block) if s is node), len(block))
    last = next((n for n in range(at + 1, len(block)) if _closes(block[n], name)), 0)
    between = block[at + 1 : last]
    if not between or len(between) > 12:
        return
    simple = all(isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr) and view.lone(s) for s in between)
    stores = [
        n
        for s in between
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    odd = [
        n
        for s in between
        for n in ast.walk(s)
        if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await | ast.Lambda | ast.GeneratorExp)
    ]
    kept = [
        n
        for s in between
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(view.parent(n), ast.Attribute)
    ]
    if simple and not stores and not odd and not kept:
        yield Hit(
            node,
            "open it in a with statement",
            _wrapped(view, node, between, block[last]),
            _SUGGESTION,
            anchor=view.parent(node),
        )


def _closes(node: ast.stmt, name: str) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr == "close" and isinstance(call.func.value, ast.Name) and call.func.value.id == name


def _wrapped(view: FileView, node: ast.Assign, between: list[ast.stmt], close: ast.stmt) -> tuple[Cut, ...] | None:
    """Cuts that make a `with` of an assignment and indent what follows; None where a text or comment would change."""
    region = view.between(view.start(node), view.end(close))
    if (
        "#" in region
        or "\\\n" in region
        or '"""' in region
        or "'''" in region
        or not view.lone(node)
        or not view.lone(close)
    ):
        return None
    starts = view.source.line_starts
    target = node.targets[0]
    cuts: list[Cut] = [
        (view.start(node), view.start(node.value), "with "),
        (view.end(node.value), view.end(node.value), f" as {view.text(target)}:"),
    ]
    if (
        view.end(node) != view.end(node.value)
        or view.line_end(view.end(node)) != view.end(node)
        or view.line_end(view.end(close)) != view.end(close)
    ):
        return None
    step = view.step()
    for line in range(view.line_of(between[0]), view.line_of(close)):
        if view.between(starts[line - 1], starts[line]).strip():
            cuts.append((starts[line - 1], starts[line - 1], step))
    return (*cuts, (view.end(between[-1]), view.end(close), ""))


@rule(
    "open-encoding",
    ast.Call,
    standard=False,
    words=(b"open(",),
    why="The default encoding differs between machines.",
    bad=[bad("f = open(p)\n", "f = open(p, encoding='utf-8')\n", _SUGGESTION)],
    good=[
        "f = open(p, 'rb')\n",
        "f = open(p, encoding='ascii')\n",
        "f = open(p, mode)\n",
        "from os import open\nf = open(p)\n",
    ],
)
def open_encoding(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`open` of a text file without an encoding."""
    if not isinstance(node, ast.Call) or not view.builtin(node.func, "open") or keyword(node, "encoding") is not None:
        return
    mode = node.args[1] if len(node.args) > 1 else getattr(keyword(node, "mode"), "value", None)
    known = mode is None or (isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" not in mode.value)
    if (
        known
        and len(node.args) in (1, 2, 3)
        and all(k.arg for k in node.keywords)
        and not isinstance(node.args[0], ast.Starred)
    ):
        yield Hit(node, "no encoding= argument", added(view, node, "encoding='utf-8'"), _SUGGESTION)


@rule(
    "naive-utc",
    ast.Call,
    words=(b"utcnow", b"utcfromtimestamp"),
    why="The result has no time zone and is taken for local time; deprecated in Python 3.12.",
    bad=[
        bad(
            "import datetime\na = datetime.datetime.utcnow()\n",
            "import datetime\na = datetime.datetime.now(datetime.timezone.utc)\n",
            _SUGGESTION,
        ),
        bad("from datetime import datetime\na = datetime.utcnow()\n"),
    ],
    good=["import datetime\na = datetime.datetime.now()\n", "a = x.utcnow()\n"],
)
def naive_utc(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`datetime.utcnow()` and `utcfromtimestamp`. A suggestion: the two kinds of time cannot be compared."""
    names = ("datetime.datetime.utcnow", "datetime.datetime.utcfromtimestamp")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not view.named(node.func, *names):
        return
    base = node.func.value
    cuts = None
    if node.func.attr == "utcnow" and isinstance(base, ast.Attribute) and not node.args and not node.keywords:
        cuts = (view.put(node, f"{view.text(base)}.now({view.text(base.value)}.timezone.utc)"),)
    yield Hit(node, "use now(timezone.utc)", cuts, _SUGGESTION)


@rule(
    "zip-strict",
    ast.Call,
    standard=False,
    words=(b"zip(",),
    why="`zip` silently stops at the shortest.",
    bad=[bad("a = zip(x, y)\n", "a = zip(x, y, strict=True)\n", _SUGGESTION)],
    good=["a = zip(x, y, strict=False)\n", "a = zip(x)\n", "a = zip(*x)\n"],
)
def zip_strict(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`zip` of several iterables without `strict=`."""
    if isinstance(node, ast.Call) and len(node.args) > 1 and not node.keywords and view.builtin(node.func, "zip"):
        if not any(isinstance(a, ast.Starred) for a in node.args):
            yield Hit(node, "no strict= argument", added(view, node, "strict=True"), _SUGGESTION)


@rule(
    "join-absolute",
    ast.Call,
    words=(b"join",),
    why="A part that begins with a slash discards everything before it.",
    bad=[bad("import os\na = os.path.join(x, '/etc')\n"), bad("from os.path import join\na = join(x, '/', y)\n")],
    good=["import os\na = os.path.join('/etc', x)\n", "a = ','.join(x)\n", "import os\na = os.path.join(x, 'etc')\n"],
)
def join_absolute(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A later part of `os.path.join` that begins with a slash."""
    if isinstance(node, ast.Call) and len(node.args) > 1 and view.named(node.func, "os.path.join"):
        for part in node.args[1:]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and os.path.isabs(part.value):  # noqa: PTH117
                yield Hit(node, f"{part.value!r} discards all parts before it")
                return


RULES = (
    subprocess_check, open_without_with, open_encoding, naive_utc, zip_strict, join_absolute,
)  # fmt: skip
