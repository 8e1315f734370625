"""True (unrestricted) Damerau-Levenshtein distance, after Lowrance and Wagner (1975).

Insertions, deletions, substitutions and transpositions cost 1 each, and what was transposed may be edited further. The
common restricted form (optimal string alignment) is not a metric: it breaks the triangle inequality. This one is.
"""


def distance(a: str, b: str) -> int:
    """The least number of edits that make `b` of `a`. Takes time and space in proportion to len(a) * len(b)."""
    far = len(a) + len(b)
    rows = [[far] * (len(b) + 2) for _ in range(len(a) + 2)]
    for i in range(len(a) + 1):
        rows[i + 1][1] = i
    for j in range(len(b) + 1):
        rows[1][j + 1] = j
    last_row: dict[str, int] = {}  # where each character stood last in `a`
    for i, x in enumerate(a, 1):
        last_column = 0  # where `x` stood last in `b`
        for j, y in enumerate(b, 1):
            row, column = last_row.get(y, 0), last_column
            if x == y:
                last_column = j
            rows[i + 1][j + 1] = min(
                rows[i][j] + (x != y),
                rows[i + 1][j] + 1,
                rows[i][j + 1] + 1,
                rows[row][column] + (i - row - 1) + 1 + (j - column - 1),
            )
        last_row[x] = i
    return rows[-1][-1]


def letters_apart(a: int, b: int) -> int:
    """A lower bound of `distance` from two `letter_mask`s: an edit brings or takes at most one kind of character."""
    return max((a & ~b).bit_count(), (b & ~a).bit_count())


def letter_mask(text: str) -> int:
    """Which characters a text holds, as bits (all but lower-case letters and digits share one)."""
    mask = 0
    for c in text:
        mask |= 1 << (_BITS.find(c) + 1)
    return mask


_BITS = "abcdefghijklmnopqrstuvwxyz0123456789"
