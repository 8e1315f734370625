"""What a node of a syntax tree imports, binds or is called, as it is written.

What a name stands for is asked elsewhere, and both start from here: `scopes` answers what it certainly is (rules that
rewrite code), `name_resolver` what it may be (gates that refuse code).
"""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ASSIGNING = (ast.Name, ast.alias, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""The nodes of assignments, imports and definitions that bind a name; parameters, handlers and patterns bind, too."""


class ImportedName(NamedTuple):
    """One name of an import statement: `bound` here, `item` of `module`, which is `origin` as one dotted name.

    The item is "" where a module is imported; `module` begins with the dots of a relative import; a star binds `*`.
    """

    bound: str
    module: str
    item: str
    origin: str


def imports_of(node: ast.AST) -> Iterator[ImportedName]:
    """The names of an import statement; none for any other node."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = bound_name(alias)
            yield ImportedName(bound, alias.name, "", alias.name if alias.asname else bound)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            yield ImportedName(bound_name(alias), module, alias.name, f"{module}.{alias.name}")


def bound_name(node: ast.AST) -> str:
    """The name that a node itself binds, what is inside it left out; "" where it binds none."""
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.arg):
        return node.arg
    name = getattr(node, "name", None) or getattr(node, "rest", None)  # definitions, handlers, patterns
    return name if isinstance(name, str) else ""


def last_name(node: ast.AST | None) -> str:
    """`c` of `a.b.c` and of `c`; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def callee_name(node: ast.AST | None) -> str:
    """The last name of what is called, or of what is only named: `c` of `a.b.c(x)` and of `a.b.c`."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def called_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The last names of what is called among some nodes."""
    return {callee_name(node) for node in nodes if isinstance(node, ast.Call)}


def dotted_name(node: ast.AST) -> str:
    """`a.b.c` for a chain of names; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
