"""Rows of cells as aligned lines: the first column to the left, the others to the right."""

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """A line for each row; rows have equally many cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()
