"""Effects that the texts of an edit show, beside those that its operator declares."""

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from localagent.domain.edit import EditEffect, Splice
from localagent.edit.operator_context import Change

_NEGATIONS = {
    **dict.fromkeys((("==", "!="), ("is", "is not")), EditEffect.NEGATES_EQUALITY),
    **dict.fromkeys((("<", ">="), (">", "<=")), EditEffect.NEGATES_ORDER),
}
_NAMES = re.compile(r"[A-Za-z_]\w*")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALIKE = 0.75
_CALL = re.compile(r"\w\([^()]")
_LONG_BYTES, _SHORT_WORD = 40, 12
_NAMING = frozenset({EditEffect.MENDS_NAME, EditEffect.INVENTS})  # where it matters whether names are alike


def effects_of(change: Change, splices: Sequence[Splice], declared: Collection[EditEffect]) -> frozenset[EditEffect]:
    """The effects of a change: what its operator declares, what the change has beside it, and what its texts show."""
    found = set(declared) | change.effects
    if not _NAMING.isdisjoint(found) and alike(change.old, change.new):
        found.add(EditEffect.RESEMBLES)
    if len(splices) == 1:
        found |= negation(change.old, change.new)
        if _shortens_to_prefix(change, splices[0]):
            found.add(EditEffect.SHORTENS_TO_WORD)
    return frozenset(found)


def negation(old: str, new: str) -> frozenset[EditEffect]:
    """The effect of a comparison operator that becomes its contrary."""
    effect = _NEGATIONS.get((old, new)) or _NEGATIONS.get((new, old))
    return frozenset() if effect is None else frozenset({effect})


def has_arguments(text: str) -> bool:
    """Whether a text holds a call that is given something."""
    return _CALL.search(text) is not None


def _shortens_to_prefix(change: Change, splice: Splice) -> bool:
    """Whether a bare word takes the place of a long expression, or of a call with arguments that does not name it."""
    word = splice.text.decode("utf-8", "replace")
    if len(word) > _SHORT_WORD or not word.replace("_", "a").isalnum():
        return False
    lost = change.new == word and has_arguments(change.old) and not re.search(rf"\b{re.escape(word)}\b", change.old)
    return splice.end - splice.start >= _LONG_BYTES or lost


def alike(old: str, new: str) -> bool:
    """Whether an identifier of the new text is like one of the old: a word of it, or nearly the same letters."""
    before, after = _NAMES.findall(old), _NAMES.findall(new)
    for name in set(after) - set(before):
        words = {w.lower() for w in _HUMPS.findall(name) if len(w) > 2}
        for gone in set(before) - set(after):
            if name.lower() == gone.lower():
                return True
            lost = {w.lower() for w in _HUMPS.findall(gone) if len(w) > 2}
            if name.lower() in lost or gone.lower() in words:
                return True
            if min(len(name), len(gone)) > 2 and SequenceMatcher(None, name.lower(), gone.lower()).ratio() >= _ALIKE:
                return True
    return False
