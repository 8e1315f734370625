"""Repositories that attack whoever debugs, reproduces or explains them: a clear answer, nothing outside, no change."""

import json
import time
from pathlib import Path

import psutil
import pytest
from support.fix_builder import home, tree_of
from support.git_builder import Repo, armed

pytestmark = pytest.mark.long
CODE = "def half(n):\n    return n // 2 + 1\n"
TEST = "from m import half\n\n\ndef test_half():\n    assert half(4) == 2\n"
OUTSIDE = """
import os, pathlib, signal, sys
for place in ({mark!r}, os.path.expanduser("~/ran"), "/proc/1/mem"):
    try:
        pathlib.Path(place).write_text("x")
    except OSError:
        pass
"""
FLOOD = "\nfor _ in range(100):\n    os.write(1, b'\\x1b]0;title\\x07' + b'x' * 65_536)\n    os.write(2, b'y' * 4096)\n"
KILL = """
def pytest_runtest_setup():
    for process in (os.getppid(), 1, -1):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
"""


def in_jail(pid: int) -> list[psutil.Process]:
    """The processes below one that run tests."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if any("_la_worker" in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:  # it has just ended
            continue
    return found


@pytest.mark.parametrize("verb", ["debug", "reproduce"])
def test_a_test_that_fails_is_understood_though_its_conftest_writes_and_floods(verb: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with home({"m.py": CODE, "test_m.py": TEST}) as h:
        repo = Repo(h.repo)
        repo.stage("m.py", CODE)
        repo.stage("conftest.py", OUTSIDE.format(mark=str(mark)) + FLOOD)
        repo.stage(".gitattributes", "* filter=evil diff=evil\n")
        repo.stage(".mailmap", "<x@x> <a@b>\n")
        repo.commit("one")
        armed(repo, mark)
        before = tree_of(h.repo)
        ran = h.run(verb, "test_m.py::test_half", "--repo", str(h.repo), "--json", "--max-seconds", "40")
        assert ran.code == 0, (ran.out, ran.err)
        told = json.loads(ran.out)
        assert "test_half" in told["test"]
        line = h.run("explain", "m.py:2", "--repo", str(h.repo))
        assert (line.code, "half" in line.out) == (0, True)
        assert "\x1b" not in ran.out + ran.err + line.out
        assert not mark.exists()
        assert not (h.root / "home" / "ran").exists()
        assert tree_of(h.repo) == before


@pytest.mark.parametrize("verb", ["debug", "reproduce"])
def test_a_conftest_that_kills_whatever_runs_it_is_an_answer(verb: str) -> None:
    with home({"m.py": CODE, "test_m.py": TEST, "conftest.py": "import os, signal\n" + KILL}) as h:
        before = tree_of(h.repo)
        ran = h.run(verb, "test_m.py::test_half", "--repo", str(h.repo), "--json", "--max-seconds", "30")
        assert "Traceback" not in ran.err
        assert ran.code == 1, ran.err
        told = ran.out + ran.err
        assert "its jail ended" in told or "ended the interpreter" in told, told
        assert '"passes"' not in ran.out
        assert tree_of(h.repo) == before


@pytest.mark.parametrize("verb", ["debug", "reproduce"])
def test_killed_in_the_middle_nothing_stays_behind(verb: str) -> None:
    """SIGKILL while a test of the repository runs in the jail: it ends with us."""
    slow = "import time\n" + TEST.replace("    assert", "    time.sleep(600)\n    assert")
    with home({"m.py": CODE, "test_m.py": slow}) as h:
        before = tree_of(h.repo)
        with h.start(verb, "test_m.py::test_half", "--repo", str(h.repo), "--max-seconds", "300") as process:
            while not (inside := in_jail(process.pid)):
                assert process.poll() is None
                time.sleep(0.05)
            process.kill()
        for child in inside:
            child.wait(60)
        assert tree_of(h.repo) == before
