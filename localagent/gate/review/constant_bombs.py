"""Constants so large that making them is the harm: towers of powers, widths of formats. Part of `growth`.

Only what the source writes out is reckoned with. Not seen: widths and powers that are put together while it runs.
"""

import ast
import math
import re
from collections.abc import Iterator

from localagent.code.bindings import last_name

_MOST_DIGITS = 1_000_000  # of a number that is written as a power; large keys have some thousand
_WIDE = r"\d{7,}"
_PERCENT = re.compile(rf"%(?:\(\w*\))?[-+ #0]*(?:{_WIDE}|\d*\.{_WIDE})")
_BRACES = re.compile(rf"\{{[^{{}}]*:[^{{}}]*{_WIDE}")
_SPEC = re.compile(_WIDE)


def bombs(node: ast.AST) -> Iterator[str]:
    """What a single expression would make that nothing can hold."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and _digits(node) > _MOST_DIGITS:
            yield "a power with more digits than can be worked out"
        if isinstance(node.op, ast.Mod) and _holds(node.left, _PERCENT):
            yield "a format of a huge width"
    elif isinstance(node, ast.FormattedValue):
        spec = node.format_spec
        if isinstance(spec, ast.JoinedStr) and any(_holds(part, _SPEC) for part in spec.values):
            yield "a format of a huge width"
    elif isinstance(node, ast.Call):
        by_method = isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        if by_method and isinstance(node.func, ast.Attribute) and _holds(node.func.value, _BRACES):
            yield "a format of a huge width"
        if not by_method and last_name(node.func) == "format" and len(node.args) > 1 and _holds(node.args[1], _SPEC):
            yield "a format of a huge width"


def _holds(node: ast.AST, pattern: re.Pattern[str]) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
        return False
    text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    return pattern.search(text) is not None


def _digits(node: ast.expr) -> float:
    """How many digits a power of constants has, 0 where it is none."""
    found = _log10(node)
    return 0.0 if found is None else found


def _log10(node: ast.expr) -> float | None:
    """The decimal logarithm of a positive constant expression; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        if not node.value > 0:
            return None
        return math.log10(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.Mult | ast.LShift):
        left, right = _log10(node.left), _log10(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left + right
        power = float(10.0 ** min(right, 300.0))
        return left + power * math.log10(2) if isinstance(node.op, ast.LShift) else left * power
    return None
