"""What an operator sees of a unit, and how it says a change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import libcst as cst

from localagent.code.symbols import FileFacts, UnitSpan
from localagent.domain.edit import EditEffect
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit.bound_names import Names
from localagent.edit.unit import Expr, Stmt, Unit
from localagent.text.visible_text import shortened

N = TypeVar("N", bound=cst.CSTNode)
_MAX_NOTE = 200
Splice3 = tuple[int, int, str]


class Change(NamedTuple):
    """One proposal: splices in unit offsets, a log-scale adjustment of the operator's prior, and where it is.

    `effects` are those that it has beside its operator's. `old` and `new`: the one text that goes and the one that
    comes, where the note says no more than these; on one line, and cut where they are long.
    """

    splices: tuple[Splice3, ...]
    delta: float
    line: int
    end_line: int
    note: str
    old: str = ""
    new: str = ""
    effects: frozenset[EditEffect] = frozenset()

    def having(self, *effects: EditEffect) -> "Change":
        """The same with more effects."""
        return self._replace(effects=self.effects.union(effects))


class OperatorContext:
    """A unit with its active places (those on the lines asked for), the facts around it, and the failures.

    `nearby` are facts of other files of the repository, nearest first; `sources` are all its files, for operators that
    see the whole file. Only `exprs` and `statements` are to be edited;
    `unit.exprs` and `unit.statements` are ingredients.
    """

    def __init__(
        self,
        unit: Unit,
        span: UnitSpan,
        facts: FileFacts,
        *,
        path: RepoPath,
        nearby: Sequence[FileFacts] = (),
        lines: frozenset[int] | None = None,
        failures: Sequence[Failure] = (),
        sources: Mapping[RepoPath, bytes] = MappingProxyType({}),
    ) -> None:
        self.unit = unit
        self.span = span
        self.facts = facts
        self.path = path
        self.nearby = nearby
        self.failures = failures
        self.sources = sources
        self.lines = lines
        self.names = Names(unit)
        self.statements = [s for s in unit.statements if self._active(s)]
        active = set(map(id, self.statements))
        self.exprs = [e for e in unit.exprs if id(e.statement) in active and not _docstring(e)]
        self._visible: dict[int, dict[str, int]] = {}
        self._kinds: dict[int, str] = {}
        self._by_text: dict[str, Expr] | None = None
        self._deciding: list[Expr] | None = None

    def _active(self, s: Stmt) -> bool:
        if self.lines is None:
            return True
        last = s.end_line if not s.compound else self.unit.line(max(s.start, s.head_end - 1))
        if any(n in self.lines for n in range(s.line, last + 1)):
            return True
        return any(suite.head is not None and self.unit.line(suite.head[0]) in self.lines for suite in s.suites)

    def of(self, node_class: type[N]) -> Iterator[tuple[Expr, N]]:
        """Active expressions of one node class."""
        for expr in self.exprs:
            if isinstance(expr.node, node_class):
                yield expr, expr.node

    def of_any(self, *classes: type[cst.BaseExpression]) -> Iterator[tuple[Expr, Any]]:
        """Active expressions of any of several node classes."""
        for expr in self.exprs:
            if isinstance(expr.node, classes):
                yield expr, expr.node

    def kind(self, expr: Expr) -> str:
        """Probable kind of an expression's value."""
        found = self._kinds.get(id(expr))
        if found is None:
            found = self._kinds[id(expr)] = self.names.kind(expr.node)
        return found

    def visible(self, statement: Stmt) -> dict[str, int]:
        """Names of the unit visible in a statement, with the line that binds each first."""
        found = self._visible.get(id(statement))
        if found is None:
            scope = statement.node if isinstance(statement.node, cst.FunctionDef) else statement.scope
            found = dict(self.names.visible(scope if scope is not statement.node else statement.scope))
            for name in self.names.comprehension.get(id(statement), ()):
                found.setdefault(name, statement.line)
            self._visible[id(statement)] = found
        return found

    def function(self, statement: Stmt) -> cst.FunctionDef | None:
        """The innermost function around a statement."""
        scope = statement.scope
        while scope is not None and not isinstance(scope, cst.FunctionDef):
            scope = self.names.parent.get(scope)
        return scope

    def distinct(self) -> dict[str, Expr]:
        """One expression of the unit per text (the first one)."""
        if self._by_text is None:
            self._by_text = {}
            for expr in self.unit.exprs:
                self._by_text.setdefault(expr.text, expr)
        return self._by_text

    def deciding(self, is_test: Callable[[Expr], bool]) -> list[Expr]:
        """Short comparisons and tests of the unit, found once by the first caller's `is_test`."""
        if self._deciding is None:
            self._deciding = [
                e
                for e in self.unit.exprs
                if len(e.text) <= 60 and "\n" not in e.text and (isinstance(e.node, cst.Comparison) or is_test(e))
            ]
        return self._deciding

    def failing_with(self, *exceptions: str) -> Iterator[Failure]:
        """Failures of these exception types (all failures when none is named)."""
        for failure in self.failures:
            if not exceptions or failure.exception in exceptions:
                yield failure

    def lines_of(self, failure: Failure) -> set[int]:
        """Lines of this file in a failure's traceback; empty when it names none here."""
        return {f.line for f in failure.frames if f.path == self.path}

    def put(self, expr: Expr, text: str, level: int, delta: float = 0.0, note: str = "") -> Change:
        """Put `text`, which binds at `level`, in an expression's place."""
        splice = (expr.start, expr.end, expr.fitted(text, level))
        if note:
            return Change((splice,), delta, expr.line, expr.end_line, note)
        old, new = _short(expr.text), _short(text)
        return Change((splice,), delta, expr.line, expr.end_line, f"{old} -> {new}", old, new)

    def splice(
        self, at: Expr | Stmt, *splices: Splice3, delta: float = 0.0, note: str = "", old: str = "", new: str = ""
    ) -> Change:
        """Any splices, reported at an expression's or a statement's lines."""
        ordered = tuple(sorted(splices))
        return Change(ordered, delta, at.line, at.end_line, _note(note or (f"{old} -> {new}" if new else "")), old, new)


def _docstring(expr: Expr) -> bool:
    return isinstance(expr.parent, cst.Expr) and isinstance(expr.node, (cst.SimpleString, cst.ConcatenatedString))


def _note(text: str) -> str:
    return text if len(text) <= _MAX_NOTE and "\n" not in text else _short(text, _MAX_NOTE)


def _short(text: str, most: int = 40) -> str:
    return shortened(" ".join(text.split()), most)
