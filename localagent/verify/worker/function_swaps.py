"""Which functions a candidate replaces, as text for the worker to compile into its live function objects.

Answers None whenever an import of the patched file could do anything else than replacing these functions: edits
outside a function, signatures that say more than other names and plain defaults, functions that ran while importing,
edits whose place is not known.
"""

import ast
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function
from localagent.domain.edit import Candidate, Edit, FileChange, Scope
from localagent.domain.paths import RepoPath

# What a changed signature asks of a live function beside new code: its defaults, given again.
#
# Answers None wherever running the `def` could do anything else: decorators, other annotations, defaults that are
# computed. Not promised: that nobody read the old signature while importing; the full check imports anew.


def defaults(before: str, after: str) -> dict[str, Any] | None:
    """How the worker makes the defaults of the function `after` out of those of the live function `before`.

    Both are texts of one definition, indented as in their file. `{"positional": [...], "keyword": {name: ...}}`, each
    entry `{"keep": i}` (the live default number i), `{"keep": name}` (that of a keyword-only parameter) or
    `{"literal": text}`; None when the candidate has to be run from scratch.
    """
    old, new = _definition(before), _definition(after)
    if old is None or new is None or type(old) is not type(new) or old.name != new.name:
        return None
    if old.decorator_list or new.decorator_list or _annotations(old) != _annotations(new):
        return None
    kept = _given(old)
    entries = {name: _entry(kept.get(name), value) for name, (_, value) in _given(new).items()}
    if any(entry is None for entry in entries.values()):
        return None
    keywords = {a.arg for a in new.args.kwonlyargs}
    return {
        "positional": [entry for name, entry in entries.items() if name not in keywords],
        "keyword": {name: entry for name, entry in entries.items() if name in keywords},
    }


def _definition(text: str) -> Function | None:
    """The one function a text defines, if it does."""
    tree = parse_or_none("if True:\n" + text if text[:1] in (" ", "\t") else text)
    body = tree.body if tree is not None else []
    if text[:1] in (" ", "\t") and len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Function) else None


def _annotations(function: Function) -> list[str]:
    args = function.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    found = [a.annotation for a in every if a is not None]
    return sorted(ast.dump(a) for a in [*found, function.returns] if a is not None)


def _given(function: Function) -> dict[str, tuple[int | str, ast.expr]]:
    """Parameters that have a default: its number, or name where it is keyword-only, and its expression."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    named = positional[len(positional) - len(args.defaults) :]
    found: dict[str, tuple[int | str, ast.expr]] = {
        a.arg: (i, value) for i, (a, value) in enumerate(zip(named, args.defaults, strict=True))
    }
    for a, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if value is not None:
            found[a.arg] = (a.arg, value)
    return found


def _entry(kept: tuple[int | str, ast.expr] | None, value: ast.expr) -> dict[str, Any] | None:
    """The live default where the expression is the same; a literal that cannot be changed; else None."""
    if kept is not None and ast.dump(kept[1]) == ast.dump(value):
        return {"keep": kept[0]}
    return {"literal": ast.unparse(value)} if _unchangeable(value) else None


def _unchangeable(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(_unchangeable(part) for part in value.elts)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
        return isinstance(value, ast.Constant) and type(value.value) in (int, float, complex)
    return isinstance(value, ast.Constant)


ImportLines = Mapping[RepoPath, frozenset[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Replaced:
    """A function of the patched file: byte span and first line there, first line and bytes in the original.

    `signature` is true once an edit touched what stands before the body.
    """

    scope: Scope
    before: bytes
    signature: bool = False
    start: int
    end: int
    body_start: int
    line: int
    old_line: int


def plan(candidate: Candidate, import_lines: ImportLines) -> list[dict[str, Any]] | None:
    """One order for the worker per replaced function, or None when the candidate has to be run from scratch."""
    orders: list[dict[str, Any]] = []
    for change in candidate.patch.changes:
        if not change.path.endswith(".py"):
            return None
        edits = [e for e in candidate.edits if e.path == change.path]
        functions = _functions(change, edits, import_lines.get(change.path, frozenset()))
        if functions is None:
            return None
        for function in functions:
            text = _text(change.after, function)
            if text is None:
                return None
            order: dict[str, Any] = {
                "path": change.path,
                "name": function.scope.name,
                "class": function.scope.class_name,
                "line": function.line,
                "old_line": function.old_line,
                "text": text,
            }
            if function.signature:
                order["defaults"] = _defaults(text, function)
                if order["defaults"] is None:
                    return None
            orders.append(order)
    return orders


def _functions(change: FileChange, edits: list[Edit], imported: frozenset[int]) -> list[_Replaced] | None:
    """Follow the edits one after the other through the file."""
    source, functions = change.before, list[_Replaced]()
    for edit in edits:
        scope = edit.scope
        if scope is None or not edit.splices:
            return None
        if edit.splices[0].start < scope.start or edit.splices[-1].end > scope.end:
            return None
        known = next((f for f in functions if f.start == scope.start and f.end == scope.end), None)
        if known is None:
            if any(f.start < scope.end and scope.start < f.end for f in functions):
                return None
            shift = sum(f.end - f.start - (f.scope.end - f.scope.start) for f in functions if f.start < scope.start)
            known = _original(source, scope, change, shift, imported)
            if known is None:
                return None
            functions.append(known)
        grown = sum(len(s.text) - (s.end - s.start) for s in edit.splices)
        lines = sum(s.text.count(b"\n") - source.count(b"\n", s.start, s.end) for s in edit.splices)
        functions = [
            replace(f, end=f.end + grown, signature=f.signature or edit.splices[0].start < scope.body_start)
            if f is known or f.start == known.start
            else replace(
                f, start=f.start + grown, end=f.end + grown, body_start=f.body_start + grown, line=f.line + lines
            )
            if f.start > known.start
            else f
            for f in functions
        ]
        source = edit.apply(source)
    return functions if edits and source == change.after else None


def _original(
    source: bytes, scope: Scope, change: FileChange, shift: int, imported: frozenset[int]
) -> _Replaced | None:
    """Where the function stood in the original; None when lines of its body ran while importing."""
    start, end = scope.start - shift, scope.end - shift
    if change.before[start:end] != source[scope.start : scope.end]:
        return None
    line = source.count(b"\n", 0, scope.start) + 1
    old_line = change.before.count(b"\n", 0, start) + 1
    body = source[scope.body_start : scope.end]
    first = scope.body_start + len(body) - len(body.lstrip())  # the body may be said to begin right after the colon
    header_lines = source.count(b"\n", scope.start, first)
    last = old_line + source.count(b"\n", scope.start, scope.end)
    if any(old_line + header_lines <= n <= last for n in imported):
        return None
    if b"\r" in source[scope.start : scope.end].replace(b"\r\n", b"") or line != scope.first_line:
        return None
    return _Replaced(
        scope=scope,
        before=change.before[start:end],
        start=scope.start,
        end=scope.end,
        body_start=scope.body_start,
        line=line,
        old_line=old_line,
    )


def _defaults(text: str, function: _Replaced) -> dict[str, Any] | None:
    """What becomes of the defaults where the signature changed; None when that is not known."""
    indent = text[: len(text) - len(text.lstrip())]
    try:
        return defaults(indent + function.before.decode(), text)
    except UnicodeDecodeError:
        return None


def _text(source: bytes, function: _Replaced) -> str | None:
    """The function's text with its indentation, or None when it does not begin its line."""
    begin = source.rfind(b"\n", 0, function.start) + 1
    if source[begin : function.start].strip():
        return None
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(source).readline)[0]
        return source[begin : function.end].decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None
