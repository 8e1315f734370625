"""What a patch copies from the tests, in the choice among plausible ones."""

import pytest
from support.choice_builder import SWAP, M, near

from localagent.code.test_literals import Literals, read_tests
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.repair.acceptance.copied_literals import copied
from localagent.repair.acceptance.ranking import ranked

TEST = (
    b"def test_f():\n    assert f(10, 'a') == 4711\n    assert f(3, \"kiwi\") == 2.75\n    assert f(8, 'q') == 1024\n"
)


def visible() -> Literals:
    found = Literals()
    read_tests(TEST, lambda _: True, found)
    return found


def patch(number: int, after: bytes, before: bytes = b"def f(n, s):\n    return n + 19\n") -> Candidate:
    change = FileChange(path=M, before=before, after=after)
    return Candidate(number=number, patch=Patch(changes=(change,)), edits=(SWAP,), cost=1.0)


@pytest.mark.parametrize(
    ("after", "count"),
    [
        (b"def f(n, s):\n    return 4711\n", 1),
        (b"def f(n, s):\n    return 0x1267\n", 1),
        (b"def f(n, s):\n    return 2.75 if s == 'kiwi' else n\n", 2),
        (b"def f(n, s):\n    return 8 if n == 10 else 1024\n", 0),
        (b"def f(n, s):\n    return n - 19\n", 0),
        (b"def f(n, s):\n    return n + 20\n", 0),
    ],
)
def test_literals_that_only_the_tests_had_are_copies(after: bytes, count: int) -> None:
    assert copied(patch(1, after), visible()) == count


def test_one_that_the_file_had_is_no_copy() -> None:
    before = b"LIMIT = 4711\ndef f(n, s):\n    return n\n"
    assert copied(patch(1, before.replace(b"return n", b"return 4711"), before), visible()) == 0


def test_one_that_stood_in_a_file_that_did_not_parse_is_no_copy() -> None:
    before = b"LIMIT = 4711\ndef f(n, s:\n    return n\n"
    assert copied(patch(1, before.replace(b"s:", b"s=4711):"), before), visible()) == 0
    assert copied(patch(1, before.replace(b"s:", b"s='kiwi'):"), before), visible()) == 1


def test_a_copy_comes_after_what_costs_a_little_more() -> None:
    special, general = patch(1, b"def f(n, s):\n    return 4711\n"), patch(2, b"def f(n, s):\n    return n * 3\n")
    order = ranked([special, general], near({}), tested=visible())
    assert [s.candidate.number for s in order] == [2, 1]
    assert [s.candidate.number for s in ranked([special, general], near({}))] == [1, 2]
