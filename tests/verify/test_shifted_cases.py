"""A new row of a parametrized test shifts the numbers in the names of others: these are not gone."""

import pytest
from support.verify_builder import patch, verified

from localagent.domain.verification import VerifyVerdict

SOURCE = "def double(xs):\n    return [x + x for x in xs]\n"
TEST = """import pytest

from m import double


@pytest.mark.parametrize("xs, expected", [([1], [2]), ([2], [4]), ([], [])])
def test_double(xs, expected):
    assert double(xs) == expected
"""
FILES = {"m.py": SOURCE, "test_m.py": TEST}
MEND = {"m.py": SOURCE.replace("x + x", "2 * x")}


@pytest.mark.long
def test_rows_that_are_numbered_anew_are_not_gone() -> None:
    more = {**MEND, "test_m.py": TEST.replace("([2], [4])", "([0], [0]), ([2], [4])")}
    found = verified(FILES, patch(FILES, more))
    assert found.verdict is not VerifyVerdict.REFUSED, found.reason
    assert found.removed == ()


@pytest.mark.long
def test_a_row_that_went_is_gone() -> None:
    fewer = {**MEND, "test_m.py": TEST.replace("([1], [2]), ", "")}
    found = verified(FILES, patch(FILES, fewer))
    assert found.verdict in (VerifyVerdict.REFUSED, VerifyVerdict.NEEDS_PERSON), found.reason
