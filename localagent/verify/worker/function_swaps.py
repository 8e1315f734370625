"""Which functions a candidate replaces, as text for the worker to compile into its live function objects.

Answers None whenever an import of the patched file could do anything else than replacing these functions: edits
outside a function, signatures that say more than other names and plain defaults, functions that ran while importing,
edits whose place is not known.
"""

import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from localagent.domain.edit import Candidate, Edit, FileChange, Scope
from localagent.domain.paths import RepoPath
from localagent.verify.worker import signatures

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
        return signatures.defaults(indent + function.before.decode(), text)
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
