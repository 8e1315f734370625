"""The normal form of statements: two texts with the same syntax tree have the same digest.

Digests of compound statements are built from those of their parts, so that an edit of one statement needs only that
statement parsed. Digests are comparable within one process only (they rest on `hash`).
"""

import ast
from collections.abc import Sequence
from typing import Any

_BLOCK_FIELDS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
_SKIPPED_FIELDS = frozenset({"ctx", "type_comment"})
_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(cls: type) -> tuple[str, ...]:
    found = _FIELDS.get(cls)
    if found is None:
        found = tuple(f for f in cls._fields if f not in _SKIPPED_FIELDS)  # type: ignore[attr-defined]
        _FIELDS[cls] = found
    return found


def expression_key(node: Any) -> Any:
    """A hashable value that is equal for equal syntax; contexts (load, store) follow from the place and are ignored."""
    cls = node.__class__
    if cls is ast.Name:
        return node.id
    if cls is ast.Constant:
        held = node.value
        return (cls, held.__class__, repr(held) if held.__class__ in (float, complex) else held, node.kind)
    out: list[Any] = [cls]
    for name in _fields(cls):
        value: Any = getattr(node, name, None)
        if isinstance(value, list):
            out.append(tuple([expression_key(x) if isinstance(x, ast.AST) else (x,) for x in value]))
        elif isinstance(value, ast.AST):
            out.append(expression_key(value))
        else:
            out.append((value,))
    return tuple(out)


def header_digest(node: ast.AST) -> int:
    """Digest of a compound statement's (or handler's, or case's) own fields, blocks left out."""
    parts: list[Any] = []
    for name in _fields(node.__class__):
        if name in _BLOCK_FIELDS and not isinstance(getattr(node, name, None), ast.expr):
            continue
        value = getattr(node, name, None)
        if isinstance(value, list):
            parts.append(tuple(expression_key(x) if isinstance(x, ast.AST) else (x,) for x in value))
        else:
            parts.append(expression_key(value) if isinstance(value, ast.AST) else (value,))
    return hash((node.__class__, tuple(parts)))


def suite_digest(header: int, statements: Sequence[int]) -> int:
    """Digest of one block with the header of its own that it may have (an except clause, a case)."""
    return hash((header, tuple(statements)))


def compound_digest(header: int, suites: Sequence[int]) -> int:
    """Digest of a compound statement."""
    return hash((header, tuple(suites), "compound"))


def statement_digest(node: ast.stmt) -> int:
    """Digest of a statement's syntax tree."""
    if isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While)):
        blocks = [_block(node.body), _block(node.orelse)]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.AsyncWith)):
        blocks = [_block(node.body)]
    elif isinstance(node, (ast.Try, ast.TryStar)):
        handlers = [suite_digest(header_digest(h), [statement_digest(s) for s in h.body]) for h in node.handlers]
        blocks = [_block(node.body), *handlers, _block(node.orelse), _block(node.finalbody)]
    elif isinstance(node, ast.Match):
        blocks = [suite_digest(header_digest(c), [statement_digest(s) for s in c.body]) for c in node.cases]
    else:
        return hash(expression_key(node))
    return compound_digest(header_digest(node), blocks)


def _block(statements: Sequence[ast.stmt]) -> int:
    return suite_digest(0, [statement_digest(s) for s in statements])
