"""A file cut into the pieces that a search returns: functions, heads of classes, the rest of a module, windows of text.

Pure, and deterministic in path and bytes. Python's strings and comments are told from code by one regular expression
over the source, so that files which do not parse are still searchable; f-strings that nest their own quotes may put a
word into the wrong field. Not promised: chunks of other languages than Python; they are windows.
"""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from localagent.code.source_text import read_source
from localagent.code.spans import Definition, all_blocks, first_line, head_end, last_line

WINDOW_LINES = 60
OVERLAP_LINES = 10
MAX_LINE_CHARS = 2_000
MAX_CHUNKS = 5_000
PYTHON = (".py", ".pyi", ".pyw")
CONFIGURATION = frozenset((".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".env", ".conf", ".properties"))
_TOKEN = re.compile(
    r"(?P<string>\b[rRbBuUfF]{0,2}(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?)"
    r"|(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?))"
    r"|(?P<comment>\#[^\n]*)|(?P<code>[^\W\d]\w*)",
    re.DOTALL,
)


class ChunkKind(StrEnum):
    """What a chunk is."""

    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"  # what stands in no function or class
    CONFIGURATION = "configuration"
    TEXT = "text"


@dataclass(kw_only=True, slots=True)
class ChunkText:
    """The words of a chunk by field; each is plain text, not yet terms."""

    name: str = ""
    docs: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Lines [first, last] of a file, from 1. `name` is the qualified name, `signature` the head on one line."""

    kind: ChunkKind
    first_line: int
    last_line: int
    name: str = ""
    signature: str = ""
    summary: str = ""
    text: ChunkText = field(default_factory=ChunkText)


def chunks_of(path: str, raw: bytes, tree: ast.Module | None = None) -> list[Chunk]:
    """The chunks of a text file, in the order of their first lines; at most MAX_CHUNKS. `tree`: what Python parsed."""
    source = read_source(raw) if path.endswith(PYTHON) else None
    if source is not None:
        text = source.utf8.decode("utf-8")
        found = python_chunks(text, tree) if tree is not None else list(_windows(text, python=True))
    else:
        text = raw.decode("utf-8", "replace")
        whole = PurePosixPath(path).suffix.lower() in CONFIGURATION
        found = list(_windows(text, python=False, kind=ChunkKind.CONFIGURATION if whole else ChunkKind.TEXT))
    return found[:MAX_CHUNKS]


def python_chunks(text: str, tree: ast.Module) -> list[Chunk]:
    """The functions and classes of a module, each without what is nested in it, and the rest of the module."""
    lines = text.split("\n")
    owner = [0] * (len(lines) + 2)
    made = [Chunk(kind=ChunkKind.MODULE, first_line=1, last_line=max(1, len(lines)), summary=_summary(tree))]
    doc_lines = {_doc_line(tree)}
    for node, name in _definitions(tree):
        first, last = first_line(node), last_line(node)
        owner[first : last + 1] = [len(made)] * (last + 1 - first)
        kind = ChunkKind.CLASS if isinstance(node, ast.ClassDef) else ChunkKind.FUNCTION
        head = _head(lines, node)
        made.append(
            Chunk(
                kind=kind, first_line=first, last_line=last, name=name, signature=head, summary=_summary(node),
                text=ChunkText(name=name),
            )
        )  # fmt: skip
        doc_lines.add(_doc_line(node))
    fill(made, owner, text, _TOKEN, doc_lines)
    return in_order(made)


def in_order(made: list[Chunk]) -> list[Chunk]:
    """Chunks of a file in their order; the first, the rest of the module, is left out where it says nothing."""
    module = made[0]
    if not (module.text.docs or module.text.strings or module.text.code):
        made = made[1:]
    return sorted(made, key=lambda c: (c.first_line, -c.last_line))


def _definitions(tree: ast.Module) -> Iterator[tuple[Definition, str]]:
    """Every function and class with its qualified name, outer ones before those inside; no recursion."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        if isinstance(node, Definition):
            name = prefix + node.name
            yield node, name
            prefix = name + "."
        waiting += [(child, prefix) for block in reversed(list(all_blocks(node))) for child in reversed(block)]


def _head(lines: list[str], node: Definition) -> str:
    """`def f(a, b=1) -> int` or `class A(B)` on one line."""
    end = min(head_end(node), node.lineno + 30)
    text = " ".join(line.strip() for line in lines[node.lineno - 1 : end])
    arguments = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}({', '.join(map(ast.unparse, arguments))})" if arguments else f"class {node.name}"
    start = text.partition("(")[0]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{start}({ast.unparse(node.args)}){returns}"


def _doc_line(node: ast.Module | Definition) -> int:
    """The line on which a docstring begins; 0 where there is none."""
    first = node.body[0] if node.body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first.lineno if is_text and first is not None else 0


def _summary(node: ast.Module | Definition) -> str:
    """The first line of a docstring."""
    return (ast.get_docstring(node, clean=True) or "").strip().partition("\n")[0][:300] if _doc_line(node) else ""


def fill(
    made: list[Chunk], owner: list[int], text: str, tokens: re.Pattern[str], doc_lines: Collection[int] = ()
) -> None:
    """Put every token of the source into the field of the chunk that owns its line.

    `tokens` has the groups `string`, `comment` and `code`; strings that begin on one of `doc_lines` are documentation.
    """
    line, at = 1, 0
    for token in tokens.finditer(text):
        line += text.count("\n", at, token.start())
        at = token.start()
        into = made[owner[line]].text
        kind, word = token.lastgroup, token.group()
        if kind == "code":
            into.code.append(word)
        elif kind == "comment" or line in doc_lines:
            into.docs.append(word)
        else:
            into.strings.append(word)


def _windows(text: str, *, python: bool, kind: ChunkKind = ChunkKind.TEXT) -> Iterator[Chunk]:
    """Overlapping windows; a file of configuration is one."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    size = len(lines) if kind is ChunkKind.CONFIGURATION else WINDOW_LINES
    start = 0
    while start < len(lines):
        rows = lines[start : start + size]
        cut = [row[:MAX_LINE_CHARS] for row in rows]
        chunk = Chunk(kind=kind, first_line=start + 1, last_line=start + len(rows), summary=_first_heading(cut))
        if python:
            fill([chunk], [0] * (len(cut) + 2), "\n".join(cut), _TOKEN)
        else:
            chunk.text.docs.extend(cut)
        yield chunk
        if start + size >= len(lines):
            return
        start += size - OVERLAP_LINES


def _first_heading(rows: list[str]) -> str:
    """The first line of a window that says something."""
    return next((row.strip().lstrip("#").strip()[:120] for row in rows if any(c.isalpha() for c in row)), "")
