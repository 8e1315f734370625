"""The typed effects of an edit: a structural diff of the syntax trees before and after.

Laws, tested: trees that are equal (layout and comments aside) have no effects, all others have at least one; the same
pair has the same effects every time. Only statements that differ are looked into.

Limitations: a file that does not parse, or whose expressions are nested too deep to compare, has one effect OTHER at
the first line that differs. Renamed definitions are one dropped and one added.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from localagent.domain.edit import Patch
from localagent.repair.acceptance.effect import EffectKind, MessageKind, PatchEffect, TreePosition
from localagent.repair.acceptance.statement_diff import Found, Loose, Sources, statements
from localagent.repair.search.enclosing_function import parsed

__all__ = ["EffectKind", "MessageKind", "PatchEffect", "effects_of", "patch_effects"]

_ROW_END = re.compile(rb"\r\n|\r|\n")


def patch_effects(patch: Patch) -> tuple[PatchEffect, ...]:
    """The effects of all files that a patch changes, in its order; other files than Python's have none."""
    return tuple(
        replace(effect, path=change.path)
        for change in patch.changes
        if change.path.is_python
        for effect in effects_of(change.before, change.after)
    )


def effects_of(before: bytes, after: bytes) -> tuple[PatchEffect, ...]:
    """What changes between two versions of one file, in the order of the file before."""
    if before == after:
        return ()
    sources = Sources(before=_ROW_END.split(before), after=_ROW_END.split(after))
    old, new = parsed(before), parsed(after)
    if old is None or new is None:
        return (_unread(sources),)
    try:
        found = list(statements(old.body, new.body, TreePosition(), sources))
        effects = sorted(_resolved(found), key=lambda e: e.line)
    except RecursionError:
        return (_unread(sources),)
    return tuple(effects)


def _unread(sources: Sources) -> PatchEffect:
    """One effect for two sources of which a tree is lacking."""
    rows = enumerate(zip_longest(sources.before, sources.after, fillvalue=b""), start=1)
    line, (was, now) = next((n, pair) for n, pair in rows if pair[0] != pair[1])
    return TreePosition(line=line).effect(
        EffectKind.OTHER, was.decode("utf-8", "replace"), now.decode("utf-8", "replace")
    )


def _resolved(found: Iterable[Found]) -> Iterator[PatchEffect]:
    """Plain effects, with statements that left one place and came to another matched as moves."""
    loose: list[Loose] = []
    for item in found:
        if isinstance(item, Loose):
            loose.append(item)
        else:
            yield item
    came = [item for item in loose if item.added]
    for gone in (item for item in loose if not item.added):
        twin = _match(gone, came)
        if twin is None:
            yield gone.effect
            continue
        came.remove(twin)
        same_function = twin.effect.function == gone.effect.function
        moves = twin.block == gone.block or not same_function
        kind = EffectKind.MOVES_STATEMENT if moves else EffectKind.CHANGES_INDENT
        yield replace(gone.effect, kind=kind, new=gone.effect.old)
    yield from (item.effect for item in came)


def _match(gone: Loose, came: list[Loose]) -> Loose | None:
    same = [item for item in came if item.key == gone.key]
    return next((item for item in same if item.effect.function == gone.effect.function), same[0] if same else None)
