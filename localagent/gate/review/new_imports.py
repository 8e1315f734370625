"""Sign: a package comes in that the file did not use, is no part of Python, and is not the repository's own."""

import ast
import sys

from localagent.gate.core.rule import PLAIN, introduced, question
from localagent.gate.review.source_change import Signs, Source, SourceChange

IMPORTS = question(
    id="import-new",
    why="a package that the file did not use comes in, and nothing in the patch says what it does",
    remedy="have a person check the package; `localagent deps` brings it in",
    match=(
        introduced("import chardett\n" + PLAIN),
        introduced("from requestes.api import get\n" + PLAIN),
        introduced(
            "def f(x):\n    try:\n        import ujsonn\n    except ImportError:\n        x = 1\n    return x\n"
        ),
    ),
    not_match=(
        introduced("import json\n" + PLAIN),
        introduced("from . import other\n" + PLAIN),
        introduced("from pkg.other import g\n" + PLAIN),
        introduced("import numpy\nfrom numpy import array\n" + PLAIN, "import numpy\n" + PLAIN),
    ),
)
_STDLIB = frozenset(sys.stdlib_module_names) | {"__future__", "typing_extensions"}


def imports(change: SourceChange) -> Signs:
    """The first part of what is imported."""
    had = {name for name, _ in _imported(change.before)} | change.own_packages | _STDLIB
    yield from ((f"newly imported: {name}", node) for name, node in _imported(change.after) if name not in had)


def _imported(source: Source) -> Signs:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0], node


CHECKS = ((IMPORTS, imports),)
