"""Which expressions are text that only people read: messages of exceptions, logs and warnings, `print`, `__repr__`.

Limitations: a message is told by the usual names (`logger.info`, `warnings.warn`); text that a program prints for
another program, or whose words are matched later, looks the same.
"""

import ast
from collections.abc import Iterator

from localagent.code.names import dotted_name
from localagent.repair.acceptance.effect import MessageKind

_LOG_METHODS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"})
_LOGGERS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "access_log"})
_WARNING_CALLS = frozenset({"warnings.warn", "warn", "warnings.warn_explicit"})
_TRANSLATIONS = frozenset({"_", "gettext", "ugettext", "gettext_lazy", "dedent", "str", "repr"})
_TEXT_METHODS = frozenset({"format", "join", "strip", "rstrip", "lstrip", "replace"})


def message_call(call: ast.Call) -> MessageKind:
    """The kind of message a call writes by itself."""
    name = dotted_name(call.func)
    if name in _WARNING_CALLS:
        return MessageKind.WARNING
    if name == "print":
        return MessageKind.PRINT
    owner, _, method = name.rpartition(".")
    if method in _LOG_METHODS and owner.rpartition(".")[2] in _LOGGERS:
        return MessageKind.LOG
    return MessageKind.NONE


def is_text(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is put together from literal text; `names` hold nothing but messages."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp):
        return is_text(node.left, names) or (isinstance(node.op, ast.Add) and is_text(node.right, names))
    if isinstance(node, ast.IfExp):
        return is_text(node.body, names) and is_text(node.orelse, names)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
            return is_text(node.func.value, names)
        return dotted_name(node.func) in _TRANSLATIONS and bool(node.args) and is_text(node.args[0], names)
    return False


def literal_text(*nodes: ast.AST) -> str:
    """The literal parts of some expressions, one a line."""
    found = (n.value for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant))
    return "\n".join(dict.fromkeys(value for value in found if isinstance(value, str) and value.strip()))[:2000]


def message_names(function: ast.AST) -> frozenset[str]:
    """Local names that are used for nothing but messages."""
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if not stored:
        return frozenset()
    inside = {id(n) for part in _message_parts(function) for n in ast.walk(part)}
    inside |= {id(n.target) for n in ast.walk(function) if isinstance(n, ast.AugAssign)}
    loads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    elsewhere = {n.id for n in loads if id(n) not in inside}
    return frozenset(stored & {n.id for n in loads} - elsewhere)


def _message_parts(function: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from node.exc.args
        elif isinstance(node, ast.Call) and message_call(node) is not MessageKind.NONE:
            yield from node.args
