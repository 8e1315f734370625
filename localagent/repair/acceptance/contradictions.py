"""What speaks against a patch and for it, read from its files before and after.

Pure: no I/O, nothing is run, and nothing is read from an edit's notes or operator. Files that do not parse are not
asked.

Limitations: the rules are precise rather than complete; silence says nothing. Each module of rules states its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.repair.acceptance import (
    documentation_rules,
    error_text_rules,
    flow_rules,
    message_rules,
    naming_rules,
    option_rules,
    place_rules,
    sibling_rules,
)
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile, touched_file
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    PatchContext,
    Support,
    SupportKind,
)
from localagent.repair.acceptance.effect import EffectKind, PatchEffect
from localagent.repair.acceptance.identifier_words import last_name, mentions
from localagent.repair.acceptance.meaningless_expressions import new_expressions
from localagent.repair.acceptance.undefined_names import left_undefined, missing_names
from localagent.text.escaping import escaped

__all__ = ["Contradiction", "ContradictionKind", "ContradictionWeight", "PatchContext", "Support", "SupportKind"]
__all__ += ["contradictions", "supports"]

Rule = Callable[[TouchedFile, FunctionPair], Iterator[Contradiction] | Iterator[Contradiction | Support]]
_RULES: tuple[Rule, ...] = (
    documentation_rules.documented,
    documentation_rules.returned_no_more,
    documentation_rules.commented,
    documentation_rules.annotated,
    naming_rules.opposite_names,
    naming_rules.predicate_answers,
    naming_rules.keyword_values,
    naming_rules.swapped_arguments,
    error_text_rules.error_texts,
    flow_rules.unreachable,
    flow_rules.loops,
    flow_rules.constant_answers,
    flow_rules.ends_without_answer,
    flow_rules.branch_negated,
    flow_rules.none_used,
    option_rules.lost_options,
    option_rules.reversed_assignments,
    sibling_rules.siblings,
)
_IDENTIFIERS = frozenset({EffectKind.CHANGES_NAME, EffectKind.CHANGES_ATTRIBUTE, EffectKind.CHANGES_CALLEE})
_LONGEST_WHY = 400


def contradictions(patch: Patch, context: PatchContext) -> tuple[Contradiction, ...]:
    """What speaks against a patch, in the order of its files and the rules; each said once."""
    return read(patch, context)[0]


def supports(patch: Patch, context: PatchContext) -> tuple[Support, ...]:
    """What speaks for a patch, in the same order."""
    return read(patch, context)[1]


def read(patch: Patch, context: PatchContext) -> tuple[tuple[Contradiction, ...], tuple[Support, ...]]:
    """Both at once. RecursionError for code that is nested deeper than the syntax tree can be walked."""
    files = _files(patch)
    ruled = list(_by_function(files))
    found: list[Contradiction] = [
        *place_rules.testing_support(patch),
        *message_rules.message_only(patch, files, context),
        *place_rules.no_failing_behaviour(files, context),
        *(c for f in files for c in _says_nothing(f)),
        *(r for r in ruled if isinstance(r, Contradiction)),
    ]
    agreeing = [
        *(r for r in ruled if isinstance(r, Support)),
        *(s for f in files for s in _named_by_errors(f, context)),
    ]
    return (
        tuple(dict.fromkeys(replace(c, why=_plain(c.why)) for c in found)),
        tuple(dict.fromkeys(replace(s, why=_plain(s.why)) for s in agreeing)),
    )


def _plain(why: str) -> str:
    shown, _ = escaped(why)
    return shown[:_LONGEST_WHY]


def _files(patch: Patch) -> list[TouchedFile]:
    return [f for f in map(touched_file, patch.changes) if f is not None]


def _by_function(files: Sequence[TouchedFile]) -> Iterator[Contradiction | Support]:
    for file in files:
        for pair in file.functions:
            for rule in _RULES:
                yield from rule(file, pair)


def _says_nothing(file: TouchedFile) -> Iterator[Contradiction]:
    """Expressions such as `a > a` or `f(a, a)`, and names that nothing binds, which the edit of a file brings in."""
    for text in new_expressions(file.before, file.after)[:1]:
        why = f"the edit brings in `{text[:120]}`, where the same thing stands twice"
        yield _first_of(file, ContradictionKind.DEGENERATE, why)
    old, new = missing_names(file.old), missing_names(file.new)
    for name in [n for n in new if n not in old][:1]:
        yield _first_of(file, ContradictionKind.UNDEFINED_NAME, f"nothing defines `{name}`, which the edit uses")
    for name in [n for n in old if 0 < new[n] < old[n]][:1]:
        why = f"nothing defines `{name}`: the edit mends one use of it and leaves another"
        yield _first_of(file, ContradictionKind.UNDEFINED_NAME, why)
    if set(new) <= set(old) and _unset(file.before, file.after, file) > _unset(file.after, file.before, file):
        why = "the edit reads an attribute of `self` that nothing sets"
        yield _first_of(file, ContradictionKind.UNDEFINED_NAME, why)


def _unset(before: bytes, after: bytes, file: TouchedFile) -> int:
    """How many names and attributes of `self` the changed definitions read in `after` and nothing sets."""
    change = FileChange(path=file.path, before=before, after=after)
    return left_undefined(Candidate(number=0, patch=Patch(changes=(change,)), edits=(), cost=0.0))


def _first_of(file: TouchedFile, kind: ContradictionKind, why: str) -> Contradiction:
    first: PatchEffect | None = file.effects[0] if file.effects else None
    return Contradiction(
        kind=kind,
        severity=ContradictionWeight.HARD,
        path=file.path,
        line=first.line if first else 1,
        function=first.function if first else "",
        why=why,
    )


def _named_by_errors(file: TouchedFile, context: PatchContext) -> Iterator[Support]:
    """The failing test's message names what the edit puts in, and not what it takes out."""
    told = "\n".join(f.message for f in context.failures)
    for effect in file.effects:
        if effect.kind in _IDENTIFIERS:
            new = last_name(effect.new)
            if len(new) >= 3 and mentions(told, new) and new != last_name(effect.old):
                yield Support(
                    kind=SupportKind.ERROR_NAMES_IT,
                    path=file.path,
                    line=effect.line,
                    function=effect.function,
                    why=f"the failing test's message names `{new}`",
                )
