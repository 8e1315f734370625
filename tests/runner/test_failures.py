"""Failures of the worker: where files lie, and what is told of exceptions that hold others."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localagent.runner import failures
from localagent.runner.test_runner import EXIT_HUNG


def test_where_a_loaded_module_lies_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[2])
    failures.know_loaded_files(root)
    asked: list[str] = []
    monkeypatch.setattr(os.path, "realpath", lambda path, **_: asked.append(str(path)) or str(path))  # type: ignore[func-returns-value]
    assert failures.relative_path(root, failures.__file__) == "localagent/runner/failures.py"
    assert failures.relative_path(root, sys.modules["json"].__file__) is None
    assert asked == []
    assert failures.relative_path(root, f"{root}/.venv/lib/python3.12/site-packages/django/apps.py") is None
    asked.clear()
    failures.relative_path(root, f"{root}/never_seen.py")
    assert asked == [f"{root}/never_seen.py"]


@pytest.mark.parametrize(("place", "status"), [("env/site-packages", 0), ("src", EXIT_HUNG)])
def test_the_import_of_a_library_is_not_counted_against_the_test_that_needs_it(
    tmp_path: Path, place: str, status: int
) -> None:
    (tmp_path / place).mkdir(parents=True)
    spin = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end:\n    pass\n"
    (tmp_path / place / "large.py").write_text(spin)
    test = (
        f"import sys; sys.path.insert(0, {str(tmp_path / place)!r})\n"
        "from localagent.runner.test_runner import CpuTimer\n"
        f"timer = CpuTimer({str(tmp_path)!r}, print)\n"
        "timer.arm(0.1)\nimport large\ntimer.disarm()\n"
    )
    assert subprocess.run([sys.executable, "-c", test], check=False, capture_output=True).returncode == status


@pytest.mark.parametrize(("scope", "status"), [("session", 0), ("function", EXIT_HUNG)])
def test_a_fixture_of_several_tests_is_not_counted_against_the_first_of_them(
    tmp_path: Path, scope: str, status: int
) -> None:
    (tmp_path / "test_a.py").write_text(
        "import pytest, time\n"
        "from localagent.runner.test_runner import CpuTimer\n"
        "timer = CpuTimer(__file__.replace('test_a.py', ''), print)\n"
        f"@pytest.fixture(scope={scope!r})\n"
        "def database():\n"
        "    timer.arm(0.1)\n    end = time.process_time() + 0.3\n    while time.process_time() < end:\n        pass\n"
        "    timer.disarm()\n"
        "def test_a(database):\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "test_a.py"]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run(command, check=False, capture_output=True, cwd=tmp_path, env=path).returncode == status


HERE = "tests/runner/test_failures.py"


class Several(Exception):
    """As ExceptionGroup, which Python has from 3.11 on."""

    def __init__(self, message: str, exceptions: tuple[Exception, ...]) -> None:
        super().__init__(message)
        self.exceptions = exceptions


def raised(exception: Exception) -> Exception:
    try:
        raise exception
    except Exception as caught:  # noqa: BLE001 - whatever it is
        return caught


def innermost(exception: Exception) -> Exception:
    return raised(exception)


def test_of_a_group_the_first_member_is_told_and_its_place_is_last() -> None:
    inner = raised(Several("inner", (innermost(KeyError("k")), ValueError())))
    told = failures.describe(str(Path(__file__).parents[2]), raised(Several("outer", (inner,))))
    assert (told["type"], told["message"]) == ("Several", "outer; the first is KeyError: 'k'")
    assert told["frames"][-1][0] == HERE
    assert len(told["frames"]) >= 1


def test_a_child_process_that_fails_says_how_its_standard_error_ends() -> None:
    code = "import sys; sys.stderr.write('x' * 9000 + '\\nKeyError: 7')"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run([sys.executable, "-c", f"{code}; sys.exit(3)"], check=True, capture_output=True)
    told = failures.message_of(caught.value)
    assert "exit status 3" in told
    assert told.endswith("KeyError: 7")
    assert len(told) <= failures.MESSAGE_LIMIT + 5


def test_a_doctest_says_what_it_gave_and_what_it_should_give() -> None:
    (test,) = doctest.DocTestFinder().find(">>> 1 + 1\n3\n", "m")
    with pytest.raises(doctest.DocTestFailure) as caught:
        doctest.DebugRunner(verbose=False).run(test)
    caught.value.__class__.__name__ = "DocTestFailure"
    assert failures.message_of(caught.value) == r"1 + 1 gives '2\n' instead of '3\n'"


def test_the_stack_of_a_dead_interpreter_is_read_outermost_first_without_what_lies_outside() -> None:
    text = """Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/r/shop.py", line 4 in read
  File "/r/test_a.py", line 9 in test_a
  File "/r/x", line 99999999999 in no
"""
    assert failures.dumped_frames("/r", text) == [["test_a.py", 9, "test_a"], ["shop.py", 4, "read"]]
