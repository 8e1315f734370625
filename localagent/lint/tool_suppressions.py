"""Comments by which other tools are told to leave a line alone: what they suppress, our rules for it do not report.

`# noqa`, `# ruff: noqa`, `# flake8: noqa`, `# pylint: disable`, `# type: ignore`, `# pyright: ignore`, `# nosec`, with
and without codes. A comment holds for the whole logical line that it stands on. Not promised: ruff's `# ruff: disable`
ranges, or names of messages that pylint renamed.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from localagent.code.spans import last_line
from localagent.lint.equivalents import EQUIVALENTS, PYLINT, rules_with_prefix
from localagent.lint.file_view import FileView
from localagent.lint.rules import BY_ID

MARKS = (b"noqa", b"pylint:", b"type:", b"pyright:", b"nosec")
_NOQA = re.compile(r"#\s*(?:(ruff|flake8)\s*[:=]\s*)?noqa\b(?:\s*:\s*((?:[A-Z]+[0-9]+[\s,]*)+))?", re.IGNORECASE)
_PYLINT = re.compile(r"#\s*pylint:\s*(disable-next|disable|enable|skip-file)\s*=?\s*([\w\-, ]*)")
_TYPES = re.compile(r"#\s*(type|pyright):\s*ignore(?:\[([^\]]*)\])?")
_NOSEC = re.compile(r"#\s*nosec\b:?\s*((?:B[0-9]+[\s,]*)*)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A comment, its line, whether it has that to itself, and the first and last of the logical line around it."""

    text: str
    line: int
    column: int
    alone: bool
    logical: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSuppression:
    """Rules of ours that another tool's comment suppresses, from a first to a last line."""

    first: int
    last: int
    rules: frozenset[str]


def comments(view: FileView) -> list[Comment]:
    """Every comment of a file. None of a file that parses, but not for the tokenizer."""
    found: list[Comment] = []
    pending: list[tokenize.TokenInfo] = []
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(view.source.utf8.decode(), newline="").readline):
            if token.type == tokenize.COMMENT:
                pending.append(token)
            if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) or (token.type == tokenize.NL and not first):
                found += [_comment(one, first, token.start[0]) for one in pending]
                pending, first = [], 0
            elif not first and token.type not in (tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return []
    return found


def _comment(token: tokenize.TokenInfo, first: int, last: int) -> Comment:
    line, column = token.start
    alone = not token.line[:column].strip()
    return Comment(text=token.string, line=line, column=column, alone=alone, logical=(first or line, max(line, last)))


def tool_suppressions(view: FileView, found: Sequence[Comment]) -> list[ToolSuppression]:
    """What the comments of other tools suppress."""
    end = len(view.source.line_starts) + 1
    return [s for comment in found for s in (*_by_code(view, comment, end), *_by_pylint(view, comment, found, end))]


def _by_code(view: FileView, comment: Comment, end: int) -> Iterator[ToolSuppression]:
    first, last = comment.logical
    if match := _NOQA.search(comment.text):
        rules = rules_with_prefix(re.findall(r"[A-Z]+[0-9]+", match[2].upper())) if match[2] else frozenset(BY_ID)
        whole = match[1] and comment.alone
        yield ToolSuppression(first=1 if whole else first, last=end if whole else last, rules=rules)
    if match := _TYPES.search(comment.text):
        mypy = EQUIVALENTS["mypy"]
        named = [mypy.get(code.strip(), ()) for code in match[2].split(",")] if match[2] and match[1] == "type" else ()
        whole = comment.alone and comment.line < min((view.line_of(s) for s in view.tree.body), default=0)
        rules = frozenset(rule for group in named or mypy.values() for rule in group)
        yield ToolSuppression(first=first, last=end if whole else last, rules=rules)
    if match := _NOSEC.search(comment.text):
        bandit = EQUIVALENTS["bandit"]
        named = [bandit.get(code, ()) for code in re.findall(r"B[0-9]+", match[1].upper())]
        rules = frozenset(rule for group in named or bandit.values() for rule in group)
        yield ToolSuppression(first=first, last=last, rules=rules)


def _by_pylint(
    view: FileView, comment: Comment, all_comments: Iterable[Comment], end: int
) -> Iterator[ToolSuppression]:
    for match in _PYLINT.finditer(comment.text):
        if match[1] == "skip-file":
            yield ToolSuppression(first=1, last=end, rules=frozenset(BY_ID))
        if match[1] in ("skip-file", "enable"):
            continue
        for name in (part.strip() for part in match[2].split(",")):
            rules = frozenset(BY_ID) if name == "all" else frozenset(PYLINT.get(name, ()))
            first, last = comment.logical
            if match[1] == "disable-next":
                last = max((last_line(s) for s in _statements(view) if view.line_of(s) == last + 1), default=last + 1)
            elif comment.alone:
                last = min(_scope_end(view, comment, end), _enabled(all_comments, name, comment.line, end))
            else:
                last = max((last_line(s) for s in _statements(view) if _headed(view, s, first)), default=last)
            yield ToolSuppression(first=first, last=last, rules=rules)


def _statements(view: FileView) -> Iterator[ast.stmt]:
    return (node for node in view.walk.nodes if isinstance(node, ast.stmt))


def _headed(view: FileView, node: ast.stmt, line: int) -> bool:
    """Whether a line is where a statement begins, its decorators apart: pylint means all of it."""
    return line in (node.lineno, view.line_of(node))


def _scope_end(view: FileView, comment: Comment, end: int) -> int:
    """The last line of the block that a comment by itself stands in."""
    after = (s for s in _statements(view) if s.lineno > comment.line and s.col_offset < comment.column)
    return min((view.line_of(s) for s in after), default=end) - 1


def _enabled(found: Iterable[Comment], name: str, line: int, end: int) -> int:
    """The line on which pylint is told to look again, if any."""
    again = (
        c.line for c in found if c.line > line and (m := _PYLINT.search(c.text)) and m[1] == "enable" and name in m[2]
    )
    return min(again, default=end)
