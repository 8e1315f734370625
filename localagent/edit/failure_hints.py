"""What a failure's report says of a place: the name it misses, the attribute, whether its traceback stands there."""

import re

from localagent.domain.outcome import Failure
from localagent.edit.operator_context import OperatorContext

_UNDEFINED = re.compile(r"name '(\w+)' is not defined|local variable '(\w+)'|free variable '(\w+)'")
_NO_ATTRIBUTE = re.compile(r"(?:'(\w+)' object|type object '(\w+)'|module '([\w.]+)') has no attribute '(\w+)'")


def undefined(failure: Failure) -> str:
    """The name that a failure calls undefined, or ""."""
    found = _UNDEFINED.search(failure.message)
    return next((g for g in found.groups() if g), "") if found else ""


def missing_attribute(failure: Failure) -> tuple[str, str] | None:
    """The type (or module) that lacks an attribute, and the attribute; None where a failure tells no such thing."""
    found = _NO_ATTRIBUTE.search(failure.message)
    return (next((g for g in found.groups()[:3] if g), ""), found.group(4)) if found else None


def placed(ctx: OperatorContext, failure: Failure, line: int, end_line: int) -> float:
    """Bonus for standing on a line of the failure's traceback, most for the innermost."""
    lines = [f.line for f in failure.frames if f.path == ctx.path]
    if lines and line <= lines[-1] <= end_line:
        return 0.5
    return 0.2 if any(line <= n <= end_line for n in lines) else 0.0
