"""Sign: a package comes in that the file did not use, is no part of Python, and is not the repository's own."""

import ast
import sys

from localagent.gate.review.source_change import Signs, Source, SourceChange

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
