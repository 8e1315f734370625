"""The fallback: delete, insert, replace, swap tokens near the fault; drop, split and join lines."""

import ast
import itertools
from collections.abc import Iterator

from localagent.code.source_text import parse_or_none
from localagent.edit.syntax_repair.lexer import KEYWORDS, BrokenText, Lexeme, LexemeKind, SyntaxFix, insert, replace

_INSERTED = (
    (",", 0.0), (")", 0.2), ("(", 0.3), ("]", 0.3), ("[", 0.4), (".", 0.3), ("+", 0.3), ("=", 0.3), (":", 0.3),
    ("-", 0.5), ("*", 0.5), ("==", 0.4), ("and", 0.4), ("or", 0.5), ("in", 0.4), ("not", 0.6), ("if", 0.5), ("else",
    0.5), ("<", 0.7), (">", 0.7), ("for", 0.6), ("is", 0.9), ("%", 0.7), ("//", 0.7), ("/", 0.7), ("}", 0.6), ("{",
    0.9), ("0", 0.7), ("1", 0.7), ("None", 0.6), ("True", 0.9), ("as", 0.9), ("import", 0.9), ("+=", 0.7), ("-=",
    0.9), ("!=", 0.8), ("<=", 0.9), (">=", 0.9), ("->", 0.9), ("[]", 0.9), ("()", 0.9), ('""', 0.9), ("def", 1.0),
    ("return", 0.9), ("lambda", 1.1), ("from", 1.1), ("while", 1.1), ("self", 0.9), ("pass", 0.9),
)  # fmt: skip
_BEGINNERS = frozenset(
    ("assert", "break", "class", "continue", "def", "del", "global", "import", "nonlocal", "raise", "return", "while")
)  # keywords that stand nowhere but at the beginning of a statement
_REACH_BACK = 4
_REACH_ON = 2


def _near(view: BrokenText) -> list[tuple[int, list[Lexeme], float]]:
    """(index in row, row, extra cost) of lexemes on suspect lines, nearest to the fault first."""
    out = []
    for line, distance in view.suspects:
        row = view.on(line)
        at = (
            next((n for n, x in enumerate(row) if x.end > view.fault.offset), len(row))
            if line == view.fault_line
            else len(row)
        )
        for n in range(len(row)):
            gap = at - n if n < at else n - at
            reach = _REACH_BACK if n < at else _REACH_ON
            out.append((n, row, distance + (0.12 * gap if gap <= reach else 0.7 + 0.05 * gap)))
    return out


def _glued(view: BrokenText, at: int, text: str, end: int | None = None) -> str:
    """Text for [at, end) with the blanks it needs so as not to run into its neighbours."""
    stop = at if end is None else end
    before = view.text[at - 1 : at]
    after = view.text[stop : stop + 1]
    word = text[0].isalnum() or text[0] == "_" or text in ("and", "or")
    left = " " if word and (before.isalnum() or before in "_\"')]}") and before else ""
    right = " " if text[-1].isalnum() and (after.isalnum() or after in "_\"'([{") and after else ""
    return left + text + right


def tokens(view: BrokenText) -> Iterator[SyntaxFix]:
    """Single-token edits, then pairs."""
    names = _names(view)
    for n, row, distance in _near(view):
        x = row[n]
        yield replace(distance + 1.0, x, "", "tokens.delete-token")
        if distance > 2.2:
            continue
        for text, cost in _INSERTED:
            yield insert(distance + 1.3 + cost, x.start, _glued(view, x.start, text), "tokens.insert-token")
            if n + 1 == len(row):
                yield insert(distance + 1.3 + cost, x.end, _glued(view, x.end, text), "tokens.insert-token")
            if x.kind in (LexemeKind.OP, LexemeKind.OTHER, LexemeKind.QUOTE) or x.text in KEYWORDS:
                yield replace(distance + 1.3 + cost, x, _glued(view, x.start, text, x.end), "tokens.replace-token")
        for rank, name in enumerate(names):
            cost = distance + 1.9 + 0.05 * rank
            yield insert(cost, x.start, _glued(view, x.start, name), "tokens.insert-name")
            if n + 1 == len(row):
                yield insert(cost - 0.3, x.end, _glued(view, x.end, name), "tokens.insert-name")
            if x.text in KEYWORDS or x.kind in (LexemeKind.OTHER, LexemeKind.QUOTE):
                yield replace(cost, x, _glued(view, x.start, name, x.end), "tokens.replace-token")
        if n + 1 < len(row):
            y = row[n + 1]
            cut = (x.start, y.end, y.text + view.text[x.end : y.start] + x.text)
            yield SyntaxFix(distance + 1.6, (cut,), "tokens.swap-tokens", f"swap {x.text} and {y.text}")
            yield SyntaxFix(distance + 1.5, ((x.start, y.end, ""),), "tokens.delete-token", f"drop {x.text} {y.text}")
            if x.end < y.start:
                yield SyntaxFix(
                    distance + 1.8, ((x.end, y.start, ""),), "tokens.join-words", f"{x.text}{y.text} in one piece"
                )
        for y in row[n + 2 :]:
            yield SyntaxFix(
                distance + 2.2,
                ((x.start, x.end, ""), (y.start, y.end, "")),
                "tokens.delete-pair",
                f"drop {x.text} and {y.text}",
            )


def _names(view: BrokenText) -> list[str]:
    """Names used on the lines around, nearest first."""
    out: list[str] = []
    for gap in range(9):
        for line in (view.fault_line - gap, view.fault_line + gap):
            for x in view.on(line):
                if x.kind is LexemeKind.NAME and x.text not in KEYWORDS and x.text not in out:
                    out.append(x.text)
    return out[:12]


def _says_something(line: str) -> bool:
    """Whether a line is a statement that does something; a remark may parse too (`Note: this`, `first, second`)."""
    tree = parse_or_none(line)
    body = tree.body if tree is not None else []
    if not body or (isinstance(body[0], ast.AnnAssign) and body[0].value is None):
        return False
    return not isinstance(body[0], ast.Expr) or any(isinstance(n, ast.Call | ast.Await) for n in ast.walk(body[0]))


def whole_lines(view: BrokenText) -> Iterator[SyntaxFix]:
    """Drop a line or its rest, split it in two, join it with the next."""
    for line, distance in view.suspects:
        x, row = view.lines[line], view.on(line)
        yield SyntaxFix(distance + 1.1, ((x.start, x.stop, ""),), "tokens.delete-line", "drop the line")
        yield SyntaxFix(distance + 1.6, ((x.code_start, x.end, "pass"),), "tokens.delete-line", "line -> pass")
        if row:
            says = _says_something(view.text[x.code_start : x.end])
            dearer, name = (1.2, "tokens.comment-statement") if says else (0.0, "tokens.comment-line")
            yield insert(distance + 1.3 + dearer, x.code_start, "# ", name, "make the line a comment")
        below = view.after(line)
        if below is not None:
            gap = (view.code_end(line), view.lines[below].code_start, " ")
            yield SyntaxFix(distance + 1.3, (gap,), "tokens.join-lines", "join with the next line")
            cont = (view.code_end(line), view.code_end(line), " \\")
            yield SyntaxFix(distance + 2.0, (cont,), "tokens.join-lines", "go on in the next line")
        newline = view.text[x.end : x.stop] or "\n"
        blanks = view.text[x.start : x.code_start]
        for left, right in itertools.pairwise(row):
            cut = (left.end, right.start, newline + blanks)
            near = 0.0 if left.end <= view.fault.offset <= right.end else 0.6
            before = view.text[x.code_start : left.end]
            if right.text in _BEGINNERS and not _says_something(before):
                begun = ((x.code_start, right.start, ""),)
                yield SyntaxFix(distance + 1.1 + near, begun, "tokens.drop-stray", f"drop {before}")
            yield SyntaxFix(distance + 1.2 + near, (cut,), "tokens.split-line", "begin a new line")
            yield SyntaxFix(
                distance + 1.8 + near,
                ((right.start, view.code_end(line), ""),),
                "tokens.delete-token",
                "drop the line's rest",
            )
