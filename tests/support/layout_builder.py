"""Skeletons of projects whose tests stand in different places; in each of them addition is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

_WRONG = "def add(a, b):\n    return a - b\n"
_EXAMPLE = 'def add(a, b):\n    """Sum.\n\n    >>> add(2, 3)\n    5\n    """\n    return a - b\n'
_README = "Usage\n=====\n\n>>> from adder import add\n>>> add(2, 3)\n5\n"
_TEST = "from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
_CASE = (
    "import unittest\n\nfrom adder import add\n\n\nclass AddCase(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
)
_BDD = "from pytest_bdd import scenarios\n\nscenarios('../features')\n"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """`expected`: the id of the failing test, or the part of the answer that says what to do."""

    files: Mapping[str, str]
    expected: str
    args: tuple[str, ...] = ()
    source: str = "adder.py"


def _configured(option: str) -> dict[str, str]:
    return {"pytest.ini": f"[pytest]\n{option}\n"}


LAYOUTS = {
    "src": Layout(
        files={
            "src/pkg/__init__.py": "",
            "src/pkg/adder.py": _WRONG,
            "tests/test_a.py": _TEST.replace("adder", "pkg.adder"),
        },
        expected="tests/test_a.py::test_add",
        source="src/pkg/adder.py",
    ),
    "a member with its own rootdir": Layout(
        files={
            "member/pytest.ini": "[pytest]\npythonpath = .\n",
            "member/adder.py": _WRONG,
            "member/tests/test_a.py": _TEST,
        },
        args=("--test", "member/tests/test_a.py"),
        expected="member/tests/test_a.py::test_add",
        source="member/adder.py",
    ),
    "unittest discovery": Layout(
        files={"adder.py": _WRONG, "tests/__init__.py": "", "tests/test_adder.py": _CASE},
        expected="tests/test_adder.py::AddCase::test_add",
    ),
    "python_files": Layout(
        files={**_configured("python_files = check_*.py"), "adder.py": _WRONG, "check_adder.py": _TEST},
        expected="check_adder.py::test_add",
    ),
    "a named file": Layout(
        files={"adder.py": _WRONG, "check_adder.py": _TEST},
        args=("--test", "check_adder.py"),
        expected="check_adder.py::test_add",
    ),
    "doctest modules": Layout(
        files={**_configured("addopts = --doctest-modules"), "adder.py": _EXAMPLE}, expected="adder.py::adder.add"
    ),
    "doctest modules as an option": Layout(
        files={"adder.py": _EXAMPLE}, args=("--test=--doctest-modules",), expected="adder.py::adder.add"
    ),
    "doctest of a text": Layout(
        files={"adder.py": _WRONG, "README.rst": _README},
        args=("--test=--doctest-glob=*.rst",),
        expected="README.rst::README.rst",
    ),
    "python -m doctest": Layout(
        files={"adder.py": _EXAMPLE},
        args=("--check", "python -m doctest adder.py"),
        expected="check:python -m doctest adder.py",
    ),
    "python -m unittest": Layout(
        files={"adder.py": _WRONG, "test_adder.py": _CASE},
        args=("--check", "python -m unittest"),
        expected="check:python -m unittest",
    ),
}
_RUNNER = "import django\nfrom django.test.utils import get_runner\nif __name__ == '__main__':\n    get_runner(None)\n"
UNFOUND = {
    "doctests": Layout(files={"adder.py": _EXAMPLE}, expected="adder.py has doctests; pass --test=--doctest-modules"),
    "doctests of a text": Layout(
        files={"adder.py": _WRONG, "README.rst": _README},
        expected="README.rst has doctests; pass '--test=--doctest-glob=*.rst'",
    ),
    "Django": Layout(
        files={"manage.py": "import os\n", "shop/models.py": _WRONG}, expected="pass --check 'python manage.py test'"
    ),
    "Django without manage.py": Layout(
        files={"runtests.py": _RUNNER, "shop/models.py": _WRONG}, expected="pass --check 'python runtests.py'"
    ),
    "nox": Layout(
        files={"adder.py": _WRONG, "noxfile.py": "import nox\n"}, expected="pass what it gives to pytest with --test"
    ),
    "check_*.py": Layout(
        files={"adder.py": _WRONG, "checks/check_adder.py": _TEST}, expected="pass --test checks/check_adder.py"
    ),
    "spec_*.py": Layout(files={"adder.py": _WRONG, "spec_adder.py": _TEST}, expected="pass --test spec_adder.py"),
    "Test*.py": Layout(files={"adder.py": _WRONG, "TestAdder.py": _CASE}, expected="pass --test TestAdder.py"),
    "notebooks": Layout(files={"a.ipynb": "{}"}, expected="only notebooks, which are not repaired"),
    "pytest-bdd": Layout(
        files={"adder.py": _WRONG, "tests/test_adder.py": _BDD},
        expected="the module pytest_bdd is missing",
    ),
    "code and tests in one file": Layout(
        files={
            **_configured("python_files = *.py"),
            "adder.py": f"{_WRONG}\n\ndef test_add():\n    assert add(2, 3) == 5\n",
        },
        expected="code in the files of the tests is never edited: adder.py",
    ),
    "no tests at all": Layout(files={"adder.py": _WRONG}, expected="no tests found; name them with --test"),
}
