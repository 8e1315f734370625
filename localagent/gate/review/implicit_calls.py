"""Sign: code that runs without being called: on import, on loss of an object, on making a subclass, on any look-up."""

import ast
import re
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import callee_name
from localagent.code.spans import blocks
from localagent.gate.core.rule import PLAIN, introduced, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.visible_text import shortened

UNASKED = question(
    id="runs-unasked",
    why="it runs without being called: on import, on loss of an object, on making a subclass, on any look-up",
    remedy="call it where it is wanted, or have a person confirm it",
    match=(
        introduced("class A:\n    def __del__(self):\n        g(self)\n", ""),
        introduced("class A:\n    def __init_subclass__(cls):\n        g(cls)\n", ""),
        introduced("class A(metaclass=B):\n    pass\n", ""),
        introduced(PLAIN + "\n\n_start()\n"),
        introduced(PLAIN + "\n\ndef __getattr__(name):\n    return g(name)\n"),
    ),
    not_match=(
        introduced(PLAIN + "\n\nif __name__ == '__main__':\n    main()\n"),
        introduced(PLAIN + "\n\nclass A(B):\n    pass\n"),
    ),
)
_HOOKS = frozenset(
    {"__del__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__instancecheck__",
     "__subclasscheck__", "__subclasshook__", "__mro_entries__", "__getstate__", "__setstate__", "__fspath__"}
)  # fmt: skip
_AT_IMPORT = re.compile(r"(?i)register|filterwarnings|getLogger|add_argument|config|setup|declare|export")


def unasked(source: Source) -> Signs:
    """What runs without being called."""
    for node in source.nodes:
        if isinstance(node, FUNCTIONS) and node.name in _HOOKS:
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and any(
            k.arg == "metaclass" and callee_name(k.value) not in ("ABCMeta", "EnumMeta") for k in node.keywords
        ):
            yield f"a metaclass of {node.name}", node
    for statement in source.tree.body:
        if isinstance(statement, FUNCTIONS) and statement.name in ("__getattr__", "__dir__"):
            yield f"{statement.name} of a module", statement
        if source.is_script:
            continue  # it ran from top to bottom before; what it does is judged by what it mentions
        for call in _calls_at_import(statement):
            if not _AT_IMPORT.search(callee_name(call.func)):
                yield f"{shortened(ast.unparse(call.func), 60)}() on import", call


def _calls_at_import(node: ast.stmt) -> Iterator[ast.Call]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node.value
    elif isinstance(node, ast.Try | ast.With | ast.For | ast.While):
        yield from (i.context_expr for i in getattr(node, "items", ()) if isinstance(i.context_expr, ast.Call))
        for block in blocks(node):
            for inner in block:
                yield from _calls_at_import(inner)


CHECKS = ((UNASKED, newly(unasked)),)
