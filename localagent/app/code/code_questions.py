"""What `symbol`, `refs`, `callers`, `callees` and `impact` answer: questions to the code graph, made to be shown."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from localagent.app.code.repository_index import RepositoryIndex
from localagent.app.code.snippets import shown, shown_line
from localagent.code.graph.calls import MODULE_LEVEL, CallEdge, CallGraph, FunctionId
from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import DefinitionKind, FunctionOrClass
from localagent.code.graph.find_symbols import at_line, definitions_of, find_symbols
from localagent.code.graph.impact import is_test_function, methods_of, reached_from, users_of
from localagent.code.graph.references import Certainty, Reference, ReferenceKind, find_references, module_name
from localagent.code.graph.references import qualified_name as symbol_name
from localagent.code.graph.stored_facts import stored_graph
from localagent.code.graph.values import Symbol
from localagent.code.index.languages import language_of
from localagent.code.source_text import read_source
from localagent.domain.paths import RepoPath

MOST_TESTS = 50
_LINE_END = re.compile(r"\r\n|\r|\n")
_DOCUMENTS = (".md", ".rst", ".txt", ".adoc")
_KINDS = {
    DefinitionKind.FUNCTION: "function",
    DefinitionKind.ASYNC_FUNCTION: "async function",
    DefinitionKind.CLASS: "class",
    DefinitionKind.LAMBDA: "lambda",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownReference:
    """A reference to be shown: line and column from 1, the column in characters; `text` is its line."""

    path: str
    line: int
    column: int
    kind: str
    certainty: str
    inside: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownFunction:
    """A function or class, and where it stands; `certainty` and `distance` say how it was reached."""

    name: str
    path: str
    line: int
    certainty: str = Certainty.CERTAIN
    distance: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCall:
    """A call: who calls whom, at which line of the caller's file."""

    caller: ShownFunction
    callee: ShownFunction
    line: int
    certainty: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownSymbol:
    """One definition and what is known about it."""

    name: str
    kind: str
    path: str
    first_line: int
    last_line: int
    signature: str
    summary: str
    bases: tuple[str, ...]
    overrides: tuple[ShownFunction, ...]
    overridden_by: tuple[ShownFunction, ...]
    tests: tuple[ShownFunction, ...]
    commit: str


class CodeQuestions:
    """The code graph of an index, read when something is first asked."""

    def __init__(self, index: RepositoryIndex) -> None:
        self.index = index
        self._rows: dict[str, list[str]] = {}

    @cached_property
    def graph(self) -> CodeGraph:
        """The graph over everything that is indexed."""
        return stored_graph(self.index.stored_facts())

    @cached_property
    def calls(self) -> CallGraph:
        """Its calls."""
        return CallGraph(self.graph)

    def symbols(self, name: str) -> tuple[Symbol, ...]:
        """What a name may mean; see `find_symbols`."""
        return find_symbols(self.graph, name)

    def references(self, symbols: tuple[Symbol, ...]) -> list[ShownReference]:
        """All references, those in documents last."""
        found = [self._shown(reference) for reference in find_references(self.graph, symbols)]
        return found + self._in_documents({symbol.name for symbol in symbols if symbol.name})

    def callers(self, symbols: Iterable[Symbol]) -> list[ShownCall]:
        """The calls of functions, of a class those that make it."""
        wanted = {f for function in self._functions(symbols) for f in self._making(function)}
        return [self._call(edge) for function in sorted(wanted) for edge in self.calls.callers(function)]

    def callees(self, symbols: Iterable[Symbol]) -> list[ShownCall]:
        """The calls in the bodies of functions, of a class in those of its methods."""
        wanted = {f for function in self._functions(symbols) for f in methods_of(self.calls, function)}
        return [self._call(edge) for function in sorted(wanted) for edge in self.calls.callees(function)]

    def impact(self, lines: Iterable[tuple[str, int]]) -> tuple[list[ShownFunction], list[ShownFunction]]:
        """(everything that changing lines of files may reach, nearest first; the tests among it)."""
        changed: set[FunctionId] = set()
        for path, line in lines:
            if RepoPath(path) in self.graph.facts:
                changed |= self._changed(at_line(self.graph.view(path), line))
        reached = reached_from(self.calls, changed)
        tests = [one for one in reached if is_test_function(self.calls, one.function)]
        named = [self._function(r.function, r.certainty, r.distance) for r in reached]
        return named, [self._function(r.function, r.certainty, r.distance) for r in tests]

    def symbol(self, symbol: Symbol) -> list[ShownSymbol]:
        """What is known about each definition of a symbol."""
        return [self._definition(symbol, function) for function in definitions_of(self.graph, symbol)]

    def in_other_languages(self, name: str) -> list[ShownSymbol]:
        """The definitions of `NAME` or `PATH:NAME` outside Python; their bases, overrides and tests are not known."""
        where, colon, last = name.rpartition(":")
        return [
            ShownSymbol(
                name=shown(one.name), kind=one.kind.value, path=shown(path), first_line=one.first_line,
                last_line=one.last_line, signature=shown(one.signature), summary=shown(one.summary), bases=(),
                overrides=(), overridden_by=(), tests=(),
                commit=shown(self.index.last_commit(path, one.first_line, one.last_line)),
            )
            for path, one in self.index.definitions(last)
            if language_of(path) is not None and (not colon or path == where)
        ]  # fmt: skip

    def defines(self, symbol: Symbol) -> bool:
        """Whether a symbol is a function or class; else it is a variable, an attribute or a module."""
        return bool(definitions_of(self.graph, symbol))

    def name(self, symbol: Symbol) -> str:
        """A symbol's qualified name, to be shown."""
        return shown(symbol_name(self.graph, symbol))

    def _changed(self, symbols: list[Symbol]) -> set[FunctionId]:
        found: set[FunctionId] = set()
        for symbol in symbols:
            functions = definitions_of(self.graph, symbol)
            found |= {f for function in functions for f in methods_of(self.calls, function)}
            if not functions or any(self._made(f).kind == DefinitionKind.CLASS for f in functions):
                found |= set(users_of(self.calls, [symbol]))
        return found

    def _functions(self, symbols: Iterable[Symbol]) -> list[FunctionId]:
        return [function for symbol in symbols for function in definitions_of(self.graph, symbol)]

    def _making(self, function: FunctionId) -> list[FunctionId]:
        """A function itself; of a class, what runs when it is called."""
        if self._made(function).kind != DefinitionKind.CLASS:
            return [function]
        inside = methods_of(self.calls, function)
        return [f for f in inside if self._made(f).name in ("__init__", "__new__", "__post_init__")]

    def _made(self, function: FunctionId) -> FunctionOrClass:
        return self.graph.view(function.path).facts.definitions[function.index]

    def _definition(self, symbol: Symbol, function: FunctionId) -> ShownSymbol:
        made = self._made(function)
        view = self.graph.view(function.path)
        reached = reached_from(self.calls, methods_of(self.calls, function))
        tests = sorted((r for r in reached if is_test_function(self.calls, r.function)), key=lambda r: r.certainty)
        above, below = self._family(symbol)
        is_class = made.kind == DefinitionKind.CLASS
        bases = self.graph.ancestors(function.path, function.index)[0][1:] if is_class else ()
        return ShownSymbol(
            name=self.name(symbol),
            kind=_KINDS[DefinitionKind(made.kind)],
            path=shown(function.path),
            first_line=made.first_line,
            last_line=made.end_line,
            signature=shown(made.signature),
            summary=shown(made.doc),
            bases=tuple(shown(f"{module_name(p)}.{self.graph.view(p).facts.qualified_name(i)}") for p, i in bases)
            + tuple(shown(view.name_of(b)) for b in made.bases if is_class and not self._is_ours(function.path, b)),
            overrides=above,
            overridden_by=below,
            tests=tuple(self._function(r.function, r.certainty, r.distance) for r in tests[:MOST_TESTS]),
            commit=shown(self.index.last_commit(function.path, made.first_line, made.end_line)),
        )

    def _is_ours(self, path: str, base: int) -> bool:
        return any(value.path for value in self.graph.values(path, base))

    def _family(self, symbol: Symbol) -> tuple[tuple[ShownFunction, ...], tuple[ShownFunction, ...]]:
        """The members of the same name in the classes above, and in those below."""
        at = self.graph.view(symbol.path).definition_of_scope.get(symbol.scope, -1)
        if symbol.scope <= 0 or at not in self.graph.view(symbol.path).members:
            return (), ()
        above = self.graph.ancestors(symbol.path, at)[0][1:]
        below = self.graph.subclasses.get((RepoPath(symbol.path), at), ())
        return self._members(above, symbol.name), self._members(below, symbol.name)

    def _members(self, classes: Iterable[tuple[RepoPath, int]], name: str) -> tuple[ShownFunction, ...]:
        scopes = ((path, self.graph.view(path).facts.definitions[index].own_scope) for path, index in classes)
        functions = (f for path, scope in scopes for f in definitions_of(self.graph, Symbol(path, scope, name)))
        return tuple(self._function(f) for f in functions)

    def _function(self, function: FunctionId, certainty: str = Certainty.CERTAIN, distance: int = 0) -> ShownFunction:
        facts = self.graph.view(function.path).facts
        inner = facts.qualified_name(function.index) if function.index != MODULE_LEVEL else "<module>"
        line = facts.definitions[function.index].line if function.index != MODULE_LEVEL else 1
        return ShownFunction(
            name=shown(inner), path=shown(function.path), line=line, certainty=certainty, distance=distance
        )

    def _call(self, edge: CallEdge) -> ShownCall:
        return ShownCall(
            caller=self._function(edge.caller),
            callee=self._function(edge.callee),
            line=edge.line,
            certainty=edge.certainty,
            text=self._line(edge.caller.path, edge.line),
        )

    def _shown(self, reference: Reference) -> ShownReference:
        rows = self._lines(reference.path)
        row = rows[reference.line - 1] if reference.line <= len(rows) else ""
        before = row.encode("utf-8", "surrogatepass")[: reference.column].decode("utf-8", "replace")
        return ShownReference(
            path=shown(reference.path),
            line=reference.line,
            column=len(before) + 1,
            kind=reference.kind,
            certainty=reference.certainty,
            inside=shown(reference.inside),
            text=self._line(reference.path, reference.line),
        )

    def _line(self, path: str, line: int) -> str:
        rows = self._lines(path)
        return shown_line(rows, line) if line <= len(rows) else ""

    def _lines(self, path: str) -> list[str]:
        """The lines of a file as they are now; none where it cannot be read any more."""
        if path not in self._rows:
            try:
                text = read_source(self.index.read(path))
            except OSError:
                text = None
            self._rows[path] = _LINE_END.split(text.utf8.decode()) if text is not None else []
        return self._rows[path]

    def _in_documents(self, names: set[str]) -> list[ShownReference]:
        """Where documents say a name as a word of its own: possible references."""
        if not names:
            return []
        word = r"(?<!\w)(?:" + "|".join(map(re.escape, sorted(names))) + r")(?!\w)"
        documents = (p for p in self.index.files() if p.endswith(_DOCUMENTS))
        return [
            ShownReference(
                path=shown(path), line=number, column=found.start() + 1, kind=ReferenceKind.DOCUMENTATION,
                certainty=Certainty.POSSIBLE, inside="", text=self._line(path, number),
            )
            for path in documents
            for number, row in enumerate(self._lines(path), 1)
            for found in re.finditer(word, row)
        ]  # fmt: skip
