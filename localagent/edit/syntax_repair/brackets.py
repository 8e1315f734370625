"""Fixes for colons, brackets and quotes: where a closing one may stand, which one may be too many.

Plausible places only; whether a fix parses is found out by the search, not here.
"""

import itertools
from collections.abc import Iterator

from localagent.edit.syntax_repair.lexer import (
    CLOSER,
    HEADS,
    OPENER,
    BrokenText,
    Lexeme,
    LexemeKind,
    SyntaxFix,
    insert,
    replace,
)

_BODY_STARTS = frozenset({
    "return", "break", "continue", "pass", "raise", "yield", "print",
})  # fmt: skip
_WRONG_COLONS = frozenset({
    ";", ",", ".", "=", "{", "-", ">", "'", '"', "then", "do",
})  # fmt: skip
_CONTINUATION_LINES = 12
MAX_PLACES = 80


def colons(view: BrokenText) -> Iterator[SyntaxFix]:
    """Missing, wrong and superfluous colons at compound statements."""
    for line, distance in view.suspects:
        row = view.on(line)
        if not row:
            continue
        end = view.code_end(line)
        if row[0].text in HEADS:
            if row[-1].text != ":":
                yield insert(distance, end, ":", "tokens.insert-colon")
                if row[-1].text in _WRONG_COLONS or row[-1].kind in (LexemeKind.OP, LexemeKind.QUOTE, LexemeKind.OTHER):
                    yield replace(distance + 0.4, row[-1], ":", "tokens.insert-colon")
            elif (
                len(row) > 2
                and row[-2].kind in (LexemeKind.OP, LexemeKind.QUOTE, LexemeKind.OTHER)
                and row[-2].text not in ")]}"
            ):
                yield replace(distance + 0.9, row[-2], "", "tokens.delete-token")
            for left, right in itertools.pairwise(row):
                if right.text in _BODY_STARTS:
                    yield insert(distance + 0.3, left.end, ":", "tokens.insert-colon")
                elif left.text != ":" and right.text != ":":
                    yield insert(distance + 1.6, left.end, ":", "tokens.insert-colon")
        elif row[-1].text == ":":
            yield replace(distance + 0.8, row[-1], "", "tokens.drop-colon")
    if "expected ':'" in view.fault.message:
        yield insert(0.1, view.fault.offset, ":", "tokens.insert-colon")


def _statement_lines(view: BrokenText, line: int) -> list[int]:
    """The line and those below it that could continue it: deeper indented or closing, no statement for certain."""
    out = [line]
    limit = view.lines[line].width
    for number in range(line + 1, min(line + _CONTINUATION_LINES, len(view.lines))):
        row = view.on(number)
        if view.lines[number].blank or not row:
            break
        deeper = view.lines[number].width > limit
        if not deeper and row[0].text not in OPENER:
            break
        out.append(number)
    return out


def _unclosed(row: list[Lexeme]) -> tuple[list[Lexeme], list[Lexeme]]:
    """Openers without a closer and closers without an opener; a closer ends what was opened inside its own pair."""
    stack: list[Lexeme] = []
    open_inside: list[Lexeme] = []
    extra: list[Lexeme] = []
    for x in row:
        if x.kind is not LexemeKind.OP:
            continue
        if x.text in CLOSER:
            stack.append(x)
        elif x.text in OPENER:
            if any(CLOSER[o.text] == x.text for o in stack):
                while CLOSER[stack[-1].text] != x.text:
                    open_inside.append(stack.pop())
                stack.pop()
            else:
                extra.append(x)
    return sorted(stack + open_inside, key=lambda o: o.start), extra


def brackets(view: BrokenText) -> Iterator[SyntaxFix]:
    """Unclosed, superfluous and mismatched brackets, line by line near the fault."""
    for line, distance in view.suspects:
        lines = _statement_lines(view, line)
        row = view.on(line)
        whole = [x for n in lines for x in view.on(n)]
        seen = False
        for scope in (row, whole) if len(lines) > 1 else (row,):
            stack, extra = _unclosed(scope)
            if stack or extra:
                seen = True
                yield from _close(view, scope, stack, distance)
                yield from _superfluous(scope, extra, distance)
        if not seen and any(word in view.fault.message for word in ("never closed", "unmatched", "does not match")):
            yield from _superfluous(row, [x for x in row if x.text in OPENER], distance + 0.8)
        yield from _mismatched(row, distance)


def _close(view: BrokenText, scope: list[Lexeme], stack: list[Lexeme], distance: float) -> Iterator[SyntaxFix]:
    if not stack:
        return
    name = "tokens.close-bracket"
    missing = "".join(CLOSER[x.text] for x in reversed(stack))
    last = scope[-1]
    ends = [last.end]
    if last.text in (":", ";", ",", "{") and len(scope) > 1:
        ends.insert(0, scope[-2].end)
    for n, end in enumerate(ends):
        yield insert(distance + 0.3 * n, end, missing, name)
        if view.on(stack[0].line)[0].text in HEADS and last.text != ":":
            yield insert(distance + 0.2, last.end, missing + ":", name)
    for opener in stack:
        yield replace(distance + 0.9, opener, "", "tokens.delete-bracket")
        yield from _inner_ends(scope, opener, distance)


def _inner_ends(scope: list[Lexeme], opener: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    inside = [x for x in scope if x.start > opener.start]
    closer = CLOSER[opener.text]
    for n, x in enumerate(inside):
        after = inside[n + 1] if n + 1 < len(inside) else None
        if n == 0:
            yield insert(distance + 0.6, opener.end, closer, "tokens.close-bracket")
        if after is None:
            yield insert(distance + 0.15, x.end, closer, "tokens.close-bracket")
            continue
        joint = after.text in OPENER or after.text in (":", ",", "for", "if", "else", "->", "and", "or", "in")
        operator = after.kind is LexemeKind.OP
        cost = 0.5 if joint else 0.7 if operator else 1.2
        if x.kind is LexemeKind.OP and x.text not in OPENER:
            cost += 0.8
        yield insert(distance + cost, x.end, closer, "tokens.close-bracket")


def _superfluous(row: list[Lexeme], extra: list[Lexeme], distance: float) -> Iterator[SyntaxFix]:
    for x in extra:
        yield replace(distance + 0.1, x, "", "tokens.delete-bracket")
        for other in row:
            if other.text == x.text and other is not x:
                yield replace(distance + 0.6, other, "", "tokens.delete-bracket")
        for opener in row:
            if opener.start >= x.start:
                break
            cost = 0.5 if opener is row[0] else 0.9
            yield insert(distance + cost, opener.start, OPENER[x.text], "tokens.open-bracket")
            if opener.kind is LexemeKind.NAME:
                yield insert(distance + cost + 0.1, opener.end, OPENER[x.text], "tokens.open-bracket")


def _mismatched(row: list[Lexeme], distance: float) -> Iterator[SyntaxFix]:
    stack: list[Lexeme] = []
    for x in row:
        if x.kind is not LexemeKind.OP:
            continue
        if x.text in CLOSER:
            stack.append(x)
        elif x.text in OPENER and stack:
            opener = stack.pop()
            if CLOSER[opener.text] != x.text:
                yield replace(distance, x, CLOSER[opener.text], "tokens.match-bracket")
                yield replace(distance + 0.2, opener, OPENER[x.text], "tokens.match-bracket")
                yield insert(distance + 0.1, x.start, CLOSER[opener.text], "tokens.close-bracket")


def quotes(view: BrokenText) -> Iterator[SyntaxFix]:
    """Strings that are never closed, or opened by a stray quote."""
    told = "unterminated" in view.fault.message or "EOL" in view.fault.message or "EOF" in view.fault.message
    for line, distance in view.suspects:
        row = view.on(line)
        loose = [x for x in row if x.kind is LexemeKind.QUOTE]
        for x in loose:
            yield from _loose_quote(view, line, x, distance if told else distance + 0.5)
        if told and not loose:
            for x in row:
                if x.kind is LexemeKind.STRING:
                    yield replace(distance + 0.8, x, x.text[:-1], "tokens.drop-quote")
    yield from _wrapped(view)


def _loose_quote(view: BrokenText, line: int, x: Lexeme, distance: float) -> Iterator[SyntaxFix]:
    name = "tokens.close-string"
    mark = x.text.lstrip("rbufRBUF")
    code = view.lines[line]
    rest = view.text[x.end : code.end]
    yield replace(distance + 0.15, x, "", "tokens.drop-quote")
    tail = rest.rstrip()
    trimmed = tail.rstrip(")]}:,; ")
    places = [(0.0, len(trimmed)), (0.1, len(tail))]
    places += [(0.25 + 0.02 * (len(tail) - n), n) for n in range(len(trimmed) + 1, len(tail))]
    if len(mark) == 1:
        other = "'" if mark == '"' else '"'
        at = rest.rfind(other)
        if at >= 0:
            yield SyntaxFix(distance, ((x.end + at, x.end + at + 1, mark),), name, f"{other} -> {mark}")
            yield SyntaxFix(distance + 0.2, ((x.end - 1, x.end, other),), name, f"{mark} -> {other}")
        if tail.endswith("\\" + mark):
            yield insert(distance, x.end + len(tail) - 1, "\\", name)
        for y in view.on(line):
            if y.end <= x.start and y.kind in (LexemeKind.NAME, LexemeKind.NUMBER, LexemeKind.OP, LexemeKind.OTHER):
                near = 0.4 if y.end == x.start and y.kind is LexemeKind.NAME else 0.9
                yield insert(distance + near, y.start, mark, "tokens.open-string")
        yield insert(distance + 0.5, x.start, mark, "tokens.open-string")
    else:
        places.append((0.6, len(tail) if not tail.endswith(mark[0]) else len(tail.rstrip(mark[0]))))
        for number in range(line + 1, min(line + 40, len(view.lines))):
            end = view.lines[number].end
            cost = 0.5 if number + 1 >= len(view.lines) or view.lines[number + 1].blank else 0.9
            yield insert(distance + cost, end, mark, name)
        yield SyntaxFix(distance + 0.7, ((x.end - 2, x.end, ""),), name, f"{mark} -> {mark[0]}")
    for cost, n in places:
        yield insert(distance + cost, x.end + n, mark, name)
    for n in _string_ends(rest):
        yield insert(distance + 0.7, x.end + n, mark, name)


def _string_ends(rest: str) -> list[int]:
    """Where a string might end: before blanks, signs and closing brackets."""
    ends = (n for n, sign in enumerate(rest) if sign in " ,)]}:+.(=*%-")
    return [*itertools.islice(ends, MAX_PLACES), len(rest)]


def _wrapped(view: BrokenText) -> Iterator[SyntaxFix]:
    """Code that stands inside quotes: unwrap strings which look like statements."""
    for line, distance in view.suspects:
        row = view.on(line)
        empty = [x for x in row if x.kind is LexemeKind.STRING and len(x.text.strip("'\"")) == 0]
        if empty:
            cuts = tuple((x.start, x.end, "") for x in empty)
            yield SyntaxFix(distance + 0.5, cuts, "tokens.drop-quote", "drop the empty strings")
        for x in row:
            if x.kind is LexemeKind.STRING and x.text[:3] in ("'''", '"""') and len(x.text) > 6:
                cuts = ((x.start, x.start + 3, ""), (x.end - 3, x.end, ""))
                yield SyntaxFix(distance + 0.6, cuts, "tokens.drop-quote", "take the code out of the string")
            elif x.kind is LexemeKind.STRING and len(x.text) > 2 and x.text[0] in "'\"":
                cuts = ((x.start, x.start + 1, ""), (x.end - 1, x.end, ""))
                yield SyntaxFix(distance + 1.3, cuts, "tokens.drop-quote", "take the code out of the string")
