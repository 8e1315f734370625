"""A second opinion before bytes change: libcst must see the same place and the same names as the rule did.

It shares no code with the rules' own analysis. Dear (some 100 ms for 300 lines), so asked only of files that have a
safe repair, and without the bodies and values of the module's statements that hold none and bind nothing. Not promised:
that libcst knows every syntax; where it does not, nothing is repaired.
"""

import ast
import bisect
from collections.abc import Callable, Mapping, Sequence

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, Scope, ScopeProvider

from localagent.hook.find import Finding
from localagent.hook.view import View

_BIND = (b"global", b"nonlocal", b":=")


def refused(view: View, findings: Sequence[Finding]) -> dict[int, str]:
    """Findings (by their index) whose repair is not confirmed, with the reason."""
    text, moved = _reduced(view, findings)
    try:
        module = cst.parse_module(text.decode())
        if module.code.encode() != text:
            return dict.fromkeys(range(len(findings)), "libcst does not give the text back")
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        scopes = wrapper.resolve(ScopeProvider) if any(f.relies for f in findings) else {}
    except (cst.ParserSyntaxError, RecursionError) as error:
        return dict.fromkeys(range(len(findings)), f"libcst does not parse it: {type(error).__name__}")
    places: dict[tuple[int, int], list[cst.CSTNode]] = {}
    for node, span in spans.items():
        places.setdefault((span.start, span.start + span.length), []).append(node)
    answers = {n: _refusal(finding, places, scopes, moved) for n, finding in enumerate(findings)}
    return {n: reason for n, reason in answers.items() if reason}


def _refusal(
    finding: Finding,
    places: dict[tuple[int, int], list[cst.CSTNode]],
    scopes: Mapping[cst.CSTNode, object],
    moved: Callable[[int], int],
) -> str:
    if finding.place is not None and (moved(finding.place[0]), moved(finding.place[1])) not in places:
        return "libcst sees no such element there"
    for relied in finding.relies:
        names = {
            found
            for node in places.get((moved(relied.start), moved(relied.end)), ())
            if isinstance(node, cst.Name | cst.Attribute)
            for found in _names(node, scopes)
        }
        if names != {relied.qualified}:
            return f"libcst does not resolve {relied.qualified} there"
    return ""


def _names(node: cst.Name | cst.Attribute, scopes: Mapping[cst.CSTNode, object]) -> set[str]:
    scope = scopes.get(node)
    return {found.name for found in scope.get_qualified_names_for(node)} if isinstance(scope, Scope) else set()


def _reduced(view: View, findings: Sequence[Finding]) -> tuple[bytes, Callable[[int], int]]:
    """The text with `...` for bodies and values that hold no repair and bind nothing, and where an offset went."""
    utf8 = view.source.utf8
    wanted = sorted({place for f in findings for place in _offsets(f)})
    cuts: list[tuple[int, int]] = []
    pending: list[ast.stmt] = view.tree.body[::-1]
    while pending:
        node = pending.pop()
        inner = _own(node)
        if inner is not None:
            start, end = view.start(inner[0]), view.end(inner[-1])
            first = bisect.bisect_left(wanted, start)
            text = utf8[start:end]
            if end - start > 3 and (first == len(wanted) or wanted[first] > end) and not any(w in text for w in _BIND):
                cuts.append((start, end))
                continue
        if isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
            pending += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)][::-1]
    starts, gone = [0], [0]
    pieces, at = [], 0
    for start, end in cuts:
        pieces += [utf8[at:start], b"..."]
        starts.append(end)
        gone.append(gone[-1] + end - start - 3)
        at = end
    return b"".join((*pieces, utf8[at:])), lambda offset: offset - gone[bisect.bisect_right(starts, offset) - 1]


def _own(node: ast.AST) -> Sequence[ast.AST] | None:
    """What of a statement binds nothing around it, unless a word of `_BIND` stands there."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.body
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr) and node.value is not None:
        return (node.value,)
    return None


def _offsets(finding: Finding) -> list[int]:
    """Every offset that a finding's repair and names touch."""
    cuts = [at for start, end, _ in finding.cuts or () for at in (start, end)]
    return [*cuts, *(finding.place or ()), *(at for r in finding.relies for at in (r.start, r.end))]
