"""What can be left out of a Python source: groups of parts, each rendered by exact splices into the bytes.

Blocks of statements, definitions' decorators and parameters, imported names, elements of calls and displays, characters
of literals; a compound statement gives way to its body, an assertion to what it looks at, a parametrization of one case
to assignments. Not promised: that
what is rendered parses, or means what it meant; whoever asks parses and runs it. Nothing inside f-strings is offered.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from localagent.code.source_text import line_starts
from localagent.code.spans import Definition, all_lines_of, byte_span, clauses, first_line, functions, last_line

Compound = ast.With | ast.AsyncWith | ast.For | ast.While | ast.If | ast.Try
Display = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Call
MOST_CHARACTERS = 20_000


class UnitKind(Enum):
    """What a group's parts are, in the order in which they are tried."""

    STATEMENT = "statement"
    HEAD = "decorator, parameter or imported name"
    WRAPPER = "wrapper"
    ELEMENT = "element"
    LITERAL = "literal"


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitGroup:
    """`count` parts that may be left out independently; `render` gives the source with only some of them (indices)."""

    kind: UnitKind
    count: int
    render: Callable[[Collection[int]], bytes]


class SourceUnits:
    """One UTF-8 source that parses, and its tree."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self._source, self._tree = source, tree
        self._starts = line_starts(source)

    def groups(self, kind: UnitKind, fixed: Collection[int] = (), *, data: bool = True) -> list[UnitGroup]:
        """All groups of a kind, outer ones first. Statements with a line in `fixed` are no parts of any.

        Without `data`, functions without a fixed line stay whole with their decorators, elements are those of other
        decorators alone, and there are no wrappers and literals.
        """
        found: list[UnitGroup | None]
        whole = set() if data else self._whole(fixed)
        match kind:
            case UnitKind.STATEMENT:
                blocks = (found for found in self._blocks() if id(found[0]) not in whole)
                found = [self._block(owner, name, block, fixed) for owner, name, block in blocks]
            case UnitKind.HEAD:
                heads = (node for node in ast.walk(self._tree) if id(node) not in whole)
                found = [group for node in heads for group in self._heads(node)]
            case UnitKind.ELEMENT:
                found = [self._elements(node) for node in self._displays(everywhere=data)]
            case UnitKind.WRAPPER:
                found = [self._unwrapped(node) for node in ast.walk(self._tree) if isinstance(node, Compound) and data]
                found += [
                    self._asserted(node) for node in ast.walk(self._tree) if isinstance(node, ast.Assert) and data
                ]
            case UnitKind.LITERAL:
                found = [group for node in self._literals() if data for group in self._literal(node)]
        return [group for group in found if group is not None and group.count]

    def _blocks(self) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
        """Breadth first."""
        for node in ast.walk(self._tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    yield node, name, block

    def _whole(self, fixed: Collection[int]) -> set[int]:
        """Nodes inside functions that have no fixed line, by `id`."""
        others = [f.node for f in functions(self._tree) if not any(n in fixed for n in all_lines_of(f.node))]
        return {id(node) for function in others for node in ast.walk(function)}

    def without(self, lines: Collection[int]) -> bytes:
        """The source without the statements that begin in some lines."""
        gone: list[tuple[int, int, bytes]] = []
        for _owner, _name, block in self._blocks():
            for statement in block:
                change = self._removal(statement, block)
                inside = any(begin <= change[0] and change[1] <= end for begin, end, _ in gone)
                if first_line(statement) in lines and not inside:
                    gone.append(change)
        return self._splice(gone)

    def _splice(self, changes: Sequence[tuple[int, int, bytes]]) -> bytes:
        text = self._source
        for begin, end, new in sorted(changes, reverse=True):
            text = text[:begin] + new + text[end:]
        return text

    def _span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        return byte_span(node, self._starts)

    def _text(self, node: ast.expr | ast.arg) -> bytes:
        begin, end = self._span(node)
        return self._source[begin:end]

    def _lines(self, first: int, last: int) -> tuple[int, int]:
        end = self._starts[last] if last < len(self._starts) else len(self._source)
        return self._starts[first - 1], end

    # -- statements

    def _block(self, owner: ast.AST, name: str, block: list[ast.stmt], fixed: Collection[int]) -> UnitGroup:
        free = [s for s in block if not any(line in fixed for line in range(first_line(s), last_line(s) + 1))]

        def render(kept: Collection[int]) -> bytes:
            gone = [s for index, s in enumerate(free) if index not in kept]
            if len(gone) == len(block) and not isinstance(owner, ast.Module):
                return self._without_block(owner, name, block)
            return self._splice([self._removal(s, block) for s in gone])

        return UnitGroup(kind=UnitKind.STATEMENT, count=len(free), render=render)

    def _removal(self, statement: ast.stmt, block: list[ast.stmt]) -> tuple[int, int, bytes]:
        first, last = first_line(statement), last_line(statement)
        begin, end = self._lines(first, last)
        column = self._span(statement)[0] if not isinstance(statement, Definition) else begin
        crowded = self._source[begin:column].strip() or any(
            other is not statement and first_line(other) <= last and last_line(other) >= first for other in block
        )
        return (*self._span(statement), b"pass") if crowded else (begin, end, b"")

    def _without_block(self, owner: ast.AST, name: str, block: list[ast.stmt]) -> bytes:
        """`else` and `finally` go with all they hold; another block has to hold something."""
        first, last = first_line(block[0]), last_line(block[-1])
        if name != "body":
            before = max((last_line(s) for s in self._before(owner, name)), default=0)
            if before and before < first:
                begin, end = self._lines(before + 1, last)
                return self._splice([(begin, end, b"")])
        begin, end = self._lines(first, last)
        column = block[0].col_offset
        if self._source[begin : begin + column].strip():
            return self._splice([(begin + column, self._span(block[-1])[1], b"pass")])
        return self._splice([(begin, end, b" " * column + b"pass\n")])

    @staticmethod
    def _before(owner: ast.AST, name: str) -> list[ast.stmt]:
        found: list[ast.stmt] = [*getattr(owner, "body", ())]
        for clause in clauses(owner):
            found += clause.body
        if name == "finalbody":
            found += getattr(owner, "orelse", ())
        return found

    def _unwrapped(self, node: ast.With | ast.AsyncWith | ast.For | ast.While | ast.If | ast.Try) -> UnitGroup | None:
        """The body in place of the statement; only where it has lines of its own."""
        body = node.body
        if body[0].lineno <= node.lineno:
            return None
        begin, end = self._lines(first_line(body[0]), last_line(body[-1]))
        inner, outer = body[0].col_offset, node.col_offset
        lines = self._source[begin:end].splitlines(keepends=True)
        indent = b" " * inner
        if any(line.strip() and not line.startswith(indent) for line in lines):
            return None
        text = b"".join(b" " * outer + line[inner:] if line.strip() else line for line in lines)
        whole = self._lines(node.lineno, last_line(node))
        return UnitGroup(
            kind=UnitKind.WRAPPER, count=1, render=lambda kept: self._source if kept else self._splice([(*whole, text)])
        )

    def _asserted(self, node: ast.Assert) -> UnitGroup:
        """What an assertion looks at first, alone: where that crashes, what was expected of it says nothing."""
        looked_at = node.test.left if isinstance(node.test, ast.Compare) else node.test
        text = (
            b"(" + self._text(looked_at) + b")" if last_line(looked_at) != looked_at.lineno else self._text(looked_at)
        )
        span = self._span(node)
        return UnitGroup(
            kind=UnitKind.WRAPPER, count=1, render=lambda kept: self._source if kept else self._splice([(*span, text)])
        )

    # -- decorators, parameters, imports

    def _heads(self, node: ast.AST) -> Iterator[UnitGroup]:
        if isinstance(node, Definition) and node.decorator_list:
            lines = [self._lines(first_line(d), last_line(d)) for d in node.decorator_list]
            yield self._removing(lines)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inlined = self._inlined_case(node)
            if inlined is not None:
                yield inlined
            given = node.args
            if given.args and not (given.posonlyargs or given.defaults or given.vararg or given.kwonlyargs):
                spans = [self._span(argument) for argument in given.args]
                yield self._joined(UnitKind.HEAD, spans[0][0], spans[-1][1], [self._text(a) for a in given.args])
        if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1:
            names = [ast.unparse(alias).encode() for alias in node.names]
            begin, end = self._span(node)
            head = self._source[begin : self._starts[node.names[0].lineno - 1] + node.names[0].col_offset]
            head = head.rstrip().rstrip(b"(").rstrip() + b" "
            yield self._joined(UnitKind.HEAD, begin, end, names, before=head)

    def _removing(self, spans: Sequence[tuple[int, int]]) -> UnitGroup:
        def render(kept: Collection[int]) -> bytes:
            return self._splice([(*span, b"") for index, span in enumerate(spans) if index not in kept])

        return UnitGroup(kind=UnitKind.HEAD, count=len(spans), render=render)

    def _joined(
        self, kind: UnitKind, begin: int, end: int, texts: Sequence[bytes], before: bytes = b"", after: bytes = b""
    ) -> UnitGroup:
        def render(kept: Collection[int]) -> bytes:
            inner = b", ".join(text for index, text in enumerate(texts) if index in kept)
            if before == b"(" and len(kept) == 1:
                inner += b","  # a tuple of one
            return self._splice([(begin, end, before + inner + after)])

        return UnitGroup(kind=kind, count=len(texts), render=render)

    def _inlined_case(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> UnitGroup | None:
        """Assignments at the begin of the test in place of a parametrization of one case."""
        for decorator in node.decorator_list:
            values = one_case(decorator)
            taken = [argument.arg for argument in node.args.args]
            if values is None or not set(values) <= set(taken) or node.body[0].lineno <= node.lineno:
                continue
            indent = b" " * node.body[0].col_offset
            at = self._lines(first_line(node.body[0]), last_line(node.body[0]))[0]
            assigned = b"".join(
                indent + name.encode() + b" = " + self._text(v).replace(b"\n", b" ") + b"\n"
                for name, v in values.items()
            )
            spans = [self._span(argument) for argument in node.args.args]
            left = b", ".join(self._text(a) for a in node.args.args if a.arg not in values)
            changes = [
                (*self._lines(first_line(decorator), last_line(decorator)), b""),
                (spans[0][0], spans[-1][1], left),
                (at, at, assigned),
            ]

            def render(kept: Collection[int], changes: list[tuple[int, int, bytes]] = changes) -> bytes:
                return self._source if kept else self._splice(changes)

            return UnitGroup(kind=UnitKind.HEAD, count=1, render=render)
        return None

    # -- expressions

    def _displays(self, *, everywhere: bool) -> Iterator[Display]:
        decorators = [d for node in ast.walk(self._tree) if isinstance(node, Definition) for d in node.decorator_list]
        roots: list[ast.AST] = [self._tree] if everywhere else [*decorators]
        return (node for root in roots for node in _outside_format_strings(root) if isinstance(node, Display))

    def _elements(self, node: Display) -> UnitGroup | None:
        begin, end = self._span(node)
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            texts = [self._text(argument) for argument in node.args]
            texts += [ast.unparse(keyword).encode() for keyword in node.keywords]
            head = self._text(node.func)
            return self._joined(UnitKind.ELEMENT, begin, end, texts, head + b"(", b")") if given else None
        if isinstance(node, ast.Dict):
            texts = [
                (self._text(key) + b": " if key is not None else b"**") + self._text(value)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
            return self._joined(UnitKind.ELEMENT, begin, end, texts, b"{", b"}")
        if not isinstance(node.elts, list) or isinstance(getattr(node, "ctx", ast.Load()), ast.Store | ast.Del):
            return None
        opening, closing = {ast.List: (b"[", b"]"), ast.Tuple: (b"(", b")"), ast.Set: (b"{", b"}")}[type(node)]
        return self._joined(UnitKind.ELEMENT, begin, end, [self._text(e) for e in node.elts], opening, closing)

    def _literals(self) -> Iterator[ast.Constant]:
        return (node for node in _outside_format_strings(self._tree) if isinstance(node, ast.Constant))

    def _literal(self, node: ast.Constant) -> Iterator[UnitGroup]:
        span, value = self._span(node), node.value
        if isinstance(value, bool) or not value:
            return
        if isinstance(value, int | float):
            zero = b"0" if isinstance(value, int) else b"0.0"
            yield UnitGroup(
                kind=UnitKind.LITERAL,
                count=1,
                render=lambda kept: self._source if kept else self._splice([(*span, zero)]),
            )
        elif isinstance(value, str | bytes) and len(value) <= MOST_CHARACTERS:

            def render(kept: Collection[int], value: str | bytes = value) -> bytes:
                order = sorted(kept)
                part = bytes(value[i] for i in order) if isinstance(value, bytes) else "".join(value[i] for i in order)
                return self._splice([(*span, repr(part).encode())])

            yield UnitGroup(kind=UnitKind.LITERAL, count=len(value), render=render)


def one_case(decorator: ast.expr) -> dict[str, ast.expr] | None:
    """Names and values of a `pytest.mark.parametrize` that has a single plain case."""
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.parametrize")):
        return None
    if len(decorator.args) != 2 or decorator.keywords:
        return None
    named, cases = decorator.args
    if isinstance(named, ast.Constant) and isinstance(named.value, str):
        names = [name for name in re.split(r"[,\s]+", named.value) if name]
    elif isinstance(named, ast.List | ast.Tuple):
        names = [name.value for name in named.elts if isinstance(name, ast.Constant) and isinstance(name.value, str)]
    else:
        return None
    if not isinstance(cases, ast.List | ast.Tuple) or len(cases.elts) != 1 or not names:
        return None
    case = cases.elts[0]
    if isinstance(case, ast.Call) and ast.unparse(case.func).endswith("param"):
        return None
    if len(names) == 1 and not isinstance(named, ast.List | ast.Tuple):
        return {names[0]: case}
    if not isinstance(case, ast.List | ast.Tuple) or len(case.elts) != len(names):
        return None
    return dict(zip(names, case.elts, strict=True))


def _outside_format_strings(root: ast.AST) -> Iterator[ast.AST]:
    """Depth first in the order of the source; positions inside f-strings are not those of the file in Python 3.11."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            waiting += reversed(list(ast.iter_child_nodes(node)))
