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
_LINE = re.compile(r"LINE ([0-9]{1,7})\n(.*)", re.DOTALL)
_CHOICE = re.compile(r"EDIT ([0-9]{1,4})\n?")
_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_MOST_PARSED = 2 << 20  # characters, over all beginnings of an answer that are tried
_SEARCH = re.compile(r"<<<<<<< SEARCH\n(.*?)\n?=======\n(.*?)\n?>>>>>>> REPLACE\n?", re.DOTALL)


class ReplyFormat(Enum):
    """The ways in which a model may be asked to write."""

    CONTINUE = "continue"  # a line, by what stands in front of it
    FIM = "fim"  # a line, by what stands around it
    CHOICE = "choice"  # one of some enumerated edits, by its number
    LINE = "line"  # a statement instead of the one at a numbered line
    SEARCH = "search"  # a text instead of one that stands exactly once
    FUNCTION = "function"  # the whole function
    SKELETON = "skeleton"  # the same along an outline that it gave before

    @property
    def chat(self) -> bool:
        """Whether it needs a conversation."""
        return self not in (ReplyFormat.CONTINUE, ReplyFormat.FIM)


LADDER = (ReplyFormat.CHOICE, ReplyFormat.LINE, ReplyFormat.SEARCH, ReplyFormat.FUNCTION)
MOST_TOKENS = {
    ReplyFormat.CONTINUE: 40,
    ReplyFormat.FIM: 64,
    ReplyFormat.CHOICE: 8,
    ReplyFormat.LINE: 96,
    ReplyFormat.SEARCH: 160,
    ReplyFormat.FUNCTION: 320,
    ReplyFormat.SKELETON: 320,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptView:
    """What a model was shown of a file: some lines, the function they are in if they are one, edits to choose from."""

    page: Page
    lines: range
    function: StatementSpan | None = None
    choices: tuple[Edit, ...] = ()


LEADS = {
    ReplyFormat.CHOICE: "EDIT ",
    ReplyFormat.LINE: "LINE ",
    ReplyFormat.SEARCH: "<<<<<<< SEARCH\n",
    ReplyFormat.FUNCTION: "```python\n",
    ReplyFormat.SKELETON: "```python\n",
}
_WHOLE = (ReplyFormat.FUNCTION, ReplyFormat.SKELETON)


def grammar(way: ReplyFormat, view: PromptView) -> str:
    """GBNF of the envelope behind its lead, "" where the reply is raw code."""
    if way is ReplyFormat.CHOICE:
        numbers = " | ".join(f'"{number}"' for number in range(1, len(view.choices) + 1))
        return f'root ::= ({numbers}) "\\n"\n'
    if way is ReplyFormat.LINE:
        numbers = " | ".join(f'"{line}"' for line in _statements(view))
        return f'root ::= ({numbers}) "\\n```python\\n" line+ "```"\n{_LINES}'
    if way is ReplyFormat.SEARCH:
        return f'root ::= old+ "=======\\n" new* ">>>>>>> REPLACE"\n{_HALVES}'
    if way in _WHOLE:
        return f'root ::= [ \\t]* ("def " | "async def " | "@") line+ "```"\n{_LINES}'
    return ""


_LINES = 'line ::= [^`\\n]* "\\n"\n'
_HALVES = 'old ::= ([^=\\n] [^\\n]*)? "\\n"\nnew ::= ([^>\\n] [^\\n]*)? "\\n"\n'


def _statements(view: PromptView) -> list[int]:
    return [line for line in view.lines if view.page.statement(line) is not None]


def can_ask(way: ReplyFormat, view: PromptView) -> bool:
    """Whether a view has what a way needs."""
    if way is ReplyFormat.CHOICE:
        return len(view.choices) > 1
    if way in _WHOLE:
        whole = view.function
        return whole is not None and all(line in view.lines for line in _span(view.page, whole))
    return bool(_statements(view))


def edit_of(way: ReplyFormat, reply: bytes, view: PromptView, *, line: int = 0, prior: float = 0.0) -> Edit | str:
    """The edit that a reply is, or why it is refused. `line` is where a way without an envelope was asked."""
    text, why = text_of(reply)
    if why:
        return why
    if way is ReplyFormat.CHOICE:
        return _chosen(text, view)
    if way is ReplyFormat.LINE:
        return _at_line(text, view, prior)
    if way is ReplyFormat.SEARCH:
        return _searched(text, view, prior)
    if way in _WHOLE:
        return _whole(text, view, way, prior)
    code = first_statement(text) if spans_lines(view, line) else text
    return _instead(line, code, view, way, prior, known=way is ReplyFormat.CONTINUE)


def spans_lines(view: PromptView, line: int) -> bool:
    """Whether the statement at a line (or its header) has further lines."""
    stretch = view.page.statement(line)
    return stretch is not None and b"\n" in view.page.text[stretch.start : stretch.end]


def first_statement(code: str) -> str:
    """The first lines of a text that are a statement, or a header, by themselves; the whole text where none are.

    Or where none was found within a bound, so that no answer takes the square of its length.
    """
    lines, parsed = code.split("\n"), 0
    for count in range(1, len(lines) + 1):
        some = "\n".join(lines[:count]).strip()
        parsed += len(some)
        if parsed > _MOST_PARSED:
            break
        if some and (_parses(some) or (some.endswith(":") and _parses(f"{some} pass"))):
            return "\n".join(lines[:count])
    return code


def text_of(reply: bytes) -> tuple[str, str]:
    """The text of a reply, and why it is none, or ""."""
    if len(reply) > MAX_REPLY_BYTES:
        return "", f"the reply is longer than {MAX_REPLY_BYTES} bytes"
    try:
        text = reply.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return "", "the reply is not UTF-8"
    return text, "the reply has characters that no source has" if "\0" in text or "\r" in text else ""


def _chosen(text: str, view: PromptView) -> Edit | str:
    found = _CHOICE.fullmatch(text)
    if found is None:
        return "the reply must be `EDIT` and one of the numbers"
    number = int(found.group(1))
    if not 1 <= number <= len(view.choices):
        return f"there is no edit {number}"
    return view.choices[number - 1]


def fenced(text: str) -> str | None:
    """The code of a reply that is one fenced block and nothing else."""
    found = _FENCED.fullmatch(text)
    return None if found is None or "```" in found.group(1) else found.group(1)


def _at_line(text: str, view: PromptView, prior: float) -> Edit | str:
    found = _LINE.fullmatch(text)
    code = fenced(found.group(2)) if found else None
    if found is None or code is None:
        return "the reply must be `LINE`, a number, and one fenced block of code"
    line = int(found.group(1))
    if line not in view.lines:
        return f"line {line} was not shown"
    return _instead(line, code, view, ReplyFormat.LINE, prior, known=False)


def _instead(line: int, code: str, view: PromptView, way: ReplyFormat, prior: float, *, known: bool) -> Edit | str:
    """The statement at a line replaced; a compound one's header alone where the code is but a header."""
    stretch = view.page.statement(line)
    if stretch is None:
        return f"at line {line} stands no statement"
    in_line = way in (ReplyFormat.CONTINUE, ReplyFormat.FIM)  # it goes on behind the indentation
    code = code.strip() if in_line else _indented(code, stretch.indent)
    if not code.strip():
        return "there is no code in the reply"
    header = "\n" not in code and code.rstrip().endswith(":")
    end = stretch.end if header or in_line else stretch.whole
    return view.page.put(line, stretch.start, end, code, prior=prior, operator=way.value, known=known)


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


def _whole(text: str, view: PromptView, way: ReplyFormat, prior: float) -> Edit | str:
    code, stretch = fenced(text), view.function
    if code is None:
        return "the reply must be one fenced block of code"
    if stretch is None:
        return "what was shown is not one function"
    old = view.page.text[stretch.start : stretch.end].decode("utf-8")
    names = [defined(dedented(stretch.indent + old)), defined(dedented(code))]
    if names[1] is None or names[0] != names[1]:
        return f"the block must define {names[0][0] if names[0] else 'the function'} and nothing else"
    code = _indented(code, stretch.indent)
    return view.page.put(stretch.line, stretch.start, stretch.end, code, prior=prior, operator=way.value, known=False)


def defined(code: str) -> tuple[str, bool] | None:
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
