"""The edit space of files that parse: operators over units, best prior first, each edit valid and each tree once.

Not promised: that an edit is type-correct or makes sense; that the space is complete. Order within a call follows the
prior, and what the caller says that lines cost; the model is added by whoever searches.
"""

import heapq
import importlib
import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import libcst as cst

from localagent.code.newer_syntax import newer_file
from localagent.code.source_text import SourceText, parse_or_none, read_source
from localagent.code.symbols import FactIndex, FileFacts, UnitSpan
from localagent.domain.edit import Edit, EditEffect, Scope, Splice, digest_of
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit import edit_check
from localagent.edit.edit_effects import effects_of
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import Operator, operators
from localagent.edit.unit import Block, Stmt, Unit
from localagent.edit.unit_builder import build
from localagent.edit.whole_file_failures import looks_wide
from localagent.ports import EditSpace, Lines, Priced, Sources

# Expressions that say nothing as they stand (`x and x`, `a == a`, `a - a`, `max(a, a)`): one side is mistaken.

_CANCELLING = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Modulo, cst.BitAnd, cst.BitOr, cst.BitXor)
_OF_DIFFERENT = frozenset({"min", "max", "isinstance", "issubclass", "gcd"})


def pointless(unit: Unit) -> tuple[tuple[int, int], ...]:
    """Spans, in unit offsets, of a unit's expressions that hold the same operand twice where that says nothing."""
    return tuple((e.start, e.end) for e in unit.exprs if _twice(e.node, [unit.code(o) for o in _operands(e.node)]))


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation):
        yield from _joined(node, type(node.operator))
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        yield from (node.left, node.comparisons[0].comparator)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _CANCELLING):
        yield from (node.left, node.right)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _OF_DIFFERENT:
        yield from (a.value for a in node.args)


def _joined(node: cst.BaseExpression, word: type[cst.BaseBooleanOp]) -> Iterator[cst.BaseExpression]:
    """The operands of a chain of one word, `and` or `or`."""
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, word) and not node.lpar:
        yield from _joined(node.left, word)
        yield from _joined(node.right, word)
    else:
        yield node


def _twice(node: cst.BaseExpression, texts: list[str]) -> bool:
    """Whether two operands are one text; calls may answer otherwise the second time, and `x != x` asks for NaN."""
    if isinstance(node, cst.Comparison) and isinstance(node.comparisons[0].operator, cst.NotEqual):
        return False
    if isinstance(node, (cst.Comparison, cst.BinaryOperation)):
        texts = [text for text in texts if "(" not in text]
    return len(set(texts)) < len(texts)


_MAX_UNITS_CACHED = 64
_MAX_PROPOSALS = 60_000
_MAX_NEARBY_FILES = 12
_MAX_NEARBY_BYTES = 400_000
_MAX_WIDE_LINES = 1_500
_IN_POINTLESS = 2.0  # added to the prior of edits inside an expression that says nothing
_MOST_FAILURES = 64  # that are told apart by what operators see of them,
_ALIKE_FAILURES = 8  # so many of one type at one place
_TABLE_FROM_BYTES = 2_000  # a simple statement as long as that is a table; the longer, the fewer of its edits come
_TABLE_BYTES = 2_000_000
_TABLE_LEAST = 50


class LibcstEditSpace:
    """`EditSpace` for files that parse. `prior` maps operator names to weights that replace the built-in ones."""

    def __init__(self, prior: Mapping[str, float]) -> None:
        self._prior = dict(prior)
        self._index = FactIndex()
        self._sources: OrderedDict[str, SourceText | None] = OrderedDict()
        self._units: OrderedDict[tuple[str, int, int], Unit | None] = OrderedDict()

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        """See `EditSpace.edits`. Yields nothing for a file that cannot be decoded or parsed."""
        raw = sources[path]
        facts = self._index.of(raw)
        digest = digest_of(raw)
        source = self._source(digest, raw) if facts is not None else None
        if facts is None or source is None:
            return
        nearby = self._nearby(path, sources)
        failures = distinct_failures(path, failures)
        priced = lines if isinstance(lines, Priced) else None
        lines = frozenset(lines.dearer) if isinstance(lines, Priced) else lines
        proposals: list[_Proposal] = []

        def in_time(_: object) -> bool:
            return priced is None or not priced.late()

        for span in takewhile(in_time, facts.units):
            if lines is not None and not any(n in lines for n in range(span.first_line, span.last_line + 1)):
                continue
            unit = self._unit(digest, source, span)
            if unit is None:
                continue
            context = OperatorContext(unit, span, facts, path=path, nearby=nearby, lines=lines, failures=failures)
            proposals += takewhile(in_time, self._proposals(context))
            if len(proposals) > _MAX_PROPOSALS and priced is None:
                yield from _checked(sorted(proposals, key=_by_prior))
                proposals = []
            elif len(proposals) > 2 * _MAX_PROPOSALS and priced is not None:
                proposals = _cheapest_first(proposals, priced)[:_MAX_PROPOSALS]
        wide = self._wide(
            digest, source, facts, path=path, nearby=nearby, lines=lines, failures=failures, sources=sources
        )
        proposals += takewhile(in_time, wide)
        yield from _checked(sorted(proposals, key=_by_prior) if priced is None else _cheapest_first(proposals, priced))

    def _wide(
        self,
        digest: str,
        source: SourceText,
        facts: FileFacts,
        *,
        path: RepoPath,
        nearby: Sequence[FileFacts],
        lines: frozenset[int] | None,
        failures: Sequence[Failure],
        sources: Sources,
    ) -> Iterator["_Proposal"]:
        """Proposals of the operators that see the whole file; it is parsed as one unit only if failures ask for it."""
        height = len(source.line_starts) - source.utf8.endswith((b"\n", b"\r"))
        if not 0 < height <= _MAX_WIDE_LINES or not looks_wide(path, facts, failures):
            return
        span = UnitSpan(first_line=1, last_line=height, function="", class_path=(), is_function=False)
        unit = self._unit(digest, source, span)
        if unit is None:
            return
        context = OperatorContext(unit, span, facts, path=path, nearby=nearby, failures=failures, sources=sources)
        for proposal in self._proposals(context, wide=True):
            change, op = proposal[3:5]
            if lines is None or _is_named(op) or any(change.line <= n <= change.end_line for n in lines):
                yield proposal

    def _proposals(self, context: OperatorContext, *, wide: bool = False) -> Iterator["_Proposal"]:
        place = _SharedContext(context)
        nothing = pointless(context.unit)
        for number, op in enumerate(operators().values()):
            if op.wide is not wide:
                continue
            base = self._prior.get(op.name, op.prior)
            for change in op.propose(context):
                cost = -(base + change.delta) - (_IN_POINTLESS if nothing and _inside(change, nothing) else 0.0)
                yield _Proposal(cost, number, len(change.splices), change, op, place)

    def _source(self, digest: str, raw: bytes) -> SourceText | None:
        if digest not in self._sources:
            self._sources[digest] = read_source(raw)
            while len(self._sources) > _MAX_UNITS_CACHED:
                self._sources.popitem(last=False)
        return self._sources[digest]

    def _unit(self, digest: str, source: SourceText, span: UnitSpan) -> Unit | None:
        key = (digest, span.first_line, span.last_line)
        if key in self._units:
            self._units.move_to_end(key)
            return self._units[key]
        unit = build(source, span.first_line, span.last_line)
        self._units[key] = unit
        while len(self._units) > _MAX_UNITS_CACHED:
            self._units.popitem(last=False)
        return unit

    def _nearby(self, path: RepoPath, sources: Sources) -> list[FileFacts]:
        """Facts of files close by in the tree, within a byte budget."""
        folder = path.parts[:-1]

        def distance(other: RepoPath) -> tuple[int, str]:
            parts = other.parts[:-1]
            shared = next(
                (i for i, (a, b) in enumerate(zip(folder, parts, strict=False)) if a != b), min(len(folder), len(parts))
            )
            return len(folder) + len(parts) - 2 * shared, other

        others = (p for p in sources if p != path and p.endswith(".py"))
        found: list[FileFacts] = []
        spent = 0
        for other in heapq.nsmallest(_MAX_NEARBY_FILES, others, key=distance):
            spent += len(sources[other])
            if spent > _MAX_NEARBY_BYTES:
                break
            facts = self._index.of(sources[other])
            if facts is not None:
                found.append(facts)
        return found


def distinct_failures(path: RepoPath, failures: Sequence[Failure]) -> list[Failure]:
    """The failures that tell different things of a file, in their order: one slip may fail hundreds of tests.

    Operators see a failure's text, its lines of the file, the last of these, and whether it came from there.
    """
    found: dict[object, Failure] = {}
    alike: Counter[object] = Counter()
    for failure in failures:
        inner = failure.frames[-1] if failure.frames else None
        lines = [f.line for f in failure.frames if f.path == path]
        place = (
            failure.exception,
            frozenset(lines),
            tuple(lines[-1:]),
            inner.function if inner and inner.path == path else None,
        )
        key = (place, failure.steady, failure.left, failure.right)
        if key not in found and alike[place] < _ALIKE_FAILURES and len(found) < _MOST_FAILURES:
            found[key] = failure
            alike[place] += 1
    return list(found.values())


def _is_named(op: Operator) -> bool:
    """Whether the failure names the place of an operator's edits, which need not be on a suspicious line."""
    return op.wide and EditEffect.EXPLAINED in op.effects


def _inside(change: Change, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether everything that a change replaces lies in one of these spans."""
    return bool(change.splices) and any(a <= change.splices[0][0] and change.splices[-1][1] <= b for a, b in spans)


class _SharedContext:
    """What all edits of one context share: the unit, its scope, and the trees already seen."""

    def __init__(self, context: OperatorContext) -> None:
        self.path = context.path
        self.unit = context.unit
        self.scope = unit_scope(context.unit, context.span)
        self.seen = {context.unit.suite_digest(context.unit.root)}
        self.texts: set[tuple[tuple[int, int, str], ...]] = set()
        self._left = {
            (s.start, s.end): _TABLE_LEAST + _TABLE_BYTES // (s.end - s.start) for s in _tables(context.unit.root)
        }

    def too_many(self, splices: tuple[tuple[int, int, str], ...]) -> bool:
        """Whether a table of thousands of literals, each of which could be many others, has had its share of edits."""
        for start, end in self._left:
            if start <= splices[0][0] and splices[-1][1] <= end:
                self._left[start, end] -= 1
                return self._left[start, end] < 0
        return False


def _tables(suite: Block) -> Iterator[Stmt]:
    """Simple statements so long that checking every one of their edits would take minutes."""
    for statement in suite.statements:
        if not statement.compound and statement.end - statement.start > _TABLE_FROM_BYTES:
            yield statement
        for inner in statement.suites:
            yield from _tables(inner)


class _Proposal(tuple[float, int, int, Change, Operator, _SharedContext]):
    """(cost, operator number, splices, change, operator, place); ordered by the first three alone."""

    __slots__ = ()

    def __new__(
        cls, cost: float, number: int, width: int, change: Change, op: Operator, place: _SharedContext
    ) -> "_Proposal":
        return tuple.__new__(cls, (cost, number, width, change, op, place))


def _by_prior(proposal: _Proposal) -> tuple[float, int, int]:
    return proposal[:3]


def _cheapest_first(proposals: Sequence[_Proposal], lines: Priced) -> list[_Proposal]:
    """The proposals by what they cost on these lines, those of equal cost in the order of the prior; each text once."""
    cheapest, dearest = min(lines.dearer.values(), default=0.0), max(lines.dearer.values(), default=0.0)
    seen: Counter[tuple[int, int]] = Counter()
    known: set[tuple[int, tuple[tuple[int, int, str], ...]]] = set()
    costs = []
    by_prior = []
    for proposal in sorted(proposals, key=_by_prior):
        cost, number, _, change, op, place = proposal
        if (id(place), change.splices) in known:
            continue
        known.add((id(place), change.splices))
        by_prior.append(proposal)
        crowd = seen[number, change.line]
        seen[number, change.line] += 1
        span = range(change.line, change.end_line + 1)
        known_lines = (lines.dearer[n] for n in span if n in lines.dearer)
        dearer = cheapest if _is_named(op) else min(known_lines, default=dearest)
        costs.append(cost + dearer + lines.crowd * math.log1p(crowd))
    return [by_prior[k] for k in sorted(range(len(costs)), key=costs.__getitem__)]


def _checked(proposals: Iterable[_Proposal]) -> Iterator[Edit]:
    """Those that make another program which parses, each program once."""
    for cost, _, _, change, op, place in proposals:
        if change.splices in place.texts:
            continue
        place.texts.add(change.splices)
        if not change.splices or _overlapping(change) or place.too_many(change.splices):
            continue
        digest = edit_check.tree_digest(place.unit, change.splices)
        if digest is None or digest in place.seen:
            continue
        if op.deep and not edit_check.compiles(place.unit, change.splices):
            continue
        edit = made_edit(
            place.unit, place.scope, change, path=place.path, operator=op.name, prior=-cost, effects=op.effects
        )
        if edit is not None:
            place.seen.add(digest)
            yield edit


def _overlapping(change: Change) -> bool:
    at = -1
    for start, end, _ in change.splices:
        if start < at or end < start or (start == at and start == end):
            return True
        at = end
    return False


def made_edit(
    unit: Unit,
    scope: Scope | None,
    change: Change,
    *,
    path: RepoPath,
    operator: str,
    prior: float,
    effects: frozenset[EditEffect],
) -> Edit | None:
    """A change of a unit as splices of the file's bytes; None where its encoding cannot say the new text.

    `effects` are those that its operator declares.
    """
    source, base = unit.source, unit.base
    splices = []
    for start, end, text in change.splices:
        new = source.raw_text(text)
        if new is None:
            return None
        splices.append(Splice(start=source.raw_offset(base + start), end=source.raw_offset(base + end), text=new))
    return Edit(
        path=path,
        splices=tuple(splices),
        operator=operator,
        line=change.line,
        end_line=change.end_line,
        prior=round(prior, 4),
        note=change.note,
        scope=scope,
        effects=effects_of(change, splices, effects),
    )


def unit_scope(unit: Unit, span: UnitSpan) -> Scope | None:
    """The function that a unit is, or None."""
    if not span.is_function or len(unit.root.statements) != 1:
        return None
    definition = unit.root.statements[0]
    raw = unit.source.raw_offset
    return Scope(
        name=span.function,
        qualname=".".join((*span.class_path, span.function)),
        class_name=span.class_path[-1] if span.class_path else None,
        first_line=span.first_line,
        last_line=span.last_line,
        start=raw(unit.base + definition.start),
        body_start=raw(unit.base + definition.head_end),
        end=raw(unit.base + len(unit.text)),
    )


class _Either:
    """The tree-level space where it can parse, the token-level space otherwise."""

    def __init__(self, tree: LibcstEditSpace, tokens: EditSpace) -> None:
        self._tree = tree
        self._tokens = tokens

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        """See `EditSpace.edits`."""
        space: EditSpace = self._tree if parse_or_none(sources[path]) is not None else self._tokens
        if space is self._tokens and newer_file(sources[path]):
            return  # nothing is wrong with what a newer Python parses
        yield from space.edits(path, sources, lines=lines, failures=failures)


def open_edit_space(prior: Mapping[str, float]) -> EditSpace:
    """The space for any file: by syntax tree, or by tokens where a file does not parse."""
    tree = LibcstEditSpace(prior)
    try:
        tokens = importlib.import_module("localagent.edit.syntax_repair.syntax_space").TokenEditSpace
    except ModuleNotFoundError:
        return tree
    made: EditSpace = tokens(prior)
    return _Either(tree, made)
