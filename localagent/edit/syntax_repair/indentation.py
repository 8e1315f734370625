"""Fixes for indentation: move a line, a suite or a block to a neighbour's level; tabs and blanks; missing suites.

Strings and brackets over several lines are moved like code: their text may change. The search checks parsing only.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from localagent.edit.syntax_repair.lexer import BrokenText, SyntaxFix, indent_width

_CLAUSES = frozenset({
    "else", "elif", "except", "finally", "case",
})  # fmt: skip
_HEADERS = _CLAUSES | {"if", "while", "for", "with", "try", "def", "class", "async"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_MAX_BLOCK_ENDS = 24
_MAX_MOVED_LINES = 2000


def indentation(view: BrokenText) -> Iterator[SyntaxFix]:
    """All re-indentations near the fault, those its message speaks of first."""
    message = view.fault.message
    here = view.fault_line
    if "expected an indented block" in message or "expected 'except'" in message:
        yield from _missing_suite(view, here, 0.0)
    if "unexpected indent" in message or "unindent does not match" in message:
        yield from _levels(view, here, 0.0)
        yield from _raise_previous(view, here)
    if "inconsistent use of tabs" in message or "\t" in view.text[view.lines[here].start : view.lines[here].code_start]:
        yield from _tabs(view, 0.0 if "tab" in message else 1.5)
    yield from _crowded_header(view, here, 0.2)
    row = view.on(here)
    if row and row[0].text in _CLAUSES:
        yield from _levels(view, here, 0.1)
        yield from _raise_previous(view, here)
    elif row:
        yield from _levels(view, here, 1.3)
    above = view.before(here)
    if above is not None:
        yield from _levels(view, above, 2.0)
        yield from _crowded_header(view, above, 0.3)


def _unit(view: BrokenText) -> int:
    widths = sorted({x.width for x in view.lines if not x.blank and x.width})
    steps = [b - a for a, b in zip([0, *widths], widths, strict=False) if b - a in (2, 3, 4, 8)]
    return max(set(steps), key=steps.count) if steps else 4


def _shift(view: BrokenText, lines: Sequence[int], by: int) -> tuple[tuple[int, int, str], ...]:
    """Splices that move lines by some columns; blank ones stay as they are. Tabs at the front become blanks if odd."""
    out = []
    for number in lines[:_MAX_MOVED_LINES]:
        x = view.lines[number]
        if x.code_start == x.end:
            continue
        blanks = view.text[x.start : x.code_start]
        width = max(x.width + by, 0)
        if "\t" in blanks:
            new = "\t" * (width // 8) + " " * (width % 8)
            out.append((x.start, x.code_start, new))
        elif by > 0:
            out.append((x.code_start, x.code_start, " " * by))
        elif x.width:
            out.append((x.code_start - min(-by, x.code_start - x.start), x.code_start, ""))
    return tuple(out)


def _block_ends(view: BrokenText, start: int) -> list[tuple[int, float]]:
    """Last lines (exclusive) of blocks that begin at a line and stay at its level or deeper, with a cost each.

    The whole block is likeliest, then ends before a blank or comment line, then any statement boundary.
    """
    level = view.lines[start].width
    ends: list[tuple[int, float]] = []
    last = start + 1
    number = start + 1
    while number < len(view.lines):
        x = view.lines[number]
        if not x.blank:
            if x.width < level:
                break
            if x.width == level:
                gap = number > last
                ends.append((last, 0.35 if gap else 0.75 + 0.02 * len(ends)))
            last = number + 1
        number += 1
    if len(ends) > _MAX_BLOCK_ENDS:
        ends = sorted(ends, key=lambda e: e[1])[:_MAX_BLOCK_ENDS]
    ends.append((last, 0.0))
    return ends


def _fits_below(view: BrokenText, start: int, end: int, target: int) -> bool:
    """Whether the line after a moved block still has somewhere to stand: no deeper than the block's new level."""
    after = next((n for n in range(end, len(view.lines)) if not view.lines[n].blank), None)
    return after is None or view.lines[after].width <= max(target, view.lines[start].width)


def _missing_suite(view: BrokenText, here: int, distance: float) -> Iterator[SyntaxFix]:
    """A header without a suite: indent what follows, or give it a `pass`, or drop the header."""
    said = re.search(r"on line (\d+)", view.fault.message)
    header = int(said.group(1)) - 1 if said else view.before(here)
    if header is None or header >= len(view.lines):
        return
    header_width = view.lines[header].width
    target = header_width + _unit(view)
    body = view.after(header) if view.lines[here].blank or here <= header else here
    ends_here = view.lines[header].end
    top = header
    while top > 0 and (still_open := view.open_before(top)):
        top = still_open[0].line
    blanks = view.text[view.lines[top].start : view.lines[top].code_start]
    if body is not None and view.lines[body].width <= header_width:
        whole = list(_indent_clauses(view, header, body, distance))
        yield from whole
        for end, cost in _block_ends(view, body):
            splices = _shift(view, range(body, end), target - view.lines[body].width)
            torn = 0.3 if whole else 0.0  # the clauses below would be somebody else's
            yield SyntaxFix(distance + cost + torn, splices, "tokens.indent-block", f"indent {end - body} lines")
        yield from _indent_tail(view, header, body, target, distance)
    newline = "\r\n" if view.text[ends_here : ends_here + 2] == "\r\n" else "\n"
    unit = "\t" if "\t" in blanks else " " * _unit(view)
    suite = f"{newline}{blanks}{unit}pass"
    yield SyntaxFix(distance + 1.0, ((ends_here, ends_here, suite),), "tokens.insert-pass", "insert pass")
    x = view.lines[header]
    yield SyntaxFix(distance + 1.4, ((x.start, x.stop, ""),), "tokens.delete-line", "drop the header")


def _crowded_header(view: BrokenText, here: int, distance: float) -> Iterator[SyntaxFix]:
    """A header whose suite begins on its own line and goes on below: the line ends after the colon."""
    row = view.on(here)
    below = view.after(here)
    if not row or row[0].text not in _HEADERS or below is None or view.lines[below].width <= view.lines[here].width:
        return
    depth = 0
    for colon, following in itertools.pairwise(row):
        depth += (colon.text in _OPENING) - (colon.text in _CLOSING)
        if colon.text == ":" and depth == 0:
            x = view.lines[here]
            newline = "\r\n" if view.text[x.end : x.end + 2] == "\r\n" else "\n"
            blanks = view.text[x.start : x.code_start]
            unit = "\t" if "\t" in blanks else " " * _unit(view)
            cut = (colon.end, following.start, newline + blanks + unit)
            yield SyntaxFix(distance, (cut,), "tokens.split-line", "begin the suite below its header")
            return


def _indent_clauses(view: BrokenText, header: int, body: int, distance: float) -> Iterator[SyntaxFix]:
    """All that belongs to the header stands one level too far left: its suite, the clauses after it, their suites."""
    width, unit = view.lines[header].width, _unit(view)
    if view.lines[body].width != width:
        return
    lines, clauses = [], 0
    for number in range(body, len(view.lines)):
        row = view.on(number)
        if row and view.lines[number].width < width:
            if row[0].text not in _CLAUSES or view.lines[number].width != width - unit:
                break
            clauses += 1
        lines.append(number)
    while lines and view.lines[lines[-1]].blank:
        lines.pop()
    if clauses:
        yield SyntaxFix(distance, _shift(view, lines, unit), "tokens.indent-block", f"indent {len(lines)} lines")


def _indent_tail(view: BrokenText, header: int, body: int, target: int, distance: float) -> Iterator[SyntaxFix]:
    """All from the body on, up to the next class or a line left of the header."""
    lines = []
    for number in range(body, len(view.lines)):
        row = view.on(number)
        if row and (view.lines[number].width < view.lines[header].width or row[0].text == "class"):
            break
        if (
            row
            and view.lines[number].width == view.lines[body].width
            and row[0].text == "if"
            and "__name__" in [r.text for r in row]
        ):
            break
        lines.append(number)
    splices = _shift(view, lines, target - view.lines[body].width)
    yield SyntaxFix(distance + 0.1, splices, "tokens.indent-block", f"indent {len(lines)} lines")


def _known_levels(view: BrokenText, here: int) -> list[int]:
    """Indentation levels that could hold a line: of the lines above, the suites they open, nearest first."""
    levels: list[int] = []
    unit = _unit(view)
    number: int | None = view.before(here)
    lowest = 1 << 30
    while number is not None and len(levels) < 12 and lowest > 0:
        width = view.lines[number].width
        row = view.on(number)
        if width < lowest or number == view.before(here):
            opens = row and row[-1].text == ":"
            for level in (width + unit, width) if opens else (width,):
                if level not in levels:
                    levels.append(level)
            lowest = min(lowest, width)
        number = view.before(number)
    below = view.after(here)
    if below is not None and view.lines[below].width not in levels:
        levels.append(view.lines[below].width)
    return levels


def _levels(view: BrokenText, here: int, distance: float) -> Iterator[SyntaxFix]:
    """Move the line, its suite, or the block it begins to each known level."""
    width = view.lines[here].width
    suite = here + 1
    while suite < len(view.lines) and (view.lines[suite].blank or view.lines[suite].width > width):
        suite += 1
    for rank, level in enumerate(_known_levels(view, here)):
        if level == width:
            continue
        cost = distance + 0.1 * rank + 0.03 * min(abs(level - width), 8)
        by = level - width
        name = "tokens.indent-block" if by > 0 else "tokens.dedent-block"
        yield SyntaxFix(cost + 0.1, _shift(view, [here], by), "tokens.reindent-line", f"move the line by {by}")
        if suite > here + 1:
            yield SyntaxFix(cost, _shift(view, range(here, suite), by), name, f"move the suite by {by}")
        for end, extra in _block_ends(view, here):
            if end > suite and _fits_below(view, here, end, level):
                yield SyntaxFix(
                    cost + 0.1 + extra, _shift(view, range(here, end), by), name, f"move {end - here} lines by {by}"
                )


def _raise_previous(view: BrokenText, here: int) -> Iterator[SyntaxFix]:
    """The lines above may be the misplaced ones: move them to this line's level, up to their header."""
    width = view.lines[here].width
    lines: list[int] = []
    number = view.before(here)
    if number is None:
        return
    level = view.lines[number].width
    while number is not None and view.lines[number].width == level and level != width and len(lines) < 12:
        lines.insert(0, number)
        yield SyntaxFix(
            0.8 + 0.1 * len(lines),
            _shift(view, list(lines), width - level),
            "tokens.indent-block",
            f"move {len(lines)} lines above",
        )
        number = view.before(number)
    above = view.before(here)
    if above is not None and view.lines[above].width < width:
        row = view.on(above)
        if row and row[-1].text != ":":
            yield SyntaxFix(0.4, ((row[-1].end, row[-1].end, ":"),), "tokens.insert-colon", "insert :")


def _tabs(view: BrokenText, distance: float) -> Iterator[SyntaxFix]:
    """Turn leading tabs into blanks, everywhere, at the two usual widths."""
    for rank, size in enumerate((4, 8, 2)):
        splices = []
        for x in view.lines:
            blanks = view.text[x.start : x.code_start]
            if "\t" in blanks:
                splices.append((x.start, x.code_start, blanks.expandtabs(size)))
        if splices and len(splices) <= _MAX_MOVED_LINES:
            yield SyntaxFix(distance + 0.3 * rank, tuple(splices), "tokens.untabify", f"tabs to {size} blanks")
    x = view.lines[view.fault_line]
    above = view.before(view.fault_line)
    if above is not None:
        model = view.text[view.lines[above].start : view.lines[above].code_start]
        if indent_width(model) != x.width or "\t" in model:
            yield SyntaxFix(
                distance + 0.2, ((x.start, x.code_start, model),), "tokens.reindent-line", "indent like the line above"
            )
