"""Gate: text that reads differently to a person and to Python.

Bidi controls, invisible characters, look-alike names, encodings that turn comments into code, line ends that only some
programs see, code far right of the screen.

Looks at changed lines alone, and counts: what stood there may stay. Joiners and variation selectors between emoji or
letters of scripts that need them are let be. Not seen: look-alikes beyond Cyrillic, Greek and a few more letters.
"""

import io
import re
import tokenize
import unicodedata
from collections import Counter
from collections.abc import Iterator

from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput, Touched
from localagent.gate.core.rule import Rule, RuleExample, became, decide
from localagent.text.confusable_letters import misleads, mixes

_F = "def f(x):\n    return x\n"

BIDI = Rule(
    id="bidi-control",
    severity=Severity.HIGH,
    why="a bidirectional control shows the line in another order than Python reads it",
    remedy="take it out; write it as an escape (`\\u202e`) where a text needs it",
    match=(
        became(_F, "def f(x):\n    return x  # \u202e\u2066 } { \u2069\n"),
        became(_F, f"{_F}S = 'a\u061cb'\n"),
    ),
    not_match=(
        became(_F, f"{_F}S = '\u05e9\u05dc\u05d5\u05dd'\n"),
        became(_F, f"{_F}S = '\\u202e'\n"),
    ),
)
INVISIBLE = Rule(
    id="invisible-character",
    severity=Severity.HIGH,
    why="a character that nobody sees is read by Python or by a terminal",
    remedy="take it out; write it as an escape (`\\u200b`) where a text needs it",
    match=tuple(
        became(_F, f"{_F}S = 'a{c}b'\n")
        for c in (
            "\u200b",
            "\u2060",
            "\u00ad",
            "\u3164",
            "\ufeff",
            "\U000e0041",
            "\x1b",
            "\x08",
            "\x7f",
            "\ue000",
            "\ufe00",
        )
    ),
    not_match=(
        became(_F, f"{_F}S = '\u2764\ufe0f \U0001f469\u200d\U0001f4bb'\n"),
        became(_F, f"{_F}S = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'\n"),
        became("\ufeffx = 1\n", "\ufeffx = 2\n"),
        became("S = 'a\u200bb'\n", "S = 'a\u200bc'\n"),
    ),
)
HOMOGLYPH = Rule(
    id="homoglyph-name",
    severity=Severity.HIGH,
    why="a name that looks like another one is not it",
    remedy="write the name in the letters of one script",
    match=(
        became(_F, "def f(x):\n    \u0430dmin = x\n    return \u0430dmin\n"),
        became(_F, "def f(x):\n    \u0441\u043e\u0440\u0443 = x\n    return \u0441\u043e\u0440\u0443\n"),
        became(_F, "def f(x):\n    \u039fK = x\n    return \u039fK\n"),
    ),
    not_match=(
        became(_F, "def f(x):\n    gr\u00f6\u00dfe = x\n    return gr\u00f6\u00dfe\n"),
        became(_F, "def f(x):\n    \u0394 = 'admin'\n    return (x, \u0394)\n"),
        became(_F, "def f(x):\n    \u0438\u043c\u044f = x\n    return \u0438\u043c\u044f\n"),
        became(_F, "def f(x):\n    return x, '\u0410\u0434\u0440\u0435\u0441'  # \u0438\u043c\u044f\n"),
    ),
)
NFKC = Rule(
    id="nfkc-name",
    severity=Severity.HIGH,
    why="Python reads the name in another form than the one that is shown",
    remedy="write the name as Python reads it",
    match=(
        became(_F, "def f(x):\n    \uff59 = x\n    return y\n"),
        became(_F, "def f(x):\n    return x.\ufb01nd(1)\n"),
    ),
    not_match=(became(_F, f"{_F}S = '\uff45\uff56\uff41\uff4c'\n"),),
)
COOKIE = Rule(
    id="codec-cookie",
    severity=Severity.HIGH,
    why="in another encoding than UTF-8 what looks like a comment may be code",
    remedy="keep sources in UTF-8, without a cookie",
    match=tuple(
        became(_F, f"{head}{_F}")
        for head in (
            "# -*- coding: utf-7 -*-\n",
            "#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n",
            "#coding=rot13\n",
        )
    ),
    not_match=(
        became(_F, f"# -*- coding: utf-8 -*-\n{_F}"),
        became(f"# coding: latin-1\n{_F}", f"# coding: latin-1\nN = 1\n{_F}"),
        became(_F, f"{_F}# the coding: latin-1 is meant\n"),
    ),
)
LINE_BREAK = Rule(
    id="odd-line-break",
    severity=Severity.HIGH,
    why="a line ends here for some programs and not for others, so code can hide in a comment or text",
    remedy="end lines with LF or CR LF; write the character as an escape where a text needs it",
    match=tuple(
        became(_F, f"{_F}# note{c}X = 1\n") for c in ("\r", "\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029")
    ),
    not_match=(
        became("x = 1\r\ny = 2\r\n", "x = 1\r\ny = 3\r\n"),
        became("x = 1\n\x0c\ny = 2\n", "x = 1\n\x0c\ny = 3\n"),
    ),
)
FAR_RIGHT = Rule(
    id="code-far-right",
    severity=Severity.HIGH,
    why="code so far to the right is not seen by whoever reviews it",
    remedy="put it on a line of its own",
    match=(became(_F, "def f(x):\n    return x" + " " * 150 + "; g(x)\n"),),
    not_match=(became(_F, "def f(x):\n    return x" + " " * 60 + "# note\n"),),
)
NOT_UTF8 = Rule(
    id="not-utf-8",
    severity=Severity.HIGH,
    why="bytes that are no text read differently in every program",
    remedy="write the file in UTF-8",
    match=(RuleExample(path="docs/a.md", before="a\n", after="a\udcff\n"),),
    not_match=(RuleExample(path="docs/a.md", before="a\udcff\nb\n", after="a\udcff\nc\n"),),
)
RULES = (BIDI, INVISIBLE, HOMOGLYPH, NFKC, COOKIE, LINE_BREAK, FAR_RIGHT, NOT_UTF8)

_ODD = re.compile(rb"[^\t\n\r\x20-\x7e]|\r(?!\n)|[ \t]{100}")
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
_JOINERS = frozenset("\u200c\u200d\ufe0f\ufe0e")
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_FAR = re.compile(r"(?<![ \t])[ \t]{100,}+[^\r\n]")


class Trojan:
    """Refuses what hides from a reviewer."""

    name = "trojan"

    def __init__(self, _policy: Policy) -> None:
        pass

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed line holds more of what hides than it did."""
        found: list[Finding] = []
        for file in change.changes:
            for touched in change.touched[file.path]:
                if _ODD.search(touched.new):
                    found += _characters(file, touched)
            if file.path.is_python:
                found += _cookie(file)
                if any(not t.new.isascii() for t in change.touched[file.path]):
                    found += _mixed_script_names(file, change.touched[file.path])
                    found += _names(file, change.touched[file.path])
        return decide(self.name, found)


def _characters(file: FileChange, touched: Touched) -> Iterator[Finding]:
    text = touched.new.decode("utf-8", "surrogateescape")
    old = touched.old.decode("utf-8", "surrogateescape")
    spare = Counter(kind for kind, _, _ in _odd(old, file))
    told: set[Rule] = set()
    for kind, at, rule in _odd(text, file):
        spare[kind] -= 1
        if spare[kind] < 0 and rule not in told:
            told.add(rule)
            line = touched.line + text.count("\n", 0, at)
            yield rule.finding(file.path, line, f"newly introduced: {kind}")


def _odd(text: str, file: FileChange) -> Iterator[tuple[str, int, Rule]]:
    """(what, where, rule) of every odd character; a mark at a file's very start is none."""
    for at, c in enumerate(text):
        if " " <= c <= "~" or c in "\n\t":
            continue
        if (
            c == "\ufeff"
            and at == 0
            and file.after.startswith(b"\xef\xbb\xbf")
            and file.before[:3] in (b"", b"\xef\xbb\xbf")
        ):
            continue
        rule = _rule_of(c, text, at)
        if rule is not None:
            yield f"U+{ord(c):04X}", at, rule
    for hit in _FAR.finditer(text):
        yield "code far right", hit.end() - 1, FAR_RIGHT


def _rule_of(c: str, text: str, at: int) -> Rule | None:
    if c in _BIDI:
        return BIDI
    if c in _BREAKS:
        return None if c == "\r" and text[at + 1 : at + 2] == "\n" else LINE_BREAK
    category = unicodedata.category(c)
    if category == "Cs":
        return NOT_UTF8
    hidden = (
        category in ("Cf", "Cc", "Co", "Cn")
        or c in _BLANK_LETTERS
        or "\ufe00" <= c <= "\ufe0f"
        or "\U000e0100" <= c <= "\U000e01ef"
    )
    if not hidden or (c in _JOINERS and _joins(text[at - 1 : at], text[at + 1 : at + 2])):
        return None
    return INVISIBLE


def _joins(before: str, after: str) -> bool:
    """Whether a joiner stands where writing needs it: after an emoji, or between letters of a script that joins."""
    if not before:
        return False
    if unicodedata.category(before) in ("So", "Sk", "Sm") or before in "\ufe0f#*0123456789\u00a9\u00ae":
        return True
    letters = unicodedata.category(before)[0] in "LM" and bool(after) and unicodedata.category(after)[0] in "LM"
    return letters and not unicodedata.name(before, "").startswith(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN"))


def _head(data: bytes) -> list[bytes]:
    """The first two lines, by every line end that Python knows."""
    return re.split(rb"\r\n|\r|\n", data[:2000])[:2]


def _cookie(file: FileChange) -> Iterator[Finding]:
    after = _head(file.after)
    if not any(b"coding" in line for line in after):
        return
    had = [hit[1].lower() for line in _head(file.before) if (hit := _COOKIE.match(line))]
    for n, line in enumerate(after):
        hit = _COOKIE.match(line)
        if (
            hit
            and hit[1].lower() not in had
            and hit[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8", b"ascii")
        ):
            yield COOKIE.finding(file.path, n + 1, f"newly declared encoding {hit[1].decode('ascii', 'replace')}")
        if hit:
            return


def _names(file: FileChange, touched: list[Touched]) -> Iterator[Finding]:
    lines = {n for t in touched for n in range(t.line, t.line + t.new.count(b"\n") + 1)}
    had = {name for name, _ in _identifiers(file.before)}
    told: set[str] = set()
    for name, line in _identifiers(file.after):
        if line not in lines or name in had or name in told:
            continue
        told.add(name)
        if unicodedata.normalize("NFKC", name) != name:
            yield NFKC.finding(file.path, line, f"{name!a} is read as {unicodedata.normalize('NFKC', name)!a}")
        elif misleads(name):
            yield HOMOGLYPH.finding(file.path, line, f"{name!a} mixes scripts, or looks like Latin and is not")


def _mixed_script_names(file: FileChange, touched: list[Touched]) -> Iterator[Finding]:
    """Words of texts and comments that mix scripts, and signs that are drawn as others."""
    for t in touched:
        text, old = t.new.decode("utf-8", "replace"), t.old.decode("utf-8", "replace")
        for hit in re.finditer(r"[^\W\d_]+|[^\w\s\x00-\x7f]", text):
            word = hit[0]
            if word.isascii() or word in old:
                continue
            plain = unicodedata.normalize("NFKC", word)
            if mixes(word) or (
                len(word) == 1 == len(plain) and plain.isascii() and not plain.isalnum() and plain != " "
            ):
                yield HOMOGLYPH.finding(
                    file.path,
                    t.line + text.count("\n", 0, hit.start()),
                    f"{word!a} in a text is not what it looks like",
                )
                return


def _identifiers(source: bytes) -> list[tuple[str, int]]:
    """Names that are not ASCII, with their lines; where the text cannot be cut into tokens, every such word."""
    found: list[tuple[str, int]] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                found.append((token.string, token.start[0]))
    except (SyntaxError, tokenize.TokenError, ValueError, LookupError):  # LookupError: a codec that is not of text
        text = source.decode("utf-8", "replace")
        found = [
            (word, n)
            for n, line in enumerate(text.split("\n"), 1)
            for word in re.findall(r"[^\W\d]\w*", line)
            if not word.isascii()
        ]
    return found
