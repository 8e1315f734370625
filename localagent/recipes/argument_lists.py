"""Calls and signatures as they are written: where one more argument goes, to the byte."""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from localagent.code.source_text import SourceText, parse_or_none
from localagent.code.spans import last_line
from localagent.domain.paths import RepoPath
from localagent.recipes.recipe import SourceSplice

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_SILENT = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A token that is no white space and no comment: bytes [start, end) of the file's UTF-8 form."""

    text: str
    start: int
    end: int


class CallTokens:
    """A file's tokens and calls."""

    def __init__(self, path: RepoPath, text: SourceText) -> None:
        self.path = path
        self.text = text

    @cached_property
    def tokens(self) -> list[Token]:
        """All tokens in order. The file must parse."""
        starts = (*self.text.line_starts, len(self.text.utf8))
        rows = [self.text.utf8[a:b].decode() for a, b in pairwise(starts)]
        found = []
        for token in tokenize.generate_tokens(io.StringIO(self.text.utf8.decode()).readline):
            if token.type not in _SILENT and token.string:
                start, end = (self._offset(rows, *at) for at in (token.start, token.end))
                found.append(Token(text=token.string, start=start, end=end))
        return found

    def _offset(self, rows: list[str], line: int, column: int) -> int:
        row = rows[line - 1] if line <= len(rows) else ""
        return self.text.offset(line, len(row[:column].encode()))

    @cached_property
    def calls(self) -> dict[int, ast.Call]:
        """Calls by the offset at which the name of what is called ends."""
        tree = parse_or_none(self.text.utf8)
        found = {}
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                found[self.text.offset(last_line(node.func), node.func.end_col_offset or 0)] = node
        return found

    def brackets_after(self, offset: int) -> list[Token]:
        """The tokens of the first pair of parentheses after an offset, both ends included; type parameters passed."""
        found: list[Token] = []
        depth = 0
        for token in self.tokens:
            if token.start < offset:
                continue
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if found or (token.text == "(" and depth == 1):
                found.append(token)
                if not depth:
                    return found
        return []

    def added_at_end(self, inside: list[Token], argument: str) -> SourceSplice:
        """One more item at the end of a list between parentheses, in the list's own layout."""
        last, closing = inside[-2], inside[-1]
        if len(inside) == 2:
            return self._insert(last.end, argument)
        if last.text != ",":
            return self._insert(last.end, f", {argument}")
        line = self.text.line_of(last.start)
        if self.text.line_of(closing.start) == line:
            return self._insert(last.end, f" {argument},")
        start = self.text.line_starts[line - 1]
        row = self.text.utf8[start : self.text.line_starts[line]]
        indent = row[: len(row) - len(row.lstrip(b" \t"))].decode()
        end = start + len(row.rstrip(b"\r\n"))
        return self._insert(end, f"{self.text.newline}{indent}{argument},")

    def added_before(self, token: Token, argument: str) -> SourceSplice:
        """One more item in front of another."""
        return self._insert(token.start, f"{argument}, ")

    def _insert(self, at: int, text: str) -> SourceSplice:
        return SourceSplice(path=self.path, start=at, end=at, text=text)


def outer_items(inside: list[Token]) -> Iterator[Token]:
    """The first token of each item between parentheses."""
    depth = 0
    begins = False
    for token in inside:
        if begins and depth == 1 and token.text not in _CLOSING:
            yield token
            begins = False
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        begins = begins or (depth == 1 and token.text in ("(", ","))
