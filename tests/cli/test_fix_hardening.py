"""`fix` where the one test shows one fault of two: the other crashes the program on inputs near the test's."""

import pytest
from support.fix_builder import home

FIRST_EVEN = """def first_even(numbers):
    i = 0
    while i {sign} len(numbers){colon}
        if numbers[i] % 2 == 0:
            return numbers[i]
        i += 1
    return None
"""
TEST = "from m import first_even\n\n\ndef test_even():\n    assert first_even([3, 5, 4, 7]) == 4\n"


@pytest.fixture(scope="module")
def report() -> dict[str, object]:
    with home({"m.py": FIRST_EVEN.format(sign="<=", colon=""), "test_m.py": TEST}) as h:
        ran = h.fix("--assume", candidates=200)
        assert ran.code == 0, ran
        return ran.report


@pytest.mark.long
def test_the_crash_is_repaired_with_the_fault_that_the_test_shows(report: dict[str, object]) -> None:
    patch = str(report["patch"])
    assert "+    while i < len(numbers):" in patch
    assert patch.count("\n-") == patch.count("\n+") == 2  # one line, and the two heads of the file


@pytest.mark.long
def test_the_report_says_what_the_second_edit_rests_on(report: dict[str, object]) -> None:
    warnings = report["warnings"]
    assert isinstance(warnings, list)
    assert any("IndexError in first_even(" in w and "< -> " not in w and "<= -> <" in w for w in warnings), warnings
