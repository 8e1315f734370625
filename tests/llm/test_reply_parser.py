"""Replies of models: each is a valid edit of what was shown, or refused with a reason; 2,000 hostile ones too."""

import ast
import random

import pytest

from localagent.code.symbols import FactIndex
from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.external_edits import Page
from localagent.llm.writing.reply_parser import (
    LADDER,
    MAX_REPLY_BYTES,
    PromptView,
    ReplyFormat,
    can_ask,
    edit_of,
    first_statement,
    grammar,
)
from localagent.llm.writing.skeleton import Outline, outline_of

M = RepoPath("shop.py")
SOURCE = '''\
"""A shop."""

import math


class Basket:
    def total(self, rows, tax):
        """The sum."""
        out = 0
        for row in rows:
            if row.price > 0:
                out += row.price
            out += 0
            out += 0
        return math.floor(
            out * tax,
        )


def other(x):
    return x
'''


def view(source: str = SOURCE, line: int = 9) -> PromptView:
    page = Page(M, {M: source.encode()}, FactIndex())
    lines = page.lines(line)
    assert lines is not None
    choices = [page.put(9, *_span(page, 9), f"        out = {n}", prior=0.0) for n in (1, 2)]
    assert all(isinstance(c, Edit) for c in choices)
    fresh = Page(M, {M: source.encode()}, FactIndex())
    made = tuple(c for c in choices if isinstance(c, Edit))
    return PromptView(page=fresh, lines=lines, function=fresh.function(line), choices=made)


def _span(page: Page, line: int) -> tuple[int, int]:
    return page.line_span(line)


def after(way: ReplyFormat, reply: str, source: str = SOURCE) -> str:
    edit = edit_of(way, reply.encode(), view(source))
    assert isinstance(edit, Edit), edit
    assert edit.operator == ("span" if way is ReplyFormat.CHOICE else way.value)
    return edit.apply(source.encode()).decode()


def refusal(way: ReplyFormat, reply: str | bytes) -> str:
    why = edit_of(way, reply.encode() if isinstance(reply, str) else reply, view())
    assert isinstance(why, str)
    return why


def test_a_number_chooses() -> None:
    assert "out = 2" in after(ReplyFormat.CHOICE, "EDIT 2\n")
    assert refusal(ReplyFormat.CHOICE, "EDIT 3") == "there is no edit 3"
    assert refusal(ReplyFormat.CHOICE, "EDIT 0") == "there is no edit 0"
    assert "must be" in refusal(ReplyFormat.CHOICE, "EDIT 1 EDIT 2")
    assert "must be" in refusal(ReplyFormat.CHOICE, "1")


def test_a_statement_at_a_line() -> None:
    assert "out += row.price * 2\n" in after(
        ReplyFormat.LINE, "LINE 12\n```python\n                out += row.price * 2\n```"
    )
    assert "                out += row.price * 2\n" in after(
        ReplyFormat.LINE, "LINE 12\n```python\nout += row.price * 2\n```"
    )
    header = after(ReplyFormat.LINE, "LINE 11\n```python\nif row.price >= 0:\n```\n")
    assert "            if row.price >= 0:\n                out += row.price\n" in header
    reply = "LINE 11\n```python\nif row:\n    out += 1\nelse:\n    out -= 1\n```"
    block = "            if row:\n                out += 1\n            else:\n                out -= 1\n"
    assert block + "            out += 0" in after(ReplyFormat.LINE, reply)
    assert "return math.ceil(out)\n\n\ndef" in after(ReplyFormat.LINE, "LINE 16\n```python\nreturn math.ceil(out)\n```")


def test_what_is_no_statement_at_a_line_is_refused() -> None:
    assert refusal(ReplyFormat.LINE, "LINE 21\n```python\nreturn 1\n```") == "line 21 was not shown"
    assert "no statement" in refusal(ReplyFormat.LINE, "LINE 8\n```python\nreturn 1\n```")
    assert "not valid Python" in refusal(ReplyFormat.LINE, "LINE 9\n```python\nout = (\n```")
    assert "changes nothing" in refusal(ReplyFormat.LINE, "LINE 9\n```python\nout = 0\n```")
    assert "changes nothing" in refusal(ReplyFormat.LINE, "LINE 9\n```python\nout = (0)\n```")
    assert "no code" in refusal(ReplyFormat.LINE, "LINE 9\n```python\n\n```")
    assert "one fenced block" in refusal(ReplyFormat.LINE, "LINE 9\n```python\nout = 1\n```\n```python\nout = 2\n```")
    assert "one fenced block" in refusal(ReplyFormat.LINE, "I think LINE 9 is wrong")
    assert "not valid Python" in refusal(ReplyFormat.LINE, "LINE 9\n```python\nreturn = 1\n```")


def test_a_text_that_stands_once() -> None:
    block = "<<<<<<< SEARCH\n            if row.price > 0:\n=======\n            if row.price >= 0:\n>>>>>>> REPLACE"
    assert "row.price >= 0" in after(ReplyFormat.SEARCH, block)
    dropped = after(
        ReplyFormat.SEARCH, "<<<<<<< SEARCH\n            out += 0\n            out += 0\n=======\n>>>>>>> REPLACE\n"
    )
    assert dropped.count("out += 0") == 0
    twice = "<<<<<<< SEARCH\n            out += 0\n=======\n            out += 1\n>>>>>>> REPLACE"
    assert "2 times" in refusal(ReplyFormat.SEARCH, twice)
    assert "0 times" in refusal(
        ReplyFormat.SEARCH, "<<<<<<< SEARCH\n    return x\n=======\n    return 1\n>>>>>>> REPLACE"
    )
    assert "empty" in refusal(ReplyFormat.SEARCH, "<<<<<<< SEARCH\n\n=======\n    return 1\n>>>>>>> REPLACE")
    assert "must be one" in refusal(ReplyFormat.SEARCH, block + "\n" + block)


def test_the_first_statement_of_an_answer_is_looked_for_within_a_bound() -> None:
    assert first_statement("x = (1,\n2)\ny = 3\nz") == "x = (1,\n2)"
    assert first_statement("if x:\n    y = 1") == "if x:"
    assert first_statement("\n\nx = 1\ny") == "\n\nx = 1"
    found, beyond = ("x = [\n" + "1,\n" * rows + "]" for rows in (300, 5000))
    assert first_statement(found + "\ny") == found
    assert first_statement(beyond + "\ny") == beyond + "\ny"  # not looked for so far: eight answers would take a minute


def test_a_whole_function() -> None:
    code = "```python\n    def total(self, rows, tax):\n        return sum(r.price for r in rows) * tax\n```"
    whole = after(ReplyFormat.FUNCTION, code)
    assert (
        "class Basket:\n    def total(self, rows, tax):\n        return sum(r.price for r in rows) * tax\n\n\ndef other"
        in whole
    )
    flush = after(ReplyFormat.FUNCTION, "```python\ndef total(self, rows, tax):\n    return 1\n```")
    assert "    def total(self, rows, tax):\n        return 1\n\n" in flush
    assert "must define" in refusal(ReplyFormat.FUNCTION, "```python\ndef totals(self):\n    return 1\n```")
    assert "must define" in refusal(ReplyFormat.FUNCTION, "```python\ndef total(self):\n    return 1\nimport os\n```")
    assert "must define" in refusal(ReplyFormat.FUNCTION, "```python\nasync def total(self):\n    return 1\n```")
    assert "must define" in refusal(ReplyFormat.FUNCTION, "```python\ndef total(self)\n```")


@pytest.mark.long
def test_bytes_that_are_no_source_are_refused() -> None:
    for way in ReplyFormat:
        assert "not UTF-8" in refusal(way, b"\xff\xfe")
        assert "longer than" in refusal(way, b"x" * (MAX_REPLY_BYTES + 1))
        assert "characters" in refusal(way, b"LINE 9\n```python\nout = '\0'\n```")


def test_a_second_time_is_refused() -> None:
    shown = view()
    reply = b"LINE 9\n```python\nout = 5\n```"
    assert isinstance(edit_of(ReplyFormat.LINE, reply, shown), Edit)
    assert edit_of(ReplyFormat.LINE, reply, shown) == "it was tried before"


def test_what_can_be_asked_where() -> None:
    shown = view()
    assert [can_ask(way, shown) for way in LADDER] == [True] * 4
    part = PromptView(page=shown.page, lines=range(9, 12), function=shown.function)
    assert [can_ask(way, part) for way in LADDER] == [False, True, True, False]
    assert '("9" | "10" | "11")' in grammar(ReplyFormat.LINE, part)


def hostile_replies(count: int) -> list[tuple[ReplyFormat, bytes]]:
    """Envelopes filled, cut, doubled, spliced and shuffled with code, marks, escapes and noise; the same every time."""
    dice = random.Random(3)
    scraps = [
        "LINE 9\n", "LINE 99999999\n", "LINE -1\n", "EDIT 1\n", "EDIT \u0661\n", "```python\n", "```\n", "```",
        "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "            out += 0\n", "        out = 0\n",
        "import os; os.abort()\n", "    def total(self, rows, tax):\n", "def total():\n    pass\n",
        "        return 1\n", "\\\n", "'''", '"""', "f'{", "(" * 200, "lambda:" * 60, "\u202e", "\ufeff", "\x1b[2J",
        "<|im_end|>", "# type: ignore\n", "\t", " " * 40, "\u2028", "\u00e9", "\U0001d7d9", "\uff4f = 3\n", "if 1:\n",
        "@x\n", "async ", "yield\n", "global out\n", "nonlocal out\n", "del out\n", "out: int\n", "match x:\n",
        "else:\n", "return", "\x0c", "def other(x):\n", "*a, = b\n",
    ]  # fmt: skip
    good = [
        (ReplyFormat.CHOICE, "EDIT 1\n"),
        (ReplyFormat.LINE, "LINE 9\n```python\n        out = 7\n```"),
        (ReplyFormat.SEARCH, "<<<<<<< SEARCH\n        out = 0\n=======\n        out = 7\n>>>>>>> REPLACE"),
        (ReplyFormat.FUNCTION, "```python\n    def total(self, rows, tax):\n        return 7\n```"),
        (ReplyFormat.SKELETON, "```python\n    def total(self, rows, tax):\n        # sum\n        return 7\n```"),
        (ReplyFormat.FIM, "out = 7"),
        (ReplyFormat.CONTINUE, "out = 7"),
    ]
    out = []
    for _ in range(count):
        way, text = dice.choice(good)
        for _ in range(dice.randrange(4)):
            at, end = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
            end = min(end, at + dice.choice((0, 0, 1, 8)))
            text = text[:at] + dice.choice(scraps) + text[end:]
        raw = text.encode()
        if dice.random() < 0.1:
            at = dice.randrange(len(raw) + 1)
            raw = raw[:at] + bytes([dice.randrange(256)]) + raw[at:]
        out.append((way, raw))
    return out


@pytest.mark.long
def test_two_thousand_hostile_replies_are_each_valid_or_refused() -> None:
    made = refused = 0
    before = SOURCE.encode()
    head, tail = before.index(b"    def total"), before.index(b"\n\n\ndef other")
    shown = view()
    for number, (way, raw) in enumerate(hostile_replies(2000)):
        shown = shown if number % 40 else view()  # a page refuses what it made before
        found = edit_of(way, raw, shown, line=9)
        if isinstance(found, str):
            assert found
            refused += 1
            continue
        made += 1
        result = found.apply(before)
        ast.parse(result)
        assert result != before
        assert result.startswith(before[:head])  # nothing outside of what was shown changed
        assert result.endswith(before[tail:])
    assert made > 100
    assert refused > 500


def test_an_outline_is_a_header_and_comments_and_nothing_else() -> None:
    shown = view()
    good = b"```python\n    def total(self, rows, tax):\n        # add prices\n\n    # tax them\n```"
    assert outline_of(good, shown) == Outline(text="def total(self, rows, tax):\n    # add prices\n    # tax them")
    wrong = {
        b"```python\ndef total(self):\n```": "1 to 24 comments",
        b"```python\ndef total(self):\n" + b"# x\n" * 25 + b"```": "1 to 24 comments",
        b"```python\ndef total(self):\n# x\nreturn 1\n```": "nothing else",
        b"```python\n# x\n```": "1 to 24 comments",
        b"```python\n# x\n# y\n```": "must be of total",
        b"```python\ndef totals(self):\n# x\n```": "must be of total",
        b"```python\ndef total(self): return 1\n# x\n```": "must be of total",
        b"```python\nasync def total(self):\n# x\n```": "must be of total",
        b"def total(self):\n# x\n": "one fenced block",
        b"```python\n\xff\n```": "not UTF-8",
    }
    for reply, why in wrong.items():
        told = outline_of(reply, shown)
        assert isinstance(told, str), reply
        assert why in told
    assert outline_of(good, PromptView(page=shown.page, lines=range(1, 3))) == "what was shown is not one function"


def test_hostile_outlines_are_outlines_or_refused() -> None:
    shown = view()
    for _, raw in hostile_replies(1000):
        found = outline_of(raw, shown)
        if isinstance(found, Outline):
            header, *steps = found.text.split("\n")
            ast.parse(f"{header}\n    pass\n")
            assert steps
            assert all(step.startswith("    #") for step in steps)


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_replies_take_the_file_s_newlines(newline: str) -> None:
    source = SOURCE.replace("\n", newline)
    result = after(ReplyFormat.LINE, "LINE 9\n```python\nout = 1\nout += 1\n```", source)
    assert f"        out = 1{newline}        out += 1{newline}" in result
    assert result.count("\n") == source.count("\n") + 1
