"""Cuts a file into the stretches the model reads: the function around each place, with what stands before it.

Byte budgets here, token budgets in `child`. A place that lies in no window is left unscored and counted, never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

BODY_BYTES = 2400
LEAD_BYTES = 600
TAIL_BYTES = 120
_MERGE_GAP_BYTES = 600


@dataclass(frozen=True, kw_only=True, slots=True)
class EditSpan:
    """The bytes an edit touches, and its function's bytes (the same where there is none)."""

    start: int
    end: int
    scope_start: int
    scope_end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceWindow:
    """Bytes [lead, end) of a file; places lie in [start, end). `members` are indexes of places, in the order given."""

    lead: int
    start: int
    end: int
    members: tuple[int, ...]


def plan_windows(
    source: bytes, places: Sequence[EditSpan], *, body_bytes: int = BODY_BYTES
) -> tuple[SourceWindow, ...]:
    """Windows that hold every place of at most `body_bytes`, in the order in which places first ask for them."""
    spans = _merged(sorted({_span(source, place, body_bytes) for place in places}), body_bytes)
    members: dict[tuple[int, int], list[int]] = {}
    for index, place in enumerate(places):
        span = _holding(spans, place, body_bytes)
        if span is not None:
            members.setdefault(span, []).append(index)
    return tuple(
        SourceWindow(
            lead=_line_start(source, max(0, start - LEAD_BYTES), start),
            start=start,
            end=_line_end(source, end),
            members=tuple(held),
        )
        for (start, end), held in members.items()
    )


def _span(source: bytes, place: EditSpan, body_bytes: int) -> tuple[int, int]:
    """The whole function where it fits, else a stretch of it with the place in its second half."""
    start = source.rfind(b"\n", 0, place.scope_start) + 1
    if place.scope_end - start <= body_bytes:
        return start, place.scope_end
    step = max(1, body_bytes // 2)
    low = start + max(0, (place.start - start) // step - 1) * step
    low = source.rfind(b"\n", 0, low + 1) + 1
    return low, max(min(low + body_bytes, place.scope_end), place.end)


def _merged(spans: list[tuple[int, int]], body_bytes: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and start - out[-1][1] <= _MERGE_GAP_BYTES and max(end, out[-1][1]) - out[-1][0] <= body_bytes:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _holding(spans: list[tuple[int, int]], place: EditSpan, body_bytes: int) -> tuple[int, int] | None:
    """The span that holds the place with the most text in front of it, of those the least beyond the usual length."""
    holding = [(low, high) for low, high in spans if low <= place.start and place.end <= high]
    return min(holding, key=lambda span: (max(0, span[1] - span[0] - body_bytes), span)) if holding else None


def _line_start(source: bytes, at: int, limit: int) -> int:
    """The first line start at or after `at`, not after `limit`."""
    if at == 0:
        return 0
    found = source.find(b"\n", at - 1, limit)
    return found + 1 if found >= 0 else limit


def _line_end(source: bytes, at: int) -> int:
    """A little past `at`, to the end of a line, so that what follows an edit is seen."""
    stop = min(len(source), at + TAIL_BYTES)
    found = source.rfind(b"\n", at, stop)
    return found + 1 if found >= 0 else stop
