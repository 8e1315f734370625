"""Edits of texts that the failing comparison suggests: what the output says where the test wants another word."""

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import libcst as cst

from localagent.domain.outcome import Failure
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.text.visible_text import shortened

_PATTERN = re.compile(
    r"Expected regex: (?P<wanted>'.*'|\".*\")\s+Actual message: (?P<got>'.*'|\".*\")|"
    r"Regex: (?P<wanted_then>'.*'|\".*\")\s+Input: (?P<got_then>'.*'|\".*\")"
)
_PLACEHOLDER = re.compile(r"(%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%]|\{[^{}]*\})")
_ESCAPED = re.compile(r"\\([^\w\s]|\s)")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_DIFFERENCES = 4
_LONGEST = 2_000  # characters of an output that are compared
_MOST_WORDS = 200  # and blanks and marks, from the first on that differs
_MOST_SIDES = 4  # failures looked at
_SHORTEST = 2  # characters of a literal's piece: a shorter one is found everywhere
_ALIKE = 0.4  # of a piece must stay: a text written anew is what the test expects, not a repair
_GROWTH = 40


@operator("reported-text", prior=1.2)
def reported_text(ctx: OperatorContext) -> Iterator[Change]:
    """A part of a string becomes what the failing comparison expects there, if most of the string stays."""
    sides = [side for failure in ctx.failures[:_MOST_SIDES] for side in _sides(failure)]
    found = list(dict.fromkeys(tuple(_differences(got, wanted)) for got, wanted in dict.fromkeys(sides)))
    if not any(found):
        return
    for expr in ctx.exprs:
        for start, end in _pieces(ctx, expr.node):
            old = ctx.unit.slice(start, end)
            offers = {new for differences in found for new in _wanted(old, differences)}
            for new in sorted(offers):
                yield ctx.splice(expr, (start, end, new), note=f"{_short(old)} -> {_short(new)}")


def _sides(failure: Failure) -> Iterator[tuple[str, str]]:
    """Pairs of what was got and what was wanted; a comparison may be written either way round."""
    found = _PATTERN.search(failure.message)
    if found:
        got, wanted = found["got"] or found["got_then"], found["wanted"] or found["wanted_then"]
        yield _bare(got), _ESCAPED.sub(r"\1", _bare(wanted))
    left, right = _bare(failure.left), _bare(failure.right)
    if left and right and left != right:
        yield left, right
        yield right, left


def _bare(text: str) -> str:
    """What a text's repr stands for, other reprs as they are; cut."""
    try:
        value = ast.literal_eval(text) if text[:1] in "'\"" else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = text
    return (value if isinstance(value, str) else text)[:_LONGEST]


def _pieces(ctx: OperatorContext, node: cst.CSTNode) -> Iterator[tuple[int, int]]:
    """Byte spans of a text's parts between placeholders; only such whose spelling is what they say."""
    spans: list[tuple[int, int]] = []
    if isinstance(node, cst.SimpleString):
        if "b" in node.prefix.lower():
            return
        start, end = ctx.unit.outer(node)
        spans.append((start + len(node.prefix + node.quote), end - len(node.quote)))
    elif isinstance(node, cst.FormattedString):
        spans += [ctx.unit.outer(part) for part in node.parts if isinstance(part, cst.FormattedStringText)]
    for start, end in spans:
        text = ctx.unit.slice(start, end)
        if "\\" in text or "\n" in text:
            continue
        at = start
        for k, part in enumerate(_PLACEHOLDER.split(text)):
            stop = at + len(part.encode())
            if k % 2 == 0 and len(part.strip()) >= _SHORTEST:
                yield at, stop
            at = stop


def _wanted(old: str, differences: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A literal's piece with the words that differ replaced, one by one and all together, where most of it stays."""
    everything = old
    for gone, come in differences:
        new = _replaced(old, gone, come)
        everything = _replaced(everything, gone, come)
        if _fits(old, new):
            yield new
    if _fits(old, everything):
        yield everything


def _fits(old: str, new: str) -> bool:
    small = 0 < len(new) <= len(old) + _GROWTH and not set(new) & set("'\"\\\n\r{}%")
    return small and new != old and SequenceMatcher(None, old, new, autojunk=False).ratio() >= _ALIKE


def _replaced(text: str, gone: str, come: str) -> str:
    """A text with `gone`, as whole words, changed; the text itself where it has none, or several."""
    found = list(re.finditer(rf"(?<!\w)(?:{re.escape(gone)})(?!\w)" if gone[:1].isalnum() else re.escape(gone), text))
    return text[: found[0].start()] + come + text[found[0].end() :] if len(found) == 1 else text


def _differences(got: str, wanted: str) -> Iterator[tuple[str, str]]:
    """What differs, word by word; what is only in one of them together with its neighbour on either side.

    Of what follows the first difference some hundred words are compared: it takes time by the cube of them.
    """
    old, new = _WORDS.findall(got), _WORDS.findall(wanted)
    same = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    front = max(0, same - 1)
    old, new = old[front : same + _MOST_WORDS], new[front : same + _MOST_WORDS]
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in [code for code in opcodes if code[0] != "equal"][:_MOST_DIFFERENCES]:
        if tag == "replace":
            yield "".join(old[i1:i2]), "".join(new[j1:j2])
            continue
        if i1 and j1:
            yield "".join(old[i1 - 1 : i2]), "".join(new[j1 - 1 : j2])
        if i2 < len(old) and j2 < len(new):
            yield "".join(old[i1 : i2 + 1]), "".join(new[j1 : j2 + 1])


def _short(text: str) -> str:
    return repr(shortened(text, 30))
