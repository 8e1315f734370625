"""The context is bounded, byte-stable, and only ever text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.llm.scoring.test_context import (
    DOCSTRING_BYTES,
    FAILURE_BYTES,
    TASK_BYTES,
    TESTS_BYTES,
    build_context,
    build_failing,
)

PATH = RepoPath("pkg/a.py")
TESTS = [(RepoPath("tests/test_a.py"), b"def test_a():\n\n    assert a(1) == 2\n")]


def test_tests_come_first_and_the_path_last() -> None:
    failure = Failure(exception="AssertionError", message="assert 1 == 2\n where")
    text = build_context(TESTS, [failure], PATH, task="make a\nwork", source=b"def a(): pass\n'''Adds one.'''\n")
    assert text == (
        "def test_a():\n    assert a(1) == 2\n# Task: make a work\n# AssertionError: assert 1 == 2 where\n"
        '"""\nAdds one.\n"""\n# pkg/a.py\n'
    )


def test_places_of_one_file_set_share_the_beginning() -> None:
    one = build_context(TESTS, [], PATH)
    two = build_context(TESTS, [], RepoPath("pkg/b.py"))
    shared = len("def test_a():\n    assert a(1) == 2\n# pkg/")
    assert one[:shared] == two[:shared]
    assert build_context(TESTS, [], PATH) == one


@pytest.mark.long
@given(
    tests=st.lists(st.binary(max_size=5000), max_size=4),
    messages=st.lists(st.text(max_size=3000), max_size=4),
    task=st.text(max_size=2000),
    source=st.binary(max_size=500) | st.sampled_from([b"x=1\n'" + b"d" * 5000 + b"'\n", b"(" * 5000, b"\0", b"\xff'"]),
)
def test_it_is_bounded_whatever_comes(tests: list[bytes], messages: list[str], task: str, source: bytes) -> None:
    failures = [Failure(exception="E", message=message) for message in messages]
    text = build_context(
        [(RepoPath(f"t{i}.py"), t) for i, t in enumerate(tests)], failures, PATH, task=task, source=source
    )
    longest = 4 * (TESTS_BYTES + DOCSTRING_BYTES + 2 * FAILURE_BYTES + TASK_BYTES) + 500
    assert len(text.encode("utf-8", "surrogateescape")) < longest
    assert text.endswith("# pkg/a.py\n")


def test_newlines_in_a_message_cannot_leave_the_comment() -> None:
    text = build_context([], [Failure(exception="E", message="x\nimport os\r\u2028os.system")], PATH, task="a\n\nb")
    assert all(line.startswith("#") for line in text.splitlines())


def test_addresses_of_objects_do_not_reach_the_model() -> None:
    def read(address: str) -> str:
        failure = Failure(exception="AssertionError", message=f"assert 1 == 2 where 1 = <Rates object at {address}>")
        return build_context([], [failure], RepoPath("m.py"))

    assert read("0x7f3a51c2d4e0") == read("0x7fffdeadbeef")
    assert "Rates object at 0x0" in read("0x7f3a51c2d4e0")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"# one\r# two\r"])
def test_the_failing_function_is_found_behind_a_mark_and_odd_line_ends(mark: bytes) -> None:
    tests = mark + b"def helper():\n    return 1\n\ndef test_b():\n    assert helper() == 2\n"
    told = build_failing([(RepoPath("test_b.py"), tests, ["test_b.py::test_b"])], [])
    assert told == "def test_b():\n    assert helper() == 2\n"
