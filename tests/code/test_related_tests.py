"""Tests that have to do with a change, by names and imports."""

import pytest

from localagent.code.related_tests import is_test, related_tests
from localagent.domain.paths import RepoPath


def related(changed: list[str], files: dict[str, str], most: int = 8) -> list[str]:
    sources = {RepoPath(name): text.encode() for name, text in files.items()}
    return [str(p) for p in related_tests([RepoPath(c) for c in changed], sources, most=most)]


@pytest.mark.parametrize(
    "text",
    [
        "import pkg.mod\n",
        "from pkg import mod\n",
        "from pkg.mod import thing\n",
        "from src.pkg.mod import thing\n",
        "from ..pkg.mod import thing\n",
        "from . import mod\n",
        "import mod\n",
        "def test():\n    import pkg.mod as m\n",
    ],
)
def test_imports_of_a_changed_module(text: str) -> None:
    assert related(["src/pkg/mod.py"], {"tests/test_a.py": text}) == ["tests/test_a.py"]


@pytest.mark.parametrize(
    "text", ["import pkg.model\n", "from other import thing  # mod\n", "mod = 1\n", "import (mod\n", "import a.mod\n"]
)
def test_what_is_not_related(text: str) -> None:
    assert related(["src/pkg/mod.py"], {"tests/test_a.py": text}) == []


def test_names_come_before_imports_and_changed_tests_first() -> None:
    files = {
        "tests/test_a.py": "import mod\n",
        "tests/test_mod.py": "x = 1\n",
        "mod_test.py": "x = 1\n",
        "tests/test_z.py": "x = 1\n",
        "helper.py": "import mod\n",
    }
    assert related(["mod.py", "tests/test_z.py"], files) == [
        "tests/test_z.py", "mod_test.py", "tests/test_mod.py", "tests/test_a.py",
    ]  # fmt: skip
    assert related(["mod.py"], files, most=1) == ["mod_test.py"]


def test_packages_go_by_their_folder() -> None:
    assert related(["pkg/__init__.py"], {"test_x.py": "import pkg\n", "test_y.py": "import other\n"}) == ["test_x.py"]
    assert related(["__init__.py"], {"test_x.py": "x = 1\n"}) == []


def test_what_pytest_takes_by_name() -> None:
    names = ("test_a.py", "a_test.py", "a/test_b.py", "testa.py", "test_a.pyi", "conftest.py")
    assert [is_test(RepoPath(n)) for n in names] == [True, True, True, False, False, False]
