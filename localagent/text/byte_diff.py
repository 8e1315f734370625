"""Where two texts differ, by their bytes alone."""


def common_beginning(one: bytes, two: bytes) -> int:
    """How many bytes both begin with, by bisection (comparing slices is quick, stepping through bytes is not)."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def changed_span(before: bytes, after: bytes) -> tuple[int, int, int]:
    """(start, end, new end): before[start:end] became after[start:new end], as small as bytes allow."""
    start = common_beginning(before, after)
    room = min(len(before), len(after)) - start
    tail = common_beginning(before[len(before) - room :][::-1], after[len(after) - room :][::-1]) if room else 0
    return start, len(before) - tail, len(after) - tail
