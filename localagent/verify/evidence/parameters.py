"""A function's parameters as its source tells them: names, hints, defaults. Reads syntax alone."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionParameters:
    """A function's parameters as its source tells them; `positional` and `named` are (name, hint, default)."""

    positional: tuple[tuple[str, ast.expr | None, ast.expr | None], ...]
    named: tuple[tuple[str, ast.expr | None, ast.expr | None], ...]


def signature_of(text: bytes) -> FunctionParameters | None:
    """The parameters of a function's text, None for what is no function."""
    tree = parse_or_none(b"if 1:\n" + text if text[:1] in (b" ", b"\t") else text)
    body: Sequence[ast.stmt] = tree.body if tree is not None else ()
    if body and isinstance(body[0], ast.If):
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    arguments = body[0].args
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(places) - len(arguments.defaults)) + list(arguments.defaults)
    return FunctionParameters(
        positional=tuple((a.arg, a.annotation, d) for a, d in zip(places, defaults, strict=True)),
        named=tuple((a.arg, a.annotation, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    )
