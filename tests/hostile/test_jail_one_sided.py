"""Tests that pass only where an earlier run of theirs left a mark: never "nothing to fix", and named."""

import pytest
from support.fix_builder import home

MARKS = {
    "a file in the tree": """
import pathlib


def test_mark():
    mark = pathlib.Path("mark")
    seen = mark.exists()
    mark.write_text("")
    assert seen
""",
    "a port that waits": """
import socket


def test_mark():
    server = socket.socket()
    try:
        server.bind(("127.0.0.1", 3999))
    except OSError:
        return  # an earlier run's connection is still waiting
    server.listen()
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    accepted.close()
    client.close()
    server.close()
    assert False, "the first run here"
""",
    "the priority of who forks it": """
import os


def test_mark():
    parent = os.getppid()
    had = os.sched_getscheduler(parent) == os.SCHED_BATCH
    os.sched_setscheduler(parent, os.SCHED_BATCH, os.sched_param(0))
    assert had
""",
}
SIDED = (
    "flaky on one side: failing in a fresh jail, passing where a run of theirs left something: test_mark.py::test_mark"
)


@pytest.mark.long
@pytest.mark.parametrize("mark", ["a file in the tree", "a port that waits"])
def test_a_mark_of_an_earlier_run_is_named_and_no_success(mark: str) -> None:
    with home({"one.py": "def one():\n    return 1\n", "test_mark.py": MARKS[mark]}) as h:
        ran = h.fix(candidates=8)
    assert (ran.code, ran.report["outcome"]) == (1, "untrusted-tests")
    assert "test_mark.py::test_mark failed at one run of the unpatched tree and passed at another" in ran.reason
    assert ran.report["flaky"] == ["test_mark.py::test_mark"]
    assert SIDED in ran.report["warnings"]


@pytest.mark.long
def test_a_mark_in_a_process_does_not_outlive_it() -> None:
    """The session that was changed is ended, so the next run finds none: the test fails every time."""
    with home({"one.py": "def one():\n    return 1\n", "test_mark.py": MARKS["the priority of who forks it"]}) as h:
        ran = h.fix(candidates=2)
    assert ran.code == 1
    assert [f["id"] for f in ran.report["failing"]] == ["test_mark.py::test_mark"]
    assert ran.report["flaky"] == []
