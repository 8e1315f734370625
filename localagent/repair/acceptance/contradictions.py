"""What speaks against a patch and for it, read from its files before and after.

Pure: no I/O, nothing is run, and nothing is read from an edit's notes or operator. Files that do not parse are not
asked.

Limitations: the rules are precise rather than complete; silence says nothing. Each module of rules states its own.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from localagent.code.spans import last_line, outermost_functions
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance import (
    documentation_rules,
    error_text_rules,
    flow_rules,
    message_rules,
    naming_rules,
    option_rules,
    regularity_rules,
    value_rules,
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
from localagent.repair.acceptance.effect import LONGEST_TEXT, EffectKind, PatchEffect
from localagent.repair.acceptance.identifier_words import last_name, mentions
from localagent.repair.acceptance.meaningless_expressions import new_expressions
from localagent.repair.acceptance.undefined_names import left_undefined, missing_names
from localagent.repair.search.enclosing_function import parsed
from localagent.text.escaping import escaped
from localagent.text.visible_text import shortened

# What the other functions of the class or file do in the same place.
#
# Limitations: forms are compared as Python would write them, so `a == b` and `b == a` are two.

_FEWEST_WORDS = 3
_STANDS_OFTEN = 2


def siblings(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """Changed expressions of which the old or the new form stands in siblings, and the other does not."""
    texts = _sibling_texts(file.before, pair.class_name, pair.qualname)
    for old, new, effect in _forms(pair):
        had, has = _count(old, texts), _count(new, texts)
        if had >= _STANDS_OFTEN and not has:
            yield Contradiction(
                kind=ContradictionKind.SIBLINGS,
                severity=ContradictionWeight.SOFT,
                path=file.path,
                line=effect.line,
                function=pair.qualname,
                why=f"{_kin(had, pair)} as it stood, `{old}`, and none as the edit has it",
            )
        elif has and not had:
            yield Support(
                kind=SupportKind.SIBLINGS_AGREE,
                path=file.path,
                line=effect.line,
                function=pair.qualname,
                why=f"{_kin(has, pair)} as the edit has it: `{new}`",
            )


_WORD = re.compile(r"[A-Za-z][\w-]{2,}")


def familiar_texts(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A word as text that stands elsewhere in the file as it stood here, and nowhere as the edit has it."""
    for effect in pair.effects:
        if effect.kind is not EffectKind.CHANGES_TEXT or effect.in_message:
            continue
        old, new = (_text_of(t) for t in (effect.old, effect.new))
        still, known = _texts(file.new), _texts(file.old)
        if _WORD.fullmatch(old) and _WORD.fullmatch(new) and still[old] and not known[new]:
            yield Contradiction(
                kind=ContradictionKind.SIBLINGS,
                severity=ContradictionWeight.SOFT,
                path=file.path,
                line=effect.line,
                function=pair.qualname,
                why=f"{effect.old} stands elsewhere in the file too, and {effect.new} nowhere",
            )


def _text_of(source: str) -> str:
    """The text that a literal says, "" for anything else."""
    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return ""
    return value if isinstance(value, str) else ""


def _texts(tree: ast.Module) -> Counter[str]:
    return Counter(n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _kin(count: int, pair: FunctionPair) -> str:
    word, home = ("method", f"`{pair.class_name}`") if pair.class_name else ("function", "the file")
    return f"{count} other {word} of {home} has it" if count == 1 else f"{count} other {word}s of {home} have it"


def _forms(pair: FunctionPair) -> Iterator[tuple[str, str, PatchEffect]]:
    seen: set[tuple[str, str]] = set()
    for effect in pair.effects:
        forms = (effect.form_old, effect.form_new)
        if effect.in_message or forms in seen or forms[0] == forms[1]:
            continue
        if all(len(re.findall(r"\w+", f)) >= _FEWEST_WORDS and len(f) < LONGEST_TEXT for f in forms):
            seen.add(forms)
            yield *forms, effect


@lru_cache(maxsize=64)
def _sibling_texts(source: bytes, class_name: str, qualname: str) -> tuple[str, ...]:
    """The functions of the same class, or of the file, as Python would write them; the changed one is left out."""
    tree = parsed(source)
    prefix = f"{class_name}." if class_name else ""
    own = qualname.split(".<locals>.", 1)[0]
    found = outermost_functions(tree) if tree is not None else ()
    return tuple(ast.unparse(f.node) for f in found if f.qualname != own and f.qualname.startswith(prefix))


def _count(form: str, texts: Sequence[str]) -> int:
    """In how many texts a form stands by itself."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(form)}(?![\w(\[.])")
    return sum(1 for text in texts if pattern.search(text))


# Edits in places where no repair belongs: support for tests, and functions that no failing test runs.
#
# Limitations: coverage misses other processes and threads that were not traced; unknown coverage says nothing.

_FOLDERS = frozenset({"testing", "testutils", "test_utils", "testutil", "test_util", "_testing", "testsupport"}) | {
    "test_support",
    "test_helpers",
    "testhelpers",
}
_FILES = _FOLDERS | {"conftest", "testclient", "test_client", "pytest_plugin", "noxfile"}


def testing_support(patch: Patch) -> Iterator[Contradiction]:
    """Files that exist for the sake of tests."""
    for change in patch.changes:
        parts = change.path.parts
        held = next((p for p in parts[:-1] if p.lower() in _FOLDERS), "")
        stem = parts[-1].rpartition(".")[0].lower()
        if held or stem in _FILES:
            yield Contradiction(
                kind=ContradictionKind.TESTING_SUPPORT,
                severity=ContradictionWeight.HARD,
                path=change.path,
                line=1,
                function="",
                why=f"the edit is in `{held + '/' if held else parts[-1]}`, which supports tests and is not under test",
            )


def no_failing_behaviour(files: Sequence[TouchedFile], context: PatchContext) -> Iterator[Contradiction]:
    """No touched function is run by a failing test, or named by its failure."""
    if not context.covered or any(not f.functions for f in files):
        return
    for file in files:
        for pair in file.functions:
            body = range(pair.old.body[0].lineno, last_line(pair.old) + 1)
            if _runs(file.path, body, context) or _named_in_failures(pair.new.name, context):
                return
    for file in files[:1]:
        pair = file.functions[0]
        yield Contradiction(
            kind=ContradictionKind.NO_FAILING_BEHAVIOUR,
            severity=ContradictionWeight.SOFT,
            path=file.path,
            line=pair.effects[0].line,
            function=pair.qualname,
            why=f"no failing test runs `{pair.new.name}`",
        )


def _named_in_failures(name: str, context: PatchContext) -> bool:
    """Whether a failing test could not call a function, or read it like an attribute: Python then names it."""
    named = re.compile(rf"\b{re.escape(name)}\(\) (?:missing|takes|got)|<bound method (?:\w+\.)*{re.escape(name)} of")
    return any(named.search(f"{f.message}\n{f.left}\n{f.right}") for f in context.failures)


def _runs(path: RepoPath, lines: range, context: PatchContext) -> bool:
    frames = (frame for failure in context.failures for frame in failure.frames)
    if any(frame.path == path and frame.line in lines for frame in frames):
        return True
    return any(any(line in lines for line in covered.get(path, ())) for covered in context.covered.values())


__all__ = ["Contradiction", "ContradictionKind", "ContradictionWeight", "PatchContext", "Support", "SupportKind"]
__all__ += ["contradictions", "supports"]

Rule = Callable[[TouchedFile, FunctionPair], Iterator[Contradiction] | Iterator[Contradiction | Support]]
_RULES: tuple[Rule, ...] = (
    documentation_rules.documented,
    documentation_rules.stated_numbers,
    documentation_rules.whole_numbers,
    documentation_rules.returned_no_more,
    documentation_rules.commented,
    documentation_rules.annotated,
    naming_rules.opposite_names,
    naming_rules.predicate_answers,
    naming_rules.keyword_values,
    naming_rules.swapped_arguments,
    error_text_rules.error_texts,
    flow_rules.unreachable,
    flow_rules.shadowed_steps,
    flow_rules.overwritten,
    flow_rules.unguarded,
    flow_rules.loops,
    flow_rules.constant_answers,
    flow_rules.equal_branches,
    flow_rules.ends_without_answer,
    flow_rules.branch_negated,
    flow_rules.guards_nothing,
    flow_rules.none_used,
    option_rules.lost_options,
    option_rules.lost_fields,
    option_rules.lost_targets,
    option_rules.left_unread,
    option_rules.stated_defaults,
    option_rules.emptied_attributes,
    option_rules.reversed_assignments,
    regularity_rules.lost_symmetry,
    regularity_rules.lost_accumulation,
    regularity_rules.rounded_by_one,
    regularity_rules.presence_by_get,
    regularity_rules.one_sided_relation,
    regularity_rules.unlike_its_neighbours,
    regularity_rules.guarded_alone,
    regularity_rules.folded_beyond_keys,
    value_rules.ordered_as_text,
    value_rules.lost_order,
    value_rules.never_filled,
    value_rules.changed_in_place,
    siblings,
    familiar_texts,
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
        *testing_support(patch),
        *message_rules.message_only(patch, files, context),
        *no_failing_behaviour(files, context),
        *value_rules.fractions(files, context),
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
        why = f"the edit brings in `{shortened(text, 120)}`, where the same thing stands twice"
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
