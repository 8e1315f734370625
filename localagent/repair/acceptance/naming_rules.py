"""Edits against the names around them: the function's, a keyword's, the parameters of what is called.

Limitations: English words and a fixed list of opposites; a callee's parameters are known where one function of the file
has its name.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from localagent.code.names import dotted_name
from localagent.code.spans import Function, functions
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    Support,
    SupportKind,
)
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.repair.acceptance.effect import EffectKind, PatchEffect
from localagent.repair.acceptance.expression_diff import is_constant
from localagent.repair.acceptance.identifier_words import OPPOSITES, identifier_parts, last_name
from localagent.text.visible_text import shortened

_IDENTIFIERS = frozenset({EffectKind.CHANGES_NAME, EffectKind.CHANGES_ATTRIBUTE, EffectKind.CHANGES_CALLEE})
_PREDICATE = re.compile(r"_*(?:is|has|should|can|contains|exists|supports|needs|allows|startswith|endswith)(?:_|$)")


def opposite_names(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """`last` put in where the function is named `first_...`, or taken out there; not where both only change places."""
    named = identifier_parts(pair.new.name)
    effects = [e for e in pair.effects if e.kind in _IDENTIFIERS and not e.in_message]
    went = {(last_name(e.old), last_name(e.new)) for e in effects}
    for effect in effects:
        old, new = last_name(effect.old), last_name(effect.new)
        if (new, old) in went:
            continue
        came, gone = identifier_parts(new) - identifier_parts(old), identifier_parts(old) - identifier_parts(new)
        for word in sorted(named & OPPOSITES.keys()):
            others = OPPOSITES[word]
            if others & named:
                continue
            if others & came:
                why = f"`{pair.new.name}` is named for {word}, and the edit uses `{new}` where `{old}` was used"
                yield _against(file, effect, why)
            elif others & gone:
                yield _support(file, effect, f"`{pair.new.name}` is named for {word}, and `{old}` went for `{new}`")


def predicate_answers(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`is_x` that returns a number, text or None now and did not before."""
    if not _PREDICATE.match(pair.new.name):
        return
    old, new = _other_constants(pair.old), _other_constants(pair.new)
    if new and not old:
        yield Contradiction(
            kind=ContradictionKind.NAME,
            severity=ContradictionWeight.HARD,
            path=file.path,
            line=pair.effects[0].line,
            function=pair.qualname,
            why=f"`{pair.new.name}` asks a yes-or-no question and now returns {shortened(min(new), 60)}",
        )


def _other_constants(function: Function) -> set[str]:
    """The constants other than True and False that a function returns."""
    values = [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]
    return {
        ast.unparse(v)
        for v in values
        if is_constant(v) and not (isinstance(v, ast.Constant) and isinstance(v.value, bool | type(NotImplemented)))
    }


def keyword_values(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """`f(width=height)`, where `width=width` stood."""
    for effect in pair.effects:
        if effect.kind not in _IDENTIFIERS or not effect.keyword:
            continue
        old, new = last_name(effect.old), last_name(effect.new)
        others = set(re.findall(r"(\w+)=", effect.form_new)) - {effect.keyword}
        if old == effect.keyword != new and (new in others or OPPOSITES.get(old, frozenset()) & identifier_parts(new)):
            yield _against(file, effect, f"`{new}` is passed as the argument named `{effect.keyword}`")
        elif new == effect.keyword != old:
            yield _support(file, effect, f"`{new}` is passed as the argument of the same name, not `{old}`")


def swapped_arguments(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """Arguments swapped against, or into, the order of the callee's parameters."""
    for effect in pair.effects:
        if effect.kind is not EffectKind.SWAPS_ARGUMENTS:
            continue
        for parameters, callee in _signatures(file, effect):
            before, after = _agreeing(effect.old, parameters), _agreeing(effect.new, parameters)
            if before >= 2 and after < before:
                why = f"the arguments of `{callee}` had the names of its parameters in their order, and are swapped"
                yield _against(file, effect, why)
            elif after >= 2 and before < after:
                yield _support(file, effect, f"the arguments of `{callee}` now stand in the order of its parameters")


def _signatures(file: TouchedFile, effect: PatchEffect) -> Iterator[tuple[Sequence[str], str]]:
    """The parameters of the one function that an effect's call can mean."""
    try:
        call = ast.parse(effect.form_old, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    callee = dotted_name(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
    found = [f.node for f in functions(file.old) if f.node.name == callee]
    if len(found) == 1:
        names = [a.arg for a in (*found[0].args.posonlyargs, *found[0].args.args)]
        yield names[1:] if names[:1] in (["self"], ["cls"]) else names, callee


def _agreeing(arguments: str, parameters: Sequence[str]) -> int:
    given = [last_name(a.strip()) for a in arguments.split(",")]
    return sum(a == p for a, p in zip(given, parameters, strict=False))


def _against(file: TouchedFile, effect: PatchEffect, why: str) -> Contradiction:
    return Contradiction(
        kind=ContradictionKind.NAME,
        severity=ContradictionWeight.HARD,
        path=file.path,
        line=effect.line,
        function=effect.function,
        why=why,
    )


def _support(file: TouchedFile, effect: PatchEffect, why: str) -> Support:
    return Support(kind=SupportKind.NAME_AGREES, path=file.path, line=effect.line, function=effect.function, why=why)
