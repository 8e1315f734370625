"""One editable unit of a file: an outermost function, or a statement outside functions, with exact byte spans.

Spans are byte offsets into the unit's own UTF-8 text. A unit whose text libcst does not give back byte for byte is
refused (None): nothing is ever spliced by spans that were not verified.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from localagent.code import normal_form
from localagent.code.source_text import SourceText, parse_or_none
from localagent.edit import precedence

_SKIPPED = frozenset(
    {"lpar", "rpar", "comma", "semicolon", "leading_lines", "lines_after_decorators", "header", "footer", "lbracket"}
    | {"rbracket", "lbrace", "rbrace", "equal", "dot", "colon", "trailing_whitespace", "first_colon", "second_colon"}
)
_FIELDS: dict[type, tuple[str, ...]] = {}
_AST_COMPOUND = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)


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

    @property
    def is_called(self) -> bool:
        """True for `f` of `f(x)`."""
        return isinstance(self.parent, cst.Call) and self.parent.func is self.node

    def fitted(self, text: str, level: int) -> str:
        """`text` parenthesised as this place needs it."""
        return precedence.fit(text, level, self.need)


@dataclass(slots=True, eq=False)
class Block:
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
    suite: Block
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
    suites: list[Block] = field(default_factory=list)
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
    """A piece of a file; `unit_builder.build` parses it. `text`: its UTF-8 bytes, `base`: their offset in the file."""

    def __init__(self, source: SourceText, base: int, end: int, prefix: str) -> None:
        self.source = source
        self.base = base
        self.text = source.utf8[base:end]
        self.prefix = prefix
        self.exprs: list[Expr] = []
        self.statements: list[Stmt] = []
        self.root = Block(None, "root")
        self.newline = source.newline
        self.tree: cst.Module
        self._spans: Mapping[cst.CSTNode, tuple[int, int]] = {}

    def parsed(self, tree: cst.Module, spans: Mapping[cst.CSTNode, tuple[int, int]]) -> None:
        """Take the text's syntax and the byte span of each of its nodes."""
        self.tree, self._spans = tree, spans

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
            tree = parse_or_none(self.text[statement.start : statement.end])
            if tree is None or len(tree.body) != 1:
                raise ValueError(f"line {statement.line} does not stand alone")
            return normal_form.statement_digest(tree.body[0])
        head = self.head_digest_of(statement, self.slice(statement.start, statement.head_end))
        if head is None:
            raise ValueError(f"the header at line {statement.line} does not stand alone")
        statement.head_digest = head
        return normal_form.compound_digest(head, [self.suite_digest(s) for s in statement.suites])

    def suite_digest(self, suite: Block) -> int:
        """Normal-form digest of a block as it stands."""
        if suite.head is not None and not suite.head_digest:
            head = self.clause_digest(suite, self.slice(*suite.head))
            if head is None:
                raise ValueError("a clause does not stand alone")
            suite.head_digest = head
        return normal_form.suite_digest(suite.head_digest, [self.digest(s) for s in suite.statements])

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
        tree = parse_or_none(text)
        if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], _AST_COMPOUND):
            return None
        return normal_form.header_digest(tree.body[0])

    @staticmethod
    def _decorated_digest(text: str) -> int | None:
        tree = parse_or_none(text)
        if tree is None or not isinstance(tree.body[0], ast.If) or len(tree.body[0].body) != 1:
            return None
        return normal_form.header_digest(tree.body[0].body[0])

    def clause_digest(self, suite: Block, text: str) -> int | None:
        """Digest of an except clause's or a case's header."""
        is_case = suite.slot == "case"
        tree = parse_or_none(("match _:\n " if is_case else "try: pass\n") + text + " pass")
        if tree is None or len(tree.body) != 1:
            return None
        top = tree.body[0]
        if isinstance(top, ast.Match) and len(top.cases) == 1:
            return normal_form.header_digest(top.cases[0])
        if isinstance(top, (ast.Try, ast.TryStar)) and len(top.handlers) == 1:
            return normal_form.header_digest(top.handlers[0])
        return None
