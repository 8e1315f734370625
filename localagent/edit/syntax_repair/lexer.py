"""Broken source as a tolerant lexer and the parser's complaint see it.

The lexer never fails: what Python would not tokenize becomes a one-character lexeme. It does NOT promise the tokens
that Python would see (strings after an unclosed quote, for instance); it promises spans that lie in the text.
"""

import ast
import re
import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from localagent.domain.edit import EditEffect
from localagent.edit.edit_effects import negation
from localagent.text.visible_text import shortened

TAB_WIDTH = 8
_NEWLINE = re.compile(r"\r\n|\r|\n")
_LEXEME = re.compile(
    r"""
      (?P<space>[ \t\f\u00a0]+|\\?(?:\r\n|\r|\n))
    | (?P<comment>\#[^\r\n]*)
    | (?P<quote>[rbufRBUF]{0,2}(?:"{3}|'{3}|["']))
    | (?P<name>[^\W\d]\w*)
    | (?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d\w*)?|\.\d\w*)
    | (?P<op>\*\*=|//=|>>=|<<=|===|!==|\.\.\.|&&|\|\||\+\+|--|->|:=|=>|=<|<>|\*\*|//|>>|<<
        |[-+*/%@&|^<>=!]=|[-+*/%@&|^~<>=()\[\]{},:;.!?$`\\])
    | (?P<other>[\s\S])
    """,
    re.VERBOSE,
)

_CLOSING = {
    '"': re.compile(r'(?:\\[\s\S]|[^"\\\r\n])*+"'),
    "'": re.compile(r"(?:\\[\s\S]|[^'\\\r\n])*+'"),
    '"""': re.compile(r'(?:\\[\s\S]|[^"\\]|"(?!""))*+"{3}'),
    "'''": re.compile(r"(?:\\[\s\S]|[^'\\]|'(?!''))*+'{3}"),
}


class LexemeKind(StrEnum):
    """What the tolerant lexer took a piece of text for."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    OP = "op"
    COMMENT = "comment"
    QUOTE = "quote"  # a quote that no other one closes
    OTHER = "other"


_KINDS: dict[str | None, LexemeKind] = {kind.value: kind for kind in LexemeKind}  # by the lexer's group


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One token-like piece [start, end) that begins on line `line` (0-based)."""

    kind: LexemeKind
    start: int
    end: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Line:
    """One physical line: [start, end) without its newline, `stop` with it; `code_start` is the first non-blank."""

    start: int
    end: int
    stop: int
    code_start: int
    width: int
    blank: bool


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Where and why the parser stopped. `line` is 0-based, `offset` is into the text."""

    message: str
    line: int
    offset: int


def fault_of(text: str | bytes) -> SyntaxFault | None:
    """The parser's complaint about a text (or a file's bytes), or None if it parses. Offsets are for texts only."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<candidate>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        line = max((error.lineno or 1) - 1, 0)
        column = (error.offset or 1) - 1
        return SyntaxFault(error.msg or "", line, _offset(text, line, column) if isinstance(text, str) else 0)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return SyntaxFault(f"{type(error).__name__}: {error}", 0, 0)
    return None


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for number, match in enumerate(_NEWLINE.finditer(text)):
        if number == line:
            return min(start + max(column, 0), match.start())
        start = match.end()
    return min(start + max(column, 0), len(text))


def newlines_before(text: str, offset: int) -> int:
    """How many lines end before an offset."""
    return len(_NEWLINE.findall(text, 0, offset))


def indent_width(blanks: str) -> int:
    """Columns of some leading whitespace, tabs to multiples of eight, a form feed starting over."""
    width = 0
    for char in blanks:
        width = 0 if char == "\f" else (width // TAB_WIDTH + 1) * TAB_WIDTH if char == "\t" else width + 1
    return width


def lines_of(text: str) -> list[Line]:
    """Physical lines as Python counts them: LF, CRLF, or a lone CR ends one."""
    lines = []
    start = 0
    ends = [(m.start(), m.end()) for m in _NEWLINE.finditer(text)]
    if not ends or ends[-1][1] < len(text):
        ends.append((len(text), len(text)))
    for end, stop in ends:
        code = start
        while code < end and text[code] in " \t\f":
            code += 1
        lines.append(Line(start, end, stop, code, indent_width(text[start:code]), code == end or text[code] == "#"))
        start = stop
    return lines


def lexemes_of(text: str) -> list[Lexeme]:
    """All lexemes of a text, whitespace and newlines left out. Linear: a quote that has no end is not tried again."""
    out: list[Lexeme] = []
    line = at = 0
    hopeless: set[tuple[str, int]] = set()
    while match := _LEXEME.match(text, at):  # its last alternative takes any character: None at the end alone
        group, piece, end = match.lastgroup, match.group(), match.end()
        if group == "space":  # blanks, or one newline
            line += piece[-1] in "\r\n"
            at = end
            continue
        kind = _KINDS[group]
        if kind is LexemeKind.QUOTE:
            mark = piece.lstrip("rbufRBUF")
            key = (mark, line if len(mark) == 1 else -1)
            closed = None if key in hopeless else _CLOSING[mark].match(text, end)
            if closed:
                kind, end = LexemeKind.STRING, closed.end()
                piece = text[at:end]
            else:
                hopeless.add(key)
        out.append(Lexeme(kind, at, end, piece, line))
        if kind is LexemeKind.STRING:
            line += len(_NEWLINE.findall(piece))
        at = end
    return out


@dataclass(frozen=True)
class BrokenText:
    """One broken text with its fault; lines and lexemes are worked out once, when first asked for."""

    text: str
    fault: SyntaxFault

    @cached_property
    def lines(self) -> list[Line]:
        """Physical lines."""
        return lines_of(self.text)

    @cached_property
    def lexemes(self) -> list[Lexeme]:
        """Lexemes of the whole text."""
        return lexemes_of(self.text)

    @cached_property
    def _by_line(self) -> dict[int, list[Lexeme]]:
        out: dict[int, list[Lexeme]] = {}
        for lexeme in self.lexemes:
            if lexeme.kind is not LexemeKind.COMMENT:
                out.setdefault(lexeme.line, []).append(lexeme)
        return out

    def on(self, line: int) -> list[Lexeme]:
        """Code lexemes (no comments) that begin on a line."""
        return self._by_line.get(line, [])

    @property
    def fault_line(self) -> int:
        """The fault's line, inside the text."""
        return min(self.fault.line, len(self.lines) - 1)

    def before(self, line: int) -> int | None:
        """The nearest line above that holds code."""
        return next((n for n in range(line - 1, -1, -1) if not self.lines[n].blank), None)

    def after(self, line: int) -> int | None:
        """The nearest line below that holds code."""
        return next((n for n in range(line + 1, len(self.lines)) if not self.lines[n].blank), None)

    def code_end(self, line: int) -> int:
        """Where the code of a line ends, before blanks and comment."""
        row = self.on(line)
        return min(row[-1].end, self.lines[line].end) if row else self.lines[line].code_start

    @cached_property
    def suspects(self) -> list[tuple[int, float]]:
        """Lines worth changing, with a cost: the fault's, the one above, the one below, open brackets' lines."""
        out: dict[int, float] = {}
        here = self.fault_line
        above = self.before(here)
        below = self.after(here)
        if self.lines[here].blank and above is not None:
            out[above] = 0.0
        else:
            out[here] = 0.0
        if above is not None:
            out.setdefault(above, 0.5)
        for opener in self.open_before(here):
            out.setdefault(opener.line, 0.4)
        if below is not None:
            out.setdefault(below, 1.0)
        return list(out.items())

    def open_before(self, line: int) -> list[Lexeme]:
        """Brackets still open where a line begins; a line that starts a statement for certain clears older ones."""
        stack: list[Lexeme] = []
        first = -1
        for x in self.lexemes:
            if x.line >= line:
                break
            if x.line != first:
                first = x.line
                if x.text in _SURE_STARTS and self.lines[x.line].code_start == x.start:
                    stack.clear()
            if x.kind is LexemeKind.OP and x.text in CLOSER:
                stack.append(x)
            elif x.kind is LexemeKind.OP and x.text in OPENER and stack:
                stack.pop()
        return stack[-3:]


CLOSER = {"(": ")", "[": "]", "{": "}"}
OPENER = {v: k for k, v in CLOSER.items()}
_SURE_STARTS = frozenset({
    "def", "class", "return", "while", "try", "import", "with", "raise", "elif", "except", "finally", "pass",
    "break", "continue", "del", "assert", "global",
})  # fmt: skip
HEADS = frozenset({
    "if", "elif", "else", "for", "while", "def", "class", "try", "except", "finally", "with", "async", "match",
    "case",
})  # fmt: skip
KEYWORDS = frozenset({
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class SyntaxFix:
    """Splices on the view's text (sorted, apart), what they cost (0 likeliest), and which operator proposes them.

    `effects` are those that it has by itself, beside its operator's; several fixes together have them no more.
    """

    cost: float
    splices: tuple[tuple[int, int, str], ...]
    operator: str
    note: str
    effects: frozenset[EditEffect] = frozenset()


def insert(cost: float, at: int, text: str, operator: str, note: str = "") -> SyntaxFix:
    """A fix that adds text at one place."""
    return SyntaxFix(cost, ((at, at, text),), operator, note or f"insert {text.strip() or text!r}")


def replace(cost: float, x: Lexeme, text: str, operator: str) -> SyntaxFix:
    """A fix that puts text in a lexeme's place."""
    note = f"{shortened(x.text, 40)} -> {text.strip()}" if text else f"drop {shortened(x.text, 40)}"
    return SyntaxFix(cost, ((x.start, x.end, text),), operator, note, negation(x.text, text.strip()))
