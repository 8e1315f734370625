"""Where functions, statements and blocks of a syntax tree lie: lines from 1, both ends included, and byte offsets.

Lines are those of Python's parser. A node that has no end, as hand-made ones, ends where it begins.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Clause = ast.ExceptHandler | ast.match_case
Located = ast.stmt | ast.expr | ast.ExceptHandler | ast.arg


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionSpan:
    """A function, and the functions and classes around it, outermost first."""

    node: Function
    around: tuple[Definition, ...]

    @property
    def qualname(self) -> str:
        """The name as Python's `__qualname__` tells it."""
        return "".join(f"{d.name}{'.' if isinstance(d, ast.ClassDef) else '.<locals>.'}" for d in self.around) + (
            self.node.name
        )

    @property
    def class_name(self) -> str | None:
        """The class directly around it."""
        return self.around[-1].name if self.around and isinstance(self.around[-1], ast.ClassDef) else None

    @property
    def outermost(self) -> bool:
        """Whether it stands in no other function."""
        return all(isinstance(d, ast.ClassDef) for d in self.around)


def functions(tree: ast.AST) -> Iterator[FunctionSpan]:
    """Every function of a tree in the order of the source, one inside another after it."""
    waiting: list[tuple[ast.AST, tuple[Definition, ...]]] = [(tree, ())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, Function) and node is not tree:
            yield FunctionSpan(node=node, around=around)
        inside = (*around, node) if isinstance(node, Definition) and node is not tree else around
        waiting += [(child, inside) for block in reversed(list(all_blocks(node))) for child in reversed(block)]


def outermost_functions(tree: ast.AST) -> Iterator[FunctionSpan]:
    """The functions of a tree that stand in no other one, in the order of the source."""
    return (f for f in functions(tree) if f.outermost)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that a node itself holds, in order; those of its clauses are theirs."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block


def clauses(node: ast.AST) -> list[Clause]:
    """The `except` clauses of a `try`, and the cases of a `match`."""
    found: list[Clause] = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    return found


def all_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly in a node, those of its clauses among them, in the order of the source."""
    own = list(blocks(node))
    inner = clauses(node)
    if inner and own:
        yield own.pop(0)
    yield from (clause.body for clause in inner)
    yield from own


def first_line(node: Located) -> int:
    """The first line, of a definition that of its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def last_line(node: Located) -> int:
    """The last line."""
    return node.end_lineno or node.lineno


def lines_of(node: Located) -> range:
    """All lines, decorators left out."""
    return range(node.lineno, last_line(node) + 1)


def all_lines_of(node: Located) -> range:
    """All lines, those of decorators among them."""
    return range(first_line(node), last_line(node) + 1)


def head_end(node: ast.stmt) -> int:
    """The last line of a statement's own: of one with a body, of what stands before the body."""
    body = getattr(node, "body", None)
    return max(node.lineno, body[0].lineno - 1) if isinstance(body, list) and body else last_line(node)


def byte_span(node: Located, line_starts: Sequence[int]) -> tuple[int, int]:
    """The bytes [start, end) of a node in a UTF-8 source, decorators left out; ValueError where it has no end."""
    if node.end_lineno is None or node.end_col_offset is None:
        raise ValueError(f"line {node.lineno}: a node without an end")
    return line_starts[node.lineno - 1] + node.col_offset, line_starts[node.end_lineno - 1] + node.end_col_offset
