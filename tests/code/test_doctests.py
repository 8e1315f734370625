"""Doctests that the project's own configuration has pytest collect are tests like others."""

import textwrap

import pytest
from support.house_builder import house
from support.verify_builder import patch, verified

from localagent.code.doctests import altered, only_doctests
from localagent.domain.paths import RepoPath
from localagent.domain.verification import PersonReason, VerifyVerdict

DOUBLE = 'def double(n):\n    """\n    >>> double(3)\n    6\n    """\n    return n + n\n'
MODULES = "[pytest]\naddopts = --doctest-modules\n"
BOTH = "[pytest]\naddopts = --doctest-modules --doctest-glob=*.rst\n"
GUIDE = "Guide\n=====\n\n>>> from m import double\n>>> double(4)\n8\n"


@pytest.mark.long
def test_they_are_run_and_turn() -> None:
    names = ("guide.rst::guide.rst", "m.py::m.double")
    with house({"m.py": DOUBLE.replace("n + n", "n + 1"), "pytest.ini": BOTH, "guide.rst": GUIDE}) as h:
        baseline = h.verifier.baseline()
        assert tuple(sorted(baseline.failing)) == names
        assert RepoPath("m.py") not in baseline.test_files
        candidate = h.candidate("m.py", "n + 1", "n + n")
        check = h.verifier.quick(baseline, jobs=1)
        try:
            assert tuple(sorted(check.check(candidate, cpu_seconds=5.0).turned)) == names
        finally:
            check.close()
        full = h.verifier.full(candidate, baseline, seed=0)
        assert full.accepted, full.reasons
        assert tuple(sorted(full.fail_to_pass)) == names


@pytest.mark.long
def test_without_such_a_configuration_they_are_no_tests() -> None:
    files = {"m.py": DOUBLE, "test_m.py": "from m import double\n\n\ndef test_m():\n    assert double(1) == 2\n"}
    with house(files) as h:
        assert h.verifier.baseline().passing == ("test_m.py::test_m",)


@pytest.mark.long
def test_a_patch_that_breaks_one_is_refused() -> None:
    files = {"m.py": DOUBLE, "pytest.ini": MODULES}
    told = verified(files, patch(files, {**files, "m.py": DOUBLE.replace("n + n", "n * 3")}))
    assert not told.verdict.yes
    assert "m.py::m.double" in told.reason


@pytest.mark.long
def test_an_expectation_that_a_patch_alters_needs_a_person() -> None:
    """The doctest passes before and after, and means something else."""
    files = {"m.py": DOUBLE, "pytest.ini": MODULES}
    after = DOUBLE.replace("    6\n", "    9\n").replace("n + n", "n * 3")
    told = verified(files, patch(files, {**files, "m.py": after}))
    assert (told.verdict, told.asked) == (VerifyVerdict.NEEDS_PERSON, PersonReason.DOCTESTS), told.reason
    assert "m.py::m.double" in told.reason


PATH, GUIDE_PATH = RepoPath("pkg/m.py"), RepoPath("docs/guide.rst")
NESTED = f"class C:\n    if True:\n{textwrap.indent(DOUBLE, ' ' * 8)}"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (DOUBLE, DOUBLE.replace("    6", "    7"), ["pkg.m.double"]),
        (DOUBLE, DOUBLE.replace(">>> double(3)", ">>> double(3)  # doctest: +SKIP"), ["pkg.m.double"]),
        (DOUBLE, DOUBLE.replace("    >>> double(3)\n    6\n", ""), ["pkg.m.double"]),
        (DOUBLE, DOUBLE.replace("    6\n", "    6\n    >>> double(0)\n    0\n"), []),
        (DOUBLE, DOUBLE.replace("    6\n", "    6\n\n    It doubles.\n"), []),
        (DOUBLE, DOUBLE.replace("double(3)", "list(double(3))"), []),
        (DOUBLE, DOUBLE.replace("double(3)", "list(double(4))"), ["pkg.m.double"]),
        (NESTED, NESTED.replace(" 6", " 7"), ["pkg.m.C.double"]),
        (DOUBLE, "def (", ["pkg.m.double"]),
    ],
)
def test_altered_is_what_loses_an_example(before: str, after: str, found: list[str]) -> None:
    ids = ["pkg/m.py::pkg.m.double", "pkg/m.py::pkg.m.C.double", "pkg/m.py::test_double", "other.py::pkg.m.double"]
    told = altered({PATH: (before.encode(), after.encode())}, ids)
    assert told == tuple(f"pkg/m.py::{name}" for name in found)


def test_what_pytest_does_not_collect_is_no_doctest() -> None:
    texts = {PATH: (DOUBLE.encode(), DOUBLE.replace("    6", "    7").encode())}
    assert altered(texts, ["pkg/m.py::test_double"]) == ()


def test_a_source_with_nothing_but_doctests_is_no_test_file() -> None:
    text = DOUBLE.encode()
    assert only_doctests(PATH, text, ["pkg/m.py::pkg.m.double", "other.py::test_m"])
    assert not only_doctests(PATH, text, ["pkg/m.py::pkg.m.double", "pkg/m.py::test_double"])
    assert not only_doctests(PATH, text, ["pkg/m.py::pkg.m.triple"])
    assert not only_doctests(PATH, text, [])
    assert not only_doctests(GUIDE_PATH, GUIDE.encode(), ["docs/guide.rst::guide.rst"])


def test_a_text_file_is_one_doctest() -> None:
    texts = {GUIDE_PATH: (GUIDE.encode(), GUIDE.replace("\n8", "\n9").encode())}
    assert altered(texts, ["docs/guide.rst::guide.rst"]) == ("docs/guide.rst::guide.rst",)
