"""A second opinion before bytes change: libcst must see the same place and the same names as the rule did.

It shares no code with the rules' own analysis. Dear (some 100 ms for 300 lines), so asked only of files that have a
safe repair. Not promised: that libcst knows every syntax; where it does not, nothing is repaired.
"""

from collections.abc import Sequence

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, Scope, ScopeProvider

from localagent.hook.find import Finding


def refused(utf8: bytes, findings: Sequence[Finding]) -> dict[int, str]:
    """Findings (by their index) whose repair is not confirmed, with the reason."""
    try:
        module = cst.parse_module(utf8.decode())
        if module.code.encode() != utf8:
            return dict.fromkeys(range(len(findings)), "libcst does not give the text back")
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        scopes = wrapper.resolve(ScopeProvider) if any(f.relies for f in findings) else {}
    except (cst.ParserSyntaxError, RecursionError) as error:
        return dict.fromkeys(range(len(findings)), f"libcst does not parse it: {type(error).__name__}")
    places: dict[tuple[int, int], list[cst.CSTNode]] = {}
    for node, span in spans.items():
        places.setdefault((span.start, span.start + span.length), []).append(node)
    answers = {n: _refusal(finding, places, scopes) for n, finding in enumerate(findings)}
    return {n: reason for n, reason in answers.items() if reason}


def _refusal(finding: Finding, places: dict[tuple[int, int], list[cst.CSTNode]], scopes: object) -> str:
    if finding.place is not None and finding.place not in places:
        return "libcst sees no such element there"
    for relied in finding.relies:
        names = {
            found.name
            for node in places.get((relied.start, relied.end), ())
            if isinstance(node, cst.Name | cst.Attribute)
            for found in _names(node, scopes)
        }
        if names != {relied.qualified}:
            return f"libcst does not resolve {relied.qualified} there"
    return ""


def _names(node: cst.Name | cst.Attribute, scopes: object) -> set[object]:
    scope = scopes.get(node)  # type: ignore[attr-defined]
    return set(scope.get_qualified_names_for(node)) if isinstance(scope, Scope) else set()
