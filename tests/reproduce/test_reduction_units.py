"""Parts of sources and data: all of them give the whole, signatures forget what differs from run to run."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.app.reproduce.request import test_in_trace as named_test
from localagent.domain.failure_signature import TEST_CODE, message_pattern, signature_of
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.domain.reproduction import FailureRate
from localagent.errors import AnswerIsNo
from localagent.reproduce.data_units import data_groups
from localagent.reproduce.source_units import SourceUnits, UnitKind
from localagent.reproduce.test_dependencies import find_test, fixed_lines, loose_names, unneeded_lines

SOURCE = b'''import os, sys


@pytest.fixture
def cart(a, b):
    return [1, 2, 3]


def test_x(cart):
    """What it does."""
    other = 3
    if other:
        total = sum(cart, start=2)
    else:
        total = 0
    assert other
    assert total == {"a": (1, 2)}
'''


@given(st.data())
def test_every_group_renders_the_whole_as_it_means_and_each_part_without_crashing(data: st.DataObject) -> None:
    tree = ast.parse(SOURCE)
    groups = [g for kind in UnitKind for g in SourceUnits(SOURCE, tree).groups(kind)]
    group = data.draw(st.sampled_from(groups))
    whole = group.render(frozenset(range(group.count)))
    assert ast.dump(ast.parse(whole)) == ast.dump(tree)
    kept = data.draw(st.frozensets(st.integers(0, group.count - 1)))
    assert len(group.render(kept)) <= len(SOURCE) + 8


def test_statements_go_with_their_lines_and_a_block_that_loses_all_passes() -> None:
    units = SourceUnits(SOURCE, ast.parse(SOURCE)).groups(UnitKind.STATEMENT)
    assert b"import os" not in units[0].render({1, 2})
    assert [g.render(set()).count(b"pass") for g in units[1:]] == [1, 1, 1, 0]  # an `else` goes whole


def test_an_assertion_keeps_what_it_depends_on_and_nothing_else() -> None:
    tree = ast.parse(SOURCE)
    place = find_test(tree, "t.py::test_x[3]", 17)
    assert place is not None
    assert fixed_lines(place) == {11, 12, 13, 14, 15, 17}
    assert unneeded_lines(tree, place) == {1, 10}
    assert loose_names(tree) == {"pytest"}
    assert loose_names(ast.parse(SOURCE.replace(b"def cart", b"def card"))) == {"pytest", "cart"}


def test_an_assertion_that_acts_and_a_helper_with_its_decorator_stay() -> None:
    source = (
        b"def bot():\n    made = Bot()\n    @made.on('x')\n    def echo():\n        return 1\n    return made\n\n\n"
        b"def test_x():\n    d = bot()\n    assert d.size() == 3\n    assert not d.undo()\n    assert d.text() == 'a'\n"
    )
    tree = ast.parse(source)
    place = find_test(tree, "t.py::test_x", 13)
    assert place is not None
    assert fixed_lines(place) == {10, 12, 13}
    heads = SourceUnits(source, tree).groups(UnitKind.HEAD, {10, 12, 13}, data=False)
    assert all(b"@made.on('x')" in group.render(set()) for group in heads)


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("x.json", b'{"a": [1, {"b": "cd"}], "e": 5}', b'"cd"'),
        ("x.csv", b"a,b\n1,2\n", b"b\n2\n"),
        ("x.txt", b"one\ntwo\n", b"two\n"),
        ("x.bin", bytes(range(256)) * 3, bytes(range(256))),
    ],
)
def test_data_files_are_cut_by_their_structure(name: str, data: bytes, part: bytes) -> None:
    groups = data_groups(name, data)
    made = [g.render({i}) for g in groups for i in range(g.count)]
    assert any(part in text and len(text) < len(data) for text in made)
    for group in groups:
        whole = group.render(set(range(group.count)))
        assert json.loads(whole) == json.loads(data) if name == "x.json" else whole == data


@given(st.text(st.characters(codec="utf-8"), max_size=900))
def test_a_pattern_is_its_own_pattern(message: str) -> None:
    assert message_pattern(message_pattern(message)) == message_pattern(message)


@given(st.integers(), st.integers(0, 2**48 - 1), st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True))
def test_numbers_addresses_and_temporary_paths_make_no_other_failure(number: int, address: int, name: str) -> None:
    text = f"no {number} in <X object at 0x{address:012x}> of /tmp/{name}/f"
    assert message_pattern(text) == message_pattern("no 5 in <X object at 0x7fff00000000> of /tmp/b/f")
    assert message_pattern("no 'key'") != message_pattern("no 'other'")


def test_values_of_the_tests_own_assertion_belong_to_its_signature() -> None:
    def failed(left: str, path: str) -> Failure:
        frame = Frame(path=RepoPath(path), line=1, function="test_x")
        return Failure(exception="AssertionError", message=f"assert {left} == 3", frames=(frame,), left=left, right="3")

    own = {"test_a.py", "test_b.py"}
    assert signature_of(failed("1", "test_a.py"), own) == signature_of(failed("1", "test_b.py"), own)
    assert signature_of(failed("1", "test_a.py"), own) != signature_of(failed("2", "test_a.py"), own)
    assert signature_of(failed("1", "test_a.py"), own).path == TEST_CODE
    assert signature_of(failed("1", "lib.py"), own) == signature_of(failed("2", "lib.py"), own)


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_interval_holds_the_rate(failed: int, more: int) -> None:
    rate = FailureRate(failed=failed, runs=failed + more)
    low, high = rate.interval
    assert 0 <= low <= high <= 1
    assert not rate.runs or low - 1e-9 <= failed / rate.runs <= high + 1e-9


def test_a_traceback_names_a_test_of_this_tree_or_none() -> None:
    test = b"def test_total():\n    a = 1\n    assert a == 2\n\nclass TestA:\n    def test_b(self):\n        assert 0\n"
    files = {RepoPath("tests/test_shop.py"): test, RepoPath("shop.py"): b""}
    trace = 'x Traceback\n  File "/home/ci/demo/tests/test_shop.py", line 3, in test_total\n'
    assert named_test(trace, files) == "tests/test_shop.py::test_total"
    assert (
        named_test("FAILED tests/test_shop.py::TestA::test_b[1-2] - x", files)
        == "tests/test_shop.py::TestA::test_b[1-2]"
    )
    beside = "tests/test_shop.py::test_total PASSED\n0.02s setup    tests/test_shop.py::test_total\n"
    beside += "rerun tests/test_shop.py::test_total\n"
    assert named_test(f"{beside}FAILED tests/test_shop.py::TestA::test_b - x", files).endswith("::TestA::test_b")
    short = "____ TestA.test_b ____\ntests/test_shop.py:7: in test_b\n    assert 0\nE   assert 0\n"
    assert named_test(short, files) == "tests/test_shop.py::TestA::test_b"
    with pytest.raises(AnswerIsNo, match="no test of this repository"):
        named_test(trace.replace("test_shop", "test_else"), files)
