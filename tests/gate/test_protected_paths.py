"""What judges a repair and is not called a test: programs of checks, tools, helpers that only tests use."""

import shlex
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_rules import DEFAULT

from localagent.domain.outcome import Baseline, CheckResult, Outcome
from localagent.domain.paths import RepoPath
from localagent.domain.test_support_names import is_test_helper_name, is_testing_support
from localagent.gate.files import test_helpers
from localagent.gate.files.check_programs import check_programs
from localagent.gate.repair_gates import open_gate_chain

FILES = frozenset(
    map(RepoPath, ("check.py", "manage.py", "pkg/mod.py", "pkg/cli.py", "src/app/__main__.py", "tools/__main__.py"))
)


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("python check.py pkg/mod.py", {"check.py"}),
        ("python3.12 -X dev -W error -B ./check.py", {"check.py"}),
        ("/usr/bin/python3 -m pkg.cli --all", {"pkg/cli.py"}),
        ("python -Bm pkg.cli", {"pkg/cli.py"}),
        ("python -m app", {"src/app/__main__.py"}),
        ("python tools", {"tools/__main__.py"}),
        ("./check.py", {"check.py"}),
        ("env A=b nice -n 5 timeout 60 python check.py", {"check.py"}),
        ("coverage run --branch -m pkg.cli", {"pkg/cli.py"}),
        ("python -m coverage run check.py", {"check.py"}),
        ("poetry run python manage.py test", {"manage.py"}),
        ("sh -c 'cd . && python check.py; ./manage.py test'", {"check.py", "manage.py"}),
        ("python -m doctest pkg/mod.py", set()),
        ("python -m pytest pkg/mod.py", set()),
        ("mypy pkg/mod.py", set()),
        ("python -c 'import pkg.mod'", set()),
        ("python 'x", set()),
        ("python ../check.py", set()),
    ],
)
def test_the_program_that_a_check_starts(command: str, programs: set[str]) -> None:
    assert check_programs(command, FILES) == programs


@given(
    st.lists(st.sampled_from(["python", "-m", "-c", "sh", "env", "coverage", "run", "check.py", "-", "..", "a.b", ""]))
)
def test_any_command_has_an_answer(words: list[str]) -> None:
    assert check_programs(shlex.join(words), FILES) <= FILES


@pytest.mark.parametrize(
    ("path", "support", "own"),
    [
        ("pkg/testing/client.py", True, False),
        ("src/pkg/testing.py", True, False),
        ("testing/base.py", True, True),
        ("pkg/testutil.py", True, True),
        ("pkg/_test_support/x.py", True, True),
        ("testtools/core.py", False, False),
        ("pkg/contest.py", False, False),
        ("pkg/latest_client.py", False, False),
        ("pkg/mod.py", False, False),
    ],
)
def test_names_that_say_that_a_file_supports_tests(path: str, *, support: bool, own: bool) -> None:
    assert (is_testing_support(RepoPath(path)), is_test_helper_name(RepoPath(path))) == (support, own)


RAISES = "def raises(err, do):\n    try:\n        do()\n        return False\n    except err:\n        return True\n"
CORE = "from pkg.tools import NONE\n\n\ndef f(x):\n    return x or NONE\n"
TESTS = "from pkg.core import f\nfrom pkg.tools import raises\n\n\ndef test_f():\n    assert raises(KeyError, f)\n"
PROJECT = {"pkg/core.py": CORE, "pkg/tools.py": f"NONE = 0\n\n\n{RAISES}", "tests/test_core.py": TESTS}


def why(files: Mapping[str, str], path: str, line: int, *checks: str) -> str:
    """Why a line may not be repaired, "" where it may."""
    sources = {RepoPath(name): text.encode() for name, text in files.items()}
    asked = tuple(CheckResult(command=c, outcome=Outcome.FAILED, seconds=0.1) for c in checks)
    finding = open_gate_chain(DEFAULT, ()).protection(RepoPath(path), line, Baseline(tests=(), checks=asked), sources)
    return "" if finding is None else finding.message


def test_an_assertion_that_only_tests_use_is_protected_and_its_neighbours_are_not() -> None:
    assert why(PROJECT, "pkg/tools.py", 8) == "only tests use raises of pkg/tools.py"
    assert why(PROJECT, "pkg/tools.py", 1) == why(PROJECT, "pkg/core.py", 5) == ""


@pytest.mark.parametrize(
    "more",
    [
        {"pkg/other.py": "from .tools import raises\n"},
        {"pkg/other.py": "from pkg import tools\n\nx = tools.raises(KeyError, int)\n"},
        {"pkg/other.py": "import pkg.tools as t\n\nx = getattr(t, 'raises')\n"},
        {"pkg/__init__.py": "from .tools import *\n\n__all__ = [raises]\n"},
        {"pkg/tools.py": f"NONE = 0\n\n\n{RAISES}\n\ndef use():\n    return raises(KeyError, int)\n"},
        {"pkg/tools.py": f"__all__ = ['raises']\nNONE = 0\n\n\n{RAISES}"},
    ],
)
def test_an_assertion_that_other_code_uses_is_code(more: Mapping[str, str]) -> None:
    files = {**PROJECT, **more}
    line = files["pkg/tools.py"].split("\n").index("        return False") + 1
    assert why(files, "pkg/tools.py", line) == ""


def test_the_module_under_test_of_a_small_repository_stays_editable() -> None:
    lone = {"tools.py": RAISES, "test_tools.py": "from tools import raises\n\n\ndef test_r():\n    assert raises\n"}
    assert why(lone, "tools.py", 4) == ""
    named = {"testutil.py": "def made():\n    return 1\n", "test_it.py": "from testutil import made\n"}
    assert why(named, "testutil.py", 2) == ""


def test_a_helper_module_is_protected_until_other_code_imports_it() -> None:
    files = {
        "pkg/core.py": "def f():\n    return 1\n",
        "pkg/testutil.py": "def made():\n    return 1\n",
        "tests/test_core.py": "from pkg import core, testutil\n",
    }
    assert "helps tests" in why(files, "pkg/testutil.py", 2)
    assert why({**files, "pkg/core.py": "from .testutil import made\n"}, "pkg/testutil.py", 2) == ""
    assert why({**files, "pkg/broken.py": "testutil = (\n"}, "pkg/testutil.py", 2) == ""


def test_where_the_repository_is_too_large_to_read_a_helper_stays_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_helpers, "MOST_FILES", 2)
    assert why({**PROJECT, "pkg/other.py": "from .tools import raises\n"}, "pkg/tools.py", 8)


def test_programs_of_checks_and_tools_are_protected() -> None:
    files = {"manage.py": "def main():\n    pass\n", "pkg/selftest.py": "x = 1\n", "pkg/tasks.py": "x = 1\n"}
    assert why(files, "pkg/selftest.py", 1, "python -m pkg.selftest").startswith("pkg/selftest.py is the program of")
    assert why(files, "pkg/selftest.py", 1) == why(files, "pkg/tasks.py", 1) == ""
    assert why(files, "manage.py", 1) == "manage.py is a tool of the project"
    assert why({**files, "tests/x.py": ""}, "tests/x.py", 1) == "tests/x.py is a test"
