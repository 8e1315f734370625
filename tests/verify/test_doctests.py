"""Doctests that the project's own configuration has pytest collect are tests like others."""

import pytest
from house_builder import house
from verify_builder import patch, verified

DOUBLE = 'def double(n):\n    """\n    >>> double(3)\n    6\n    """\n    return n + n\n'
MODULES = "[pytest]\naddopts = --doctest-modules\n"
GLOB = "[pytest]\naddopts = --doctest-glob=*.rst\n"
GUIDE = "Guide\n=====\n\n>>> from m import double\n>>> double(4)\n8\n"


@pytest.mark.parametrize(
    ("more", "name"),
    [({"pytest.ini": MODULES}, "m.py::m.double"), ({"pytest.ini": GLOB, "guide.rst": GUIDE}, "guide.rst::guide.rst")],
)
def test_they_are_run_and_turn(more: dict[str, str], name: str) -> None:
    with house({"m.py": DOUBLE.replace("n + n", "n + 1"), **more}) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == (name,)
        candidate = h.candidate("m.py", "n + 1", "n + n")
        check = h.verifier.quick(baseline, jobs=1)
        try:
            assert check.check(candidate, cpu_seconds=5.0).turned == (name,)
        finally:
            check.close()
        full = h.verifier.full(candidate, baseline, seed=0)
        assert full.accepted, full.reasons
        assert full.fail_to_pass == (name,)


def test_without_such_a_configuration_they_are_no_tests() -> None:
    files = {"m.py": DOUBLE, "test_m.py": "from m import double\n\n\ndef test_m():\n    assert double(1) == 2\n"}
    with house(files) as h:
        assert h.verifier.baseline().passing == ("test_m.py::test_m",)


def test_a_patch_that_breaks_one_is_refused() -> None:
    files = {"m.py": DOUBLE, "pytest.ini": MODULES}
    told = verified(files, patch(files, {**files, "m.py": DOUBLE.replace("n + n", "n * 3")}))
    assert not told.verdict.yes
    assert "m.py::m.double" in told.reason


def test_an_expectation_that_a_patch_alters_is_no_test_that_it_passes() -> None:
    """The doctest passes before and after, and means something else: old against new shows it, and nobody verified."""
    files = {"m.py": DOUBLE, "pytest.ini": MODULES}
    altered = DOUBLE.replace("    6\n", "    9\n").replace("n + n", "n * 3")
    told = verified(files, patch(files, {**files, "m.py": altered}))
    assert not told.verdict.yes, told.reason
