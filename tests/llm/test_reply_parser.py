"""Replies of models: each is a valid edit of what was shown, or refused with a reason; 2,000 hostile ones too."""

import ast
import random

import pytest

from localagent.code.symbols import FactIndex
from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.external_edits import Page
from localagent.llm.writing.reply_parser import (
    MAX_REPLY_BYTES,
    PromptView,
    ReplyFormat,
    can_ask,
    edit_of,
)

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
    return PromptView(page=page, lines=lines, function=page.function(line))


def after(way: ReplyFormat, reply: str, source: str = SOURCE) -> str:
    edit = edit_of(way, reply.encode(), view(source))
    assert isinstance(edit, Edit), edit
    assert edit.operator == way.value
    return edit.apply(source.encode()).decode()


def refusal(way: ReplyFormat, reply: str | bytes) -> str:
    why = edit_of(way, reply.encode() if isinstance(reply, str) else reply, view())
    assert isinstance(why, str)
    return why


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
    assert "changes nothing" in refusal(ReplyFormat.SEARCH, block.replace(">= 0", "> 0"))
    assert "not valid Python" in refusal(ReplyFormat.SEARCH, block.replace(">= 0:", ">= ("))
    assert "empty" in refusal(ReplyFormat.SEARCH, "<<<<<<< SEARCH\n\n=======\n    return 1\n>>>>>>> REPLACE")
    assert "must be one" in refusal(ReplyFormat.SEARCH, block + "\n" + block)


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
        assert "characters" in refusal(way, b"```python\nout = '\0'\n```")


def test_a_second_time_is_refused() -> None:
    shown = view()
    reply = b"<<<<<<< SEARCH\n        out = 0\n=======\n        out = 5\n>>>>>>> REPLACE"
    assert isinstance(edit_of(ReplyFormat.SEARCH, reply, shown), Edit)
    assert edit_of(ReplyFormat.SEARCH, reply, shown) == "it was tried before"


def test_what_can_be_asked_where() -> None:
    shown = view()
    assert [can_ask(way, shown) for way in ReplyFormat] == [True, True]
    part = PromptView(page=shown.page, lines=range(9, 12), function=shown.function)
    assert [can_ask(way, part) for way in ReplyFormat] == [True, False]
    blank = PromptView(page=shown.page, lines=range(8, 9), function=shown.function)
    assert [can_ask(way, blank) for way in ReplyFormat] == [False, False]


def hostile_replies(count: int) -> list[tuple[ReplyFormat, bytes]]:
    """Envelopes filled, cut, doubled, spliced and shuffled with code, marks, escapes and noise; the same every time."""
    dice = random.Random(3)
    scraps = [
        "```python\n", "```\n", "```",
        "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "            out += 0\n", "        out = 0\n",
        "import os; os.abort()\n", "    def total(self, rows, tax):\n", "def total():\n    pass\n",
        "        return 1\n", "\\\n", "'''", '"""', "f'{", "(" * 200, "lambda:" * 60, "\u202e", "\ufeff", "\x1b[2J",
        "<|im_end|>", "# type: ignore\n", "\t", " " * 40, "\u2028", "\u00e9", "\U0001d7d9", "\uff4f = 3\n", "if 1:\n",
        "@x\n", "async ", "yield\n", "global out\n", "nonlocal out\n", "del out\n", "out: int\n", "match x:\n",
        "else:\n", "return", "\x0c", "def other(x):\n", "*a, = b\n",
    ]  # fmt: skip
    good = [
        (ReplyFormat.SEARCH, "<<<<<<< SEARCH\n        out = 0\n=======\n        out = 7\n>>>>>>> REPLACE"),
        (ReplyFormat.FUNCTION, "```python\n    def total(self, rows, tax):\n        return 7\n```"),
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
        found = edit_of(way, raw, shown)
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


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_replies_take_the_file_s_newlines(newline: str) -> None:
    source = SOURCE.replace("\n", newline)
    reply = "<<<<<<< SEARCH\n        out = 0\n=======\n        out = 1\n        out += 1\n>>>>>>> REPLACE"
    result = after(ReplyFormat.SEARCH, reply, source)
    assert f"        out = 1{newline}        out += 1{newline}" in result
    assert result.count("\n") == source.count("\n") + 1
