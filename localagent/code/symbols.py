"""Facts of one source file, for use as ingredients: what it defines, imports, calls, reads and raises.

Built from the syntax tree alone, cached per digest by `FactIndex`. Types are not checked and nothing is resolved across
dynamic features; a name listed here exists in the text, not necessarily at run time.
"""

import ast
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from localagent.code.names import imports_of, last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import all_blocks, first_line, last_line
from localagent.domain.edit import digest_of

_MAX_CACHED = 256
_MAX_TEXT = 60
_MAX_VALUE = 30  # of a literal that a call gives as a keyword


@dataclass(frozen=True, kw_only=True, slots=True)
class SymbolSignature:
    """A function's or method's parameters, `self` and `cls` included. `required` counts those without default."""

    name: str
    params: tuple[str, ...]
    keyword_only: tuple[str, ...]
    required: int
    is_method: bool
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassFacts:
    """A class: its methods, the attributes set on `self` or in the body, and its bases' last names.

    A base that is no name is `?`. `containers` are the empty ones that the body makes and no method assigns to `self`,
    as (name, text).
    """

    name: str
    methods: tuple[str, ...]
    attributes: tuple[str, ...]
    bases: tuple[str, ...]
    line: int
    end_line: int
    containers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitSpan:
    """Lines of an outermost function, or of a run of statements outside functions."""

    first_line: int
    last_line: int
    function: str
    class_path: tuple[str, ...]
    is_function: bool


@dataclass(slots=True)
class FileFacts:
    """Everything the edit space wants to know of a file. Lines in the `*_lines` maps are 1-based, ascending."""

    units: list[UnitSpan] = field(default_factory=list)
    module_names: dict[str, int] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    functions: dict[str, list[SymbolSignature]] = field(default_factory=dict)
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    attributes: Counter[str] = field(default_factory=Counter)
    attributes_of: dict[str, Counter[str]] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    constants: Counter[str] = field(default_factory=Counter)
    constant_lines: dict[str, list[int]] = field(default_factory=dict)
    keywords_of: dict[str, Counter[str]] = field(default_factory=dict)
    keywords: Counter[str] = field(default_factory=Counter)
    keyword_values: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    exceptions: Counter[str] = field(default_factory=Counter)
    conditions: dict[str, list[int]] = field(default_factory=dict)
    calls: dict[str, list[int]] = field(default_factory=dict)
    statements: dict[str, list[int]] = field(default_factory=dict)
    body_start_line: int = 1


class FactIndex:
    """Facts per file digest; keeps the last few hundred files."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, FileFacts | None] = OrderedDict()

    def of(self, source: bytes) -> FileFacts | None:
        """Facts of a file, or None if it does not parse."""
        digest = digest_of(source)
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest]
        facts = collect(source)
        self._kept[digest] = facts
        while len(self._kept) > _MAX_CACHED:
            self._kept.popitem(last=False)
        return facts


def collect(source: bytes) -> FileFacts | None:
    """Facts of a file, or None if it does not parse."""
    tree = parse_or_none(source)
    if tree is None:
        return None
    facts = FileFacts()
    try:
        _Collector(facts).visit_module(tree)
        facts.units = _with_comments(facts.units, source.splitlines())
    except (ValueError, RecursionError, MemoryError):  # parses, and is nested deeper than a tree can be written down
        return None
    return facts


def unit_spans(body: list[ast.stmt], class_path: tuple[str, ...] = ()) -> Iterator[UnitSpan]:
    """Units of a module or class body, in order; statements that share a line are one unit."""
    for node in _line_groups(body):
        first, last, inner = node
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield UnitSpan(
                first_line=first, last_line=last, function=inner.name, class_path=class_path, is_function=True
            )
        elif isinstance(inner, ast.ClassDef) and inner.body and first_line(inner.body[0]) > inner.lineno:
            yield from unit_spans(inner.body, (*class_path, inner.name))
        elif isinstance(inner, (ast.If, ast.Try, ast.With)) and _has_functions(inner):
            for part in all_blocks(inner):
                yield from unit_spans(part, class_path)
        else:
            yield UnitSpan(first_line=first, last_line=last, function="", class_path=class_path, is_function=False)


def _line_groups(body: list[ast.stmt]) -> Iterator[tuple[int, int, ast.stmt | None]]:
    at = 0
    while at < len(body):
        first, last = first_line(body[at]), last_line(body[at])
        stop = at + 1
        while stop < len(body) and first_line(body[stop]) <= last:
            last = max(last, last_line(body[stop]))
            stop += 1
        yield first, last, body[at] if stop == at + 1 else None
        at = stop


def _with_comments(units: list[UnitSpan], rows: list[bytes]) -> list[UnitSpan]:
    """Functions with the comments behind their last statement that are indented like their body."""
    starts = [u.first_line for u in units]
    out: list[UnitSpan] = []
    for place, unit in enumerate(units):
        last = unit.last_line
        limit = starts[place + 1] - 1 if place + 1 < len(units) else len(rows)
        if unit.is_function and limit <= len(rows) and last < limit:
            margin = _indent(rows[unit.first_line - 1])
            for number in range(last + 1, limit + 1):
                row = rows[number - 1]
                if row.lstrip().startswith(b"#") and _indent(row) > margin:
                    last = number
                elif row.strip():
                    break
        out.append(replace(unit, last_line=last) if last != unit.last_line else unit)
    return out


def _indent(row: bytes) -> int:
    return len(row) - len(row.lstrip(b" \t"))


def _has_functions(node: ast.stmt) -> bool:
    return any(isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for x in ast.walk(node))


class _Collector:
    def __init__(self, facts: FileFacts) -> None:
        self.facts = facts

    def visit_module(self, tree: ast.Module) -> None:
        self.facts.units = list(unit_spans(tree.body))
        for statement in tree.body:
            self.bind(statement)
        for node in ast.walk(tree):
            self.node(node)
        first = [s for s in tree.body if not _is_preamble(s)]
        self.facts.body_start_line = first[0].lineno if first else 1

    def bind(self, statement: ast.stmt) -> None:
        names: list[str] = []
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [statement.name]
        else:
            names = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for name in names:
            self.facts.module_names.setdefault(name, statement.lineno)

    def node(self, node: ast.AST) -> None:
        facts = self.facts
        if isinstance(node, ast.Name):
            facts.names[node.id] += 1
        elif isinstance(node, ast.Attribute):
            facts.attributes[node.attr] += 1
            base = last_name(node.value)
            if base:
                facts.attributes_of.setdefault(base, Counter())[node.attr] += 1
        elif isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imported(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            facts.functions.setdefault(node.name, []).append(_signature(node))
        elif isinstance(node, ast.ClassDef):
            facts.classes[node.name] = _class_facts(node)
        elif isinstance(node, (ast.Raise, ast.ExceptHandler)):
            self.exception(node)
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            self.condition(node.test)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise)):
            self.statement(node)

    def constant(self, node: ast.Constant) -> None:
        text = repr(node.value)
        if isinstance(node.value, (int, float, str, bytes)) and len(text) <= _MAX_TEXT:
            self.facts.constants[text] += 1
            self.facts.constant_lines.setdefault(text, []).append(node.lineno)

    def call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        if name:
            for keyword in node.keywords:
                if keyword.arg:
                    self.facts.keywords_of.setdefault(name, Counter())[keyword.arg] += 1
                    self.facts.keywords[keyword.arg] += 1
                    value = _literal_text(keyword.value)
                    self.facts.keyword_values.setdefault((name, keyword.arg), Counter())[value] += 1
        self._text(self.facts.calls, node)

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in imports_of(node):
            if name.item == "*":
                self.facts.star_imports.append(name.module)
            else:
                self.facts.imports[name.bound] = f"{name.module}:{name.item}" if name.item else name.module

    def exception(self, node: ast.Raise | ast.ExceptHandler) -> None:
        value = node.exc if isinstance(node, ast.Raise) else node.type
        for one in value.elts if isinstance(value, ast.Tuple) else [value]:
            target = one.func if isinstance(one, ast.Call) else one
            if isinstance(target, (ast.Name, ast.Attribute)):
                self.facts.exceptions[ast.unparse(target)] += 1

    def condition(self, test: ast.expr) -> None:
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        for part in parts:
            self._text(self.facts.conditions, part)

    def statement(self, node: ast.stmt) -> None:
        if last_line(node) - node.lineno < 3:
            self._text(self.facts.statements, node)

    @staticmethod
    def _text(into: dict[str, list[int]], node: ast.expr | ast.stmt) -> None:
        if (node.end_col_offset or 0) - node.col_offset > 120 or last_line(node) != node.lineno:
            return
        into.setdefault(ast.unparse(node), []).append(node.lineno)


def _is_preamble(node: ast.stmt) -> bool:
    docstring = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _literal_text(node: ast.expr) -> str:
    """A short literal as it is written, "" for everything else."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    if not isinstance(inner, ast.Constant) or inner.value is Ellipsis:
        return ""
    if inner is not node and type(inner.value) not in (int, float):
        return ""  # `-True` is no literal
    text = ast.unparse(node)
    return text if len(text) <= _MAX_VALUE else ""


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> SymbolSignature:
    spec = node.args
    params = tuple(a.arg for a in (*spec.posonlyargs, *spec.args))
    return SymbolSignature(
        name=node.name,
        params=params,
        keyword_only=tuple(a.arg for a in spec.kwonlyargs),
        required=len(params) - len(spec.defaults),
        is_method=bool(params) and params[0] in ("self", "cls"),
        line=node.lineno,
    )


def _class_facts(node: ast.ClassDef) -> ClassFacts:
    methods = [s.name for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
    stored: dict[str, None] = {}
    for inner in ast.walk(node):
        is_store = isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
        if is_store and isinstance(inner, ast.Attribute) and last_name(inner.value) in ("self", "cls"):
            stored.setdefault(inner.attr)
    containers: dict[str, str] = {}
    for statement in node.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        empty = ast.unparse(value) if value is not None and _is_empty_container(value) else ""
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name):
                containers.pop(target.id, None)
                if empty and target.id not in stored:
                    containers[target.id] = empty
                stored.setdefault(target.id)
    return ClassFacts(
        name=node.name,
        methods=tuple(methods),
        attributes=tuple(stored),
        bases=tuple(_base_name(base) for base in node.bases),
        line=node.lineno,
        end_line=last_line(node),
        containers=tuple(containers.items()),
    )


def _base_name(node: ast.expr) -> str:
    """`Base` of `Base[int]`, too."""
    return last_name(node.value if isinstance(node, ast.Subscript) else node) or "?"


def _is_empty_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return (
            isinstance(value.func, ast.Name)
            and value.func.id in ("list", "dict", "set")
            and not value.args
            and not value.keywords
        )
    return (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
