"""When are two programs the same? The compiled code of the edited function, without line numbers.

Two edits whose functions compile to equal code behave alike, so only the first runs; an edit that compiles to what
stood there before cannot change anything and never runs. Names of arguments and locals are part of the key (keyword
calls, `locals()`), docstrings too (constants). What this does not see: code that inspects its own source or lines.
"""

import hashlib
import warnings
from types import CodeType

from localagent.domain.edit import Edit, Scope

_MODULE_LIMIT_BYTES = 200_000


def behaviour_key(source: bytes, scope: Scope | None, shift: int) -> bytes | None:
    """Key of the function at `scope`, whose end moved by `shift` bytes; of the whole module when scope is None.

    None means that it does not compile (or is too large to ask), so it must not count as equal to anything.
    """
    if scope is None:
        if len(source) > _MODULE_LIMIT_BYTES:
            return hashlib.sha256(source).digest()
        text = source
    else:
        start = source.rfind(b"\n", 0, scope.start) + 1
        text = source[start : scope.end + shift]
        if text[:1] in (b" ", b"\t", b"\f"):
            text = b"if 1:\n" + text
        text += b"\n"
    code = _compiled(text)
    return None if code is None else hashlib.sha256(repr(_shape(code)).encode("utf-8", "surrogatepass")).digest()


def scope_of(edit: Edit) -> tuple[str, str]:
    """Where an edit acts: (path, qualified name of the function or "" for the module)."""
    return (str(edit.path), edit.scope.qualname if edit.scope else "")


def _compiled(text: bytes) -> CodeType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in (text, text.decode("latin-1")):
            try:
                return compile(attempt, "<candidate>", "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
                continue
    return None


def _shape(code: CodeType) -> tuple[object, ...]:
    return (
        code.co_code,
        tuple(_constant(c) for c in code.co_consts),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        getattr(code, "co_exceptiontable", b""),
    )


def _constant(value: object) -> tuple[object, ...]:
    """A constant by type and value; integers in hexadecimal, which Python writes whatever their length."""
    if isinstance(value, CodeType):
        return _shape(value)
    if isinstance(value, tuple):
        return ("tuple", *map(_constant, value))
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, map(_constant, value))))
    return (type(value).__name__, hex(value) if isinstance(value, int) else repr(value))
