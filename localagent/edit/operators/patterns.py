"""Regular expressions: one character of a pattern more, less or another, so that it still is one."""

import re
import warnings
from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name
from localagent.edit.precedence import ATOM

_MOST = 120  # characters of a pattern
_CALLEES = frozenset({"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
_SPECIAL = re.compile(r"\\[\w.]|[\[(*+?^$|]")
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|\(\?(?:P<\w+>|[:=!]|<[=!])|.", re.DOTALL)


@operator("pattern-edit", prior=-1.2)
def pattern_edit(ctx: OperatorContext) -> Iterator[Change]:
    """A regular expression gets, loses or changes a quantifier, an anchor or an escape: `+` for `*`, `x+` for `x`."""
    given = {id(call.args[0].value) for _, call in ctx.of(cst.Call) if call.args and callee_name(call) in _CALLEES}
    for expr, node in ctx.of(cst.SimpleString):
        body = node.raw_value
        raw = "r" in node.prefix.lower()
        if len(body) > _MOST or "\n" in body or expr.in_fstring or not (raw or "\\" not in body):
            continue
        if not _SPECIAL.search(body) or not (id(node) in given or (raw and _compiles(body))):
            continue
        for new, delta, note in _others(body, raw=raw):
            if new != body and _compiles(new):
                yield ctx.put(expr, f"{node.prefix}{node.quote}{new}{node.quote}", ATOM, delta, note)


def _compiles(pattern: str) -> bool:
    with warnings.catch_warnings(action="ignore"):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError, MemoryError):
            return False
    return True


def _others(body: str, *, raw: bool) -> Iterator[tuple[str, float, str]]:
    """(pattern, what it adds to the prior, what was done)."""
    pieces = [m.group() for m in _PIECE.finditer(body)]
    for k, piece in enumerate(pieces):
        after = pieces[k + 1] if k + 1 < len(pieces) else ""
        for text, delta in _instead(piece, after, raw=raw):
            yield "".join([*pieces[:k], text, *pieces[k + 1 :]]), delta, f"{piece} -> {text or 'nothing'}"
    if raw:
        yield body + r"\Z", -0.6, r"... -> ...\Z"
        yield r"\b" + body, -0.9, r"... -> \b..."
        yield body + r"\b", -0.9, r"... -> ...\b"
    yield body + "$", -0.4, "... -> ...$"
    yield "^" + body, -0.4, "... -> ^..."


def _instead(piece: str, after: str, *, raw: bool) -> Iterator[tuple[str, float]]:
    """What may stand in a piece's place."""
    quantified = after[:1] in ("*", "+", "?", "{")
    if piece in ("*", "+"):
        yield ("+" if piece == "*" else "*"), 0.2
        yield "?", -0.3
        yield "", -0.2
        if after != "?":
            yield piece + "?", 0.0
    elif piece == "?":
        yield "", 0.0
        yield "*", -0.2
        yield "+", -0.4
    elif piece == "$":
        yield "", -0.2
        if raw:
            yield r"\Z", 0.2
    elif piece == "^":
        yield "", -0.2
    elif piece == "." and raw:
        yield r"\.", 0.1
    elif piece == ")" or piece[0] == "[" or (piece[0] == "\\" and piece[1:] in ("w", "d", "s", "S", "W", "D")):
        if not quantified:
            yield piece + "+", 0.0
            yield piece + "*", 0.0
            yield piece + "?", 0.0
        if piece.startswith("[^"):
            yield f"[{piece[2:]}", -0.4
        elif len(piece) > 1 and piece[0] == "[":
            yield f"[^{piece[1:]}", -0.6
    elif raw and not quantified and piece.isalnum():
        yield piece + "?", -0.4
