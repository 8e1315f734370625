"""How a text on the way came from the original: kept spans and new text, composed splice by splice.

Pure bookkeeping; knows nothing of Python.
"""

from dataclasses import dataclass

Splices = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """The original's span [start, end), or, where `new` is not empty, text put in."""

    start: int
    end: int
    new: str = ""


Pieces = tuple[Piece, ...]


def spliced(text: str, splices: Splices) -> str:
    """The text after some sorted splices."""
    out: list[str] = []
    at = 0
    for start, end, new in splices:
        out += (text[at:start], new)
        at = end
    out.append(text[at:])
    return "".join(out)


def after(pieces: Pieces, splices: Splices) -> Pieces:
    """The pieces of the text that some splices (in the present text's offsets) make."""
    out: list[Piece] = []
    rest = list(reversed(pieces))
    at = 0
    for start, end, new in splices:
        at = _move(rest, out, at, start)
        at = _move(rest, None, at, end)
        if new:
            out.append(Piece(-1, -1, new))
    out += reversed(rest)
    return tuple(out)


def _move(rest: list[Piece], out: list[Piece] | None, at: int, upto: int) -> int:
    """Take pieces off the stack `rest` up to an offset, onto `out` or away."""
    while at < upto and rest:
        piece = rest.pop()
        size = len(piece.new) or piece.end - piece.start
        used = min(size, upto - at)
        if used < size:
            left, right = _cut(piece, used)
            rest.append(right)
            piece = left
        if out is not None:
            out.append(piece)
        at += used
    return at


def _cut(piece: Piece, at: int) -> tuple[Piece, Piece]:
    if piece.new:
        return Piece(-1, -1, piece.new[:at]), Piece(-1, -1, piece.new[at:])
    return Piece(piece.start, piece.start + at), Piece(piece.start + at, piece.end)


def splices_from(pieces: Pieces, region: Pieces, size: int) -> Splices:
    """Splices on the original of `size` characters, of which only the spans of `region` were worked on."""
    out: list[tuple[int, int, str]] = []
    at, new = 0, ""
    for piece in _with_surroundings(pieces, region, size):
        if piece.new:
            new += piece.new
            continue
        if piece.start > at or new:
            out.append((at, piece.start, new))
        at, new = piece.end, ""
    if at < size or new:
        out.append((at, size, new))
    return tuple(out)


def _with_surroundings(pieces: Pieces, region: Pieces, size: int) -> list[Piece]:
    ends = [0, *(p.end for p in region)]
    starts = [*(p.start for p in region), size]
    waiting = [Piece(a, b) for a, b in zip(reversed(ends), reversed(starts), strict=True) if b > a]
    out: list[Piece] = []
    for piece in pieces:
        while not piece.new and waiting and waiting[-1].start <= piece.start:
            out.append(waiting.pop())
        if piece.new and not out and waiting and waiting[-1].start == 0 and region[0].start > 0:
            out.append(waiting.pop())
        out.append(piece)
    return out + list(reversed(waiting))
