"""Parses whole lines of a file into a unit: its statement table with exact byte spans, its expressions."""

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from localagent.code.source_text import SourceText
from localagent.edit import precedence
from localagent.edit.unit import Block, Expr, Stmt, Unit, children, fields_of

# The expressions of a unit's statements, each at its place: span, text, binding, what the place needs.

_NOT_HEAD = ("body", "orelse", "handlers", "finalbody", "cases", "name")


class Expressions:
    """Fills a unit's `exprs`, statement by statement."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def of_header(self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None) -> None:
        """Those of a compound statement's own header, its except clauses and guards with it."""
        for name in fields_of(node.__class__):
            if name in _NOT_HEAD:
                continue
            value = getattr(node, name)
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(item, cst.BaseExpression):
                    self._expression(item, node, statement, scope, 0, in_fstring=False)
                elif isinstance(item, cst.CSTNode):
                    self.below(item, statement, scope, 0)
        if isinstance(node, (cst.Try, cst.TryStar)):
            for handler in node.handlers:
                if handler.type is not None:
                    self._expression(handler.type, handler, statement, scope, 0, in_fstring=False)
        if isinstance(node, cst.Match):
            for case in node.cases:
                if case.guard is not None:
                    self._expression(case.guard, case, statement, scope, 0, in_fstring=False)

    def below(
        self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None, depth: int, *, in_fstring: bool = False
    ) -> None:
        """Those below a node; names that a statement only declares or imports are none."""
        if isinstance(node, (cst.Global, cst.Nonlocal, cst.Import, cst.ImportFrom)):
            return
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self._expression(child, node, statement, scope, depth, in_fstring=in_fstring)
            else:
                self.below(child, statement, scope, depth, in_fstring=in_fstring)

    def _expression(
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
        if not _is_label(parent, node):
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
        self.below(node, statement, scope, depth + 1, in_fstring=in_fstring or quoted)


def _is_label(parent: cst.CSTNode, node: cst.BaseExpression) -> bool:
    """Whether a name stands where only a name may: an attribute's, a keyword's, a parameter's."""
    return isinstance(node, cst.Name) and (
        (isinstance(parent, cst.Attribute) and parent.attr is node)
        or (isinstance(parent, cst.Arg) and parent.keyword is node)
        or (isinstance(parent, (cst.Param, cst.NameItem, cst.FunctionDef, cst.ClassDef)) and parent.name is node)
        or isinstance(parent, cst.AsName)
    )


def _stored(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    return (
        isinstance(parent, cst.AssignTarget)
        or (
            isinstance(parent, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr))
            and parent.target is node
        )
        or isinstance(parent, cst.Del)
    )


# Where the header of a compound statement ends: its colon, outside brackets, strings and comments.


def after_colon(text: bytes, at: int) -> int:
    """Offset right after the first colon from `at` on, behind whatever expression ended there. ValueError: none."""
    while True:
        char = text[at : at + 1]
        if char == b"#":
            at = line_break(text, at)
        elif char == b":":
            return at + 1
        elif not char:
            raise ValueError("no colon ends this header")
        else:
            at += 1


def after_definition_colon(text: bytes, at: int) -> int:
    """Offset after the colon that ends a `def`/`class` header, scanning brackets, strings and comments."""
    depth = 0
    while at < len(text):
        char = text[at : at + 1]
        if char == b"#":
            at = line_break(text, at)
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


def line_break(text: bytes, at: int) -> int:
    """Offset of the line break at or behind `at`, or the text's end."""
    ends = [i for i in (text.find(b"\n", at), text.find(b"\r", at)) if i >= 0]
    return min(ends, default=len(text))


def _string_end(text: bytes, at: int) -> int:
    quote = text[at : at + 3] if text[at : at + 3] in (b'"""', b"'''") else text[at : at + 1]
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at : at + 1] == b"\\" else 1
    return at + len(quote)


_COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.FunctionDef, cst.ClassDef, cst.Match)


def build(source: SourceText, first_line: int, last_line: int) -> Unit | None:
    """Parse whole lines [first_line, last_line] of a file; None if they cannot be given exact spans."""
    base = source.line_starts[first_line - 1]
    end = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.utf8)
    indented = source.utf8[base : base + 1] in (b" ", b"\t")
    unit = Unit(source, base, end, "class _:\n" if indented else "")
    visible = unit.text.replace(b"\f", b" ")
    try:
        tree = cst.parse_module(unit.prefix.encode() + visible)
        if tree.bytes != unit.prefix.encode() + visible:
            return None
        spans = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError):
        return None
    shift = len(unit.prefix)
    unit.parsed(tree, {n: (s.start - shift, s.start + s.length - shift) for n, s in spans.items()})
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
        self.expressions = Expressions(unit)

    def run(self, tree: cst.Module) -> None:
        body: list[cst.BaseStatement] = list(tree.body)
        if self.unit.prefix:
            wrapper = body[0]
            if not isinstance(wrapper, cst.ClassDef) or not isinstance(wrapper.body, cst.IndentedBlock):
                raise ValueError("the unit does not stand alone")
            body = list(wrapper.body.body)
        self.block(self.unit.root, body, None, in_loop=False)

    def block(self, suite: Block, body: list[cst.BaseStatement], scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                self.simple(suite, list(node.body), scope, in_loop=in_loop)
            else:
                self.compound(suite, node, scope, in_loop=in_loop)

    def record(self, suite: Block, node: cst.CSTNode, scope: cst.CSTNode | None, *, alone: bool, in_loop: bool) -> Stmt:
        text = self.unit.text
        start, end = self.unit.span(node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
            start = self.unit.span(node.decorators[0])[0]
        if isinstance(node, _COMPOUND):
            end = len(text[:end].rstrip(b" \t\f\r\n")) if text[:end].rstrip(b" \t\f\r\n") else end
        else:
            end = start + len(text[start:end].rstrip(b" \t\f"))
        line_start = max(text.rfind(b"\n", 0, start), text.rfind(b"\r", 0, start)) + 1
        eol = line_break(text, end)
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
        self, suite: Block, body: list[cst.BaseSmallStatement], scope: cst.CSTNode | None, *, in_loop: bool
    ) -> None:
        for node in body:
            statement = self.record(suite, node, scope, alone=len(body) == 1 and not suite.inline, in_loop=in_loop)
            self.expressions.below(node, statement, scope, 0)

    def compound(self, suite: Block, node: cst.CSTNode, scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        statement = self.record(suite, node, scope, alone=True, in_loop=in_loop)
        inner = node if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else scope
        loop = isinstance(node, (cst.For, cst.While)) or (in_loop and inner is scope)
        self.expressions.of_header(node, statement, scope)
        if isinstance(node, cst.Match):
            self.cases(statement, node, inner, in_loop=loop)
            return
        body = node.body  # type: ignore[attr-defined]
        statement.head_end = self.head_end(node, statement)
        self.sub(statement, "body", body, inner, in_loop=loop)
        if isinstance(node, (cst.Try, cst.TryStar)):
            self.handlers(statement, node, inner, in_loop=loop)
        if isinstance(node, (cst.If, cst.For, cst.While, cst.Try, cst.TryStar)):
            self.orelse(
                statement, node.orelse, inner, in_loop=in_loop if isinstance(node, (cst.For, cst.While)) else loop
            )
        if isinstance(node, (cst.Try, cst.TryStar)):
            final = node.finalbody
            self.sub(statement, "finally", final.body if final else None, inner, in_loop=loop)

    def cases(self, statement: Stmt, node: cst.Match, scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        statement.head_end = after_colon(self.unit.text, self.unit.outer(node.subject)[1])
        for case in node.cases:
            at = self.unit.outer(case.guard)[1] if case.guard else self.unit.outer(case.pattern)[1]
            sub = self.sub(statement, "case", case.body, scope, in_loop=in_loop)
            sub.head = (self.unit.span(case)[0], after_colon(self.unit.text, at))

    def handlers(
        self, statement: Stmt, node: cst.Try | cst.TryStar, scope: cst.CSTNode | None, *, in_loop: bool
    ) -> None:
        for handler in node.handlers:
            start = self.unit.span(handler)[0]
            at = start + len("except")
            if handler.type is not None:
                at = self.unit.outer(handler.type)[1]
            if handler.name is not None:
                at = self.unit.outer(handler.name.name)[1]
            sub = self.sub(statement, "except", handler.body, scope, in_loop=in_loop)
            sub.head = (start, after_colon(self.unit.text, at))

    def orelse(self, statement: Stmt, node: cst.CSTNode | None, scope: cst.CSTNode | None, *, in_loop: bool) -> None:
        if isinstance(node, cst.If):
            suite = Block(statement, "elif")
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
    ) -> Block:
        suite = Block(statement, slot)
        statement.suites.append(suite)
        if isinstance(body, cst.IndentedBlock):
            self.block(suite, list(body.body), scope, in_loop=in_loop)
        elif isinstance(body, cst.SimpleStatementSuite):
            suite.inline = True
            self.simple(suite, list(body.body), scope, in_loop=in_loop)
        return suite

    def head_end(self, node: cst.CSTNode, statement: Stmt) -> int:
        """Offset right after the header's colon, which is looked for behind the header's last expression."""
        unit = self.unit
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):  # parameters or bases lie between
            return after_definition_colon(unit.text, unit.span(node.name)[1])
        if isinstance(node, (cst.If, cst.While)):
            at = unit.outer(node.test)[1]
        elif isinstance(node, cst.For):
            at = unit.outer(node.iter)[1]
        elif isinstance(node, cst.With):
            last = node.items[-1]
            at = unit.outer(last.asname.name if last.asname else last.item)[1]
        else:
            at = statement.start + len("try")
        return after_colon(unit.text, at)
