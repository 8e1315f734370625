"""Joining candidates that repaired different faults: one's edit moved onto the other's program."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from localagent.domain.edit import Edit, Scope, Splice

_TOKEN = re.compile(rb"[\w\x80-\xff]+|[^\w\s]")


def rebased(edit: Edit, onto: Edit, before: bytes) -> Edit | None:
    """`edit`, made for `before`, as the same change of what `onto` makes of `before`; None where the two touch.

    Byte offsets and lines of splices and scope are moved. Edits touch when a splice of one overlaps or adjoins a splice
    of the other, or when a splice of `onto` adjoins a boundary of `edit`'s scope: what they mean together is not known.
    """
    if edit.path != onto.path:
        return edit
    for ours in edit.splices:
        if any(ours.start <= theirs.end and theirs.start <= ours.end for theirs in onto.splices):
            return None
    scope = edit.scope
    if scope is not None:
        bounds = (scope.start, scope.body_start, scope.end)
        if any(theirs.start <= bound <= theirs.end for theirs in onto.splices for bound in bounds):
            return None
    lines = _line_shift(onto, before, edit.splices[0].start) if edit.splices else 0
    return replace(
        edit,
        splices=tuple(
            Splice(start=s.start + _shift(onto, s.start), end=s.end + _shift(onto, s.end), text=s.text)
            for s in edit.splices
        ),
        line=edit.line + lines,
        end_line=edit.end_line + lines,
        scope=None if scope is None else _moved(scope, onto, before),
    )


def same_change(edit: Edit, before: bytes, others: Iterable[Edit], onto: bytes) -> Edit | None:
    """Of `others`, edits of `onto`, the first of the same kind that adds and takes away the same tokens as `edit` does.

    Where two edits touch, one cannot be moved over the other; the edit space may have it there as well: one more
    exception in a tuple that already got one.
    """
    wanted = _change(edit, before)
    return next((o for o in others if o.is_like(edit) and _change(o, onto) == wanted), None)


def _change(edit: Edit, source: bytes) -> tuple[Counter[bytes], Counter[bytes]]:
    """The tokens that an edit adds, and those that it takes away."""
    old: Counter[bytes] = Counter()
    new: Counter[bytes] = Counter()
    for splice in edit.splices:
        old.update(_TOKEN.findall(source, splice.start, splice.end))
        new.update(_TOKEN.findall(splice.text))
    return new - old, old - new


def _moved(scope: Scope, onto: Edit, before: bytes) -> Scope:
    return replace(
        scope,
        first_line=scope.first_line + _line_shift(onto, before, scope.start),
        last_line=scope.last_line + _line_shift(onto, before, scope.end),
        start=scope.start + _shift(onto, scope.start),
        body_start=scope.body_start + _shift(onto, scope.body_start),
        end=scope.end + _shift(onto, scope.end),
    )


def _shift(onto: Edit, at: int) -> int:
    """Bytes by which position `at` moves; splices never contain it."""
    return sum(len(s.text) - (s.end - s.start) for s in onto.splices if s.end <= at)


def _line_shift(onto: Edit, before: bytes, at: int) -> int:
    return sum(s.text.count(b"\n") - before.count(b"\n", s.start, s.end) for s in onto.splices if s.end <= at)
