"""`fix` where mending one fault shows the next: the second lies on a line that the snapshot's tests never reached."""

import pytest
from support.fix_builder import home

MERGED = """def merged(a, b):
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    while i < len(a):
        out.append(a[i])
        i += 1
    while j <= len(b):
        out.append(b[j])
        j += 1
    return out
"""
TEST = """from m import merged


def test_both():
    assert merged([1, 3], [2, 5]) == [1, 2, 3, 5]


def test_one():
    assert merged([], [2, 5]) == [2, 5]


def test_other():
    assert merged([4], [2]) == [2, 4]
"""


@pytest.mark.long
def test_a_fault_that_shows_after_another_is_mended_is_found() -> None:
    with home({"m.py": MERGED, "test_m.py": TEST}) as h:
        ran = h.fix("--no-model", "--assume", candidates=300)
        assert ran.code == 0, ran
        patch = str(ran.report["patch"])
        assert patch.count("+    out = []\n") == 1  # in front of the loop, or of what stands in front of that
        assert "+    while j < len(b):" in patch
