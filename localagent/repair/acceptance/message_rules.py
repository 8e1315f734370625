"""Patches that change nothing but text that people read.

Limitations: whether a test asserts a message is told by what its failure shows of the two sides, not by reading the
test.
"""

import ast
import re
from collections.abc import Sequence

from localagent.code.names import dotted_name
from localagent.code.spans import lines_of
from localagent.domain.edit import Patch
from localagent.domain.outcome import Failure
from localagent.repair.acceptance.changed_functions import TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    PatchContext,
)
from localagent.repair.acceptance.effect import EffectKind, MessageKind, PatchEffect

_NOT_BEHAVIOUR = frozenset({EffectKind.CHANGES_DOCUMENTATION, EffectKind.CHANGES_ANNOTATION})
_ASSERTIONS = frozenset({"AssertionError", "Failed", "ComparisonFailure"})
_WHERE = {
    MessageKind.RAISE: "the message of an exception",
    MessageKind.LOG: "a log message",
    MessageKind.WARNING: "a warning's text",
    MessageKind.PRINT: "printed text",
    MessageKind.ASSERT: "the message of an assertion",
    MessageKind.REPR: "a repr text",
}
_PIECE = re.compile(r"[^\n{}%]{3,}")


def message_only(patch: Patch, files: Sequence[TouchedFile], context: PatchContext) -> tuple[Contradiction, ...]:
    """Every effect of the patch lies in messages, and no failing test asks for their text."""
    effects = [(f, e) for f in files for e in f.effects if e.kind not in _NOT_BEHAVIOUR]
    if not effects or len(files) != len(patch.changes) or not all(e.in_message for _, e in effects):
        return ()
    if any(asserted(e, context.failures) or _crashed(f, e, context.failures) for f, e in effects):
        return ()
    file, effect = effects[0]
    printed = all(e.message in (MessageKind.PRINT, MessageKind.REPR) for _, e in effects)
    return (
        Contradiction(
            kind=ContradictionKind.MESSAGE_ONLY,
            severity=ContradictionWeight.SOFT if printed and not context.failures else ContradictionWeight.HARD,
            path=file.path,
            line=effect.line,
            function=effect.function,
            why=_reason(effect),
        ),
    )


def _reason(effect: PatchEffect) -> str:
    where = _WHERE[effect.message]
    if effect.kind in (EffectKind.CHANGES_MESSAGE, EffectKind.CHANGES_TEXT):
        return f"only {where} changes, which the failing test does not ask for"
    if effect.old and effect.new:
        return f"only {where} changes (`{effect.old}` becomes `{effect.new}`), which the failing test does not ask for"
    return f"only {where} is {'dropped' if effect.old else 'added'}, which the failing test does not ask for"


def _crashed(file: TouchedFile, effect: PatchEffect, failures: Sequence[Failure]) -> bool:
    """Whether making the message is what failed: the innermost frame is its statement, and another exception flew."""
    around = [n for n in ast.walk(file.old) if isinstance(n, ast.stmt) and effect.line in lines_of(n)]
    statement = max(around, key=lambda n: n.lineno, default=None)
    if statement is None:
        return False
    raised = ""
    if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
        raised = dotted_name(statement.exc.func).rpartition(".")[2]
    for failure in failures:
        frame = failure.frames[-1] if failure.frames else None
        if frame is not None and frame.path == file.path and frame.line in lines_of(statement):
            return failure.exception.rpartition(".")[2] != raised
    return False


def asserted(effect: PatchEffect, failures: Sequence[Failure]) -> bool:
    """Whether a failing comparison shows a piece of the message around an effect."""
    pieces = [p.strip() if len(p.strip()) >= 3 else p for p in _PIECE.findall(effect.message_text)]
    for failure in failures:
        shown = f"{failure.left}\n{failure.right}"
        if failure.exception.rpartition(".")[2] in _ASSERTIONS:
            shown += "\n" + failure.message
        if any(p in shown for p in pieces):
            return True
    return False
