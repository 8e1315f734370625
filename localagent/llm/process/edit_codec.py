"""Edits as a request's frame holds them: `[[start, end, text], ...], scope_start, scope_end` (see `protocol`)."""

from collections.abc import Iterator, Sequence

from localagent.llm.process.utf8 import utf8
from localagent.llm.scoring.source_windows import EditSpan


def span_of(edit: Sequence[object]) -> EditSpan:
    """The bytes that an edit touches, and its function's."""
    cuts, scope_start, scope_end = edit
    assert isinstance(cuts, list)
    assert isinstance(scope_start, int)
    assert isinstance(scope_end, int)
    start, end = int(cuts[0][0]), int(cuts[-1][1])
    if scope_start < 0:
        return EditSpan(start=start, end=end, scope_start=start, scope_end=end)
    return EditSpan(start=start, end=end, scope_start=min(scope_start, start), scope_end=max(scope_end, end))


def splices_of(
    members: Sequence[int], lead: int, edits: Sequence[Sequence[object]]
) -> Iterator[tuple[int, list[tuple[int, int, bytes]]]]:
    """(number, splices) of some edits, with offsets into a text that begins at byte `lead` of the source."""
    for member in members:
        cuts = edits[member][0]
        assert isinstance(cuts, list)
        yield member, [(start - lead, end - lead, utf8(text)) for start, end, text in cuts]
