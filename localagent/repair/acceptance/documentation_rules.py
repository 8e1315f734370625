"""Edits against what the docstring, a comment or a type hint beside them says.

Limitations: only literal mentions are understood (`returns -1`, `default: 80`, `# 0 means none`), in English.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from localagent.code.spans import Function
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    Support,
    SupportKind,
)
from localagent.repair.acceptance.effect import EffectKind, PatchEffect
from localagent.repair.acceptance.expression_diff import is_constant, key
from localagent.repair.acceptance.identifier_words import last_name, mentions
from localagent.text.visible_text import shortened

_LITERALS = frozenset(
    {
        EffectKind.CHANGES_NUMBER, EffectKind.CHANGES_CONSTANT, EffectKind.CHANGES_TEXT, EffectKind.CHANGES_DEFAULT,
        EffectKind.EXPRESSION_FOR_CONSTANT, EffectKind.CONSTANT_FOR_EXPRESSION,
    }
)  # fmt: skip
_IDENTIFIERS = frozenset({EffectKind.CHANGES_NAME, EffectKind.CHANGES_ATTRIBUTE, EffectKind.CHANGES_CALLEE})
_STRINGS = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_ROW_END = re.compile(rb"\r\n|\r|\n")
_PLAIN_HINTS: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "str": (str,), "bytes": (bytes,), "int": (int,), "float": (float, int), "None": (type(None),),
    "list": (), "dict": (), "set": (), "tuple": (),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Statement:
    """What a text says of a literal: `old` stands there and `new` does not, or the other way round."""

    where: str
    agrees: bool


def documented(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """Literals and identifiers that the function's docstring states."""
    doc = ast.get_docstring(pair.new) or ""
    if not doc:
        return
    for effect in pair.effects:
        if effect.kind in _LITERALS and not effect.in_message:
            said = _stated(doc, effect)
            if said is not None and said.agrees:
                yield _support(file, effect, f"the docstring says so: {said.where}")
            elif said is not None:
                yield _against(file, effect, ContradictionKind.DOCSTRING, f"the docstring says: {said.where}")
        elif effect.kind in _IDENTIFIERS and not effect.in_message:
            was, now = last_name(effect.old), last_name(effect.new)
            if len(now) >= 4 and mentions(doc, now) and was and not mentions(doc, was):
                yield _support(file, effect, f"the docstring speaks of `{now}` and not of `{was}`")


def stated_numbers(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """A number that the docstring speaks of and the function no longer uses, or the other way round."""
    doc = ast.get_docstring(pair.new) or ""
    if not doc:
        return
    had, has = _numbers(pair.old), _numbers(pair.new)
    for effect in pair.effects:
        if effect.kind is not EffectKind.CHANGES_NUMBER or effect.in_message:
            continue
        was, now = _number_in(doc, effect.old), _number_in(doc, effect.new)
        if was and not now and effect.old not in has:
            yield Contradiction(
                kind=ContradictionKind.DOCSTRING,
                severity=ContradictionWeight.SOFT,
                path=file.path,
                line=effect.line,
                function=effect.function,
                why=f"the docstring speaks of {effect.old}, which the edit makes {effect.new}",
            )
        elif now and not was and effect.new not in had:
            yield _support(file, effect, f"the docstring speaks of {effect.new}")


_TELLING_NOTHING = frozenset({"0", "1", "2", "-1"})


def _numbers(function: Function) -> set[str]:
    return {ast.unparse(n) for n in own_nodes(function) if isinstance(n, ast.Constant | ast.UnaryOp) and is_constant(n)}


def _number_in(doc: str, number: str) -> bool:
    shape = "" if number in _TELLING_NOTHING else _literal_shape(number)
    return bool(shape) and re.search(shape, doc) is not None


_WHOLE = re.compile(r"\b(?:whole|integers?|rounded (?:down|up|off)|floored)\b", re.IGNORECASE)
_ROUNDS = frozenset({"int", "round", "floor", "ceil", "trunc"})


def whole_numbers(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`/` where `//` stood in what is returned, and docstring or annotation speak of whole numbers."""
    fractions = _fractions(pair.new)
    if fractions <= _fractions(pair.old) or _floors(pair.new) >= _floors(pair.old):
        return
    hint = pair.new.returns
    said = _WHOLE.search(ast.get_docstring(pair.new) or "")
    if hint is not None and ast.unparse(hint) == "int":
        where = f"`{pair.new.name}` is annotated `-> int`"
    elif said is not None:
        where = f'the docstring says "{said.group()}"'
    else:
        return
    yield Contradiction(
        kind=ContradictionKind.ANNOTATION if said is None else ContradictionKind.DOCSTRING,
        severity=ContradictionWeight.HARD,
        path=file.path,
        line=pair.effects[0].line,
        function=pair.qualname,
        why=f"{where}, and the edit divides by `/` where `//` stood",
    )


def _fractions(function: Function) -> int:
    """Divisions in what is returned whose fraction nothing takes off."""
    returned = [n for value in _returned(function) for n in ast.walk(value)]
    rounded: set[int] = set()
    for node in returned:
        if isinstance(node, ast.Call) and last_name(ast.unparse(node.func)) in _ROUNDS:
            rounded |= {id(n) for n in ast.walk(node)}
    return sum(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and id(n) not in rounded for n in returned)


def _floors(function: Function) -> int:
    returned = (n for value in _returned(function) for n in ast.walk(value))
    return sum(isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv) for n in returned)


def returned_no_more(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A constant of which the docstring says that it is returned, and that no `return` returns any more."""
    doc = ast.get_docstring(pair.new) or ""
    if not doc or not pair.effects or any(e.kind in _LITERALS and e.in_return for e in pair.effects):
        return
    still = {key(value) for value in _returned(pair.new)}
    for value in _returned(pair.old):
        if is_constant(value) and key(value) not in still and (said := _says_returned(doc, ast.unparse(value))):
            yield Contradiction(
                kind=ContradictionKind.DOCSTRING,
                severity=ContradictionWeight.HARD,
                path=file.path,
                line=pair.effects[0].line,
                function=pair.qualname,
                why=f'the docstring says: "{said}", and no `return` returns it any more',
            )
            return


def _stated(doc: str, effect: PatchEffect) -> _Statement | None:
    was, now = _sentence(doc, effect, effect.old), _sentence(doc, effect, effect.new)
    if was and not now:
        return _Statement(where=f'"{was}", the edit makes it {effect.new}', agrees=False)
    if now and not was:
        return _Statement(where=f'"{now}"', agrees=True)
    return None


def _sentence(doc: str, effect: PatchEffect, literal: str) -> str:
    """The words of a docstring that state a literal as a default or as what is returned, or ""."""
    if effect.kind is EffectKind.CHANGES_DEFAULT and effect.keyword and (shape := _literal_shape(literal)):
        name = re.escape(effect.keyword)
        default = rf"\bdefault(?:s|ing)?\b(?: is| to| value|[:=])*\s*{shape}"
        return _found(rf"(?<!\w){name}\b[^\n]*(?:\n[^\n]+){{0,2}}?[^\n]*?{default}", doc)
    return _says_returned(doc, literal) if effect.in_return else ""


def _says_returned(doc: str, literal: str) -> str:
    """The words of a docstring that state a literal as what is returned, or ""."""
    shape = _literal_shape(literal)
    pattern = rf"\breturn(?:s|ed|ing)?\b:?[^.\n]{{0,50}}?{shape}|{shape}[^.\n]{{0,20}}\b(?:is|are|be) returned\b"
    return _found(pattern, doc) if shape else ""


def _found(pattern: str, doc: str) -> str:
    found = re.search(pattern, doc, re.IGNORECASE)
    return shortened(" ".join(found.group().split()), 120) if found else ""


def _literal_shape(literal: str) -> str:
    """A pattern for a literal as a docstring writes it; "" for what is no literal or too short to be sure."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return ""
    if isinstance(value, str):
        return rf"[`'\"]{re.escape(value)}[`'\"]" if value and len(value) <= 40 else ""
    if value is None or isinstance(value, bool | int | float):
        return rf"(?<![\w.+-]){re.escape(literal)}(?!\w|\.\d)"
    return ""


def commented(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A comment on the line, still there afterwards, that states the old literal."""
    rows = _ROW_END.split(file.before)
    for effect in pair.effects:
        if effect.kind not in _LITERALS or effect.in_message or not 0 < effect.line <= len(rows):
            continue
        shape = _literal_shape(effect.old)
        row = rows[effect.line - 1].decode("utf-8", "replace")
        comment = _STRINGS.sub("", row).partition("#")[2].strip()
        if not shape or not comment or comment.encode() not in file.after or not re.search(shape, comment):
            continue
        if not mentions(comment, effect.new):
            said = shortened(comment, 80)
            why = f'the comment on the line says "{said}", and the edit makes {effect.old} {effect.new or "go"}'
            yield _against(file, effect, ContradictionKind.COMMENT, why)


def annotated(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A constant that is returned now and that the return annotation excludes."""
    hint = pair.new.returns
    if hint is None or pair.old.returns is None or key(hint) != key(pair.old.returns) or _yields(pair.new):
        return
    text = ast.unparse(hint)
    allowed = _PLAIN_HINTS.get(text.partition("[")[0])
    if allowed is None:
        return
    had = {key(r) for r in _returned(pair.old)}
    for value in _returned(pair.new):
        if is_constant(value) and key(value) not in had and not _is_a(value, allowed):
            yield Contradiction(
                kind=ContradictionKind.ANNOTATION,
                severity=ContradictionWeight.HARD,
                path=file.path,
                line=pair.effects[0].line,
                function=pair.qualname,
                why=f"`{pair.new.name}` is annotated `-> {shortened(text, 60)}` "
                f"and now returns {shortened(ast.unparse(value), 60)}",
            )
            return


def _is_a(value: ast.expr, allowed: tuple[type, ...]) -> bool:
    held = ast.literal_eval(value)
    return isinstance(held, allowed) if allowed else False


def _returned(function: Function) -> Iterator[ast.expr]:
    for node in own_nodes(function):
        if isinstance(node, ast.Return):
            yield node.value if node.value is not None else ast.Constant(value=None)


def _yields(function: Function) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(function))


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, not those of functions and classes inside it."""
    queue: list[ast.AST] = list(function.body) if isinstance(function, Function) else [function]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue += ast.iter_child_nodes(node)


def _against(file: TouchedFile, effect: PatchEffect, kind: ContradictionKind, why: str) -> Contradiction:
    return Contradiction(
        kind=kind,
        severity=ContradictionWeight.HARD,
        path=file.path,
        line=effect.line,
        function=effect.function,
        why=why,
    )


def _support(file: TouchedFile, effect: PatchEffect, why: str) -> Support:
    return Support(
        kind=SupportKind.DOCSTRING_AGREES, path=file.path, line=effect.line, function=effect.function, why=why
    )
