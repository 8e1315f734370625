"""What the other functions of the class or file do in the same place.

Limitations: forms are compared as Python would write them, so `a == b` and `b == a` are two.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from localagent.code.spans import outermost_functions
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    Support,
    SupportKind,
)
from localagent.repair.acceptance.effect import LONGEST_TEXT, PatchEffect
from localagent.repair.search.enclosing_function import parsed

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
