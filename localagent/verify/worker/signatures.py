"""What a changed signature asks of a live function beside new code: its defaults, given again.

Answers None wherever running the `def` could do anything else: decorators, other annotations, defaults that are
computed. Not promised: that nobody read the old signature while importing; the full check imports anew.
"""

import ast
from typing import Any

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function


def defaults(before: str, after: str) -> dict[str, Any] | None:
    """How the worker makes the defaults of the function `after` out of those of the live function `before`.

    Both are texts of one definition, indented as in their file. `{"positional": [...], "keyword": {name: ...}}`, each
    entry `{"keep": i}` (the live default number i), `{"keep": name}` (that of a keyword-only parameter) or
    `{"literal": text}`; None when the candidate has to be run from scratch.
    """
    old, new = _definition(before), _definition(after)
    if old is None or new is None or type(old) is not type(new) or old.name != new.name:
        return None
    if old.decorator_list or new.decorator_list or _annotations(old) != _annotations(new):
        return None
    kept = _given(old)
    entries = {name: _entry(kept.get(name), value) for name, (_, value) in _given(new).items()}
    if any(entry is None for entry in entries.values()):
        return None
    keywords = {a.arg for a in new.args.kwonlyargs}
    return {
        "positional": [entry for name, entry in entries.items() if name not in keywords],
        "keyword": {name: entry for name, entry in entries.items() if name in keywords},
    }


def _definition(text: str) -> Function | None:
    """The one function a text defines, if it does."""
    tree = parse_or_none("if True:\n" + text if text[:1] in (" ", "\t") else text)
    body = tree.body if tree is not None else []
    if text[:1] in (" ", "\t") and len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Function) else None


def _annotations(function: Function) -> list[str]:
    args = function.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    found = [a.annotation for a in every if a is not None]
    return sorted(ast.dump(a) for a in [*found, function.returns] if a is not None)


def _given(function: Function) -> dict[str, tuple[int | str, ast.expr]]:
    """Parameters that have a default: its number, or name where it is keyword-only, and its expression."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    named = positional[len(positional) - len(args.defaults) :]
    found: dict[str, tuple[int | str, ast.expr]] = {
        a.arg: (i, value) for i, (a, value) in enumerate(zip(named, args.defaults, strict=True))
    }
    for a, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if value is not None:
            found[a.arg] = (a.arg, value)
    return found


def _entry(kept: tuple[int | str, ast.expr] | None, value: ast.expr) -> dict[str, Any] | None:
    """The live default where the expression is the same; a literal that cannot be changed; else None."""
    if kept is not None and ast.dump(kept[1]) == ast.dump(value):
        return {"keep": kept[0]}
    return {"literal": ast.unparse(value)} if _unchangeable(value) else None


def _unchangeable(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(_unchangeable(part) for part in value.elts)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
        return isinstance(value, ast.Constant) and type(value.value) in (int, float, complex)
    return isinstance(value, ast.Constant)
