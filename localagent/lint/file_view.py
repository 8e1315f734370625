"""One file as the rules see it: its text, its syntax tree with parents, scopes and exact UTF-8 spans.

Not promised: anything about what lies inside f-strings. Python 3.11 does not know where that stands, so no rule
looks there.
"""

import ast
import warnings
from collections.abc import Iterator

from localagent.code.names import last_name
from localagent.code.newer_syntax import newer_python
from localagent.code.scopes import Binding, LexicalScope, ScopeKind, Walk
from localagent.code.source_text import SourceText, read_source
from localagent.code.spans import blocks, byte_span
from localagent.lint.lint_rule import Cut, Reliance

MAX_BYTES = 2_000_000
MAX_LINE = 100_000
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class CannotReadError(ValueError):
    """A file that is not looked at, with the reason, and the line that it is about."""

    def __init__(self, reason: str, *, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class NewerPythonError(CannotReadError):
    """A file that only a newer Python than ours parses: nothing is wrong with it."""


def parse(text: str) -> ast.Module:
    """The tree of a text. CannotReadError says why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        if newer := newer_python(text):
            raise NewerPythonError(newer) from error
        raise CannotReadError(f"does not parse: {error.msg} (line {error.lineno})", line=error.lineno or 1) from error
    except (ValueError, UnicodeError) as error:
        raise CannotReadError(f"does not parse: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise CannotReadError("nested too deeply to be parsed") from error


def source_of(raw: bytes) -> SourceText:
    """A file's text, bounded. CannotReadError says why not."""
    if len(raw) > MAX_BYTES:
        raise CannotReadError(f"larger than {MAX_BYTES:,} bytes")
    if b"\0" in raw:
        raise CannotReadError("holds NUL bytes")
    source = read_source(raw)
    if source is None:
        raise CannotReadError("not text in the encoding that it names")
    ends = (*source.line_starts[1:], len(source.utf8))
    if len(raw) > MAX_LINE and max(b - a for a, b in zip(source.line_starts, ends, strict=True)) > MAX_LINE:
        raise CannotReadError(f"a line is longer than {MAX_LINE:,} bytes")
    return source


class FileView:
    """A parsed file. Whatever a rule asks to be resolved is noted in `asked`, to be confirmed before bytes change."""

    def __init__(self, source: SourceText, tree: ast.Module, name: str = "") -> None:
        self.name = name
        self.source = source
        self.tree = tree
        self.walk = Walk(tree)
        self.asked: list[Reliance] = []
        self._starts = source.line_starts

    @property
    def newline(self) -> str:
        """The file's line end."""
        return self.source.newline

    def start(self, node: ast.AST) -> int:
        """Where an element begins, decorators included."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        if decorators:
            return self.source.utf8.rindex(b"@", 0, self.start(decorators[0]))
        offset: int = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return offset

    def end(self, node: ast.AST) -> int:
        """Where an element ends."""
        return byte_span(node, self._starts)[1]  # type: ignore[arg-type]

    def text(self, node: ast.AST) -> str:
        """An element's text, without parentheses around it."""
        return self.between(self.start(node), self.end(node))

    def between(self, start: int, end: int) -> str:
        """Text between two offsets."""
        return self.source.utf8[start:end].decode()

    def put(self, node: ast.AST, text: str) -> Cut:
        """A cut that puts a text in an element's place."""
        return self.start(node), self.end(node), text

    def parent(self, node: ast.AST) -> ast.AST:
        """The element around one; the module is its own."""
        return self.walk.parent.get(node, self.tree)

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """The elements around one, innermost first."""
        while (above := self.walk.parent.get(node)) is not None:
            yield above
            node = above

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds an expression."""
        return next(n for n in (node, *self.parents(node)) if isinstance(n, ast.stmt))

    def block(self, statement: ast.AST) -> list[ast.stmt]:
        """The block that a statement stands in."""
        above = self.parent(statement)
        return next((block for block in blocks(above) if any(s is statement for s in block)), [])

    def scope(self, node: ast.AST) -> LexicalScope:
        """The scope that an element's names are looked up in."""
        return self.walk.scope[node]

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """The innermost function around an element."""
        for above in self.parents(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return above
            if isinstance(above, ast.ClassDef):
                return None
        return None

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Every place that binds what a name means; empty for builtins."""
        return self.walk.bindings(name)

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name that an expression was imported as (or `builtins.x`); None where that is not certain."""
        found = self.walk.qualified(node)
        if found is not None:
            self._note(node, found)
        return found

    def _note(self, node: ast.AST, qualified: str) -> None:
        self.asked.append(Reliance(start=self.start(node), end=self.end(node), qualified=qualified))

    def named(self, node: ast.AST, *names: str) -> bool:
        """Whether an expression is certainly one of some qualified names; cheap where its last part already differs."""
        last = last_name(node)
        if not last or not (isinstance(node, ast.Name) or any(n.rpartition(".")[2] == last for n in names)):
            return False
        found = self.walk.qualified(node)
        if found not in names:
            return False
        self._note(node, found)
        return True

    def builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether an expression is certainly one of some builtins."""
        return isinstance(node, ast.Name) and node.id in names and self.named(node, *(f"builtins.{n}" for n in names))

    def call_of(self, node: ast.AST, *names: str) -> bool:
        """Whether an element is a call of one of some qualified names."""
        return isinstance(node, ast.Call) and self.named(node.func, *names)

    def free(self, name: str, node: ast.AST) -> bool:
        """Whether a builtin's name means the builtin where an element stands. Not noted: it stands nowhere yet."""
        return not self.walk.star and self.scope(node).owner(name) is None

    def lone(self, statement: ast.stmt) -> bool:
        """Whether a statement has its lines to itself (a comment may follow)."""
        first, last = self._starts[self.line_of(statement) - 1], self.end(statement)
        after = self.source.utf8[last : self.line_end(last)].strip()
        before = self.source.utf8[first : self.start(statement)]
        return not before.strip() and (not after or after.startswith(b"#"))

    def line_of(self, node: ast.AST) -> int:
        """The 1-based line where an element begins."""
        return self.source.line_of(self.start(node))

    def line_end(self, offset: int) -> int:
        """Where the line that holds an offset ends, before its line end."""
        line = self.source.line_of(offset)
        text = self.source.utf8[self._starts[line - 1] : self._starts[line] if line < len(self._starts) else None]
        return self._starts[line - 1] + len(text.rstrip(b"\r\n"))

    def indent(self, statement: ast.stmt) -> str:
        """What stands before a statement on its line."""
        return self.between(self._starts[self.line_of(statement) - 1], self.start(statement))

    def step(self) -> str:
        """One level of indentation as the file writes it."""
        for node in self.tree.body:
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and self.lone(body[0]) and not self.indent(body[0]).strip():
                return self.indent(body[0]) or "    "
        return "    "

    def without(self, block: list[ast.stmt], at: int) -> Cut:
        """A cut that takes a statement out of a block of several, up to its neighbour."""
        if at:
            return self.end(block[at - 1]), self.end(block[at]), ""
        return self.start(block[0]), self.start(block[1]), ""

    def in_loop(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop of the same function around an element."""
        for above in self.parents(node):
            if isinstance(above, _LOOPS):
                return above
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return None
        return None

    def asks(self, node: ast.AST) -> bool:
        """Whether an expression's value is only asked for being true or false."""
        above = self.parent(node)
        if isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert):
            return above.test is node
        if isinstance(above, ast.UnaryOp):
            return isinstance(above.op, ast.Not)
        if isinstance(above, ast.BoolOp):
            return self.asks(above)
        return isinstance(above, ast.comprehension) and node in above.ifs

    def in_class(self, node: ast.AST) -> bool:
        """Whether a definition stands directly in a class."""
        return self.scope(node).kind is ScopeKind.CLASS


def view_of(raw: bytes, name: str = "") -> FileView:
    """A file's view; `name` is its last component. CannotReadError says why there is none."""
    source = source_of(raw)
    try:
        return FileView(source, parse(source.utf8.decode()), name)
    except RecursionError as error:
        raise CannotReadError("nested too deeply to be looked at") from error
