"""Replies as a model that means harm, or is confused, would give them: each is an edit of what was shown, or refused.

Kind by kind, the same every time. Of an edit it is held that it changes the one file it was shown, there alone, to
something that compiles and says what the reply said; of a refusal that its reason is one short line without the reply's
own characters. Nothing else is raised. What an edit may do is for the gates, which see it next: the last tests show it.
"""

# ruff: noqa: E501 - replies as they are; the look-alike digits are the point

import ast
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.code.symbols import FactIndex
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.external_edits import Page
from localagent.gate.patch_gates import PatchGates
from localagent.llm.writing.reply_parser import LEADS, MAX_REPLY_BYTES, PromptView, ReplyFormat, edit_of
from localagent.policy.load import load_policy

M = RepoPath("pkg/shop.py")
SOURCE = '''\
"""A shop."""

import math


class Basket:
    def total(self, rows, tax):
        """The sum.

          What is indented here stays so.
        """
        out = 0
        text = """
<rows>
    %s
"""
        for row in rows:
            if row.price > 0:
                out += row.price
            out += 0
            out += 0
        return math.floor(out * tax), text % out


def other(x):
    return x
'''
HEAD, TAIL = SOURCE.index("    def total"), SOURCE.index("\n\n\ndef other")
FUNCTION = SOURCE[HEAD:TAIL]
LINES = FUNCTION.split("\n")
FIRST = SOURCE[:HEAD].count("\n") + 1
EACH = 140
LARGE = 40  # of those that take long to read
DANGEROUS = (
    "import os; os.system('id')", "__import__('os').system('id')", "import subprocess as s\ns.run('id')", "eval(out)",
    "exec('import socket')", "from ctypes import *", "import pickle\npickle.loads(out)", "open('/etc/passwd').read()",
    "import socket\nsocket.create_connection(('198.51.100.1', 80))", "import shutil\nshutil.rmtree('/')",
)  # fmt: skip
SPECIALS = (
    "<|im_start|>system\n", "<|im_end|>", "<|endoftext|>", "[INST]", "[/INST]", "<s>", "</s>", "<|fim_middle|>",
    "<fim_suffix>", "▁<MID>", "<|start_of_role|>tool<|end_of_role|>", "<tool_call>{}</tool_call>", "<|eot_id|>",
)  # fmt: skip

Reply = tuple[ReplyFormat, str | bytes]
Kind = Callable[[random.Random], Reply]


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def search(old: str, new: str) -> str:
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def whole(body: str, name: str = "total") -> str:
    return f"def {name}(self, rows, tax):\n{body}"


def put_in(dice: random.Random, code: str) -> Reply:
    """Code in one of the envelopes."""
    if dice.random() < 0.5:
        return ReplyFormat.SEARCH, search("        out = 0", "\n".join("        " + row for row in code.split("\n")))
    return ReplyFormat.FUNCTION, fenced(whole("\n".join("    " + row for row in code.split("\n"))))


def code_of(dice: random.Random) -> str:
    return dice.choice((f"out = {dice.randrange(99)}", "return 1", "if rows:\n    out = 1", "out += tax", "pass"))


def _fences(dice: random.Random) -> Reply:
    code = code_of(dice)
    return dice.choice(
        (
            (ReplyFormat.FUNCTION, f"```python\n{whole('    return 1')}"),
            (ReplyFormat.FUNCTION, f"```python\n{fenced(whole('    return 1'))}\n```"),
            (ReplyFormat.FUNCTION, f"```py\n{whole('    return 1')}\n```"),
            (ReplyFormat.FUNCTION, f"````python\n{whole('    return 1')}\n````"),
            (ReplyFormat.FUNCTION, f"~~~python\n{whole('    return 1')}\n~~~"),
            (ReplyFormat.FUNCTION, f"```python {code}```"),
            (ReplyFormat.SEARCH, fenced(search("        out = 0", "        out = 1"))),
            (ReplyFormat.SEARCH, "<<<<<<< SEARCH\n        out = 0\n=======\n        out = 1"),
            (ReplyFormat.SEARCH, "        out = 0\n=======\n        out = 1\n>>>>>>> REPLACE"),
        )
    )


def _several(dice: random.Random) -> Reply:
    return dice.choice(
        (
            (ReplyFormat.SEARCH, search("        out = 0", "        out = 1") + "\n" + search("x", "y")),
            (ReplyFormat.SEARCH, "<<<<<<< SEARCH\n        out = 0\n=======\n1\n=======\n2\n>>>>>>> REPLACE"),
            (ReplyFormat.FUNCTION, fenced(whole("    return 1")) + "\n" + fenced(whole("    return 2"))),
            (ReplyFormat.FUNCTION, fenced(whole("    return 1") + "\n" + whole("    return 2"))),
        )
    )


def _matches(dice: random.Random) -> Reply:
    old = dice.choice(
        (
            "            out += 0", "out = 0", "        out  = 0", "        out = 0 ", "\t out = 0", "", "   ", "import math",
            "def other(x):", "    return x", "        OUT = 0", "        out = 0\n\n        text", ".*", "\\n",
        )
    )  # fmt: skip
    return ReplyFormat.SEARCH, search(old, "        out = 1")


def _giant(dice: random.Random) -> Reply:
    size = dice.choice((MAX_REPLY_BYTES + 1, 1 << 20, 4 << 20))
    filler = dice.choice(("x", "é", "out = 1\n", "(", "```", " ", "\n"))
    way, text = put_in(dice, code_of(dice))
    assert isinstance(text, str)
    return way, text + filler * (size // len(filler) + 1)


def _full(dice: random.Random) -> Reply:
    """As long as a reply may be, of many or long lines."""
    room = MAX_REPLY_BYTES - 400
    body = dice.choice(
        ("out = 1\n" * (room // 20), f"out = '{'a' * room}'", f"out = {'9' * room}", f"out = [{'1,' * (room // 2)}]")
    )
    return put_in(dice, body.rstrip("\n"))


def _open_ended(dice: random.Random) -> Reply:
    """What has many beginnings and no end."""
    bit = dice.choice(
        ("=======\n", "x = (\n", "x = [1,\n", "(\n", "\n```", 'x = """\n', ">>>>>>> REPLACE\n", "def f(\n")
    )
    text = bit * (MAX_REPLY_BYTES // len(bit) - 8)
    way = dice.choice(tuple(ReplyFormat))
    return way, LEADS[way] + text


def _controls(dice: random.Random) -> Reply:
    char = chr(dice.choice((*range(1, 9), 11, 12, *range(14, 32), 127, *range(0x80, 0xA0), 0xFEFF, 0x2028, 0x85)))
    return put_in(dice, dice.choice((f"out = 1{char}", f"{char}out = 1", f"out = '{char}'", f"out = 1 # {char}")))


def _nulls(dice: random.Random) -> Reply:
    way, text = put_in(dice, code_of(dice))
    assert isinstance(text, str)
    at = dice.randrange(len(text) + 1)
    return way, text[:at] + dice.choice(("\0", "\r\r")) + text[at:]


def _bidi(dice: random.Random) -> Reply:
    mark = dice.choice("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e\u200f\u200b\u2060")
    return put_in(dice, dice.choice((f"out = '{mark} # '", f"out = 1 # {mark}", f"o{mark}ut = 1", f"{mark}out = 1")))


def _specials(dice: random.Random) -> Reply:
    word = dice.choice(SPECIALS)
    way, text = put_in(dice, dice.choice((f"out = {word!r}", f"out = 1 # {word.strip()}", f"out = 1{word}")))
    return way, dice.choice((text, word + str(text), str(text) + word))


def _deep(dice: random.Random) -> Reply:
    n = dice.choice((90, 199, 400, 950, 1500, 3000, 5000))
    code = dice.choice(
        (
            "out = " + "(" * n + "1" + ")" * n, "out = " + "[" * n + "]" * n, "out = " + "+".join(["1"] * n),
            "out = " + "-" * n + "1", "out = rows" + ".a" * n, "out = rows" + "[0]" * n, "out = rows" + "()" * n,
            "out = " + "not " * n + "1", "out = " + "lambda:" * n + "1", "out = " + "1 if 1 else " * n + "1",
            "if 1: pass\n" + "elif 1: pass\n" * n + "else: pass", "out = f'" + "{f'" * n, "out = " + "{1:" * n + "1" + "}" * n,
            "\n".join(" " * k + "if 1:" for k in range(min(n, 150))) + "\n" + " " * 150 + "pass",
            "out = " + "a @ " * n + "a", "out = " + "await " * n + "a", "match rows:\n    case " + "[" * n + "]" * n + ": pass",
        )
    )  # fmt: skip
    return put_in(dice, code)


def _indentation(dice: random.Random) -> Reply:
    """The same function, flush, deeper, with tabs, or at a depth of its own."""
    body = dice.choice(
        ("return rows", "out = 1\nif out:\n    out = 2\nreturn out", "for r in rows:\n    if r:\n        return r")
    )
    step = dice.choice(("  ", "    ", "\t", "        ", "   "))
    rows = whole("\n".join(step + row.replace("    ", step) for row in body.split("\n"))).split("\n")
    lead = dice.choice(("", "    ", "        ", "\t", " "))
    flush_first = dice.random() < 0.3
    return ReplyFormat.FUNCTION, fenced(
        "\n".join(("" if k == 0 and flush_first else lead) + row for k, row in enumerate(rows))
    )


def _strings(dice: random.Random) -> Reply:
    """Strings of several lines, whose inside must arrive as it was written."""
    inside = "\n".join(dice.choice(("a", "    b", "", "  ", "\tc", "# d", "        e")) for _ in range(4))
    quote = dice.choice(('"""', "'''"))
    form = dice.choice(("", "r", "f", "b"))
    rows = [whole(f"    out = {form}{quote}{inside}{quote}"), "    return out"]
    lead = dice.choice(("", "    "))
    rows[0] = lead + rows[0].replace("\n    out", f"\n{lead}    out")
    return ReplyFormat.FUNCTION, fenced("\n".join([rows[0], lead + rows[1]]))


def _crlf(dice: random.Random) -> Reply:
    way, text = put_in(dice, code_of(dice))
    assert isinstance(text, str)
    return way, text.replace("\n", dice.choice(("\r\n", "\r\n", "\n\r", "\r", "\r\r\n")))


def _tabs(dice: random.Random) -> Reply:
    code = dice.choice(
        ("if rows:\n\tout = 1", "\tout = 1", "out\t=\t1", "if rows:\n\tout = 1\n        out = 2", "\t\tpass")
    )
    return put_in(dice, code)


def _dangerous(dice: random.Random) -> Reply:
    return put_in(dice, dice.choice(DANGEROUS))


def _whole_file(dice: random.Random) -> Reply:
    text = SOURCE.rstrip("\n").replace("out = 0", "out = 1")
    return dice.choice(
        (
            (ReplyFormat.FUNCTION, fenced(text)),
            (ReplyFormat.SEARCH, search(SOURCE.rstrip("\n"), text)),
        )
    )


def _paths(dice: random.Random) -> Reply:
    path = dice.choice(
        ("../../etc/passwd", "/etc/passwd", "pkg/other.py", "pkg/../shop.py", "C:\\x.py", "~/.ssh/id_rsa", "", "a\n..")
    )
    return dice.choice(
        (
            (ReplyFormat.SEARCH, f"{path}\n" + search("        out = 0", "        out = 1")),
            (ReplyFormat.SEARCH, f"<<<<<<< SEARCH {path}\n        out = 0\n=======\n        out = 1\n>>>>>>> REPLACE"),
            (ReplyFormat.SEARCH, f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b"),
            (ReplyFormat.FUNCTION, f"```python\n# {path}\n{whole('    return 1', 'other')}\n```"),
            (ReplyFormat.FUNCTION, f"# {path}\n{fenced(whole('    return 1'))}"),
        )
    )


def _bytes(dice: random.Random) -> Reply:
    way, text = put_in(dice, code_of(dice))
    assert isinstance(text, str)
    raw = bytearray(text.encode())
    for _ in range(dice.choice((1, 1, 4))):
        at = dice.randrange(len(raw) + 1)
        raw[at:at] = dice.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82"))
    return way, bytes(raw)


def _code(dice: random.Random) -> Reply:
    """Statements that only fit elsewhere, or that Python takes and forgets."""
    return put_in(
        dice,
        dice.choice(
            (
                "yield 1", "await rows", "nonlocal out", "global out", "break", "continue", "return", "del out", "*out = rows",
                "out: int", "class total: pass", "async def total(): pass", "from __future__ import braces", "import *",
                "from x import *", "raise", "assert 0", "...", "out = out", "# nothing", "'''text'''", ";", "out = 1;",
                "@total", "else:", "except:", "finally: pass", "case 1:", "if rows:", "for row in rows:", "def f(): return f",
                "print 1", "exec 'x'", "out = 0777", "out = 1_", "out = `1`", "out <> 1", "\\", "out = \\\n1", "type X = int",
            )
        ),
    )  # fmt: skip


KINDS: dict[str, tuple[Kind, bool]] = {  # how each is made, and whether any of them may be an edit
    "fences": (_fences, False),
    "several edits": (_several, False),
    "matches": (_matches, False),
    "giant": (_giant, False),
    "full": (_full, True),
    "open-ended": (_open_ended, False),
    "controls": (_controls, True),
    "nulls": (_nulls, False),
    "bidi": (_bidi, True),
    "special tokens": (_specials, True),
    "deep": (_deep, True),
    "indentation": (_indentation, True),
    "strings": (_strings, True),
    "crlf": (_crlf, True),
    "tabs": (_tabs, True),
    "dangerous": (_dangerous, True),
    "whole file": (_whole_file, False),
    "paths": (_paths, False),
    "bytes": (_bytes, False),
    "code": (_code, True),
}


def view(source: str = SOURCE) -> PromptView:
    """The function as it is shown; nothing was tried yet."""
    page = Page(M, {M: source.encode()}, FactIndex())
    lines = page.lines(12)
    assert lines is not None
    return PromptView(page=page, lines=lines, function=page.function(12))


def replies(kind: str) -> list[Reply]:
    """The same every time."""
    dice = random.Random(kind)
    return [KINDS[kind][0](dice) for _ in range(LARGE if kind == "full" else EACH)]


def judged(found: Edit | str, source: str = SOURCE) -> str:
    """What is held of every answer; the file as it is then."""
    if isinstance(found, str):
        assert found
        assert found.isascii()
        assert found.isprintable()
        assert len(found) < 200
        return source
    assert found.path == M
    before = source.encode()
    after = found.apply(before)
    head = source.index("    def total")
    assert after != before
    assert after.startswith(source[:head].encode())
    assert after.endswith(source[source.index("def other") :].encode())
    compile(after, "shop.py", "exec", dont_inherit=True)
    return after.decode()


def function_in(text: str) -> ast.stmt:
    """The method of the edited file."""
    holder = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    return holder.body[0]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_reply_of_a_kind_is_an_edit_or_refused(kind: str) -> None:
    told, shown = Counter[str](), view()
    for way, reply in replies(kind):
        shown.page._seen.clear()  # each as if it were the first
        raw = reply if isinstance(reply, bytes) else reply.encode("utf-8", "surrogatepass")
        found = edit_of(way, raw, shown)
        after = judged(found)
        told[found if isinstance(found, str) else "an edit"] += 1
        if isinstance(found, Edit) and way is ReplyFormat.FUNCTION and b"\r" not in raw:
            said = raw.decode().removeprefix("```python\n").rpartition("```")[0]
            flush = "if 1:\n" + said if said[:1].isspace() else said
            try:
                tree = ast.parse(flush).body[0]
            except SyntaxError:
                continue  # its first line had no indentation
            wanted = tree.body[0] if isinstance(tree, ast.If) else tree
            assert ast.dump(function_in(after)) == ast.dump(wanted)
    assert KINDS[kind][1] == bool(told["an edit"]), told
    assert any(why != "an edit" for why in told) or kind in ("strings", "indentation"), told


def test_there_are_two_thousand_of_them() -> None:
    assert sum(len(replies(kind)) for kind in KINDS) >= 2000


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_strings_of_several_lines_arrive_as_they_were_written(newline: str) -> None:
    source = SOURCE.replace("\n", newline)
    for lead in ("", "    ", "\t"):
        rows = ["def total(self, rows, tax):", '    """The sum.', '    text = """', "    return text"]
        insides = ['\n  two\n    """', "", '\n<rows>\n        %s\n"""', ""]
        rows = [rows[0], rows[1] + insides[0], rows[2] + insides[2], rows[3]]
        said = "\n".join(lead + row for row in rows)
        found = edit_of(ReplyFormat.FUNCTION, fenced(said).encode(), view(source))
        assert isinstance(found, Edit), found
        method = function_in(found.apply(source.encode()).decode())
        assert [n.value for n in ast.walk(method) if isinstance(n, ast.Constant)] == [
            "The sum.\n  two\n    ",
            "\n<rows>\n        %s\n",
        ]


@pytest.fixture(scope="module")
def gates() -> PatchGates:
    return PatchGates(load_policy(Path(__file__).parents[2] / "policies" / "default.toml"))


def rules(gates: PatchGates, after: bytes) -> set[str]:
    entry = TreeChange(
        path=M, source=M, kind=ChangeKind.MODIFIED, before=SOURCE.encode(), after=after,
        before_mode=FileMode.REGULAR, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    return {finding.rule for decision in gates.review((entry,), everything=True) for finding in decision.findings}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", ["dangerous", "bidi"])
def test_what_is_an_edit_and_means_harm_is_found_by_the_gates(kind: str, gates: PatchGates) -> None:
    seen = 0
    for way, reply in replies(kind)[:40]:
        assert isinstance(reply, str)
        found = edit_of(way, reply.encode(), view())
        if isinstance(found, Edit):
            seen += 1
            assert rules(gates, found.apply(SOURCE.encode())), reply
    assert seen
