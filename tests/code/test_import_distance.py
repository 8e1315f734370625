"""How far files are from a changed one, in imports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.code.import_distance import import_distances
from localagent.domain.paths import RepoPath

FILES = {
    "src/pkg/__init__.py": "",
    "src/pkg/low.py": "",
    "src/pkg/mid.py": "from .low import thing\n",
    "src/pkg/top.py": "from pkg import mid\n",
    "src/pkg/sub/__init__.py": "",
    "src/pkg/sub/deep.py": "def f():\n    from ..mid import thing\n",
    "src/pkg/alone.py": "import os.path\n",
    "tests/conftest.py": "import pkg.top\n",
    "tests/test_any.py": "",
    "test_low.py": "import pkg.low as low\n",
    "test_alone.py": "from pkg.alone import x\n",
    "test_broken.py": "import (pkg.low\n",
}


def distances(changed: str, files: dict[str, str]) -> dict[str, int]:
    sources = {RepoPath(name): text.encode() for name, text in files.items()}
    return {str(k): v for k, v in import_distances([RepoPath(changed)], sources).items()}


def test_distances_count_imports_on_the_shortest_way() -> None:
    assert distances("src/pkg/low.py", FILES) == {
        "src/pkg/low.py": 0,
        "src/pkg/mid.py": 1,
        "test_low.py": 1,
        "src/pkg/top.py": 2,
        "src/pkg/sub/deep.py": 2,
        "tests/conftest.py": 3,
        "tests/test_any.py": 4,  # by its conftest alone
    }


def test_importing_a_module_runs_its_packages() -> None:
    assert distances("src/pkg/__init__.py", FILES)["test_alone.py"] == 1


@pytest.mark.parametrize(
    "text", ["import low\n", "import other.low\n", "from pkg import lower\n", "import pkg.lo\n", "low"]
)
def test_what_is_no_import_of_it(text: str) -> None:
    assert "test_x.py" not in distances("src/pkg/low.py", {**FILES, "test_x.py": text})


def test_a_package_at_the_root_is_found_by_full_names() -> None:
    files = {"__init__.py": "", "a.py": "", "b.py": "from . import a\n", "test_b.py": "import b\n"}
    assert distances("a.py", files) == {"a.py": 0, "b.py": 1, "test_b.py": 2}


NAMES = ["a", "b", "c", "pkg.d", "pkg.e", "pkg"]
PATHS = {"a": "a.py", "b": "b.py", "c": "c.py", "pkg.d": "pkg/d.py", "pkg.e": "pkg/e.py", "pkg": "pkg/__init__.py"}


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)), st.sampled_from(NAMES))
def test_each_file_is_one_import_from_one_that_is_nearer(imports: dict[str, list[str]], changed: str) -> None:
    files = {PATHS[n]: "".join(f"import {other}\n" for other in imports.get(n, [])) for n in NAMES}
    found = distances(PATHS[changed], files)
    assert [name for name, far in found.items() if not far] == [PATHS[changed]]
    for name in NAMES:
        run = {PATHS[o] for other in imports.get(name, []) for o in (other, "pkg" if "." in other else other)}
        near = [found[path] for path in run - {PATHS[name]} if path in found]
        if PATHS[name] != PATHS[changed]:
            assert found.get(PATHS[name]) == (min(near) + 1 if near else None)
