"""Gate: an exception that is silenced is not repaired.

Real fixes do catch exceptions: a handler for a particular type is let be, whatever it does, and so is one that raises
again on every path. What is refused is catching everything, widening what is caught to everything, and taking away the
very `raise` or `assert` that the failing tests trip over. Conditions that are no constants may never hold: not seen.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from localagent.code.exception_handlers import BlockEnd, catches_everything, ends_of, names_of_types, raises_again
from localagent.code.name_uses import NameUse, bindings_with, find_uses, module_bindings, within
from localagent.code.regions import SourceFile, UnitSource
from localagent.domain.gate import Decision, Finding
from localagent.domain.policy import Permission, Policy
from localagent.gate.core.gate_input import ChangedRegion, GateInput
from localagent.gate.core.rule import decide
from localagent.gate.security.block_exits import exits, jumps
from localagent.gate.security.removed_raise import silenced
from localagent.gate.security.swallow_rules import AT_TIMES, BARE, BROAD, SUPPRESS

_KINDS = (AT_TIMES, BROAD, BARE)  # each says more than the one before
_CONCERNED = (ast.Raise, ast.Assert, ast.ExceptHandler, ast.Try, ast.TryStar)


class Swallow:
    """Refuses handlers that catch everything and edits that only take a raise away."""

    name = "swallow"

    def __init__(self, policy: Policy) -> None:
        self._allowed = policy.swallowed_exceptions is Permission.ALLOW

    def review(self, change: GateInput) -> Decision:
        """Deny if a rule of this file fires on a changed region."""
        if self._allowed:
            return decide(self.name, [])
        failing = set(change.baseline.failing)
        fails_with = {t.failure.exception for t in change.baseline.tests if t.failure and t.id in failing}
        found: list[Finding] = []
        for region in change.regions:
            others = [r.whole.after for r in change.regions if r.path == region.path] if len(change.regions) > 1 else []
            if not _concerns(region) and not any("suppress" in other.text for other in others):
                continue
            found += _handlers(region, others)
            found += _suppressions(region, others)
            found += jumps(region)
            found += exits(region)
            found += silenced(region, fails_with)
        return decide(self.name, found)


def _concerns(region: ChangedRegion) -> bool:
    """True if something near the change raises, asserts, handles or suppresses."""
    if _may_suppress(region.file):
        return True
    for snippet in region.near:
        if snippet is None or "suppress" in snippet.text or "exit__" in snippet.text or ".push(" in snippet.text:
            return True
        if "concerns" not in snippet.memo:
            snippet.memo["concerns"] = any(isinstance(node, _CONCERNED) for node in snippet.nodes)
        if snippet.memo["concerns"]:
            return True
    return False


def _may_suppress(file: SourceFile) -> bool:
    if "may-suppress" not in file.memo:
        file.memo["may-suppress"] = b"suppress" in file.source and b"contextlib" in file.source
    return bool(file.memo["may-suppress"])


def _handlers(region: ChangedRegion, others: list[UnitSource]) -> Iterator[Finding]:
    """New handlers of everything; one that was there may become milder, never worse."""
    before, after = region.whole
    if before is None and region.file.source.count(b"except") >= after.text.count("except"):
        return
    handlers = _nodes(after)
    if not handlers:
        return
    known = names_of_types((*region.file.bindings, *after.nodes, *(node for other in others for node in other.nodes)))
    had = [_kind(h, known) for h in _nodes(before)] if before else []
    spare = [sum(kind >= least for kind in had) for least in range(len(_KINDS) + 1)]
    for handler in handlers:
        kind = _kind(handler, known)
        for least in range(1, kind + 1):
            spare[least] -= 1
        if any(spare[least] < 0 for least in range(1, kind + 1)):
            rule = _KINDS[kind - 1]
            yield rule.finding(region.path, after.line_of(handler), f"new handler of everything: {rule.why}")


def _nodes(snippet: UnitSource) -> list[ast.ExceptHandler]:
    return [node for node in snippet.nodes if isinstance(node, ast.ExceptHandler)]


def _kind(handler: ast.ExceptHandler, known: dict[str, list[ast.expr]]) -> int:
    """How much a handler hides, by the place in `_KINDS` from 1; 0 if it names what it catches or raises again."""
    if handler.type is not None and not catches_everything(handler.type, known):
        return 0
    ends = ends_of(handler.body)
    if BlockEnd.RAISES in ends:
        return 1 if len(ends) > 1 else 0
    return 3 if handler.type is None else 2


def _suppressions(region: ChangedRegion, others: list[UnitSource]) -> Iterator[Finding]:
    """New uses of contextlib.suppress; `others` are changed parts of the same file, which may import it."""
    before, after = region.whole
    if "suppress" not in after.text and not others and not _may_suppress(region.file):
        return
    outer = bindings_with(region.file, others) if others else module_bindings(region.file)
    uses = within(region.file, before).uses if before else Counter[NameUse]()
    seen, had = 0, uses[NameUse("call", "contextlib.suppress")]
    cleaning = _around_clean_up(after)
    for use, node in find_uses(after.tree, outer):
        if use.kind == "call" and use.name == "contextlib.suppress" and id(node) not in cleaning:
            seen += 1
            if seen > had:
                yield SUPPRESS.finding(region.path, after.line_of(node), SUPPRESS.why)


def _around_clean_up(snippet: UnitSource) -> set[int]:
    """The ids of what `with` opens inside a handler that raises again on every path, where nothing in it raises.

    What is caught there is a fault of tidying up, not the one that is handled. Types that stand for everything do not
    count.
    """
    known = names_of_types(snippet.nodes)
    again = [h for h in _nodes(snippet) if raises_again(h)]
    return {
        id(item.context_expr)
        for handler in again
        for node in ast.walk(handler)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Call)
        and not any(catches_everything(a, known) for a in item.context_expr.args)
    }
