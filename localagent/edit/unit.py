"""One editable unit of a file: an outermost function, or a statement outside functions, with exact byte spans.

Spans are byte offsets into the unit's own UTF-8 text. A unit whose text libcst does not give back byte for byte is
refused (None): nothing is ever spliced by spans that were not verified.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from localagent.edit import normal, precedence
from localagent.edit.source import SourceText

_SKIPPED = frozenset(
    {"lpar", "rpar", "comma", "semicolon", "leading_lines", "lines_after_decorators", "header", "footer", "lbracket"}
    | {"rbracket", "lbrace", "rbrace", "equal", "dot", "colon", "trailing_whitespace", "first_colon", "second_colon"}
)
_FIELDS: dict[type, tuple[str, ...]] = {}
_COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.FunctionDef, cst.ClassDef, cst.Match)


def fields_of(cls: type) -> tuple[str, ...]:
    """The fields of a node class that hold syntax, in source order as libcst declares them."""
    found = _FIELDS.get(cls)
    if found is None:
        names = (f for f in cls.__dataclass_fields__ if f not in _SKIPPED)  # type: ignore[attr-defined]
        found = tuple(f for f in names if "whitespace" not in f)
        _FIELDS[cls] = found
    return found


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Direct children that are syntax (no whitespace, no punctuation)."""
    for name in fields_of(node.__class__):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif value.__class__ in (list, tuple):
            for item in value:
                if isinstance(item, cst.CSTNode):
                    yield item


@dataclass(slots=True, eq=False)
class Expr:
    """An expression at its place: outer span (own parentheses included), text, how it binds, what the place needs."""

    node: cst.BaseExpression
    parent: cst.CSTNode
    statement: "Stmt"
    start: int
    end: int
    text: str
    level: int
    need: int
    line: int
    end_line: int
    depth: int
    in_fstring: bool
    scope: cst.CSTNode | None
    store: bool = False

    def fitted(self, text: str, level: int) -> str:
        """`text` parenthesised as this place needs it."""
        return precedence.fit(text, level, self.need)


@dataclass(slots=True, eq=False)
class Suite:
    """A block. `head` is the span of its own header (an except clause, a case) with its colon, if it has one."""

    owner: "Stmt | None"
    slot: str
    head: tuple[int, int] | None = None
    inline: bool = False
    statements: list["Stmt"] = field(default_factory=list)
    head_digest: int = 0


@dataclass(slots=True, eq=False)
class Stmt:
    """A statement: token span [start, end), whole lines [line_start, line_end), `eol` before the line's newline."""

    node: cst.CSTNode
    suite: Suite
    index: int
    start: int
    end: int
    line_start: int
    line_end: int
    eol: int
    line: int
    end_line: int
    indent: str
    alone: bool
    in_loop: bool
    scope: cst.CSTNode | None
    head_end: int = 0
    suites: list[Suite] = field(default_factory=list)
    digest: int | None = None
    head_digest: int = 0

    @property
    def compound(self) -> bool:
        """True for statements with blocks."""
        return bool(self.suites)

    @property
    def is_elif(self) -> bool:
        """True for an `elif`, which is the only statement of its parent's else block and no block by itself."""
        return self.suite.slot == "elif"


class Unit:
    """A piece of a file, parsed. Use `build`; `text` is the unit's UTF-8 bytes, `base` their offset in the file's."""

    def __init__(self, source: SourceText, base: int, end: int, first_line: int, prefix: str) -> None:
        self.source = source
        self.base = base
        self.text = source.utf8[base:end]
        self.first_line = first_line
        self.prefix = prefix
        self.exprs: list[Expr] = []
        self.statements: list[Stmt] = []
        self.root = Suite(None, "root")
        self.newline = source.newline
        self.tree: cst.Module
        self._spans: dict[cst.CSTNode, tuple[int, int]] = {}

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Byte span of a node without its own parentheses."""
        return self._spans[node]

    def outer(self, node: cst.CSTNode) -> tuple[int, int]:
        """Byte span of a node with its own parentheses."""
        start, end = self._spans[node]
        left, right = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        if left:
            start = self._spans[left[0]][0]
        if right:
            # the span of a closing parenthesis may begin at its leading whitespace; its end is exact
            end = self._spans[right[-1]][1]
        return start, end

    def slice(self, start: int, end: int) -> str:
        """Text of a byte span."""
        return self.text[start:end].decode("utf-8")

    def code(self, node: cst.CSTNode) -> str:
        """Text of a node with its own parentheses."""
        return self.slice(*self.outer(node))

    def line(self, offset: int) -> int:
        """1-based line in the file of a unit offset."""
        return self.source.line_of(self.base + offset)

    def digest(self, statement: Stmt) -> int:
        """Normal-form digest of a statement as it stands."""
        if statement.digest is None:
            statement.digest = self._digest(statement)
        return statement.digest

    def _digest(self, statement: Stmt) -> int:
        if not statement.suites:
            tree = normal.parse(self.text[statement.start : statement.end])
            if tree is None or len(tree.body) != 1:
                raise ValueError(f"line {statement.line} does not stand alone")
            return normal.statement_digest(tree.body[0])
        head = self.head_digest_of(statement, self.slice(statement.start, statement.head_end))
        if head is None:
            raise ValueError(f"the header at line {statement.line} does not stand alone")
        statement.head_digest = head
        return normal.compound_digest(head, [self.suite_digest(s) for s in statement.suites])

    def suite_digest(self, suite: Suite) -> int:
        """Normal-form digest of a block as it stands."""
        if suite.head is not None and not suite.head_digest:
            head = self.clause_digest(suite, self.slice(*suite.head))
            if head is None:
                raise ValueError("a clause does not stand alone")
            suite.head_digest = head
        return normal.suite_digest(suite.head_digest, [self.digest(s) for s in suite.statements])

    def head_digest_of(self, statement: Stmt, text: str) -> int | None:
        """Digest of a compound statement's header, given its text up to and with the colon."""
        if isinstance(statement.node, (cst.Try, cst.TryStar)):
            text = (
                text + " pass\nexcept* E: pass"
                if isinstance(statement.node, cst.TryStar)
                else text + " pass\nfinally: pass"
            )
        elif isinstance(statement.node, cst.Match):
            text += "\n case _: pass"
        else:
            text = (text[2:] if statement.is_elif else text) + " pass"
            if text.startswith("@") and statement.indent:
                return self._decorated_digest(f"if 1:\n{statement.indent}{text}")
        tree = normal.parse(text)
        if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], _AST_COMPOUND):
            return None
        return normal.header_digest(tree.body[0])

    @staticmethod
    def _decorated_digest(text: str) -> int | None:
        tree = normal.parse(text)
        if tree is None or not isinstance(tree.body[0], ast.If) or len(tree.body[0].body) != 1:
            return None
        return normal.header_digest(tree.body[0].body[0])

    def clause_digest(self, suite: Suite, text: str) -> int | None:
        """Digest of an except clause's or a case's header."""
        is_case = suite.slot == "case"
        tree = normal.parse(("match _:\n " if is_case else "try: pass\n") + text + " pass")
        if tree is None or len(tree.body) != 1:
            return None
        top = tree.body[0]
        if isinstance(top, ast.Match) and len(top.cases) == 1:
            return normal.header_digest(top.cases[0])
        if isinstance(top, (ast.Try, ast.TryStar)) and len(top.handlers) == 1:
            return normal.header_digest(top.handlers[0])
        return None


_AST_COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)


def build(source: SourceText, first_line: int, last_line: int) -> Unit | None:
    """Parse whole lines [first_line, last_line] of a file; None if they cannot be given exact spans."""
    base = source.line_starts[first_line - 1]
    end = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.utf8)
    indented = source.utf8[base : base + 1] in (b" ", b"\t")
    unit = Unit(source, base, end, first_line, "class _:\n" if indented else "")
    visible = unit.text.replace(b"\f", b" ")
    try:
        tree = cst.parse_module(unit.prefix.encode() + visible)
        if tree.bytes != unit.prefix.encode() + visible:
            return None
        spans = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError):
        return None
    shift = len(unit.prefix)
    unit.tree = tree
    unit._spans = {n: (s.start - shift, s.start + s.length - shift) for n, s in spans.items()}
    try:
        _Builder(unit).run(tree)
        unit.suite_digest(unit.root)
    except (ValueError, RecursionError):
        return None
    return unit


class _Builder:
    """Walks a unit's tree once and fills its statement table and its expressions."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def run(self, tree: cst.Module) -> None:
        body: list[cst.BaseStatement] = list(tree.body)
        if self.unit.prefix:
            wrapper = body[0]
            if not isinstance(wrapper, cst.ClassDef) or not isinstance(wrapper.body, cst.IndentedBlock):
                raise ValueError("the unit does not stand alone")
            body = list(wrapper.body.body)
        self.block(self.unit.root, body, None, in_loop=False)

    def block(self, suite: Suite, body: list[cst.BaseStatement], scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                self.simple(suite, list(node.body), scope, in_loop=in_loop)
            else:
                self.compound(suite, node, scope, in_loop=in_loop)

    def record(self, suite: Suite, node: cst.CSTNode, scope: cst.CSTNode | None, *, alone: bool, in_loop: bool) -> Stmt:
        text = self.unit.text
        start, end = self.unit.span(node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
            start = self.unit.span(node.decorators[0])[0]
        if isinstance(node, _COMPOUND):
            end = len(text[:end].rstrip(b" \t\f\r\n")) if text[:end].rstrip(b" \t\f\r\n") else end
        else:
            end = start + len(text[start:end].rstrip(b" \t\f"))
        line_start = max(text.rfind(b"\n", 0, start), text.rfind(b"\r", 0, start)) + 1
        eol = _line_end(text, end)
        line_end = eol + (2 if text[eol : eol + 2] == b"\r\n" else 1 if eol < len(text) else 0)
        lead = text[line_start:start]
        clear = not lead.strip(b" \t\f")
        statement = Stmt(
            node=node,
            suite=suite,
            index=len(suite.statements),
            start=start,
            end=end,
            line_start=line_start,
            line_end=line_end,
            eol=eol,
            line=self.unit.line(start),
            end_line=self.unit.line(max(start, end - 1)),
            indent=lead.decode() if clear else "",
            alone=alone and clear,
            in_loop=in_loop,
            scope=scope,
        )
        suite.statements.append(statement)
        self.unit.statements.append(statement)
        return statement

    def simple(
        self, suite: Suite, body: list[cst.BaseSmallStatement], scope: cst.CSTNode | None, *, in_loop: bool
    ) -> None:
        for node in body:
            statement = self.record(suite, node, scope, alone=len(body) == 1 and not suite.inline, in_loop=in_loop)
            self.expressions(node, statement, scope, 0)

    def compound(self, suite: Suite, node: cst.CSTNode, scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        statement = self.record(suite, node, scope, alone=True, in_loop=in_loop)
        inner = node if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else scope
        loop = isinstance(node, (cst.For, cst.While)) or (in_loop and inner is scope)
        self.head(node, statement, scope)
        if isinstance(node, cst.Match):
            statement.head_end = self.after_colon(self.unit.outer(node.subject)[1])
            for case in node.cases:
                at = self.unit.outer(case.guard)[1] if case.guard else self.unit.outer(case.pattern)[1]
                sub = self.sub(statement, "case", case.body, inner, in_loop=loop)
                sub.head = (self.unit.span(case)[0], self.after_colon(at))
            return
        body = node.body  # type: ignore[attr-defined]
        statement.head_end = self.after_colon(self.head_tail(node, statement))
        self.sub(statement, "body", body, inner, in_loop=loop)
        if isinstance(node, (cst.Try, cst.TryStar)):
            for handler in node.handlers:
                start = self.unit.span(handler)[0]
                at = start + 6
                if handler.type is not None:
                    at = self.unit.outer(handler.type)[1]
                if handler.name is not None:
                    at = self.unit.outer(handler.name.name)[1]
                sub = self.sub(statement, "except", handler.body, inner, in_loop=loop)
                sub.head = (start, self.after_colon(at))
        if isinstance(node, (cst.If, cst.For, cst.While, cst.Try, cst.TryStar)):
            self.orelse(
                statement, node.orelse, inner, in_loop=in_loop if isinstance(node, (cst.For, cst.While)) else loop
            )
        if isinstance(node, (cst.Try, cst.TryStar)):
            final = node.finalbody
            self.sub(statement, "finally", final.body if final else None, inner, in_loop=loop)

    def orelse(self, statement: Stmt, node: cst.CSTNode | None, scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        if isinstance(node, cst.If):
            suite = Suite(statement, "elif")
            statement.suites.append(suite)
            self.compound(suite, node, scope, in_loop=in_loop)
        else:
            self.sub(statement, "else", node.body if isinstance(node, cst.Else) else None, scope, in_loop=in_loop)

    def sub(
        self,
        statement: Stmt,
        slot: str,
        body: cst.BaseSuite | None,
        scope: cst.CSTNode | None,
        *,
        in_loop: bool,
    ) -> Suite:
        suite = Suite(statement, slot)
        statement.suites.append(suite)
        if isinstance(body, cst.IndentedBlock):
            self.block(suite, list(body.body), scope, in_loop=in_loop)
        elif isinstance(body, cst.SimpleStatementSuite):
            suite.inline = True
            self.simple(suite, list(body.body), scope, in_loop=in_loop)
        return suite

    def head_tail(self, node: cst.CSTNode, statement: Stmt) -> int:
        """Offset after the last header expression, from where the header's colon is found."""
        if isinstance(node, (cst.If, cst.While)):
            return self.unit.outer(node.test)[1]
        if isinstance(node, cst.For):
            return self.unit.outer(node.iter)[1]
        if isinstance(node, cst.With):
            last = node.items[-1]
            return self.unit.outer(last.asname.name if last.asname else last.item)[1]
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            return -self.unit.span(node.name)[1]
        return statement.start + 3

    def after_colon(self, at: int) -> int:
        """Offset right after the first colon outside brackets, strings and comments, from `at` on."""
        text = self.unit.text
        if at < 0:  # a definition: its parameters lie between
            return _definition_colon(text, -at)
        while True:
            char = text[at : at + 1]
            if char == b"#":
                at = _line_end(text, at)
            elif char == b":":
                return at + 1
            elif not char:
                raise ValueError("no colon ends this header")
            else:
                at += 1

    def head(self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None) -> None:
        for name in fields_of(node.__class__):
            if name in ("body", "orelse", "handlers", "finalbody", "cases", "name"):
                continue
            value = getattr(node, name)
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(item, cst.BaseExpression):
                    self.expression(item, node, statement, scope, 0, in_fstring=False)
                elif isinstance(item, cst.CSTNode):
                    self.expressions(item, statement, scope, 0)
        if isinstance(node, (cst.Try, cst.TryStar)):
            for handler in node.handlers:
                if handler.type is not None:
                    self.expression(handler.type, handler, statement, scope, 0, in_fstring=False)
        if isinstance(node, cst.Match):
            for case in node.cases:
                if case.guard is not None:
                    self.expression(case.guard, case, statement, scope, 0, in_fstring=False)

    def expressions(
        self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None, depth: int, *, in_fstring: bool = False
    ) -> None:
        if isinstance(node, (cst.Global, cst.Nonlocal, cst.Import, cst.ImportFrom)):
            return
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self.expression(child, node, statement, scope, depth, in_fstring=in_fstring)
            else:
                self.expressions(child, statement, scope, depth, in_fstring=in_fstring)

    def expression(
        self,
        node: cst.BaseExpression,
        parent: cst.CSTNode,
        statement: Stmt,
        scope: cst.CSTNode | None,
        depth: int,
        *,
        in_fstring: bool,
    ) -> None:
        start, end = self.unit.outer(node)
        is_label = isinstance(node, cst.Name) and (
            (isinstance(parent, cst.Attribute) and parent.attr is node)
            or (isinstance(parent, cst.Arg) and parent.keyword is node)
            or (isinstance(parent, (cst.Param, cst.NameItem, cst.FunctionDef, cst.ClassDef)) and parent.name is node)
            or isinstance(parent, cst.AsName)
        )
        if not is_label:
            expr = Expr(
                node=node,
                parent=parent,
                statement=statement,
                start=start,
                end=end,
                text=self.unit.slice(start, end),
                level=precedence.binding(node),
                need=precedence.needed(parent, node),
                line=self.unit.line(start),
                end_line=self.unit.line(max(start, end - 1)),
                depth=depth,
                in_fstring=in_fstring,
                scope=scope,
                store=_stored(parent, node),
            )
            self.unit.exprs.append(expr)
        quoted = isinstance(node, cst.FormattedString)
        self.expressions(node, statement, scope, depth + 1, in_fstring=in_fstring or quoted)


def _stored(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    return (
        isinstance(parent, cst.AssignTarget)
        or (
            isinstance(parent, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr))
            and parent.target is node
        )
        or isinstance(parent, cst.Del)
    )


def _line_end(text: bytes, at: int) -> int:
    ends = [i for i in (text.find(b"\n", at), text.find(b"\r", at)) if i >= 0]
    return min(ends, default=len(text))


def _definition_colon(text: bytes, at: int) -> int:
    """Offset after the colon that ends a `def`/`class` header, scanning brackets, strings and comments."""
    depth = 0
    while at < len(text):
        char = text[at : at + 1]
        if char == b"#":
            at = _line_end(text, at)
            continue
        if char in (b'"', b"'"):
            at = _string_end(text, at)
            continue
        if char in (b"(", b"[", b"{"):
            depth += 1
        elif char in (b")", b"]", b"}"):
            depth -= 1
        elif char == b":" and depth == 0:
            return at + 1
        at += 1
    raise ValueError("no colon ends this definition")


def _string_end(text: bytes, at: int) -> int:
    quote = text[at : at + 3] if text[at : at + 3] in (b'"""', b"'''") else text[at : at + 1]
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at : at + 1] == b"\\" else 1
    return at + len(quote)
