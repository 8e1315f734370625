"""A second opinion before bytes change: libcst must see the same place and the same names as the rule did.

It shares no code with the rules' own analysis. Dear (some 100 ms for 300 lines), so asked only of files that have a
safe repair, and without the bodies and values of the module's statements that hold none and bind nothing. Not promised:
that libcst knows every syntax; where it does not, nothing is repaired.
"""

import ast
import bisect
import re
import symtable
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, Scope, ScopeProvider

from localagent.lint.engine import LintFinding
from localagent.lint.file_view import FileView

_STAR = re.compile(rb"import\s*\*")  # names that nobody sees


def refused(view: FileView, findings: Sequence[LintFinding]) -> dict[int, str]:
    """Findings (by their index) whose repair is not confirmed, with the reason."""
    text, moved = _reduced(view, findings)
    known = _never_bound(view, {r.qualified for f in findings for r in f.relies})
    asked = any(r.qualified not in known for f in findings for r in f.relies)
    try:
        module = cst.parse_module(text.decode())
        if module.code.encode() != text:
            return dict.fromkeys(range(len(findings)), "libcst does not give the text back")
        wrapper = _Wrapper(module, unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        scopes = wrapper.resolve(ScopeProvider) if asked else {}
    except (cst.ParserSyntaxError, RecursionError) as error:
        return dict.fromkeys(range(len(findings)), f"libcst does not parse it: {type(error).__name__}")
    places: dict[tuple[int, int], list[cst.CSTNode]] = {}
    for node, span in spans.items():
        places.setdefault((span.start, span.start + span.length), []).append(node)
    answers = {n: _refusal(finding, places, scopes, moved, known) for n, finding in enumerate(findings)}
    return {n: reason for n, reason in answers.items() if reason}


class _Wrapper(MetadataWrapper):
    """Does not walk over the module for nobody, as libcst 1.9 does once for each kind of positions."""

    def visit_batched(
        self,
        visitors: Iterable[cst.BatchableCSTVisitor],
        before_visit: Callable[[cst.CSTNode], None] | None = None,
        after_leave: Callable[[cst.CSTNode], None] | None = None,
    ) -> cst.CSTNode:
        """As libcst's own, where there is a visitor."""
        present = list(visitors)
        return super().visit_batched(present, before_visit, after_leave) if present else self.module


def _never_bound(view: FileView, qualified: Collection[str]) -> frozenset[str]:
    """Builtins that the compiler's own symbol table sees bound nowhere in the file: such a name means the builtin."""
    names = {q.removeprefix("builtins.") for q in qualified if q.startswith("builtins.")}
    if not names or _STAR.search(view.source.utf8):
        return frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pending = [symtable.symtable(view.source.utf8.decode(), "file", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    while pending and names:
        table = pending.pop()
        pending += table.get_children()
        here = names.intersection(table.get_identifiers())
        names -= {name for name in here if _bound(table.lookup(name))}
    return frozenset(f"builtins.{name}" for name in names)


def _bound(symbol: symtable.Symbol) -> bool:
    return (
        symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter() or symbol.is_declared_global()
    ) or symbol.is_namespace()


def _refusal(
    finding: LintFinding,
    places: dict[tuple[int, int], list[cst.CSTNode]],
    scopes: Mapping[cst.CSTNode, object],
    moved: Callable[[int], int],
    known: Collection[str],
) -> str:
    if finding.place is not None and (moved(finding.place[0]), moved(finding.place[1])) not in places:
        return "libcst sees no such element there"
    for relied in finding.relies:
        nodes = places.get((moved(relied.start), moved(relied.end)), ())
        if relied.qualified in known:
            word = relied.qualified.removeprefix("builtins.")
            if any(isinstance(node, cst.Name) and node.value == word for node in nodes):
                continue
        names = {
            found for node in nodes if isinstance(node, cst.Name | cst.Attribute) for found in _names(node, scopes)
        }
        if names != {relied.qualified}:
            return f"libcst does not resolve {relied.qualified} there"
    return ""


def _names(node: cst.Name | cst.Attribute, scopes: Mapping[cst.CSTNode, object]) -> set[str]:
    scope = scopes.get(node)
    return {found.name for found in scope.get_qualified_names_for(node)} if isinstance(scope, Scope) else set()


def _reduced(view: FileView, findings: Sequence[LintFinding]) -> tuple[bytes, Callable[[int], int]]:
    """The text without what holds no repair, but with every binding of it, and where an offset went.

    Definitions become stubs of their names, values `...`; comments and blank lines between statements go.
    """
    utf8 = view.source.utf8
    wanted = sorted({place for f in findings for place in _offsets(f)})
    cuts: list[tuple[int, int, bytes]] = []
    pending: list[list[ast.stmt]] = [view.tree.body]
    while pending:
        block = pending.pop()
        for n, node in enumerate(block):
            start = view.start(node)
            before = view.source.line_starts[view.source.line_of(start) - 1]
            gap = view.line_end(view.end(block[n - 1])) if n else before
            if gap < before and not _between(wanted, gap, before):
                cuts.append((gap, before, b"\n"))
            cut = _short(view, node, wanted)
            if cut is not None:
                cuts.append(cut)
            elif isinstance(node, ast.ClassDef):
                pending.append(node.body)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                pending += [[n] for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
    starts, gone = [0], [0]
    pieces, at = [], 0
    for start, end, text in sorted(cuts):
        pieces += [utf8[at:start], text]
        starts.append(end)
        gone.append(gone[-1] + end - start - len(text))
        at = end
    return b"".join((*pieces, utf8[at:])), lambda offset: offset - gone[bisect.bisect_right(starts, offset) - 1]


def _between(wanted: Sequence[int], start: int, end: int) -> bool:
    """Whether a wanted offset lies strictly between two others."""
    first = bisect.bisect_right(wanted, start)
    return first < len(wanted) and wanted[first] < end


def _short(view: FileView, node: ast.stmt, wanted: Sequence[int]) -> tuple[int, int, bytes] | None:
    """A statement, or its value, in short: what it binds around it stays the same."""
    start, end = view.start(node), view.end(node)
    first = bisect.bisect_left(wanted, start)
    free = first == len(wanted) or wanted[first] > end
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        head = view.source.utf8[start : view.start(node.body[0])]
        if not free or b":=" in head or _declares_global(view, node):
            return None
        kind = "class {}: ..." if isinstance(node, ast.ClassDef) else "def {}(): ..."
        return start, end, kind.format(node.name).encode()
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr) and node.value is not None:
        start, end = view.start(node.value), view.end(node.value)
        first = bisect.bisect_left(wanted, start)
        free = first == len(wanted) or wanted[first] > end
        if free and end - start > 3 and b":=" not in view.source.utf8[start:end]:
            return start, end, b"..."
    return None


def _declares_global(view: FileView, node: ast.stmt) -> bool:
    """Whether a definition binds names of the module from inside."""
    text = view.source.utf8[view.start(node) : view.end(node)]
    return b"global" in text and any(isinstance(n, ast.Global) for n in ast.walk(node))


def _offsets(finding: LintFinding) -> list[int]:
    """Every offset that a finding's repair and names touch."""
    cuts = [at for start, end, _ in finding.cuts or () for at in (start, end)]
    return [*cuts, *(finding.place or ()), *(at for r in finding.relies for at in (r.start, r.end))]
