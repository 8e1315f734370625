"""`fix` where mending one fault shows the next, on a line that no test had reached; where a name has moved."""

import json

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


@pytest.mark.long
def test_an_import_of_what_lies_elsewhere_now_is_mended_and_accepted() -> None:
    files = {
        "shop/__init__.py": "",
        "shop/sums.py": "def total(prices):\n    return sum(prices)\n",
        "shop/means.py": "def mean(prices):\n    return sum(prices) / len(prices)\n",
        "shop/bill.py": "from shop.means import total\n\n\ndef bill(prices):\n    return f'{total(prices)} EUR'\n",
        "test_bill.py": "from shop.bill import bill\n\n\ndef test_bill():\n    assert bill([1, 2]) == '3 EUR'\n",
    }
    with home(files) as h:
        ran = h.fix("--no-model", candidates=100)
        assert ran.code == 0, ran
        assert "-from shop.means import total\n+from shop.sums import total\n" in str(ran.report["patch"])
        assert "the name that could not be imported lies there now" in json.dumps(ran.report)
