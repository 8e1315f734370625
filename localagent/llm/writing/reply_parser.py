"""What a model may answer, and what becomes of it: a reply is an edit of what it was shown, or refused with a reason.

The envelope is constrained by a grammar while the model speaks, and read here as if it had not been. Code travels raw.
Whatever has two meanings has none. Nothing is promised about an edit beyond that it is one: gates and tests judge it.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function
from localagent.domain.edit import Edit
from localagent.edit.external_edits import Page, StatementSpan
from localagent.llm.writing.reindent import dedented, indented

MAX_REPLY_BYTES = 16 << 10
_FENCED = re.compile(r"```python\n(.*?)\n?```\n?", re.DOTALL)
_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_SEARCH = re.compile(r"<<<<<<< SEARCH\n(.*?)\n?=======\n(.*?)\n?>>>>>>> REPLACE\n?", re.DOTALL)


class ReplyFormat(Enum):
    """The ways in which a model may be asked to write, each in a conversation."""

    SEARCH = "search"  # a text instead of one that stands exactly once
    FUNCTION = "function"  # the whole function


MOST_TOKENS = {ReplyFormat.SEARCH: 160, ReplyFormat.FUNCTION: 320}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptView:
    """What a model was shown of a file: some lines, and the function they are in if they are one."""

    page: Page
    lines: range
    function: StatementSpan | None = None


LEADS = {ReplyFormat.SEARCH: "<<<<<<< SEARCH\n", ReplyFormat.FUNCTION: "```python\n"}


def grammar(way: ReplyFormat) -> str:
    """GBNF of the envelope behind its lead."""
    if way is ReplyFormat.SEARCH:
        return f'root ::= old+ "=======\\n" new* ">>>>>>> REPLACE"\n{_HALVES}'
    return f'root ::= [ \\t]* ("def " | "async def " | "@") line+ "```"\n{_LINES}'


_LINES = 'line ::= [^`\\n]* "\\n"\n'
_HALVES = 'old ::= ([^=\\n] [^\\n]*)? "\\n"\nnew ::= ([^>\\n] [^\\n]*)? "\\n"\n'


def can_ask(way: ReplyFormat, view: PromptView) -> bool:
    """Whether a view has what a way needs."""
    if way is ReplyFormat.FUNCTION:
        whole = view.function
        return whole is not None and all(line in view.lines for line in _span(view.page, whole))
    return any(view.page.statement(line) is not None for line in view.lines)


def edit_of(way: ReplyFormat, reply: bytes, view: PromptView, *, prior: float = 0.0) -> Edit | str:
    """The edit that a reply is, or why it is refused."""
    text, why = _text_of(reply)
    if why:
        return why
    return _searched(text, view, prior) if way is ReplyFormat.SEARCH else _whole(text, view, prior)


def _text_of(reply: bytes) -> tuple[str, str]:
    """The text of a reply, and why it is none, or ""."""
    if len(reply) > MAX_REPLY_BYTES:
        return "", f"the reply is longer than {MAX_REPLY_BYTES} bytes"
    try:
        text = reply.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return "", "the reply is not UTF-8"
    return text, "the reply has characters that no source has" if "\0" in text or "\r" in text else ""


def _fenced(text: str) -> str | None:
    """The code of a reply that is one fenced block and nothing else."""
    found = _FENCED.fullmatch(text)
    return None if found is None or "```" in found.group(1) else found.group(1)


def _searched(text: str, view: PromptView, prior: float) -> Edit | str:
    once = all(text.count(mark) == 1 for mark in _MARKS)  # else matching takes the square of the length
    found = _SEARCH.fullmatch(text) if once else None
    if found is None or any(mark in part for part in found.groups() for mark in _MARKS):
        return "the reply must be one SEARCH and REPLACE block"
    old, new = found.groups()
    if not old.strip():
        return "the SEARCH text is empty"
    shown = [view.page.line_text(line) for line in view.lines]
    wanted = old.split("\n")
    places = [k for k in range(len(shown) - len(wanted) + 1) if shown[k : k + len(wanted)] == wanted]
    if len(places) != 1:
        return f"the SEARCH text stands {len(places)} times in what was shown, not once"
    first = view.lines[places[0]]
    start, _ = view.page.line_span(first)
    _, end = view.page.line_span(first + len(wanted) - 1)
    skip = len(old) - len(old.lstrip(" \t"))
    if new.strip() and new[:skip] != old[:skip]:
        skip = 0
    elif not new.strip():
        new, skip = "", 0
    return view.page.put(
        first, start + skip, end, new[skip:], prior=prior, operator=ReplyFormat.SEARCH.value, known=False
    )


def _whole(text: str, view: PromptView, prior: float) -> Edit | str:
    code, stretch = _fenced(text), view.function
    if code is None:
        return "the reply must be one fenced block of code"
    if stretch is None:
        return "what was shown is not one function"
    old = view.page.text[stretch.start : stretch.end].decode("utf-8")
    names = [_defined(dedented(stretch.indent + old)), _defined(dedented(code))]
    if names[1] is None or names[0] != names[1]:
        return f"the block must define {names[0][0] if names[0] else 'the function'} and nothing else"
    code = _indented(code, stretch.indent)
    operator = ReplyFormat.FUNCTION.value
    return view.page.put(stretch.line, stretch.start, stretch.end, code, prior=prior, operator=operator, known=False)


def _defined(code: str) -> tuple[str, bool] | None:
    """The name of the one function that a text defines, and whether it is asynchronous."""
    tree = parse_or_none(code)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], Function):
        return None
    return tree.body[0].name, isinstance(tree.body[0], ast.AsyncFunctionDef)


def _indented(code: str, indent: str) -> str:
    """Code as a block at an indentation, without that of its first line."""
    code = code.strip("\n").rstrip()
    block = dedented(code)
    if not _parses(block) and _parses(dedented(indent + code)):
        block = dedented(indent + code)  # the first line's own indentation was left out
    return indented(block, indent)[len(indent) :]


def _parses(code: str) -> bool:
    return parse_or_none(code) is not None


def _span(page: Page, stretch: StatementSpan) -> Sequence[int]:
    return range(stretch.line, stretch.line + page.text[stretch.start : stretch.end].count(b"\n") + 1)
