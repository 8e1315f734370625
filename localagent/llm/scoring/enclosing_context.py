"""What stands around a function that is shown by itself: the head of its class, signatures of what it calls.

Of the same file only, found by spelling: `name(...)` is the module's function or class of that name, `self.name(...)` a
method of the same class. Repository text, so data: whoever shows it fences it. Equal inputs give equal text.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, Function, first_line, lines_of

_PARSE_LIMIT_BYTES = 1 << 18
_SIGNATURE_BYTES = 200
_ROW_END = re.compile(r"\r\n|\r|\n")  # where Python counts a line


def signatures(source: bytes, lines: range, room_bytes: int) -> str:
    """One line each, the class first, then in the order of the calls; whole lines, at most so many bytes."""
    if len(source) > _PARSE_LIMIT_BYTES or room_bytes <= 0:
        return ""
    tree = parse_or_none(source)
    if tree is None:
        return ""
    rows = _ROW_END.split(source.decode("utf-8", "replace"))
    out: list[str] = []
    for node in dict.fromkeys(_around(tree, lines)):
        head = _head(rows, node)
        if node.lineno in lines or len(head.encode("utf-8", "replace")) > _SIGNATURE_BYTES:
            continue
        room_bytes -= len(head.encode("utf-8", "replace")) + 1
        if room_bytes < 0:
            break
        out.append(head)
    return "\n".join(out)


def _around(tree: ast.Module, lines: range) -> Iterator[Definition]:
    """The class of what is shown, and definitions of what that calls."""
    named = {node.name: node for node in tree.body if isinstance(node, Definition)}
    holding = next((node for node in tree.body if isinstance(node, ast.ClassDef) and _holds(node, lines)), None)
    methods = {node.name: node for node in holding.body if isinstance(node, Function)} if holding else {}
    if holding is not None:
        yield holding
    shown = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno in lines]
    for call in sorted(shown, key=lambda node: (node.lineno, node.col_offset)):
        func = call.func
        if isinstance(func, ast.Name) and func.id in named:
            found = named[func.id]
            yield found
            made = found.body if isinstance(found, ast.ClassDef) else []
            yield from (node for node in made if isinstance(node, Function) and node.name == "__init__")
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            yield from [methods[func.attr]] if func.attr in methods else []


def _holds(node: ast.ClassDef, lines: range) -> bool:
    return lines[0] in lines_of(node) and lines[-1] in lines_of(node)


def _head(rows: list[str], node: Definition) -> str:
    """From `def` or `class` to the colon, on one line, indented as it was."""
    text = rows[node.lineno - 1 : max(node.lineno, first_line(node.body[0]) - 1)]
    indent = text[0][: len(text[0]) - len(text[0].lstrip())]
    return indent + " ".join(" ".join(text).split())
