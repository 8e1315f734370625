"""Collects the facts of one Python file from its syntax tree: one walk for expressions, one for what is done with them.

Limitations: `exec`, names made at run time and comments that give types are not followed. Where Python 3.11 does not
tell the place of a name inside an f-string rightly, the use is there and its place is that of the string.
"""

import ast
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from localagent.code.graph.facts import (
    Binding,
    DefinitionKind,
    Expression,
    ExpressionKind,
    FunctionOrClass,
    ImportContext,
    ImportFact,
    ModuleFacts,
    Parameter,
    ParameterKind,
    Scope,
    ScopeType,
    Unreadable,
    Use,
    UseKind,
)
from localagent.code.names import callee_name, imports_of, last_name
from localagent.code.scopes import LexicalScope, ScopeKind, Walk
from localagent.code.source_text import SourceText, parse_or_none, parse_or_reason, read_source
from localagent.code.spans import first_line, last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPE_TYPES = {
    ScopeKind.MODULE: ScopeType.MODULE,
    ScopeKind.CLASS: ScopeType.CLASS,
    ScopeKind.FUNCTION: ScopeType.FUNCTION,
    ScopeKind.COMPREHENSION: ScopeType.COMPREHENSION,
}
_DOTTED = re.compile(r"[^\W\d]\w*(?:[.:][^\W\d]\w*)*")
_IDENTIFIER = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_IDENTIFIER_AT_END = re.compile(rb"[A-Za-z0-9_\x80-\xff]+\Z")
_DEFINING = re.compile(rb"(?:async(?:\s|\\\r?\n)+)?(?:def|class)(?:\s|\\\r?\n)+")
_FROM = re.compile(rb"from(?:\s|\\\r?\n)*(?:\.(?:\s|\\\r?\n)*)*")
_WITHOUT_METHODS = frozenset(
    {ExpressionKind.LITERAL, ExpressionKind.TUPLE, ExpressionKind.LIST, ExpressionKind.DICT, ExpressionKind.MODULE}
)
_BUILTIN_METHODS = {
    f: f"__{f}__" for f in ("len", "str", "repr", "iter", "next", "bool", "hash", "int", "bytes", "dir")
}
_ITEM_METHODS = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
_OPERATOR_METHODS = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.MatMult: "__matmul__", ast.Div: "__truediv__",
    ast.Mod: "__mod__", ast.Pow: "__pow__", ast.LShift: "__lshift__", ast.RShift: "__rshift__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.BitAnd: "__and__", ast.FloorDiv: "__floordiv__",
}  # fmt: skip
_COMPARISON_METHODS = {
    ast.Eq: "__eq__", ast.NotEq: "__eq__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__", ast.GtE: "__ge__",
}  # fmt: skip
_LONGEST_STRING = 200
_LONGEST_ANNOTATION = 1_000
_LONGEST_SIGNATURE = 400
_LONGEST_DOC = 200
_MOST_JOINED = 8  # values of one display, statements of one function


def collect_facts(source: bytes) -> ModuleFacts | Unreadable:
    """The facts of a file's bytes, or why there are none. Never raises, whatever the bytes."""
    text = read_source(source)
    if text is None:
        return Unreadable(reason="its encoding is unknown, or does not fit its bytes")
    tree = parse_or_reason(source)
    if isinstance(tree, str):
        return Unreadable(reason=tree)
    try:
        return _Collector(tree, text).facts()
    except (RecursionError, MemoryError):
        return Unreadable(reason="nested too deeply")


class _Collector:
    """Rows of one file, in the making."""

    def __init__(self, tree: ast.Module, text: SourceText) -> None:
        self.text = text
        self.walk = Walk(tree)
        self.names: dict[str, int] = {}
        self.rows: dict[tuple[int, int, int], int] = {}
        self.value: dict[ast.AST, int] = {}
        self.uses: list[Use] = []
        self.bindings: list[Binding] = []
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

    def facts(self) -> ModuleFacts:
        nodes = [*self.walk.nodes, *self._annotations_in_strings()]
        for node in reversed(nodes):
            make = _EXPRESSIONS.get(node.__class__)
            if make is not None:
                self.value[node] = make(self, node)
        for node in nodes:
            handle = _STATEMENTS.get(node.__class__)
            if handle is not None:
                handle(self, node)
        self.uses.sort(key=lambda use: (use.line, use.column))
        definitions = tuple(self._definition(node) for node in self.definition_index)
        return ModuleFacts(
            names=tuple(self.names),
            scopes=tuple(self._scope_rows()),
            expressions=tuple(Expression(*row) for row in self.rows),
            definitions=definitions,
            bindings=tuple(self.bindings),
            imports=tuple(self.imports),
            uses=tuple(self.uses),
            exports=None if self.exports is None else tuple(self.exports),
            export_sources=tuple(self.export_sources),
        )

    # rows

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def row(self, kind: ExpressionKind, a: int = -1, b: int = -1) -> int:
        at = self.rows.setdefault((int(kind), a, b), len(self.rows))
        if at == len(self.kinds):
            self.kinds.append(int(kind))
        return at

    def union(self, values: Iterable[int]) -> int:
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
        return self.row(ExpressionKind.LITERAL, -1, self.name(name))

    def scope_of(self, node: ast.AST) -> int:
        return self.scope_index[self.walk.scope[node]]

    def _scope_rows(self) -> Iterator[Scope]:
        for scope in self.scopes:
            parent = -1 if scope.parent is None else self.scope_index[scope.parent]
            yield Scope(_SCOPE_TYPES[scope.kind], parent, self.definition_index.get(scope.node, -1))

    def use(self, kind: UseKind, line: int, column: int, length: int, node: ast.AST, expression: int) -> None:
        self.uses.append(Use(int(kind), line, column, length, self.scope_of(node), expression))

    def bind(self, target: int, value: int, line: int) -> None:
        self.bindings.append(Binding(target, value, line))

    # places

    def place(self, offset: int) -> tuple[int, int]:
        line = self.text.line_of(offset)
        return line, offset - self.text.line_starts[line - 1]

    def use_at(self, kind: UseKind, offset: int, node: ast.AST, expression: int) -> None:
        """A use of the identifier that begins at an offset."""
        found = _IDENTIFIER.match(self.text.utf8, offset)
        line, column = self.place(offset)
        self.use(kind, line, column, len(found.group()) if found else -1, node, expression)

    def use_ending(self, kind: UseKind, node: ast.AST, name: str, expression: int) -> None:
        """A use of the identifier that a node ends with."""
        line, end = last_line(node), node.end_col_offset  # type: ignore[arg-type, attr-defined]
        length = len(name)
        if not name.isascii() or name.encode() != self._bytes_before(line, end, length):
            found = _IDENTIFIER_AT_END.search(self._bytes_before(line, end, end))
            length = len(found.group()) if found else -1  # it may be written with other letters that mean the same
            if unicodedata.normalize("NFKC", found.group().decode()) != name if found else True:
                line, end, length = node.lineno, node.col_offset - 1, -1  # type: ignore[attr-defined]
        self.use(kind, line, end - length, length, node, expression)

    def _bytes_before(self, line: int, end: int, length: int) -> bytes:
        stop = self.text.offset(line, end) if line <= len(self.text.line_starts) else 0
        return self.text.utf8[max(0, stop - length) : stop]

    # annotations written as strings

    def _annotations_in_strings(self) -> list[ast.AST]:
        added: list[ast.AST] = []
        for constant in self._strings_in_annotations():
            tree = self._parsed(constant)
            if tree is None:
                continue
            self.written[constant] = tree
            scope = self.walk.scope[constant]
            stack: list[tuple[ast.AST, ast.AST]] = [(tree, constant)]
            while stack:
                node, parent = stack.pop()
                added.append(node)
                self.walk.parent[node] = parent
                self.walk.scope[node] = scope
                stack += [(child, node) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return added

    def _strings_in_annotations(self) -> Iterator[ast.Constant]:
        for node in self.walk.nodes:
            part = getattr(node, "annotation", None) or (node.returns if isinstance(node, _FUNCTIONS) else None)
            stack = [part] if isinstance(part, ast.expr) else []
            while stack:
                inner = stack.pop()
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner
                elif isinstance(inner, ast.Subscript):
                    self.annotating.add(inner)
                    stack.append(inner.value)
                    holds = last_name(inner.value)
                    if holds == "Annotated" and isinstance(inner.slice, ast.Tuple):
                        stack.append(inner.slice.elts[0])
                    elif holds != "Literal":
                        stack.append(inner.slice)
                else:
                    stack += [child for child in ast.iter_child_nodes(inner) if isinstance(child, ast.expr)]

    def _parsed(self, constant: ast.Constant) -> ast.expr | None:
        """An annotation's tree with the places that its names have in the file; None where it is no expression."""
        value = str(constant.value)
        margin = len(value) - len(value.lstrip())
        tree = parse_or_none(value[margin:]) if len(value) <= _LONGEST_ANNOTATION else None
        if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
            return None
        start = self.text.offset(constant.lineno, constant.col_offset)
        quotes = self.text.utf8[start : self.text.offset(last_line(constant), constant.end_col_offset or 0)]
        written = quotes.find(value.encode("utf-8", "surrogatepass"))
        simple = written >= 0 and "\n" not in value
        for node in ast.walk(tree):
            if isinstance(node, ast.expr):
                shift = constant.col_offset + written + margin
                columns = (node.col_offset, node.end_col_offset or 0)
                ast.copy_location(node, constant)
                if simple:
                    node.col_offset, node.end_col_offset = (column + shift for column in columns)
        return tree.body[0].value

    # definitions

    def _definition(self, node: ast.AST) -> FunctionOrClass:
        own = self.walk.own[node]
        line, column, _ = self.defined_at[node]
        kind, name, decorators, bases = DefinitionKind.LAMBDA, "<lambda>", [], []
        if isinstance(node, ast.ClassDef):
            kind, name, decorators = DefinitionKind.CLASS, node.name, node.decorator_list
            bases = [self.of(base) for base in node.bases]
        elif isinstance(node, _FUNCTIONS):
            asynchronous = isinstance(node, ast.AsyncFunctionDef)
            kind = DefinitionKind.ASYNC_FUNCTION if asynchronous else DefinitionKind.FUNCTION
            name, decorators = node.name, node.decorator_list
        returned, yielded = self.results.get(node, ([], []))
        return FunctionOrClass(
            kind=int(kind),
            name=name,
            scope=self.scope_of(node),
            own_scope=self.scope_index[own],
            first_line=first_line(node),  # type: ignore[arg-type]
            line=line,
            column=column,
            end_line=last_line(node),  # type: ignore[arg-type]
            end_column=node.end_col_offset or 0,  # type: ignore[attr-defined]
            signature=_signature(node),
            doc=_doc(node),
            decorators=tuple(self.of(d) for d in decorators),
            bases=tuple(bases),
            parameters=tuple(self._parameters(node)),
            annotation=self.of(getattr(node, "returns", None)),
            returned=self.of(node.body) if isinstance(node, ast.Lambda) else self.union(returned),
            yielded=self.union(yielded),
            fixture=_fixture(decorators, name),
        )

    def _parameters(self, node: ast.AST) -> Iterator[Parameter]:
        arguments = getattr(node, "args", None)
        if not isinstance(arguments, ast.arguments):
            return
        for kind, argument, default in _arguments(arguments):
            yield Parameter(argument.arg, int(kind), self.of(argument.annotation), self.of(default))

    def defines(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        found = _DEFINING.match(self.text.utf8, self.text.offset(node.lineno, node.col_offset))
        offset = found.end() if found else self.text.offset(node.lineno, node.col_offset)
        scope = self.walk.scope[node]
        target = self.name_in(scope, node.name)
        self.use_at(UseKind.DEFINE, offset, node, target)
        self.defined_at[node] = self.uses[-1][1:4]
        self.bind(target, self.row(ExpressionKind.DEFINED, self.definition_index[node]), node.lineno)
        for decorator in node.decorator_list:
            self.decorating.add(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if not isinstance(node, ast.ClassDef):
            self.parameters_of(node)

    def parameters_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        inner = self.walk.own[node]
        at = self.scope_index[inner]
        for _, argument, default in _arguments(node.args):
            target = self.name_in(inner, argument.arg)
            found = _IDENTIFIER.match(self.text.utf8, self.text.offset(argument.lineno, argument.col_offset))
            length = len(found.group()) if found else -1
            self.uses.append(Use(int(UseKind.DEFINE), argument.lineno, argument.col_offset, length, at, target))
            value = self.of(argument.annotation)
            typed = self.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1
            self.bind(target, self.union((typed, self.of(default))), argument.lineno)

    def lambdas(self, node: ast.Lambda) -> None:
        self.defined_at[node] = (node.lineno, node.col_offset, 0)
        self.parameters_of(node)

    # what is done with names

    def named(self, node: ast.Name) -> None:
        kind = self._kind(node)
        self.use_ending(kind, node, node.id, self.value[node])

    def attribute(self, node: ast.Attribute) -> None:
        self.use_ending(self._kind(node), node, node.attr, self.value[node])

    def _kind(self, node: ast.Name | ast.Attribute) -> UseKind:
        if isinstance(node.ctx, ast.Store):
            return UseKind.WRITE
        if isinstance(node.ctx, ast.Del):
            return UseKind.DELETE
        if node in self.decorating:
            return UseKind.DECORATOR
        return UseKind.CALL if node in self.called else UseKind.READ

    def call(self, node: ast.Call) -> None:
        func = node.func
        if isinstance(func, ast.Name | ast.Attribute):
            self.called.add(func)
        else:
            self.use(UseKind.CALL, node.lineno, node.col_offset, 0, node, self.of(func))
        for keyword in node.keywords:
            if keyword.arg is not None:
                expression = self.row(ExpressionKind.KEYWORD, self.of(func), self.name(keyword.arg))
                self.use_at(UseKind.KEYWORD, self.text.offset(keyword.lineno, keyword.col_offset), node, expression)
        if isinstance(func, ast.Name) and func.id in _BUILTIN_METHODS and node.args:
            self.implicit(node, node.args[0], _BUILTIN_METHODS[func.id])
        if isinstance(func, ast.Name) and func.id == "isinstance" and len(node.args) == 2:
            self._narrowed(*node.args)
        if isinstance(func, ast.Attribute) and func.attr in ("extend", "append") and _is_all(func.value):
            self._exports(node, node.args, add=True)

    def implicit(self, node: ast.AST, value: ast.expr, method: str) -> None:
        """A method that Python calls by itself: an operator's, a loop's, that of `len(value)`."""
        at = self.of(value)
        if at >= 0 and self.kinds[at] not in _WITHOUT_METHODS:
            expression = self.row(ExpressionKind.ATTRIBUTE, at, self.name(method))
            self.use(UseKind.CALL, node.lineno, node.col_offset, 0, node, expression)  # type: ignore[attr-defined]

    def subscripted(self, node: ast.Subscript) -> None:
        if node not in self.annotating:
            self.implicit(node, node.value, _ITEM_METHODS[type(node.ctx)])

    def operated(self, node: ast.BinOp) -> None:
        self.implicit(node, node.left, _OPERATOR_METHODS[type(node.op)])

    def compared(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(operator, ast.In | ast.NotIn):
                self.implicit(node, right, "__contains__")
            elif type(operator) in _COMPARISON_METHODS:
                self.implicit(node, left, _COMPARISON_METHODS[type(operator)])

    def formatted(self, node: ast.FormattedValue) -> None:
        self.implicit(node, node.value, "__repr__" if node.conversion == ord("r") else "__str__")

    def _narrowed(self, value: ast.expr, asked: ast.expr) -> None:
        if isinstance(value, ast.Name | ast.Attribute):
            for one in asked.elts if isinstance(asked, ast.Tuple) else [asked]:
                if self.of(one) >= 0:
                    self.bind(self.of(value), self.row(ExpressionKind.NARROWED, self.of(one)), value.lineno)

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if not isinstance(value, str) or node in self.written or len(value) > _LONGEST_STRING:
            return
        if node in self.walk.quoted or not _DOTTED.fullmatch(value):
            return
        start = self.text.offset(node.lineno, node.col_offset)
        stop = self.text.offset(last_line(node), node.end_col_offset or 0)
        place = self.text.utf8.find(value.encode(), start, stop)
        kind = UseKind.EXPORT if node in self.exported else UseKind.STRING
        line, column = self.place(place) if place >= 0 else (node.lineno, node.col_offset)
        length = len(value.encode()) if place >= 0 else -1
        self.use(kind, line, column, length, node, self.row(ExpressionKind.STRING, -1, self.name(value)))

    def declared(self, node: ast.Global | ast.Nonlocal) -> None:
        offset = self.text.offset(node.lineno, node.col_offset)
        for name in node.names:
            found = re.compile(_word(name)).search(self.text.utf8, offset)
            if found is not None:
                offset = found.end()
                self.use_at(UseKind.DECLARE, found.start(), node, self.name_in(self.walk.scope[node], name))

    # imports

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        scope = self.walk.scope[node]
        context = self._context(node)
        if isinstance(node, ast.ImportFrom):
            self._module_uses(node)
        for alias, name in zip(node.names, imports_of(node), strict=True):
            at = self.scope_of(node)
            self.imports.append(ImportFact(name.module, name.item, name.bound, at, node.lineno, int(context)))
            if name.item == "*":
                continue
            offset = self.text.offset(alias.lineno, alias.col_offset)
            if name.item:
                value = self.row(ExpressionKind.ATTRIBUTE, self._module(name.module), self.name(name.item))
                self.use_at(UseKind.IMPORT, offset, node, value)
            else:
                self._dotted_uses(node, offset, name.module, "")
                value = self._module(name.origin)
            target = self.name_in(scope, name.bound)
            stop = self.text.offset(last_line(alias), alias.end_col_offset or 0)  # type: ignore[arg-type]
            if b"as" in self.text.utf8[offset:stop].split():
                self.use_ending(UseKind.WRITE, alias, name.bound, target)
            self.bind(target, value, node.lineno)

    def _module(self, dotted: str) -> int:
        return self.row(ExpressionKind.MODULE, -1, self.name(dotted))

    def _module_uses(self, node: ast.ImportFrom) -> None:
        found = _FROM.match(self.text.utf8, self.text.offset(node.lineno, node.col_offset))
        if found is not None and node.module:
            self._dotted_uses(node, found.end(), node.module, "." * node.level)

    def _dotted_uses(self, node: ast.stmt, offset: int, dotted: str, dots: str) -> None:
        """Uses of `a`, `a.b` and `a.b.c` of a dotted name that begins at an offset."""
        whole = dots
        for part in dotted.split("."):
            found = re.compile(_word(part)).search(self.text.utf8, offset)
            if found is None:
                return
            whole += part
            self.use_at(UseKind.IMPORT, found.start(), node, self._module(whole))
            whole += "."
            offset = found.end()

    def _context(self, node: ast.AST) -> ImportContext:
        around = self.walk.parent.get(node)
        while around is not None and around not in self.walk.own:
            if isinstance(around, ast.If):
                checking = last_name(around.test) == "TYPE_CHECKING"
                return ImportContext.TYPE_CHECKING if checking else ImportContext.CONDITIONAL
            if isinstance(around, ast.Try | ast.TryStar):
                return ImportContext.TRY
            around = self.walk.parent.get(around)
        return ImportContext.PLAIN

    # values

    def assigned(self, node: ast.Assign | ast.NamedExpr) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._assign(target, node.value, self.of(node.value))
            if _is_all(target):
                self._exports(node, [node.value], add=False)

    def annotated(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name | ast.Attribute):
            typed = self.row(ExpressionKind.INSTANCE, self.of(node.annotation))
            self.bind(self.of(node.target), self.union((typed, self.of(node.value))), node.lineno)
        if node.value is not None and _is_all(node.target):
            self._exports(node, [node.value], add=False)

    def augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name | ast.Attribute):
            self.bind(self.of(node.target), -1, node.lineno)
        if _is_all(node.target):
            self._exports(node, [node.value], add=True)

    def _assign(self, target: ast.expr, value: ast.expr | None, whole: int) -> None:
        """Binds a target, pair by pair where both sides are displays of one length."""
        if isinstance(target, ast.Name | ast.Attribute):
            self.bind(self.of(target), whole, target.lineno)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(x, ast.Starred) for x in target.elts)
            paired = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) and not starred
            for at, part in enumerate(target.elts):
                if paired:
                    inner = value.elts[at]  # type: ignore[union-attr]
                    self._assign(part, inner, self.of(inner))
                else:
                    known = whole >= 0 and not starred
                    self._assign(part, None, self.row(ExpressionKind.ITEM, whole, at) if known else -1)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None, -1)

    def looped(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        value = self.of(node.iter)
        self.implicit(node.iter, node.iter, "__iter__")
        self._assign(node.target, None, self.row(ExpressionKind.ELEMENT, value) if value >= 0 else -1)

    def entered(self, node: ast.withitem) -> None:
        for method in ("__enter__", "__exit__"):
            self.implicit(node.context_expr, node.context_expr, method)
        if node.optional_vars is not None:
            value = self.of(node.context_expr)
            self._assign(node.optional_vars, None, self.row(ExpressionKind.ENTER, value) if value >= 0 else -1)

    def handler(self, node: ast.ExceptHandler) -> None:
        if node.name is None:
            return
        target = self.name_in(self.walk.scope[node], node.name)
        start = self.text.offset(last_line(node.type or node), getattr(node.type, "end_col_offset", 0) or 0)
        found = re.compile(rb"\bas\b(?:\s|\\\r?\n)+").search(self.text.utf8, start)
        if found is not None:
            self.use_at(UseKind.WRITE, found.end(), node, target)
        types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        value = self.union(self.of(one) for one in types)
        self.bind(target, self.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1, node.lineno)

    def captured(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is None:
            return
        target = self.name_in(self.walk.scope[node], name)
        if not isinstance(node, ast.MatchMapping):
            self.use_ending(UseKind.WRITE, node, name, target)
        of_class = node.pattern if isinstance(node, ast.MatchAs) else None
        value = self.of(of_class.cls) if isinstance(of_class, ast.MatchClass) else -1
        self.bind(target, self.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1, node.lineno)

    def result(self, node: ast.Return | ast.Yield | ast.YieldFrom) -> None:
        function = self.walk.scope[node].function.node
        returned, yielded = self.results.setdefault(function, ([], []))
        value = self.of(node.value)
        if value < 0:
            return
        if isinstance(node, ast.Return):
            returned.append(value)
        else:
            yielded.append(value if isinstance(node, ast.Yield) else self.row(ExpressionKind.ELEMENT, value))

    def _exports(self, node: ast.AST, values: Iterable[ast.expr], *, add: bool) -> None:
        if self.walk.scope[node] is not self.walk.root:
            return
        if self.exports is None or not add:
            self.exports, self.export_sources = self.exports or [], self.export_sources
        stack = list(values)
        while stack:
            value = stack.pop(0)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                self.exports.append(value.value)
                self.exported.add(value)
            elif isinstance(value, ast.Tuple | ast.List | ast.Set):
                stack += value.elts
            elif isinstance(value, ast.BinOp):
                stack += [value.left, value.right]
            elif isinstance(value, ast.Starred):
                stack.append(value.value)
            elif isinstance(value, ast.Call) and value.args:
                stack += value.args  # list(...), sorted(...)
            elif self.of(value) >= 0:
                self.export_sources.append(self.of(value))


def _arguments(arguments: ast.arguments) -> Iterator[tuple[ParameterKind, ast.arg, ast.expr | None]]:
    """Every parameter with its kind and default, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    defaults = [None] * without + arguments.defaults
    for at, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        only = at < len(arguments.posonlyargs)
        yield ParameterKind.POSITIONAL_ONLY if only else ParameterKind.POSITIONAL_OR_KEYWORD, argument, default
    if arguments.vararg is not None:
        yield ParameterKind.VAR_POSITIONAL, arguments.vararg, None
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield ParameterKind.KEYWORD_ONLY, argument, default
    if arguments.kwarg is not None:
        yield ParameterKind.VAR_KEYWORD, arguments.kwarg, None


def _word(name: str) -> bytes:
    return rb"(?<![\w\x80-\xff])" + re.escape(name.encode()) + rb"(?![\w\x80-\xff])"


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _signature(node: ast.AST) -> str:
    """`name(a, b=1) -> int`, `name(Base)`; cut where it is long, without what nests too deeply to be written."""
    if isinstance(node, ast.Lambda):
        return ""
    try:
        if isinstance(node, ast.ClassDef):
            inner = ", ".join(ast.unparse(part) for part in (*node.bases, *node.keywords))
            text = f"{node.name}({inner})" if inner else node.name
        elif isinstance(node, _FUNCTIONS):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
            text = f"{node.name}({ast.unparse(node.args)}){returns}"
        else:
            return ""
    except (RecursionError, ValueError):  # ValueError: a number with more digits than Python writes
        text = f"{getattr(node, 'name', '')}(...)"
    return text if len(text) <= _LONGEST_SIGNATURE else text[: _LONGEST_SIGNATURE - 3] + "..."


def _doc(node: ast.AST) -> str:
    """The first line of a docstring that is not empty."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return ""
    line = value.value.strip().partition("\n")[0].strip()[:_LONGEST_DOC]
    return line.encode("utf-8", "replace").decode()


def _fixture(decorators: list[ast.expr], name: str) -> str:
    """The name under which a function is a pytest fixture, "" where it is none."""
    for decorator in decorators:
        if callee_name(decorator) in ("fixture", "yield_fixture"):
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            named = [k.value for k in keywords if k.arg == "name"]
            return str(named[0].value) if named and isinstance(named[0], ast.Constant) else name
    return ""


def _constant(of: _Collector, node: ast.Constant) -> int:
    if node in of.written:
        return of.of(of.written[node])
    return of.literal(type(node.value).__name__)


def _call(of: _Collector, node: ast.Call) -> int:
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return of.row(ExpressionKind.SUPER, of.scope_index[of.walk.scope[node].function])
    first = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
    return of.row(ExpressionKind.CALL, of.of(node.func), of.of(first))


def _subscript(of: _Collector, node: ast.Subscript) -> int:
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    at = index if type(index) is int and 0 <= index < _MOST_JOINED else -1
    value = of.of(node.value)
    if value < 0:
        return -1
    if isinstance(node.slice, ast.Slice):
        return value
    if index is None or isinstance(index, str):
        return of.row(ExpressionKind.SUBSCRIPT, value, of.of(node.slice))
    return of.row(ExpressionKind.ITEM, value, at)


def _tuple(of: _Collector, node: ast.Tuple) -> int:
    whole = of.row(ExpressionKind.TUPLE)
    for item in reversed(node.elts[:_MOST_JOINED]):
        whole = of.row(ExpressionKind.TUPLE, of.of(item), whole)
    return whole


def _operation(of: _Collector, node: ast.BinOp) -> int:
    return of.union((of.of(node.left), of.of(node.right))) if isinstance(node.op, ast.BitOr) else -1


def _list(kind: str) -> Callable[[_Collector, ast.AST], int]:
    def made(of: _Collector, node: ast.AST) -> int:
        items: list[ast.expr] = getattr(node, "elts", None) or [getattr(node, "elt", ast.Tuple(elts=[]))]
        return of.row(ExpressionKind.LIST, of.union(of.of(item) for item in items[:_MOST_JOINED]), of.name(kind))

    return made


def _dict(of: _Collector, node: ast.Dict) -> int:
    keys = of.union(of.of(key) for key in node.keys[:_MOST_JOINED])
    return of.row(ExpressionKind.DICT, keys, of.union(of.of(value) for value in node.values[:_MOST_JOINED]))


_EXPRESSIONS: dict[type[ast.AST], Callable[[_Collector, Any], int]] = {
    ast.Name: lambda of, node: of.name_in(of.walk.scope[node], node.id),
    ast.Attribute: lambda of, node: of.row(ExpressionKind.ATTRIBUTE, of.of(node.value), of.name(node.attr)),
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Constant: _constant,
    ast.JoinedStr: lambda of, _: of.literal("str"),
    ast.Await: lambda of, node: of.row(ExpressionKind.AWAIT, of.of(node.value)),
    ast.NamedExpr: lambda of, node: of.of(node.value),
    ast.IfExp: lambda of, node: of.union((of.of(node.body), of.of(node.orelse))),
    ast.BoolOp: lambda of, node: of.union(of.of(value) for value in node.values),
    ast.BinOp: _operation,
    ast.Tuple: _tuple,
    ast.List: _list("list"),
    ast.Set: _list("set"),
    ast.ListComp: _list("list"),
    ast.SetComp: _list("set"),
    ast.GeneratorExp: _list("generator"),
    ast.Dict: _dict,
    ast.DictComp: lambda of, node: of.row(ExpressionKind.DICT, of.of(node.key), of.of(node.value)),
    ast.Lambda: lambda of, node: of.row(ExpressionKind.DEFINED, of.definition_index[node]),
    ast.Compare: lambda of, _: of.literal("bool"),
}
_STATEMENTS: dict[type[ast.AST], Callable[[_Collector, Any], None]] = {
    ast.Name: _Collector.named,
    ast.Attribute: _Collector.attribute,
    ast.Call: _Collector.call,
    ast.Constant: _Collector.constant,
    ast.Subscript: _Collector.subscripted,
    ast.BinOp: _Collector.operated,
    ast.Compare: _Collector.compared,
    ast.FormattedValue: _Collector.formatted,
    ast.FunctionDef: _Collector.defines,
    ast.AsyncFunctionDef: _Collector.defines,
    ast.ClassDef: _Collector.defines,
    ast.Lambda: _Collector.lambdas,
    ast.Import: _Collector.imported,
    ast.ImportFrom: _Collector.imported,
    ast.Global: _Collector.declared,
    ast.Nonlocal: _Collector.declared,
    ast.Assign: _Collector.assigned,
    ast.NamedExpr: _Collector.assigned,
    ast.AnnAssign: _Collector.annotated,
    ast.AugAssign: _Collector.augmented,
    ast.For: _Collector.looped,
    ast.AsyncFor: _Collector.looped,
    ast.comprehension: _Collector.looped,
    ast.withitem: _Collector.entered,
    ast.ExceptHandler: _Collector.handler,
    ast.MatchAs: _Collector.captured,
    ast.MatchStar: _Collector.captured,
    ast.MatchMapping: _Collector.captured,
    ast.Return: _Collector.result,
    ast.Yield: _Collector.result,
    ast.YieldFrom: _Collector.result,
}
