"""A source file cut into units: the smallest stretches of whole lines that parse by themselves.

A unit is an outermost function, a method, or a statement outside functions. Reviewing one candidate then costs the
parse of a function, not of a file. Knows nothing of what other files bind, and does not follow star imports.
"""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from localagent.code.source_text import line_starts
from localagent.code.spans import Definition, first_line, last_line
from localagent.text.int_digit_limit import WHY, unwritable

_PYTHONS_OWN_LIMITS = ("too many nested parentheses", "too many levels of indentation")
_QUIET = Lock()
_MOST_KEPT = 1024
DEEPEST = 100
"""Levels of a syntax tree that gates read. People write 30; a walk that calls itself takes a few frames a level."""
_OUTSIDE = (ast.ClassDef, ast.If, ast.Try, ast.With)
_INSIDE = (
    *_OUTSIDE, ast.TryStar, ast.For, ast.AsyncFor, ast.While, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip


class DoesNotParse(Exception):  # noqa: N818 - an answer about the text, not an error of ours
    """Text that is not a sequence of whole Python statements. `line` counts within the text."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class TooDeep(DoesNotParse):
    """A tree of more levels than gates read: Python's parser knows far deeper ones than what walks its trees."""


def parse(text: str) -> ast.Module:
    """The syntax tree of `text`. DoesNotParse if there is none, one that cannot be written down, or a TooDeep one."""
    return _parsed(text)[0]


def _parsed(text: str) -> tuple[ast.Module, list[ast.AST]]:
    """The syntax tree of `text`, and its nodes as `walk` lists them."""
    tree = _read(text)
    nodes, levels = _levels(tree)
    if levels > DEEPEST:
        raise TooDeep(f"nests deeper than the {DEEPEST} levels that are read", _deepest_line(nodes))
    return tree, nodes


def _deepest_line(nodes: list[ast.AST]) -> int:
    return next((int(node.lineno) for node in reversed(nodes) if hasattr(node, "lineno")), 1)


def _read(text: str) -> ast.Module:
    if unwritable(text):
        raise DoesNotParse(WHY)
    try:
        with _QUIET, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        kind = TooDeep if error.msg in _PYTHONS_OWN_LIMITS else DoesNotParse
        raise kind(error.msg or "invalid syntax", error.lineno or 1) from error
    except (RecursionError, MemoryError) as error:
        raise TooDeep("nests deeper than Python reads") from error
    except ValueError as error:
        raise DoesNotParse(f"cannot be parsed: {error or type(error).__name__}") from error


def _kinds(*above: type[ast.AST]) -> Iterator[type[ast.AST]]:
    for kind in above:
        yield kind
        yield from _kinds(*kind.__subclasses__())


OPERATORS = frozenset(_kinds(ast.operator, ast.cmpop, ast.boolop, ast.unaryop))
_WORDS = {"ctx", "id", "attr", "arg", "kind", "type_comment", "conversion", "level", "module", "asname", "is_async"}
_FIELDS = {kind: tuple(name for name in kind._fields if name not in _WORDS) for kind in _kinds(ast.AST)}


def walk(tree: ast.AST) -> list[ast.AST]:
    """Every node, parents before children; contexts (load, store) are left out, being many and saying nothing alone."""
    return _levels(tree)[0]


def _levels(tree: ast.AST) -> tuple[list[ast.AST], int]:
    """What `walk` lists, and how many levels deep the tree is; takes no stack, however deep."""
    found, start, levels = [tree], 0, 0
    while start < len(found):
        level, start, levels = found[start:], len(found), levels + 1
        for node in level:
            if type(node) in OPERATORS:
                continue
            for name in _FIELDS.get(type(node), node._fields):
                value: Any = getattr(node, name, None)
                if type(value) in _FIELDS:
                    found.append(value)
                elif type(value) is list:
                    found += [item for item in value if type(item) in _FIELDS]
    return found, levels


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeUnit:
    """Whole lines [start, end) in bytes of the file, from `line`. `children` are units inside, in order."""

    start: int
    end: int
    line: int
    class_name: str | None
    children: tuple["CodeUnit", ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class UnitSource:
    """Text of one unit, parsed as if it stood at the top. `line` is its first line in the file."""

    text: str
    tree: ast.Module
    line: int
    wrapped: int
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree; listed once."""
        if "nodes" not in self.memo:
            self.memo["nodes"] = walk(self.tree)
        kept: list[ast.AST] = self.memo["nodes"]
        return kept

    def line_of(self, node: ast.AST) -> int:
        """The line of a node in the file."""
        return self.line + int(getattr(node, "lineno", 1)) - 1 - self.wrapped

    def same_depth(self, other: "UnitSource") -> bool:
        """True if both are statements of one block, indented alike: then one can stand in the other's place."""
        mine, its = (text[: len(text) - len(text.lstrip(" \t\f"))] for text in (self.text, other.text))
        return mine == its and (not self.wrapped or len(other.tree.body) == 1)


class SourceFile:
    """One file as it stood before: encoding, units, and its import and assignment statements at module level."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.encoding = _encoding(source)
        self.memo: dict[str, Any] = {}
        self._snippets: dict[tuple[int, int], UnitSource] = {}
        self._inner: dict[tuple[int, int], tuple[CodeUnit, ...]] = {}
        self._lines: _Lines | None = None
        self.units: tuple[CodeUnit, ...] = ()
        self.bindings: tuple[ast.stmt, ...] = ()
        self.parses = True
        self.too_deep = False
        try:
            tree = parse(self.decode(source))
        except DoesNotParse as answer:
            self.parses = False
            self.too_deep = isinstance(answer, TooDeep)
            return
        self._lines = _Lines(source, _OUTSIDE, 0)
        self.units = tuple(_units(tree.body, self._lines, None))
        self.bindings = tuple(_bindings(tree.body))

    def decode(self, data: bytes) -> str:
        """Bytes of this file as text. DoesNotParse if they are not in the file's encoding."""
        if not self.encoding:
            raise DoesNotParse("the file's encoding is unknown")
        try:
            return data.decode(self.encoding).removeprefix("\ufeff")
        except UnicodeError as error:
            raise DoesNotParse(f"not {self.encoding}") from error

    def around(self, start: int, end: int) -> CodeUnit | None:
        """The smallest unit, or run of neighbours, that holds [start, end). None: nothing smaller than the file."""
        return _around(self.units, start, end)

    def inside(self, unit: CodeUnit, start: int, end: int) -> CodeUnit:
        """The smallest statement, or run of them, within a unit that holds [start, end)."""
        key = (unit.start, unit.end)
        if key not in self._inner:
            if len(self._inner) >= _MOST_KEPT:
                self._inner.clear()
            snippet = self.snippet_before(unit)
            lines = _Lines(self.source, _INSIDE, unit.line - 1 - snippet.wrapped, self._lines)
            body = snippet.tree.body[0].body if snippet.wrapped else snippet.tree.body  # type: ignore[attr-defined]
            self._inner[key] = tuple(_units(body, lines, unit.class_name))
        return _around(self._inner[key], start, end) or unit

    def snippet_before(self, unit: CodeUnit) -> UnitSource:
        """The unit as it stood; kept, since many candidates change the same unit."""
        key = (unit.start, unit.end)
        if key not in self._snippets:
            if len(self._snippets) >= _MOST_KEPT:
                self._snippets.clear()
            self._snippets[key] = self.snippet(self.source[unit.start : unit.end], unit)
        return self._snippets[key]

    def snippet(self, data: bytes, unit: CodeUnit) -> UnitSource:
        """`data` parsed in the place of `unit`. DoesNotParse if it is not whole statements at that depth."""
        text = self.decode(data)
        if text[:1] in (" ", "\t", "\f"):
            head = f"class {unit.class_name or '_'}:\n"
            tree, nodes = _parsed(head + text)
            return UnitSource(text=text, tree=tree, line=unit.line, wrapped=1, memo={"nodes": nodes})
        tree, nodes = _parsed(text)
        return UnitSource(text=text, tree=tree, line=unit.line, wrapped=0, memo={"nodes": nodes})


def decode_source(source: bytes) -> str:
    """A whole source as text, by its cookie or mark. DoesNotParse if it is not in that encoding."""
    try:
        return source.decode(_encoding(source) or "utf-8").removeprefix("\ufeff")
    except UnicodeError as error:
        raise DoesNotParse("not in the encoding that it names") from error


def _encoding(source: bytes) -> str:
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(source[:4096]).readline)
        "a".encode(name)  # LookupError for codecs that are not of text, such as rot13
        return "utf-8" if name == "utf-8-sig" else name
    except (SyntaxError, LookupError, UnicodeError):
        return ""


class _Lines:
    """Where the lines of a file start, which statements are opened up, and how far lines of a tree are off."""

    def __init__(self, source: bytes, opened: tuple[type, ...], shift: int, same: "_Lines | None" = None) -> None:
        self.source = source
        self.opened = opened
        self.shift = shift
        self.starts: tuple[int, ...] = same.starts if same else (*line_starts(source), len(source))

    def start(self, line: int) -> int:
        """Byte offset of a line of the tree."""
        return self.starts[min(max(line - 1 + self.shift, 0), len(self.starts) - 1)]

    def stands_alone(self, node: ast.stmt) -> bool:
        """True if a statement begins its own line and is not the `if` of an `elif`."""
        start = self.start(first_line(node))
        before = self.source[start : start + node.col_offset]
        return not before.strip() and not self.source.startswith(b"elif", start + len(before))


def _around(among: tuple[CodeUnit, ...], start: int, end: int) -> CodeUnit | None:
    found: CodeUnit | None = None
    while among:
        first = next((i for i, u in enumerate(among) if u.end >= start), None)
        last = next((i for i in range(len(among) - 1, -1, -1) if among[i].start <= end), None)
        if first is None or last is None:
            break
        low, high = among[min(first, last)], among[max(first, last)]
        if low.start > start or high.end < end:
            break
        if low is not high:
            return CodeUnit(start=low.start, end=high.end, line=low.line, class_name=low.class_name)
        found, among = low, low.children
    return found


def _blocks(node: ast.stmt, opened: tuple[type, ...]) -> Iterator[list[ast.stmt]]:
    if isinstance(node, opened):
        yield getattr(node, "body", [])
        yield getattr(node, "orelse", [])
        for handler in getattr(node, "handlers", []):
            yield handler.body
        yield getattr(node, "finalbody", [])


def _units(body: list[ast.stmt], lines: _Lines, class_name: str | None) -> Iterator[CodeUnit]:
    """Units of one block; statements that share a line are one unit, an `elif` gives way to its blocks."""
    if len(body) == 1 and not lines.stands_alone(body[0]):
        for block in _blocks(body[0], lines.opened) if isinstance(body[0], ast.If) else ():
            yield from _units(block, lines, class_name) if block else ()
        return
    run: list[ast.stmt] = []
    for node in body:
        if run and first_line(node) > last_line(run[-1]):
            yield _unit(run, lines, class_name)
            run = []
        run.append(node)
    if run and lines.stands_alone(run[0]):
        yield _unit(run, lines, class_name)


def _unit(run: list[ast.stmt], lines: _Lines, class_name: str | None) -> CodeUnit:
    first, last = first_line(run[0]), last_line(run[-1])
    inner = run[0].name if isinstance(run[0], ast.ClassDef) else class_name
    blocks = _blocks(run[0], lines.opened) if len(run) == 1 else ()
    return CodeUnit(
        start=lines.start(first),
        end=lines.start(last + 1),
        line=first + lines.shift,
        class_name=class_name,
        children=tuple(unit for block in blocks if block for unit in _units(block, lines, inner)),
    )


def _bindings(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign):
            yield node
        elif isinstance(node, Definition):
            yield _name_only(node)
        if not isinstance(node, ast.ClassDef):
            for block in _blocks(node, _OUTSIDE):
                yield from _bindings(block)


def _name_only(node: Definition) -> ast.stmt:
    """A definition without its body, so that the file's tree need not be kept."""
    return ast.ClassDef(
        name=node.name, bases=[], keywords=[], body=[], decorator_list=[], lineno=node.lineno, col_offset=0
    )
