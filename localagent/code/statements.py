"""Statement spans of a source file: the places that are ranked.

A simple statement is one place; a compound statement counts with its header lines only, its body's statements are
places of their own. `except` and `case` headers, decorators and the headers of functions and classes are places too.
Files that do not parse have no statements here; the caller falls back to lines.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Clause, Definition, Function, blocks, clauses, first_line, last_line

_WORD = re.compile(r"[^\W\d]\w{2,}")
_WORDS_PER_STATEMENT = 64


class StatementKind(Enum):
    """What a span is: something that runs where it stands, or the header of a definition, which runs beforehand."""

    STATEMENT = "statement"
    DECORATOR = "decorator"
    FUNCTION_HEADER = "function header"
    CLASS_HEADER = "class header"


class Body(Enum):
    """What kind of body a statement stands in."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """Lines [line, end_line] (1-based, inclusive) of one place and the qualified name of the function around it.

    For headers and decorators `function` is the definition itself, and `body` what the definition has. `names` are
    read, called or given as keywords there, `words` stand in its texts, `binds` are the plain names an assignment
    makes, `stores` the attributes it sets. A `silent` one is a bare text: it leaves no trace where it stands, and a
    function that holds nothing else leaves that of its header.
    """

    line: int
    end_line: int
    function: str
    function_line: int
    names: frozenset[str]
    words: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    place: StatementKind = StatementKind.STATEMENT
    body: Body = Body.FUNCTION
    silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Around:
    function: str
    line: int
    body: Body


def statements_of(source: bytes) -> tuple[Statement, ...]:
    """All places of a file in order of appearance; empty when it does not parse."""
    tree = parse_or_none(source)
    if tree is None:
        return ()
    found: list[Statement] = []
    _walk(tree, found)
    return tuple(sorted(found, key=lambda s: (s.line, s.end_line)))


def identifiers_in(text: str) -> frozenset[str]:
    """Identifiers of three letters or more in some text."""
    return frozenset(_WORD.findall(text))


_Node = ast.stmt | Clause


def _walk(tree: ast.Module, found: list[Statement]) -> None:
    top = _Around(function="", line=0, body=Body.MODULE)
    stack: list[tuple[_Node, _Around]] = [(s, top) for s in tree.body]
    while stack:
        node, around = stack.pop()
        children = _children(node)
        inner = around
        if isinstance(node, Definition):
            name = f"{around.function}.{node.name}" if around.function else node.name
            body = Body.CLASS if isinstance(node, ast.ClassDef) else Body.FUNCTION
            inner = _Around(function=name, line=node.lineno, body=body)
            found.extend(_decorators(node, inner))
        found.append(_build_statement(node, children, inner))
        stack.extend((c, inner) for c in children)


def _build_statement(node: _Node, children: list[_Node], around: _Around) -> Statement:
    line = node.lineno if isinstance(node, Definition) else _first_line(node)
    end = max(line, _first_line(children[0]) - 1 if children or isinstance(node, ast.match_case) else last_line(node))
    place = StatementKind.STATEMENT
    if isinstance(node, Function):
        place = StatementKind.FUNCTION_HEADER
    elif isinstance(node, ast.ClassDef):
        place = StatementKind.CLASS_HEADER
    roots: list[ast.AST] = [node]
    if children:
        roots = [c for c in ast.iter_child_nodes(node) if not isinstance(c, _Node)]
    found = _statement(roots, line, end, around, place, _binds(node))
    silent = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return replace(found, silent=silent)


def _decorators(node: Definition, around: _Around) -> Iterable[Statement]:
    for d in node.decorator_list:
        yield _statement([d], d.lineno, last_line(d), around, StatementKind.DECORATOR, frozenset())


def _statement(
    roots: list[ast.AST], line: int, end: int, around: _Around, place: StatementKind, binds: frozenset[str]
) -> Statement:
    names: set[str] = set()
    words: set[str] = set()
    stores: set[str] = set()
    for root in roots:
        for n in ast.walk(root):
            if isinstance(n, ast.Name):
                names.add(n.id)
            elif isinstance(n, ast.Attribute):
                names.add(n.attr)
                if isinstance(n.ctx, ast.Store):
                    stores.add(n.attr)
            elif isinstance(n, ast.keyword) and n.arg:
                names.add(n.arg)
            elif isinstance(n, ast.Constant) and isinstance(n.value, str) and len(words) < _WORDS_PER_STATEMENT:
                words |= identifiers_in(n.value[:2000])
    return Statement(
        line=line,
        end_line=end,
        function=around.function,
        function_line=around.line,
        names=frozenset(names),
        words=frozenset(words),
        binds=binds,
        stores=frozenset(stores),
        place=place,
        body=around.body,
    )


def _first_line(node: _Node) -> int:
    """The first line of a node, its decorators and, for a case, its pattern included."""
    return node.pattern.lineno if isinstance(node, ast.match_case) else first_line(node)


def _children(node: _Node) -> list[_Node]:
    return sorted((*(s for block in blocks(node) for s in block), *clauses(node)), key=_first_line)


def _binds(node: _Node) -> frozenset[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    flat = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
    return frozenset(t.id for t in flat if isinstance(t, ast.Name))
