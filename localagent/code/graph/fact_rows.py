"""Rows of one file in the making, and where identifiers stand in it."""

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator

from localagent.code.graph.facts import (
    BindingFact,
    ExpressionKind,
    FunctionOrClass,
    ImportFact,
    Scope,
    ScopeType,
    Use,
    UseKind,
)
from localagent.code.scopes import LexicalScope, ScopeKind, Walk
from localagent.code.source_text import SourceText
from localagent.code.spans import last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPE_TYPES = {
    ScopeKind.MODULE: ScopeType.MODULE,
    ScopeKind.CLASS: ScopeType.CLASS,
    ScopeKind.FUNCTION: ScopeType.FUNCTION,
    ScopeKind.COMPREHENSION: ScopeType.COMPREHENSION,
}
_IDENTIFIER = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_IDENTIFIER_AT_END = re.compile(rb"[A-Za-z0-9_\x80-\xff]+\Z")
_WITHOUT_METHODS = frozenset(
    {ExpressionKind.LITERAL, ExpressionKind.TUPLE, ExpressionKind.LIST, ExpressionKind.DICT, ExpressionKind.MODULE}
)
_MOST_JOINED = 8  # values of one display, statements of one function


class FactRows:
    """Rows of one file, in the making."""

    def __init__(self, tree: ast.Module, text: SourceText) -> None:
        self.text = text
        self.walk = Walk(tree)
        self.names: dict[str, int] = {}
        self.rows: dict[tuple[int, int, int], int] = {}
        self.value: dict[ast.AST, int] = {}
        self.uses: list[Use] = []
        self.bindings: list[BindingFact] = []
        self.imports: list[ImportFact] = []
        self.definitions: list[FunctionOrClass] = []
        self.exports: list[str] | None = None
        self.export_sources: list[int] = []
        self.exported: set[ast.AST] = set()
        scopes = [self.walk.root, *self.walk.own.values()]
        self.scope_index = {scope: at for at, scope in enumerate(scopes)}
        self.scopes = scopes
        nodes = self.walk.nodes
        defining = (n for n in nodes if isinstance(n, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)))
        self.definition_index: dict[ast.AST, int] = {node: at for at, node in enumerate(defining)}
        self.owners: dict[tuple[LexicalScope, str], int] = {}
        self.defined_at: dict[ast.AST, tuple[int, int, int]] = {}
        self.written: dict[ast.AST, ast.expr] = {}  # annotations written as strings
        self.results: dict[ast.AST, tuple[list[int], list[int]]] = {}
        self.called: set[ast.AST] = set()
        self.annotating: set[ast.AST] = set()
        self.kinds: list[int] = []  # of each row
        self.decorating: set[ast.AST] = set()

    def name(self, name: str) -> int:
        """The index of a name."""
        return self.names.setdefault(name, len(self.names))

    def row(self, kind: ExpressionKind, a: int = -1, b: int = -1) -> int:
        """The index of an expression's row."""
        row = (int(kind), a, b)
        at = self.rows.get(row)
        if at is None:
            at = self.rows[row] = len(self.kinds)
            self.kinds.append(row[0])
        return at

    def union(self, values: Iterable[int]) -> int:
        """The expression that is any of some."""
        found = [v for v in dict.fromkeys(values) if v >= 0][:_MOST_JOINED]
        whole = found[0] if found else -1
        for value in found[1:]:
            whole = self.row(ExpressionKind.UNION, whole, value)
        return whole

    def of(self, node: ast.AST | None) -> int:
        """The expression that a node is, -1 where it is not followed."""
        return self.value.get(node, -1) if node is not None else -1

    def name_in(self, scope: LexicalScope, name: str) -> int:
        """The NAME that a name means in a scope."""
        key = (scope, name)
        owner = self.owners.get(key)
        if owner is None:
            found = scope.owner(name)
            owner = self.owners[key] = -1 if found is None else self.scope_index[found]
        return self.row(ExpressionKind.NAME, owner, self.name(name))

    def literal(self, name: str) -> int:
        """A value of a builtin type."""
        return self.row(ExpressionKind.LITERAL, -1, self.name(name))

    def scope_of(self, node: ast.AST) -> int:
        """The index of the scope that a node is in."""
        return self.scope_index[self.walk.scope[node]]

    def scope_rows(self) -> Iterator[Scope]:
        """The rows of all scopes."""
        for scope in self.scopes:
            parent = -1 if scope.parent is None else self.scope_index[scope.parent]
            yield Scope(_SCOPE_TYPES[scope.kind], parent, self.definition_index.get(scope.node, -1))

    def use(self, kind: UseKind, line: int, column: int, length: int, node: ast.AST, expression: int) -> None:
        """A use of a name at a place."""
        self.uses.append(Use(int(kind), line, column, length, self.scope_of(node), expression))

    def bind(self, target: int, value: int, line: int) -> None:
        """A value that a name or attribute is given."""
        self.bindings.append(BindingFact(target, value, line))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = self.text.line_of(offset)
        return line, offset - self.text.line_starts[line - 1]

    def use_at(self, kind: UseKind, offset: int, node: ast.AST, expression: int) -> None:
        """A use of the identifier that begins at an offset."""
        found = _IDENTIFIER.match(self.text.utf8, offset)
        line, column = self.position(offset)
        self.use(kind, line, column, len(found.group()) if found else -1, node, expression)

    def use_at_end(self, kind: UseKind, node: ast.AST, name: str, expression: int) -> None:
        """A use of the identifier that a node ends with."""
        line, end = last_line(node), node.end_col_offset  # type: ignore[arg-type, attr-defined]
        length = len(name)
        if not name.isascii() or not self._ends(line, end, name.encode()):
            found = _IDENTIFIER_AT_END.search(self._bytes_before(line, end, end))
            length = len(found.group()) if found else -1  # it may be written with other letters that mean the same
            if unicodedata.normalize("NFKC", found.group().decode()) != name if found else True:
                line, end, length = node.lineno, node.col_offset - 1, -1  # type: ignore[attr-defined]
        self.use(kind, line, end - length, length, node, expression)

    def _ends(self, line: int, end: int, name: bytes) -> bool:
        """Whether the bytes before a column are a name."""
        starts = self.text.line_starts
        return line <= len(starts) and self.text.utf8.endswith(name, 0, starts[line - 1] + end)

    def _bytes_before(self, line: int, end: int, length: int) -> bytes:
        stop = self.text.offset(line, end) if line <= len(self.text.line_starts) else 0
        return self.text.utf8[max(0, stop - length) : stop]

    def implicit(self, node: ast.AST, value: ast.expr, method: str) -> None:
        """A method that Python calls by itself: an operator's, a loop's, that of `len(value)`."""
        at = self.of(value)
        if at >= 0 and self.kinds[at] not in _WITHOUT_METHODS:
            expression = self.row(ExpressionKind.ATTRIBUTE, at, self.name(method))
            self.use(UseKind.CALL, node.lineno, node.col_offset, 0, node, expression)  # type: ignore[attr-defined]

    def module(self, dotted: str) -> int:
        """The expression of an imported module."""
        return self.row(ExpressionKind.MODULE, -1, self.name(dotted))
