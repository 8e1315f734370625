"""Fixes for words and signs: assignment or comparison, misspelt keywords, habits from other languages."""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from localagent.domain.edit import EditEffect
from localagent.edit.syntax_repair.lexer import (
    HEADS,
    KEYWORDS,
    BrokenText,
    Lexeme,
    LexemeKind,
    SyntaxFix,
    insert,
    replace,
)

_CONDITION_HEADS = frozenset({
    "if", "elif", "while", "assert", "return", "and", "or", "not",
})  # fmt: skip
_FOREIGN_WORDS = {
    "elseif": "elif", "elsif": "elif", "elif:": "elif", "function": "def", "func": "def", "fn": "def", "sub": "def",
    "null": "None", "NULL": "None", "nil": "None", "undefined": "None", "nullptr": "None", "true": "True",
    "false": "False", "throw": "raise", "throws": "raise", "catch": "except", "foreach": "for", "switch": "match",
    "until": "while", "this": "self", "void": "def", "unless": "if not", "finaly": "finally", "require": "import",
    "include": "import", "using": "import", "AND": "and", "OR": "or", "NOT": "not", "define": "def", "loop": "while",
}  # fmt: skip
_FOREIGN_SIGNS = {
    "&&": "and", "||": "or", "===": "==", "!==": "!=", "=>": ">=", "=<": "<=", "<>": "!=", "!": "not", "//": "#",
    "--": "#", "::": ":", "?": "if", ";": ",", "->": ".", "`": "'",
}  # fmt: skip
_DECLARERS = frozenset({
    "var", "let", "const", "int", "float", "double", "char", "bool", "boolean", "String", "string", "auto",
    "final", "static", "public", "private", "void", "new", "long", "unsigned", "function", "local", "my",
    "then", "do", "begin", "end", "endif", "end_if", "fi", "done", "self", "this",
})  # fmt: skip
# Of 93 such slips of development cases 65 had been `==`, 24 `!=` and 4 another one.
_COMPARISONS = (("==", 0.0), ("!=", 0.7), (":=", 1.0), (">=", 1.6), ("<=", 1.6), ("<", 1.7), (">", 1.7), ("in", 1.8))


def assignments(view: BrokenText) -> Iterator[SyntaxFix]:
    """`=` where a comparison belongs, and the other way round."""
    told = "==" in view.fault.message or "cannot assign" in view.fault.message
    for line, distance in view.suspects:
        row = view.on(line)
        heads = [x for x in row if x.text in _CONDITION_HEADS]
        equals = [x for x in row if x.text == "=" and x.kind is LexemeKind.OP]
        base = distance + (0.0 if told or (heads and equals) else 0.8)
        if not heads and not told:
            base += 0.6
        for x in equals:
            for sign, cost in _COMPARISONS:
                spaced = sign if not sign.isalpha() else f" {sign} "
                fix = replace(base + cost, x, spaced, "tokens.assign-compare")
                yield fix if sign != "==" else dataclasses.replace(fix, effects=frozenset({EditEffect.COMPARES}))
        if len(equals) > 1:
            for sign, cost in _COMPARISONS[:4]:
                cuts = tuple((x.start, x.end, sign) for x in equals)
                yield SyntaxFix(base + cost - 0.05, cuts, "tokens.assign-compare", f"every = -> {sign}")
        for x in row:
            if x.text == "==":
                yield replace(distance + (0.3 if not heads else 1.3), x, "=", "tokens.compare-assign")
            elif x.text == ":=":
                yield replace(distance + 0.3, x, "=", "tokens.compare-assign")
        yield from _swapped_target(view, row, equals, base)
    if told:
        yield from _everywhere(view)


def _swapped_target(view: BrokenText, row: list[Lexeme], equals: list[Lexeme], base: float) -> Iterator[SyntaxFix]:
    if len(equals) == 1 and row and row[0] is not equals[0] and row[-1] is not equals[0]:
        left = view.text[row[0].start : equals[0].start].rstrip()
        right = view.text[equals[0].end : row[-1].end].strip()
        cut = (row[0].start, row[-1].end, f"{right} = {left}")
        yield SyntaxFix(base + 1.2, (cut,), "tokens.swap-sides", "swap the two sides")


def _everywhere(view: BrokenText) -> Iterator[SyntaxFix]:
    """The same slip in every condition of the file at once."""
    places = []
    for number in range(len(view.lines)):
        row = view.on(number)
        if row and row[0].text in ("if", "elif", "while"):
            depth = 0
            for x in row:
                depth += (x.text in "([{") - (x.text in ")]}")
                if x.text == "=" and depth == 0:
                    places.append((x.start, x.end))
    if len(places) > 1:
        for sign, cost in (("==", 0.15), ("!=", 0.8)):
            cuts = tuple((start, end, sign) for start, end in places)
            yield SyntaxFix(cost, cuts, "tokens.assign-compare", f"= -> {sign} in {len(cuts)} places")


def _distance_one(a: str, b: str) -> bool:
    """Whether one insertion, deletion, replacement or swap of neighbours turns `a` into `b`."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rests = (a[n + 1 :] == b[n + 1 :], a[n:] == b[n + 1 :], a[n + 1 :] == b[n:])
    return any(rests) or (a[n : n + 2][::-1] == b[n : n + 2] and a[n + 2 :] == b[n + 2 :])


@lru_cache(maxsize=1024)  # a search meets the words of its file again and again
def _like_keywords(low: str) -> tuple[tuple[str, bool], ...]:
    """Keywords that a word in small letters may stand for, in their order: as a whole (True), or run together."""
    found = []
    for word in sorted(KEYWORDS):
        if low == word.lower() or (len(low) > 2 and _distance_one(low, word)):
            found.append((word, True))
        elif low.startswith(word) and len(word) > 1 and len(low) > len(word):
            found.append((word, False))
    return tuple(found)


def keyword_fixes(view: BrokenText) -> Iterator[SyntaxFix]:
    """Words of other languages, misspelt or miscased keywords, keywords that lack or are too many."""
    for line, distance in view.suspects:
        row = view.on(line)
        yield from _phrases(view, row, distance)
        for n, x in enumerate(row):
            if x.kind is LexemeKind.NAME:
                yield from _keyword_fixes_at(row, n, x, distance)
            elif x.kind in (LexemeKind.OP, LexemeKind.OTHER):
                yield from _sign(view, row, n, x, distance)
            elif x.kind is LexemeKind.NUMBER:
                yield from _number(x, distance)


def _keyword_fixes_at(row: list[Lexeme], n: int, x: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    far = distance + (0.0 if n == 0 else 0.3)
    if x.text in _FOREIGN_WORDS:
        yield replace(far + 0.1, x, _FOREIGN_WORDS[x.text], "tokens.foreign-word")
    if x.text in _DECLARERS and n + 1 < len(row):
        cut = (x.start, row[n + 1].start, "")
        yield SyntaxFix(far + 0.2, (cut,), "tokens.foreign-word", f"drop {x.text}")
    if x.text not in KEYWORDS:
        low = x.text.lower()
        for word, whole in _like_keywords(low):
            if whole:
                yield replace(far + (0.15 if len(low) > 3 or n == 0 else 0.5), x, word, "tokens.spell-keyword")
            elif n == 0:
                yield insert(far + 1.2, x.start + len(word), " ", "tokens.split-word")
    else:
        yield replace(far + 1.0, x, x.text + "_", "tokens.rename-keyword")


def _sign(view: BrokenText, row: list[Lexeme], n: int, x: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    if x.text in ("++", "--") or (x.text in "+-" and n + 1 < len(row) and row[n + 1].text == x.text):
        stop = x if len(x.text) == 2 else row[n + 1]
        step = f" {x.text[0]}= 1"
        yield SyntaxFix(distance + 0.1, ((x.start, stop.end, step),), "tokens.increment", f"{x.text} ->{step}")
        after = row[row.index(stop) + 1] if stop is not row[-1] else None
        if after is not None and after.kind is LexemeKind.NAME and n == 0:
            cuts = ((x.start, stop.end, ""), (after.end, after.end, step))
            yield SyntaxFix(distance + 0.1, cuts, "tokens.increment", f"{x.text} ->{step}")
    if x.text in _FOREIGN_SIGNS:
        word = _FOREIGN_SIGNS[x.text]
        spaced = f" {word} " if word in ("and", "or", "if") else word + " " if word == "not" else word
        yield replace(distance + (0.1 if x.text not in (";", "->") else 1.0), x, spaced, "tokens.foreign-sign")
    if x.text in "{};$@?\\`" and x.text:
        yield replace(distance + (0.2 if x is row[-1] or n == 0 else 0.7), x, "", "tokens.foreign-sign")
        if x.text == "{" and x is row[-1]:
            yield replace(distance + 0.1, x, ":", "tokens.foreign-sign")
    if n and x.start == row[n - 1].end and row[n - 1].text + x.text in ("&&", "||") and len(x.text) == 1:
        word = " and " if x.text == "&" else " or "
        yield SyntaxFix(
            distance + 0.1, ((row[n - 1].start, x.end, word),), "tokens.foreign-sign", f"{x.text * 2} ->{word}"
        )
    if x.text in ("/", "//", "*", "**", "--", "%", "-", ";"):
        yield from _comment(view, x, distance)


def _comment(view: BrokenText, x: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    """Comment markers of other languages."""
    text, name = view.text, "tokens.foreign-comment"
    stop = view.lines[x.line].end
    if text.startswith("//", x.start) or text.startswith("--", x.start):
        rest = text[x.start + 2 : stop]
        start = len(text[: x.start].rstrip(" \t"))
        yield SyntaxFix(distance, ((x.start, x.start + 2, "#"),), name, "make the rest of the line a comment")
        yield SyntaxFix(distance + 0.2, ((start, stop, ""),), name, "drop the rest of the line")
        yield SyntaxFix(
            distance + 0.4, ((x.start, x.start + 2 + len(rest) - len(rest.lstrip(" ")), ""),), name, "drop the marker"
        )
    if text.startswith("/*", x.start):
        end = text.find("*/", x.start + 2)
        if end < 0:
            yield SyntaxFix(distance, ((x.start, x.start + 2, ""),), name, "drop /*")
            return
        yield SyntaxFix(distance, ((x.start, x.start + 2, ""), (end, end + 2, "")), name, "drop /* and */")
        yield SyntaxFix(distance + 0.1, ((x.start, end + 2, ""),), name, "drop the comment")
        if "\n" not in text[x.start : end]:
            yield SyntaxFix(
                distance + 0.2, ((x.start, x.start + 2, "#"), (end, end + 2, "")), name, "make it a comment"
            )
    if text.startswith("*/", x.start):
        yield SyntaxFix(distance, ((x.start, x.start + 2, ""),), name, "drop */")


def _number(x: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    """Digits and letters run together, leading zeros."""
    match = re.match(r"(\d[\d_]*)([^\W\d].*)$", x.text)
    if match:
        digits, letters = match.groups()
        for cost, text in (
            (0.1, letters), (0.2, digits), (0.3, f"{digits}*{letters}"), (0.6, f"{digits} {letters}"),
            (0.6, f"_{x.text}"), (0.7, f"{letters}{digits}"), (1.0, f"{digits}+{letters}"), (1.1, f'"{x.text}"'),
        ):  # fmt: skip
            yield replace(distance + cost, x, text, "tokens.split-number")
    if re.match(r"0\d+$", x.text):
        yield replace(distance + 0.1, x, x.text.lstrip("0") or "0", "tokens.split-number")
        yield replace(distance + 0.2, x, "0o" + x.text.lstrip("0"), "tokens.split-number")
    if x.text.count(".") > 1:
        yield replace(distance + 0.3, x, x.text.replace("..", "."), "tokens.split-number")


def _phrases(view: BrokenText, row: list[Lexeme], distance: float) -> Iterator[SyntaxFix]:
    """Fixes that look at several words: `else if`, ternaries, Python 2, missing `def` or `in`, bare calls."""
    if not row:
        return
    head, last, text = row[0], row[-1], view.text
    if head.text == "else" and len(row) > 1 and row[1].text == "if":
        yield SyntaxFix(distance, ((head.start, row[1].end, "elif"),), "tokens.foreign-word", "else if -> elif")
    if head.text in ("print", "exec") and len(row) > 1 and row[1].text != "(":
        cut = (head.end, row[1].start, "(")
        yield SyntaxFix(distance + 0.05, (cut, (last.end, last.end, ")")), "tokens.wrap-call", "call with brackets")
    if head.text == "except" and len(row) > 3 and row[-3].text == ",":
        yield replace(distance + 0.05, row[-3], " as", "tokens.foreign-word")
    if last.text == ":" and head.text not in HEADS and head.kind is LexemeKind.NAME:
        call = len(row) > 2 and row[1].text == "("
        for cost, word in ((0.2 if call else 0.9, "def"), (0.4, "if"), (0.5, "elif"), (0.5, "while"), (0.5, "for"),
                           (1.2, "with"), (0.8 if len(row) < 3 else 1.5, "class")):  # fmt: skip
            wanted = any(x.text == "in" for x in row)
            yield insert(
                distance + cost + (0.3 if (word == "for") != wanted else -0.2),
                head.start,
                word + " ",
                "tokens.insert-keyword",
            )
    if head.text == "for" and not any(x.text == "in" for x in row):
        for x in row[1:]:
            yield insert(distance + 0.4, x.start, "in ", "tokens.insert-keyword")
            if x.text in ("=", ":", "of", "on", "from", ";", "is", "->"):
                yield replace(distance + 0.1, x, " in ", "tokens.insert-keyword")
    yield from _ternary(view, row, distance)
    for n, (left, right) in enumerate(itertools.pairwise(row)):
        between = text[left.end : right.start]
        value = right.kind in (LexemeKind.NAME, LexemeKind.NUMBER, LexemeKind.STRING) and right.text not in KEYWORDS
        if value and left.kind is LexemeKind.NAME and left.text not in KEYWORDS:
            yield from _call_without_brackets(row, n, left, right, distance)
            yield SyntaxFix(distance + 0.9, ((left.end, right.start, "_"),), "tokens.join-words", "join two names")
        if (
            left.kind is LexemeKind.OP
            and right.kind is LexemeKind.OP
            and between.isspace()
            and left.text + right.text in _TWO_CHARACTERS
        ):
            yield SyntaxFix(
                distance + 0.2,
                ((left.end, right.start, ""),),
                "tokens.join-signs",
                f"{left.text + right.text} in one piece",
            )


_TWO_CHARACTERS = frozenset({
    "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", ":=", "**", "//", "|=", "&=", "^=",
})  # fmt: skip


def _call_without_brackets(
    row: list[Lexeme], n: int, left: Lexeme, right: Lexeme, distance: float
) -> Iterator[SyntaxFix]:
    for end in (row[n + 1], row[-1]):
        cuts = ((left.end, right.start, "("), (end.end, end.end, ")"))
        yield SyntaxFix(distance + (0.5 if end is row[-1] else 0.6), cuts, "tokens.wrap-call", "call with brackets")
    if n + 1 < len(row) - 1 and row[-1].text == ":":
        cuts = ((left.end, right.start, "("), (row[-2].end, row[-2].end, ")"))
        yield SyntaxFix(distance + 0.6, cuts, "tokens.wrap-call", "call with brackets")


def _ternary(view: BrokenText, row: list[Lexeme], distance: float) -> Iterator[SyntaxFix]:
    """`a ? b : c` as Python writes it; the condition begins after `=`, `return`, `(` or `,`."""
    ask = next((n for n, x in enumerate(row) if x.text == "?"), None)
    colon = next((n for n, x in enumerate(row) if x.text == ":" and ask is not None and n > ask + 1), None)
    if ask is None or colon is None or colon + 1 >= len(row):
        return
    start = next((n + 1 for n in range(ask - 1, -1, -1) if row[n].text in ("=", "return", "(", ",", "+=", "[")), 0)
    for stop in range(len(row) - 1, colon, -1):
        parts = [
            view.text[row[a].start : row[b].end]
            for a, b in ((start, ask - 1), (ask + 1, colon - 1), (colon + 1, stop))
            if a <= b
        ]
        if len(parts) == 3:
            new = f"{parts[1]} if {parts[0]} else {parts[2]}"
            yield SyntaxFix(
                distance + 0.1, ((row[start].start, row[stop].end, new),), "tokens.ternary", "conditional expression"
            )
